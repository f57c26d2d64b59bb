#[cfg(unix)]
use std::path::Path;
#[cfg(unix)]
use std::sync::Arc;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Intercept;

use super::proxy::{Proxy, is_http};
use super::tls;

/// How servers are reached.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    pub(super) proxy: Proxy,
    /// Whether plain connections through a proxy are tunneled as well.
    pub(super) tunnel_all: bool,
    /// The socket of the server at the host `localhost`.
    #[cfg(unix)]
    pub(super) unix_socket: Option<Arc<Path>>,
}

/// How a request reaches its server.
#[derive(Debug)]
pub(super) enum Route {
    /// Directly.
    Direct,
    /// Through a Unix-domain socket.
    #[cfg(unix)]
    Unix(Arc<Path>),
    /// Through a proxy that reads the request and sends its own.
    Forward(Intercept),
    /// Through a proxy that opens a connection to the server and relays bytes.
    Tunnel(Intercept),
}

impl Routes {
    /// Returns the route to `server`.
    pub(super) fn route(&self, server: &Uri) -> Route {
        #[cfg(unix)]
        if let Some(path) = &self.unix_socket
            && server.host().is_some_and(|host| host.eq_ignore_ascii_case("localhost"))
        {
            return Route::Unix(Arc::clone(path));
        }
        match self.proxy.intercept(server) {
            None => Route::Direct,
            Some(proxy) if !self.tunnel_all && is_http(&proxy) && !tls::is_secure(server) => {
                Route::Forward(proxy)
            }
            Some(proxy) => Route::Tunnel(proxy),
        }
    }

    /// Returns the `Proxy-Authorization` value for a request forwarded to `server`.
    pub(super) fn authorization(&self, server: &Uri) -> Option<HeaderValue> {
        match self.route(server) {
            Route::Forward(proxy) => proxy.basic_auth().cloned(),
            _ => None,
        }
    }
}

use std::fmt;
use std::future::Future;
#[cfg(unix)]
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use mcp_sansio_async::EraCache;
use mcp_sansio_async::http_client::{Certificates, Connect, ConnectorError};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use ureq::config::{AutoHeaderValue, Config};

use super::agent_pool::AgentPool;
use super::body::{ThreadedBody, channel};
use super::exchange;
use crate::runtime::ThreadRuntime;
use crate::threads::Threads;

/// A lookup, a connection and a TLS handshake usually take less than a second.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may accept no bytes of a request.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Below the 60 s after which common load balancers close idle connections: a request sent at that
/// moment may be lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest response head. Common servers accept 8 to 64 KiB from a client.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Concurrent exchanges. 1,024: more than the limits of a client allow, and a number of threads
/// that systems grant a process by default.
const EXCHANGES_MAX: usize = 1024;

/// Performs HTTP exchanges with [`ureq`]: connection pool, TLS, proxies. Clones share the pool and
/// the eras learned by [`connect_with`](crate::connect_with).
///
/// It speaks HTTP/1.1. Each exchange has its own thread and connection, so that none waits for
/// another. It follows no redirects, stores no cookies, decodes no bodies, and retries nothing.
///
/// A response head may have at most 64 KiB.
#[derive(Clone)]
pub struct Connector {
    agents: Arc<AgentPool>,
    threads: Threads,
    era_cache: Arc<EraCache>,
}

impl Connector {
    /// Creates a connector that trusts the system's root certificates and uses the proxies of the
    /// environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`). Reading the root
    /// certificates from files takes some milliseconds: share one connector among all exchanges.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder whose defaults are those of [`new`](Self::new).
    #[must_use]
    pub const fn builder() -> ConnectorBuilder {
        ConnectorBuilder {
            certificates: Certificates::new(),
            tls: None,
            proxies: true,
            #[cfg(unix)]
            unix_socket: None,
            connect_timeout: CONNECT_TIMEOUT,
            exchanges_max: EXCHANGES_MAX,
        }
    }
}

impl Connect for Connector {
    type Runtime = ThreadRuntime;
    type Body = ThreadedBody;

    fn era_cache(&self) -> &EraCache {
        &self.era_cache
    }

    fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<ThreadedBody>, ConnectorError>> + Send + 'static {
        let ((sender, body), agents) = (channel(), Arc::clone(&self.agents));
        let begun = self.threads.run(move || exchange::perform(&agents, request, &sender));
        async move {
            let refused = |error| ConnectorError::Lost {
                reason: format!("cannot start a thread for the exchange: {error}"),
                sent: false,
            };
            begun.map_err(refused)?;
            body.response().await
        }
    }
}

impl Default for Connector {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Omits the configuration: a proxy may contain a password.
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

/// Configures a [`Connector`].
#[derive(Clone)]
pub struct ConnectorBuilder {
    certificates: Certificates,
    tls: Option<ClientConfig>,
    proxies: bool,
    #[cfg(unix)]
    unix_socket: Option<Arc<Path>>,
    connect_timeout: Duration,
    exchanges_max: usize,
}

impl ConnectorBuilder {
    /// Uses this TLS configuration instead of the default, for example with another cryptography
    /// provider. Its ALPN protocols become `http/1.1`.
    #[must_use]
    pub fn tls_config(mut self, config: ClientConfig) -> Self {
        self.tls = Some(config);
        self
    }

    /// Also trusts this root certificate, in DER. An unreadable one is skipped. Has no effect with
    /// [`tls_config`](Self::tls_config).
    #[must_use]
    pub fn root_certificate(mut self, der: &[u8]) -> Self {
        if RootCertStore::empty().add(CertificateDer::from(der)).is_ok() {
            self.certificates.add_root(der.to_owned());
        }
        self
    }

    /// Whether the system's root certificates are trusted. `true` by default; with `false`, only
    /// [`root_certificate`](Self::root_certificate) counts. Has no effect with
    /// [`tls_config`](Self::tls_config).
    #[must_use]
    pub const fn system_roots(mut self, trusted: bool) -> Self {
        self.certificates.set_system_roots(trusted);
        self
    }

    /// Presents a client certificate to servers that ask for one: the certificate and its
    /// intermediates, in DER, and the private key, in the DER form of PKCS #8, PKCS #1 or SEC 1. Has
    /// no effect with [`tls_config`](Self::tls_config).
    ///
    /// # Errors
    ///
    /// [`ConnectorError::Configuration`]: the key is invalid, or of another certificate.
    pub fn client_certificate(
        mut self,
        chain: impl IntoIterator<Item = impl Into<Vec<u8>>>,
        key: impl Into<Vec<u8>>,
    ) -> Result<Self, ConnectorError> {
        self.certificates.set_client(chain, key.into())?;
        Ok(self)
    }

    /// Connects to servers directly, ignoring the proxies of the environment.
    #[must_use]
    pub const fn no_proxy(mut self) -> Self {
        self.proxies = false;
        self
    }

    /// Reaches the server at the host `localhost` through the Unix-domain socket at `path`, without
    /// a proxy; its URL is `http://localhost/mcp`, for example. Other hosts, such as that of an
    /// authorization server, are reached as before. [`connect_unix`](crate::connect_unix) needs no
    /// connector.
    #[cfg(unix)]
    #[must_use]
    pub fn unix_socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.unix_socket = Some(path.into().into());
        self
    }

    /// Limits the time to establish a connection, including TLS and proxies. 10 s by default.
    /// Resolving the name may take as long again.
    #[must_use]
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Limits the concurrent exchanges of all connections by this connector; each has a thread.
    /// Further ones fail as not sent. 1,024 by default.
    #[must_use]
    pub const fn exchanges_max(mut self, exchanges: usize) -> Self {
        self.exchanges_max = exchanges;
        self
    }

    /// Builds the connector.
    #[must_use]
    pub fn build(self) -> Connector {
        let mut tls = self.tls.unwrap_or_else(|| {
            let config = self.certificates.config();
            config.expect("the roots were checked, and the provider supports TLS 1.2 and 1.3")
        });
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Config::builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(AutoHeaderValue::None)
            .accept(AutoHeaderValue::None)
            .accept_encoding(AutoHeaderValue::None)
            .max_response_header_size(HEAD_BYTES_MAX)
            .max_idle_connections(1)
            .max_idle_connections_per_host(1)
            .max_idle_age(IDLE_TIMEOUT)
            .timeout_resolve(Some(self.connect_timeout))
            .timeout_connect(Some(self.connect_timeout))
            .timeout_per_write(Some(WRITE_TIMEOUT));
        let config = if self.proxies { config } else { config.proxy(None) };
        Connector {
            agents: Arc::new(AgentPool {
                config: config.build(),
                tls: Arc::new(tls),
                #[cfg(unix)]
                unix_socket: self.unix_socket,
                idle: Mutex::default(),
            }),
            threads: Threads::new("mcp-exchange", self.exchanges_max),
            era_cache: Arc::default(),
        }
    }
}

impl fmt::Debug for ConnectorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectorBuilder").finish_non_exhaustive()
    }
}

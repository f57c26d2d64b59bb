use std::io;
use std::time::Duration;

use mcp_sansio_auth::loopback::InvalidRedirectAddress;
use mcp_sansio_oauth::client::{ActionFailure, AuthorizationRequest};

use crate::block_on;
use crate::runtime::ThreadRuntime;

/// Where the user comes back to who signs in with a browser on this computer: a listener on
/// 127.0.0.1 that answers the browser and takes the redirect.
///
/// ```no_run
/// use mcp_sansio_std::auth::client::AuthorizationRequest;
/// use mcp_sansio_std::{Loopback, open_in_browser};
///
/// # fn run(request: AuthorizationRequest) -> Result<(), Box<dyn std::error::Error>> {
/// let loopback = Loopback::bind(0)?.application("the tour");
/// let redirect_uri = loopback.redirect_uri(); // for the options of the client
/// let redirect = loopback.authorize(&request, |url| {
///     if open_in_browser(url).is_err() {
///         eprintln!("To sign in, open {url}");
///     }
/// })?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Loopback(mcp_sansio_async::Loopback<ThreadRuntime>);

impl Loopback {
    /// Listens on 127.0.0.1, at `port` or, if that is 0, at one that is free. Authorization servers
    /// take any port there for a client that is registered with another one (RFC 8252, section 7.3);
    /// some do not.
    ///
    /// # Errors
    ///
    /// The operating system: the port is in use.
    pub fn bind(port: u16) -> io::Result<Self> {
        block_on(mcp_sansio_async::Loopback::bind(port))?.map(Self)
    }

    /// Has the user come back to this path, instead of `/callback`.
    ///
    /// # Errors
    ///
    /// The caller's: it is no path.
    pub fn path(self, path: impl Into<String>) -> Result<Self, InvalidRedirectAddress> {
        self.0.path(path).map(Self)
    }

    /// What the user knows this program as, for the page that says to return to it.
    #[must_use]
    pub fn application(self, name: &str) -> Self {
        Self(self.0.application(name))
    }

    /// How long a user may take. 5 min by default.
    #[must_use]
    pub fn timeout(self, time: Duration) -> Self {
        Self(self.0.timeout(time))
    }

    /// Where the user comes back to, for the options of the client.
    #[must_use]
    pub fn redirect_uri(&self) -> String {
        self.0.redirect_uri()
    }

    /// Shows the user the page of the authorization server, by `open`, and waits for the redirect
    /// that answers this request; what is returned is its target. It answers once. Whatever else
    /// comes in gets a refusal, and the wait goes on. Of several calls the second begins when the
    /// first one is over.
    ///
    /// It blocks for as long as the user takes. In a handler it would hold up the connection: there
    /// it needs a thread of its own.
    ///
    /// # Errors
    ///
    /// The user does not come back in time; the request is for another redirect URI; the system has no
    /// descriptors to wait with.
    pub fn authorize(
        &self,
        request: &AuthorizationRequest,
        open: impl FnOnce(&str) + Send,
    ) -> Result<String, ActionFailure> {
        let redirected = block_on(self.0.authorize(request.clone(), open));
        redirected.map_err(|error| ActionFailure::Failed(error.to_string()))?
    }
}

#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use mcp_sansio_async::loopback::InvalidRedirectAddress;
use mcp_sansio_oauth::client::{ActionFailure, AuthorizationRequest};

use crate::block_on;
use crate::runtime::ThreadRuntime;

/// The redirect target for a user who signs in with a browser on this computer: a listener on
/// 127.0.0.1 that answers the browser and receives the redirect.
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
pub struct Loopback(mcp_sansio_async::loopback::Loopback<ThreadRuntime>);

impl Loopback {
    /// Listens on 127.0.0.1, at `port` or, if that is 0, at a free port. Most authorization servers
    /// accept any port there for a client registered with another one (RFC 8252, section 7.3); some
    /// do not.
    ///
    /// # Errors
    ///
    /// The operating system failed: the port is in use.
    pub fn bind(port: u16) -> io::Result<Self> {
        block_on(mcp_sansio_async::loopback::Loopback::bind(port)).map(Self)
    }

    /// Sets the path of the redirect, instead of `/callback`.
    ///
    /// # Errors
    ///
    /// The path is invalid: the caller's fault.
    pub fn path(self, path: impl Into<String>) -> Result<Self, InvalidRedirectAddress> {
        self.0.path(path).map(Self)
    }

    /// Sets the application name shown to the user on the page that says to return to it.
    #[must_use]
    pub fn application(self, name: &str) -> Self {
        Self(self.0.application(name))
    }

    /// Limits the time for a user to sign in. 5 min by default.
    #[must_use]
    pub fn timeout(self, time: Duration) -> Self {
        Self(self.0.timeout(time))
    }

    /// Returns the redirect URI, for the options of the client.
    #[must_use]
    pub fn redirect_uri(&self) -> String {
        self.0.redirect_uri()
    }

    /// Returns the redirect URI with the name `localhost`, for
    /// [`fallback_redirect_uri`](mcp_sansio_oauth::client::AuthorizationOptions::fallback_redirect_uri):
    /// some authorization servers accept no address. The listener receives both. The address comes
    /// first, because another program may listen on `::1`, which `localhost` means as well
    /// (RFC 8252, section 8.3).
    #[must_use]
    pub fn localhost_redirect_uri(&self) -> String {
        self.0.localhost_redirect_uri()
    }

    /// Shows the user the page of the authorization server, with `open`, and waits for the redirect
    /// that answers this request. Returns its target. Only the first such redirect is accepted;
    /// other requests are refused while waiting continues. Concurrent calls run one after the
    /// other.
    ///
    /// It blocks until the user returns. In a handler that would block the connection: use a
    /// separate thread there.
    ///
    /// # Errors
    ///
    /// The user did not come back in time; the request is for another redirect URI.
    pub fn authorize(
        &self,
        request: &AuthorizationRequest,
        open: impl FnOnce(&str) + Send,
    ) -> Result<String, ActionFailure> {
        block_on(self.0.authorize(request.clone(), open))
    }
}

#[cfg(test)]
mod tests;

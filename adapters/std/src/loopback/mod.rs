//! Where a user comes back to.

mod connection;
mod pause;

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use mcp_sansio::Instant;
use mcp_sansio_auth::loopback::{
    CONNECTIONS_MAX, InvalidRedirectAddress, PATH, RedirectAddress, Reply, USER_TIME,
};
use mcp_sansio_oauth::client::{ActionFailure, AuthorizationRequest};

use connection::{Connection, Progress};

use crate::now;

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
pub struct Loopback {
    listener: TcpListener,
    address: RedirectAddress,
    application: String,
    time: Duration,
    /// One user at a time.
    turn: Mutex<()>,
}

impl Loopback {
    /// Listens on 127.0.0.1, at `port` or, if that is 0, at one that is free. Authorization servers
    /// take any port there for a client that is registered with another one (RFC 8252, section 7.3);
    /// some do not.
    ///
    /// # Errors
    ///
    /// The operating system: the port is in use.
    pub fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = RedirectAddress::new(listener.local_addr()?, PATH);
        let address = address.map_err(io::Error::other)?;
        let application = "the application".to_owned();
        Ok(Self { listener, address, application, time: USER_TIME, turn: Mutex::new(()) })
    }

    /// Has the user come back to this path, instead of `/callback`.
    ///
    /// # Errors
    ///
    /// The caller's: it is no path.
    pub fn path(mut self, path: impl Into<String>) -> Result<Self, InvalidRedirectAddress> {
        self.address = self.address.with_path(path)?;
        Ok(self)
    }

    /// What the user knows this program as, for the page that says to return to it.
    #[must_use]
    pub fn application(mut self, name: &str) -> Self {
        name.clone_into(&mut self.application);
        self
    }

    /// How long a user may take. 5 min by default.
    #[must_use]
    pub const fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Where the user comes back to, for the options of the client.
    #[must_use]
    pub fn redirect_uri(&self) -> String {
        self.address.redirect_uri()
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
    /// The user does not come back in time; the request is for another redirect URI.
    // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]
    pub fn authorize(
        &self,
        request: &AuthorizationRequest,
        open: impl FnOnce(&str),
    ) -> Result<String, ActionFailure> {
        if request.redirect_uri != self.redirect_uri() {
            return Err(ActionFailure::Failed(self.address.mismatch(&request.redirect_uri)));
        }
        let answers = |target: &str| request.is_answered_by(target);
        let redirect = self.redirect(answers, || open(&request.url));
        redirect.ok_or_else(|| ActionFailure::Failed("the user has not come back in time".into()))
    }

    /// The target of the redirect that `answers`; `None` if it does not come in time.
    fn redirect(&self, answers: impl Fn(&str) -> bool, open: impl FnOnce()) -> Option<String> {
        // There is nothing behind it that a panic could have broken.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let end = now() + self.time;
        open();
        let mut connections = VecDeque::new();
        loop {
            pause::until_ready(&self.listener, &connections, end);
            let time = now();
            if time >= end {
                return None;
            }
            self.accept(&mut connections, time);
            let mut answer = None;
            connections.retain_mut(|connection| match connection.go_on(&self.address, time) {
                Progress::Waits => true,
                Progress::Over => false,
                Progress::Refused(reply) => {
                    connection.reply(reply, &self.application);
                    false
                }
                Progress::Redirected(target) => {
                    let asked_for = answer.is_none() && answers(&target);
                    let reply = if asked_for { Reply::Welcome } else { Reply::NotAsked };
                    connection.reply(reply, &self.application);
                    if asked_for {
                        answer = Some(target);
                    }
                    false
                }
            });
            if answer.is_some() {
                return answer;
            }
        }
    }

    /// Accepts what waits to be accepted.
    fn accept(&self, connections: &mut VecDeque<Connection>, now: Instant) {
        // Those who come in all the time get no more than a turn.
        for _ in 0..CONNECTIONS_MAX {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if connections.len() >= CONNECTIONS_MAX {
                        connections.pop_front();
                    }
                    connections.extend(Connection::new(stream, now));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    // Out of descriptors or the like: it passes, but not at once.
                    std::thread::sleep(Duration::from_millis(50));
                    return;
                }
            }
        }
    }
}

impl fmt::Debug for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loopback").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

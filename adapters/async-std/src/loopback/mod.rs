//! Where a user comes back to.

mod connection;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_io::Async;
use async_lock::Mutex;
use mcp_sansio::auth::client::{ActionFailure, AuthorizationRequest};
use mcp_sansio_auth::loopback::{
    CONNECTIONS_MAX, InvalidRedirectAddress, PATH, RedirectAddress, Reply, USER_TIME,
};

use connection::Redirected;

use crate::timer::timeout;

/// Where the user comes back to who signs in with a browser on this computer: a listener on
/// 127.0.0.1 that answers the browser and takes the redirect.
///
/// ```no_run
/// use mcp_sansio_async_std::auth::client::ClientOptions;
/// use mcp_sansio_async_std::{Authorization, Loopback, open_in_browser};
///
/// # async fn run() -> Result<Authorization, Box<dyn std::error::Error>> {
/// let loopback = Loopback::bind(0).await?.application("the tour");
/// let options = ClientOptions::code(loopback.redirect_uri())?;
/// let authorization = Authorization::new(options).on_authorize(move |request| {
///     loopback.authorize(request, |url| {
///         if open_in_browser(url).is_err() {
///             eprintln!("To sign in, open {url}");
///         }
///     })
/// });
/// # Ok(authorization)
/// # }
/// ```
///
/// Clones are the same listener.
#[derive(Clone, Debug)]
pub struct Loopback {
    socket: Arc<Socket>,
    address: RedirectAddress,
    application: Arc<str>,
    time: Duration,
}

#[derive(Debug)]
struct Socket {
    listener: Async<TcpListener>,
    /// One user at a time.
    turn: Mutex<()>,
}

/// A connection that is being read, or answered.
type Connection = Pin<Box<dyn Future<Output = Option<Redirected>> + Send>>;

impl Loopback {
    /// Listens on 127.0.0.1, at `port` or, if that is 0, at one that is free. Authorization servers
    /// take any port there for a client that is registered with another one (RFC 8252, section 7.3);
    /// some do not. There is nothing to wait for; it is `async` as on tokio.
    ///
    /// # Errors
    ///
    /// The operating system: the port is in use.
    #[allow(clippy::unused_async, reason = "the same program runs on tokio")]
    pub async fn bind(port: u16) -> io::Result<Self> {
        let listener = Async::<TcpListener>::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = RedirectAddress::new(listener.get_ref().local_addr()?, PATH);
        let address = address.map_err(io::Error::other)?;
        let application = "the application".into();
        let socket = Arc::new(Socket { listener, turn: Mutex::new(()) });
        Ok(Self { socket, address, application, time: USER_TIME })
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
        self.application = name.into();
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
    /// # Errors
    ///
    /// The user does not come back in time; the request is for another redirect URI.
    // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]
    pub fn authorize<O: FnOnce(&str) + Send>(
        &self,
        request: AuthorizationRequest,
        open: O,
    ) -> impl Future<Output = Result<String, ActionFailure>> + Send + use<O> {
        let loopback = self.clone();
        async move {
            if request.redirect_uri != loopback.redirect_uri() {
                let mismatch = loopback.address.mismatch(&request.redirect_uri);
                return Err(ActionFailure::Failed(mismatch));
            }
            let answers = |target: &str| request.is_answered_by(target);
            let redirect = loopback.redirect(answers, || open(&request.url)).await;
            let late = || ActionFailure::Failed("the user has not come back in time".into());
            redirect.ok_or_else(late)
        }
    }

    /// The target of the redirect that `answers`; `None` if it does not come in time.
    async fn redirect(
        &self,
        answers: impl Fn(&str) -> bool,
        open: impl FnOnce(),
    ) -> Option<String> {
        let waited = async {
            let _turn = self.socket.turn.lock().await;
            open();
            self.accept_until(answers).await
        };
        timeout(self.time, waited).await
    }

    async fn accept_until(&self, answers: impl Fn(&str) -> bool) -> String {
        let mut connections = VecDeque::new();
        let mut accepting = Box::pin(self.accept());
        loop {
            let redirected = poll_fn(|cx| {
                // Those who come in all the time get no more than a turn.
                for _ in 0..CONNECTIONS_MAX {
                    let Poll::Ready(connection) = accepting.as_mut().poll(cx) else {
                        return poll_first(&mut connections, cx);
                    };
                    accepting = Box::pin(self.accept());
                    if connections.len() >= CONNECTIONS_MAX {
                        connections.pop_front();
                    }
                    connections.push_back(connection);
                }
                cx.waker().wake_by_ref();
                poll_first(&mut connections, cx)
            });
            let Redirected { stream, target } = redirected.await;
            if answers(&target) {
                connection::reply(stream, Reply::Welcome, &self.application).await;
                return target;
            }
            let application = Arc::clone(&self.application);
            connections.push_back(Box::pin(async move {
                connection::reply(stream, Reply::NotAsked, &application).await;
                None
            }));
        }
    }

    async fn accept(&self) -> Connection {
        let stream = loop {
            match self.socket.listener.accept().await {
                Ok((stream, _)) => break stream,
                // Out of descriptors or the like: it passes, but not at once.
                Err(_) => drop(async_io::Timer::after(Duration::from_millis(50)).await),
            }
        };
        let (address, application) = (self.address.clone(), Arc::clone(&self.application));
        Box::pin(async move { connection::serve(stream, &address, &application).await })
    }
}

/// The first redirect that one of the connections has come to.
fn poll_first(connections: &mut VecDeque<Connection>, cx: &mut Context<'_>) -> Poll<Redirected> {
    let mut first = None;
    connections.retain_mut(|connection| {
        if first.is_some() {
            return true;
        }
        match connection.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(redirected) => {
                first = redirected;
                false
            }
        }
    });
    first.map_or(Poll::Pending, Poll::Ready)
}

#[cfg(test)]
mod tests;

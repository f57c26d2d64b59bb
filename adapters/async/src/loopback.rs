//! The redirects of users who sign in with a browser.

mod request;

/// The names that adapters export at their root.
pub(crate) mod names {
    pub use mcp_sansio_auth::{FileStore, Signer, open_in_browser};
    pub use mcp_sansio_handlers::Authorization;
}

use std::collections::VecDeque;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_lock::Mutex;
use mcp_sansio::InvalidValue;
use mcp_sansio_oauth::client::{ActionFailure, AuthorizationRequest};

use crate::network::Network;
use crate::runtime::timeout;
use crate::{ByteStream, Runtime};

use request::{CONNECTION_TIME, PATH, ParsedRequest, REQUEST_LENGTH_MAX, RedirectAddress, Reply};

pub use request::{CONNECTIONS_MAX, USER_TIME};

/// The redirect target for a user who signs in with a browser on this computer: a listener on
/// 127.0.0.1 that answers the browser and receives the redirect.
///
/// Clones share the listener.
#[derive(Debug)]
pub struct Loopback<N: Network> {
    socket: Arc<Socket<N>>,
    runtime: N,
    address: RedirectAddress,
    application: Arc<str>,
    time: Duration,
}

#[derive(Debug)]
struct Socket<N: Network> {
    listener: N::Listener,
    /// Serializes sign-ins: one user at a time.
    turn: Mutex<()>,
}

/// A connection whose request is being read or answered.
type Connection<S> = Pin<Box<dyn Future<Output = Option<Redirected<S>>> + Send>>;

impl<N: Network> Loopback<N> {
    /// Listens on 127.0.0.1, at `port` or, if that is 0, at a free port. Most authorization servers
    /// accept any port there for a client registered with another one (RFC 8252, section 7.3); some
    /// do not.
    ///
    /// # Errors
    ///
    /// The operating system failed: the port is in use.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`] does.
    #[allow(clippy::unused_async, reason = "some runtimes are only available inside of a task")]
    pub async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = RedirectAddress::new(listener.local_addr()?, PATH);
        let address = address.map_err(io::Error::other)?;
        let application = "the application".into();
        let socket =
            Arc::new(Socket { listener: N::listener(listener.into())?, turn: Mutex::new(()) });
        Ok(Self { socket, runtime: N::current(), address, application, time: USER_TIME })
    }

    /// Sets the path of the redirect, instead of `/callback`.
    ///
    /// # Errors
    ///
    /// The path is invalid: the caller's fault.
    pub fn path(mut self, path: impl Into<String>) -> Result<Self, InvalidValue> {
        self.address = self.address.with_path(path)?;
        Ok(self)
    }

    /// Sets the application name shown to the user on the page that says to return to it.
    #[must_use]
    pub fn application(mut self, name: &str) -> Self {
        self.application = name.into();
        self
    }

    /// Limits the time for a user to sign in, once the page is shown. 5 min by default.
    #[must_use]
    pub const fn timeout(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Returns the redirect URI, for the options of the client.
    #[must_use]
    pub fn redirect_uri(&self) -> String {
        self.address.redirect_uri()
    }

    /// Returns the redirect URI with the name `localhost`, for
    /// [`fallback_redirect_uri`](mcp_sansio_oauth::client::AuthorizationOptions::fallback_redirect_uri):
    /// some authorization servers accept no address. The listener receives both. The address comes
    /// first, because another program may listen on `::1`, which `localhost` means as well
    /// (RFC 8252, section 8.3).
    #[must_use]
    pub fn localhost_redirect_uri(&self) -> String {
        self.address.localhost_redirect_uri()
    }

    /// Shows the user the page of the authorization server, with `open`, and waits for the redirect
    /// that answers this request. Returns its target. Only the first such redirect is accepted;
    /// other requests are refused while waiting continues. Concurrent calls run one after the
    /// other, each with its full time: drop one that is no longer of use.
    ///
    /// # Errors
    ///
    /// The user did not come back in time; the request is for another redirect URI.
    // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]
    pub fn authorize<O: FnOnce(&str) + Send>(
        &self,
        request: AuthorizationRequest,
        open: O,
    ) -> impl Future<Output = Result<String, ActionFailure>> + Send + use<N, O> {
        let loopback = self.clone();
        async move {
            if !loopback.address.has(&request.redirect_uri) {
                let mismatch = loopback.address.mismatch(&request.redirect_uri);
                return Err(ActionFailure::Failed(mismatch));
            }
            let answers = |target: &str| request.is_answered_by(target);
            let redirect = loopback.redirect(answers, || open(&request.url)).await;
            redirect.ok_or(ActionFailure::TimedOut)
        }
    }

    /// Like [`authorize`](Self::authorize), for any redirect accepted by `answers`: returns its
    /// target, or `None` if it does not arrive in time.
    pub async fn redirect(
        &self,
        answers: impl Fn(&str) -> bool,
        open: impl FnOnce(),
    ) -> Option<String> {
        // Before the time begins, as an earlier sign-in may take all of its own.
        let _turn = self.socket.turn.lock().await;
        open();
        timeout(&self.runtime, self.time, self.accept_until(answers)).await
    }

    async fn accept_until(&self, answers: impl Fn(&str) -> bool) -> String {
        let mut connections = VecDeque::new();
        let mut accepting = Box::pin(self.accept());
        loop {
            let redirected = poll_fn(|cx| {
                // Limit the connections accepted per poll, so that a flood of them yields to other
                // tasks.
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
                reply(&self.runtime, stream, Reply::Welcome, &self.application).await;
                return target;
            }
            let (runtime, application) = (self.runtime.clone(), Arc::clone(&self.application));
            connections.push_back(Box::pin(async move {
                reply(&runtime, stream, Reply::NotAsked, &application).await;
                None
            }));
        }
    }

    async fn accept(&self) -> Connection<N::Socket> {
        let stream = loop {
            match N::accept(&self.socket.listener).await {
                Ok((socket, _)) => break socket,
                // Out of descriptors or similar: the condition passes, but not immediately.
                Err(_) => {
                    timeout(&self.runtime, Duration::from_millis(50), pending::<()>()).await;
                }
            }
        };
        let (runtime, address) = (self.runtime.clone(), self.address.clone());
        let application = Arc::clone(&self.application);
        Box::pin(async move { serve(&runtime, stream, &address, &application).await })
    }
}

impl<N: Network> Clone for Loopback<N> {
    fn clone(&self) -> Self {
        Self {
            socket: Arc::clone(&self.socket),
            runtime: self.runtime.clone(),
            address: self.address.clone(),
            application: Arc::clone(&self.application),
            time: self.time,
        }
    }
}

/// Polls the connections for the first redirect.
fn poll_first<S>(
    connections: &mut VecDeque<Connection<S>>,
    cx: &mut Context<'_>,
) -> Poll<Redirected<S>> {
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

/// A connection whose request is a redirect, and its target.
#[derive(Debug)]
struct Redirected<S> {
    stream: S,
    target: String,
}

/// Reads the request of a connection, and refuses it unless it is a redirect.
async fn serve<S: ByteStream>(
    runtime: &impl Runtime,
    mut stream: S,
    address: &RedirectAddress,
    application: &str,
) -> Option<Redirected<S>> {
    let read = async {
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let room = piece.len().min(REQUEST_LENGTH_MAX - request.len());
            // The end or failure of a connection does not affect the others.
            let count = poll_fn(|cx| stream.poll_read(cx, &mut piece[..room])).await.ok()?;
            request.extend_from_slice(&piece[..count]);
            match address.read(&request) {
                ParsedRequest::Incomplete if count == 0 => return None,
                ParsedRequest::Incomplete => {}
                ParsedRequest::Redirect(target) => return Some(Ok(target.to_owned())),
                ParsedRequest::Refused(reply) => return Some(Err(reply)),
            }
        }
    };
    match timeout(runtime, CONNECTION_TIME, read).await?? {
        Ok(target) => Some(Redirected { stream, target }),
        Err(refusal) => {
            reply(runtime, stream, refusal, application).await;
            None
        }
    }
}

/// Answers the request of a connection and closes it.
async fn reply(
    runtime: &impl Runtime,
    mut stream: impl ByteStream,
    reply: Reply,
    application: &str,
) {
    let response = reply.response(application);
    let mut rest = &response[..];
    let written = poll_fn(|cx| {
        while !rest.is_empty() {
            match ready!(stream.poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => rest = &rest[count..],
            }
        }
        stream.poll_close(cx)
    });
    // A failure cannot be reported to anyone.
    let _: Option<io::Result<()>> = timeout(runtime, CONNECTION_TIME, written).await;
}

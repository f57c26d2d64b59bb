use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use mcp_sansio::auth::client::{ActionFailure, AuthorizationRequest};
use mcp_sansio_auth::loopback::{
    CONNECTION_TIME, CONNECTIONS_MAX, InvalidRedirectAddress, PATH, REQUEST_LENGTH_MAX,
    RedirectAddress, Reply, Request, USER_TIME,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// Where the user comes back to who signs in with a browser on this computer: a listener on
/// 127.0.0.1 that answers the browser and takes the redirect.
///
/// ```no_run
/// use mcp_sansio_tokio::auth::client::ClientOptions;
/// use mcp_sansio_tokio::{Authorization, Loopback, open_in_browser};
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
    listener: TcpListener,
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
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O enabled.
    pub async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = RedirectAddress::new(listener.local_addr()?, PATH);
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
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O and time enabled.
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
        timeout(self.time, waited).await.ok()
    }

    async fn accept_until(&self, answers: impl Fn(&str) -> bool) -> String {
        let mut connections = JoinSet::new();
        let mut waiting: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            let (stream, target) = tokio::select! {
                accepted = self.socket.listener.accept() => {
                    let Ok((stream, _)) = accepted else {
                        // Out of descriptors or the like: it passes, but not at once.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    };
                    waiting.retain(|it| !it.is_finished());
                    if waiting.len() >= CONNECTIONS_MAX
                        && let Some(oldest) = waiting.pop_front()
                    {
                        oldest.abort();
                    }
                    let (address, application) =
                        (self.address.clone(), Arc::clone(&self.application));
                    let connection = async move { serve(stream, &address, &application).await };
                    waiting.push_back(connections.spawn(connection));
                    continue;
                }
                Some(served) = connections.join_next() => match served {
                    Ok(Some(redirect)) => redirect,
                    _ => continue,
                },
            };
            if answers(&target) {
                reply(stream, Reply::Welcome, &self.application).await;
                return target;
            }
            let application = Arc::clone(&self.application);
            waiting.push_back(connections.spawn(async move {
                reply(stream, Reply::NotAsked, &application).await;
                None
            }));
        }
    }
}

/// Reads the request of a connection, and refuses it unless it is a redirect.
async fn serve(
    mut stream: TcpStream,
    address: &RedirectAddress,
    application: &str,
) -> Option<(TcpStream, String)> {
    let read = async {
        let mut request = Vec::new();
        loop {
            let room = REQUEST_LENGTH_MAX - request.len();
            // The end of a connection, or its failure, concerns nobody else.
            let count = (&mut stream).take(room as u64).read_buf(&mut request).await.ok()?;
            match address.read(&request) {
                Request::Incomplete if count == 0 => return None,
                Request::Incomplete => {}
                Request::Redirect(target) => return Some(Ok(target.to_owned())),
                Request::Refused(reply) => return Some(Err(reply)),
            }
        }
    };
    match timeout(CONNECTION_TIME, read).await.ok()?? {
        Ok(target) => Some((stream, target)),
        Err(refusal) => {
            reply(stream, refusal, application).await;
            None
        }
    }
}

/// Answers the request of a connection and closes it.
async fn reply(mut stream: TcpStream, reply: Reply, application: &str) {
    let response = reply.response(application);
    let written = async {
        stream.write_all(&response).await?;
        stream.shutdown().await
    };
    // Nobody is left to be told.
    let _ = timeout(CONNECTION_TIME, written).await;
}

#[cfg(test)]
mod tests;

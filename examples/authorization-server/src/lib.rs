//! An OAuth 2.1 authorization server, **for tests and demonstrations only**.
//!
//! It supports what MCP requires: metadata in both forms, registration, codes with PKCE, rotating
//! refresh tokens, tokens bound to one resource, and `iss` in its responses. It does not
//! authenticate users: there is one user, who agrees to everything by default, and every client
//! that reaches the server acts for that user. All state is lost when it stops. For these reasons
//! it only listens on loopback addresses.
//!
//! ```no_run
//! # use authorization_server::{AuthorizationServer, Options};
//! # async fn run() -> std::io::Result<()> {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let options = Options::new().scopes(["mcp:basic", "mcp:write"]);
//! let authorization_server = AuthorizationServer::start(listener, options)?;
//! println!("{}", authorization_server.issuer());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod authorization;
mod bounded_map;
pub mod browser;
mod clients;
mod failure;
mod grants;
mod keys;
mod metadata;
mod options;
mod page;
mod parameters;
pub mod protected;
mod redirect_uri;
mod registration;
mod service;
mod tokens;

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mcp_sansio_tokio::unix_time;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub use clients::{Client, ClientAuthentication, GrantType};
pub use keys::{SigningKeys, verify};
pub use options::{Approval, Limits, Options, TrustedIssuer};
use service::Service;
pub use service::Tally;

/// The maximum length of a request body in bytes, enough for one or two JSON Web Tokens.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// How long receiving a request may take.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// The maximum number of concurrent connections. Further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 64;

/// An authorization server for tests and demonstrations. It stops when dropped.
pub struct AuthorizationServer {
    issuer: String,
    service: Arc<Mutex<Service>>,
    serving: JoinHandle<()>,
}

impl AuthorizationServer {
    /// Serves on `listener`, which must be bound to a loopback address.
    ///
    /// # Errors
    ///
    /// Fails if the address is not a loopback address, or if the system's random number generator
    /// fails.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime with I/O and time enabled.
    pub fn start(listener: TcpListener, options: Options) -> io::Result<Self> {
        let address = listener.local_addr()?;
        // MCP 2026-07-28 basic/authorization/security-considerations#communication-security
        // [AUTHS-025]: endpoints use `https`, except on loopback addresses.
        if !address.ip().is_loopback() {
            let reason = "an authorization server for tests only listens on loopback addresses";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let issuer = format!("http://{address}");
        let service = Service::new(issuer.clone(), options, SigningKeys::generate()?);
        let service = Arc::new(Mutex::new(service));
        let serving = tokio::spawn(serve(listener, Arc::clone(&service)));
        Ok(Self { issuer, service, serving })
    }

    /// Returns the issuer identifier, which is the URL of the server.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the public keys as a JWK set, as served at `jwks_uri`.
    #[must_use]
    pub fn jwks(&self) -> Value {
        self.service().keys.to_jwks()
    }

    /// Generates a new signing key. The two previous keys stay published.
    ///
    /// # Errors
    ///
    /// Fails if the system's random number generator fails.
    pub fn rotate_keys(&self) -> io::Result<()> {
        self.service().keys.rotate()
    }

    /// Revokes all refresh tokens. Access tokens stay valid until they expire.
    pub fn revoke_refresh_tokens(&self) {
        self.service().revoke_all();
    }

    /// Returns the counts of requests so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.service().tally
    }

    fn service(&self) -> MutexGuard<'_, Service> {
        lock(&self.service)
    }
}

impl fmt::Debug for AuthorizationServer {
    /// Omits the state, which contains secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issuer = &self.issuer;
        f.debug_struct("AuthorizationServer").field("issuer", issuer).finish_non_exhaustive()
    }
}

impl Drop for AuthorizationServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, service: Arc<Mutex<Service>>) {
    // Dropping the set closes the connections.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((socket, _)) => drop(connections.spawn(serve_connection(socket, Arc::clone(&service)))),
                // For example, no free file descriptors: retry later.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(socket: TcpStream, service: Arc<Mutex<Service>>) {
    let respond = service_fn(move |request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(respond(request, &service).await.map(Full::new)) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_TIME);
    // A failed connection does not affect the others.
    drop(http.serve_connection(TokioIo::new(socket), respond).await);
}

async fn respond(request: Request<Incoming>, service: &Mutex<Service>) -> Response<Bytes> {
    let (head, body) = request.into_parts();
    let body = tokio::time::timeout(REQUEST_TIME, Limited::new(body, BODY_BYTES_MAX).collect());
    match body.await {
        Ok(Ok(body)) => {
            lock(service).handle(&Request::from_parts(head, body.to_bytes()), unix_time())
        }
        Ok(Err(_)) => status(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => status(StatusCode::REQUEST_TIMEOUT),
    }
}

fn status(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

/// Locks the service. No code panics in the middle of a change, so a poisoned lock is still
/// consistent.
fn lock(service: &Mutex<Service>) -> MutexGuard<'_, Service> {
    service.lock().unwrap_or_else(PoisonError::into_inner)
}

//! An OAuth 2.1 authorization server, **for tests and demonstrations only**.
//!
//! It does what MCP asks of one: metadata in both forms, registration, codes with PKCE, refresh
//! tokens that rotate, tokens for one resource each, `iss` in its responses. But nobody signs in
//! with anything: there is one user, who agrees to everything unless told otherwise, and whoever
//! reaches the server acts for them. All that it knows is lost when it ends. So it listens on
//! loopback addresses alone.
//!
//! ```no_run
//! # use mcp_sansio_examples::authorization_server::{AuthorizationServer, Options};
//! # async fn run() -> std::io::Result<()> {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let options = Options::new().scopes(["mcp:basic", "mcp:write"]);
//! let authorization_server = AuthorizationServer::start(listener, options)?;
//! println!("{}", authorization_server.issuer());
//! # Ok(())
//! # }
//! ```

mod authorization;
mod bounded_map;
mod clients;
mod failure;
mod grants;
mod keys;
mod metadata;
mod options;
mod page;
mod parameters;
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

/// The longest body of a request, in bytes: a JSON Web Token or two.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// How long a request may take to come.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// Connections at once; others wait to be accepted.
const CONNECTIONS_MAX: usize = 64;

/// An authorization server for tests and demonstrations, until it is dropped.
pub struct AuthorizationServer {
    issuer: String,
    service: Arc<Mutex<Service>>,
    serving: JoinHandle<()>,
}

impl AuthorizationServer {
    /// Serves on `listener`, whose address is of a loopback interface.
    ///
    /// # Errors
    ///
    /// The caller's fault: others could reach that address. The system's: it has no entropy.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O and time enabled.
    pub fn start(listener: TcpListener, options: Options) -> io::Result<Self> {
        let address = listener.local_addr()?;
        // MCP 2026-07-28 basic/authorization/security-considerations#communication-security [AUTHS-025]:
        // endpoints have `https`, unless nothing leaves this computer.
        if !address.ip().is_loopback() {
            let reason = "an authorization server for tests listens on loopback addresses alone";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let issuer = format!("http://{address}");
        let service = Service::new(issuer.clone(), options, SigningKeys::generate()?);
        let service = Arc::new(Mutex::new(service));
        let serving = tokio::spawn(serve(listener, Arc::clone(&service)));
        Ok(Self { issuer, service, serving })
    }

    /// Its issuer identifier, which is its URL.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Its public keys, as a JWK set: the same as at its `jwks_uri`.
    #[must_use]
    pub fn jwks(&self) -> Value {
        self.service().keys.to_jwks()
    }

    /// Signs with a fresh key from now on. The last two before it stay published.
    ///
    /// # Errors
    ///
    /// The system's fault: it has no entropy.
    pub fn rotate_keys(&self) -> io::Result<()> {
        self.service().keys.rotate()
    }

    /// Takes back every refresh token. Access tokens stay good until they end.
    pub fn revoke_refresh_tokens(&self) {
        self.service().revoke_all();
    }

    /// What was done until now.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.service().tally
    }

    fn service(&self) -> MutexGuard<'_, Service> {
        lock(&self.service)
    }
}

impl fmt::Debug for AuthorizationServer {
    /// Leaves out what it keeps: much of it is secret.
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
    // With it go the connections.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((socket, _)) => drop(connections.spawn(serve_connection(socket, Arc::clone(&service)))),
                // Out of descriptors, say: it may get better.
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
    // A connection that breaks concerns nobody else.
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

/// Nothing panics halfway through a change, so a poisoned lock guards what is whole.
fn lock(service: &Mutex<Service>) -> MutexGuard<'_, Service> {
    service.lock().unwrap_or_else(PoisonError::into_inner)
}

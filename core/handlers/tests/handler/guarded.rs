//! A connection to a protected server, its authorization server, and a clock that the test
//! advances.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::http::{
    self, ClientTransmit, ExchangeId, IncomingResponse, Location, OutgoingRequest,
};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Status;
use mcp_sansio::protocol::CallToolResult;
use mcp_sansio_handlers::endpoint::{HttpClientEndpoint, HttpEndpoint};
use mcp_sansio_handlers::handler::Threading;
use mcp_sansio_handlers::{Authorization, Client, ClientError, Host};
use mcp_sansio_oauth::client::{
    AuthorizationOptions, AuthorizationRequest, ClientSecret, RegisteredClient,
};

pub(crate) const MCP: &str = "https://mcp.example/mcp";
pub(crate) const ISSUER: &str = "https://as.example";
const REDIRECT: &str = "http://127.0.0.1:8910/callback";

/// Options of a client that is registered at the authorization server, and whose user signs in.
pub(crate) fn options() -> AuthorizationOptions {
    known(AuthorizationOptions::code(REDIRECT).unwrap(), ClientSecret::None)
}

/// Adds a registration at the authorization server to the options.
pub(crate) fn known(options: AuthorizationOptions, secret: ClientSecret) -> AuthorizationOptions {
    options.registered(RegisteredClient::new("demo", secret).issuer(ISSUER)).unwrap()
}

/// Adds a clock that stands still and constant entropy.
pub(crate) fn equipped<K: Threading>(authorization: Authorization<K>) -> Authorization<K> {
    authorization.unix_time(|| 1_800_000_000).entropy(|| [7; 32])
}

/// Returns a host whose authorization has a clock and entropy.
pub(crate) fn host(authorization: Authorization) -> Host {
    Host::new("host", "1").authorization(equipped(authorization))
}

/// Calls a tool that requires a token.
pub(crate) fn call(
    client: &Client,
) -> Pin<Box<dyn Future<Output = Result<CallToolResult, ClientError>>>> {
    Box::pin(client.call_tool("forecast", &BTreeMap::<String, String>::new()).into_future())
}

/// Returns an authorization whose user agrees at once.
pub(crate) fn at_once() -> Authorization {
    Authorization::new(options())
        .on_authorize(async |request: AuthorizationRequest| Ok(agreed(&request)))
}

/// Returns the redirect of a user who agrees.
pub(crate) fn agreed(request: &AuthorizationRequest) -> String {
    let (_, query) = request.url.split_once('?').expect("a query");
    let state = query.split('&').find(|pair| pair.starts_with("state=")).expect("a state");
    format!("{}?code=c1&{state}&iss=https%3A%2F%2Fas.example", request.redirect_uri)
}

/// Returns a redirect that an attacker sent.
pub(crate) fn forged(request: &AuthorizationRequest) -> String {
    format!("{}?code=evil&state=guessed", request.redirect_uri)
}

/// The servers that a client is connected to.
pub(crate) struct Guarded<K: Threading = mcp_sansio_handlers::ThreadSafe> {
    pub(crate) endpoint: Option<HttpClientEndpoint<K>>,
    pub(crate) now: Instant,
    /// Every request: its method and URL, its message or form, and the status of its response.
    pub(crate) log: Vec<String>,
    /// Whether `initialize` or `server/discover` needs a token, too.
    guards_opening: bool,
    /// The answer of the token endpoint; `None` if it does not answer yet.
    pub(crate) token: Option<String>,
    /// The token request that was not answered yet.
    unanswered: Option<ExchangeId>,
    wakeups: Arc<CountingWaker>,
}

const TOKEN: &str = r#"{"access_token":"t1","token_type":"Bearer","expires_in":3600}"#;

#[derive(Default)]
pub(crate) struct CountingWaker(pub(crate) AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<K: Threading> Guarded<K> {
    /// Creates a connection that is not open yet. Opening it requires a token.
    pub(crate) fn new(host: &Host<K>) -> (Client, Self) {
        let mut limits = http::ClientLimits::DEFAULT;
        // Calls do not read the list of tools.
        limits.refresh_pages_max = 0;
        let options = http::HttpClientOptions::new(Location::parse(MCP).unwrap()).limits(limits);
        let (client, endpoint) = host.connect_http(options, 7, Instant::ZERO);
        let it = Self {
            endpoint: Some(endpoint),
            now: Instant::ZERO,
            log: Vec::new(),
            guards_opening: true,
            token: Some(TOKEN.to_owned()),
            unanswered: None,
            wakeups: Arc::default(),
        };
        (client, it)
    }

    /// Creates a connection that was opened without a token. Later requests require one.
    pub(crate) fn opened(host: &Host<K>) -> (Client, Self) {
        let (client, mut it) = Self::new(host);
        it.guards_opening = false;
        it.run(client.opened()).unwrap();
        it.log.clear();
        (client, it)
    }

    fn turn(&mut self) -> bool {
        let rung = self.wakeups.0.load(Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(&self.wakeups));
        let Some(endpoint) = &mut self.endpoint else { return false };
        endpoint.poll_handlers(&mut Context::from_waker(&waker), self.now);
        let mut moved = false;
        while let Some(transmit) = self.endpoint.as_mut().and_then(HttpEndpoint::poll_transmit) {
            moved = true;
            match transmit {
                ClientTransmit::Send(request) => self.answer(&request),
                ClientTransmit::Abort(_) => self.log.push("abort".to_owned()),
            }
        }
        moved || self.wakeups.0.load(Ordering::SeqCst) > rung
    }

    /// Runs until there is no more progress.
    pub(crate) fn pump(&mut self) {
        for _ in 0..1000 {
            if !self.turn() {
                return;
            }
        }
        panic!("no end after 1000 rounds: {:#?}", self.log);
    }

    /// Runs until `future` is ready or there is no more progress.
    pub(crate) fn poll<F: Future + ?Sized>(
        &mut self,
        mut future: Pin<&mut F>,
    ) -> Option<F::Output> {
        let waker = Waker::from(Arc::clone(&self.wakeups));
        for _ in 0..1000 {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Some(output);
            }
            if !self.turn() {
                return None;
            }
        }
        panic!("no end after 1000 rounds: {:#?}", self.log);
    }

    /// Runs until `future` is ready, with the clock stopped.
    pub(crate) fn run<F: IntoFuture>(&mut self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future.into_future());
        self.poll(future.as_mut()).unwrap_or_else(|| panic!("stuck after {:#?}", self.log))
    }

    /// Advances the clock, stopping at every deadline.
    pub(crate) fn advance(&mut self, duration: Duration) {
        let until = self.now + duration;
        self.pump();
        loop {
            let Some(endpoint) = &mut self.endpoint else { return };
            let due = endpoint.poll_timeout().filter(|due| *due <= until);
            self.now = due.unwrap_or(until).max(self.now);
            endpoint.handle_timeout(self.now);
            self.pump();
            if due.is_none() {
                return;
            }
        }
    }

    /// Returns how many lines of the log contain `text`.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.log.iter().filter(|line| line.contains(text)).count()
    }

    // ------------------------------------------------------------------ the two servers

    fn answer(&mut self, request: &OutgoingRequest) {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let (_, place) = request.url().as_str().split_once("://").unwrap();
        let (status, challenge, answer) = match place {
            "mcp.example/mcp" => self.answer_message(request, &body),
            "mcp.example/.well-known/oauth-protected-resource/mcp" => (
                200,
                false,
                format!(r#"{{"resource":"{MCP}","authorization_servers":["{ISSUER}"]}}"#),
            ),
            "as.example/.well-known/oauth-authorization-server" => {
                (200, false, METADATA.to_owned())
            }
            "as.example/token" => (200, false, self.token.clone().unwrap_or_default()),
            _ => (404, false, String::new()),
        };
        let message = RawJson::parse(&body).ok();
        let message = message.as_ref().and_then(|it| it.get("method")?.to_text().map(String::from));
        let message = message.unwrap_or_default();
        let carried = if message.is_empty() { body } else { message };
        self.log.push(format!("{} {place} {carried} {status}", request.method));
        if place == "as.example/token" && self.token.is_none() {
            self.unanswered = Some(request.exchange);
            return;
        }
        self.respond(request.exchange, status, challenge, &answer);
    }

    fn answer_message(&self, request: &OutgoingRequest, body: &str) -> (u16, bool, String) {
        let token = request.fields().find(|(name, _)| *name == "authorization");
        let opens = body.contains("server/discover");
        let accepted = token.is_some_and(|(_, value)| value.starts_with("Bearer t"));
        if !accepted && (!opens || self.guards_opening) {
            return (401, true, String::new());
        }
        let message = RawJson::parse(body).unwrap();
        let id = message.get("id").unwrap();
        let result = if opens { DISCOVERED } else { SUNNY };
        (200, false, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
    }

    /// Answers the token request that waits for it.
    pub(crate) fn answer_token(&mut self, answer: &str) {
        let exchange = self.unanswered.take().expect("a token request");
        self.respond(exchange, 200, false, answer);
        self.pump();
    }

    fn respond(&mut self, exchange: ExchangeId, status: u16, challenge: bool, body: &str) {
        let Some(endpoint) = &mut self.endpoint else { return };
        let mut head = IncomingResponse::new(Status(status));
        head.field("content-type", b"application/json");
        if challenge {
            head.field("www-authenticate", CHALLENGE.as_bytes());
        }
        endpoint.handle_response(exchange, &head, self.now);
        endpoint.handle_body(exchange, body.as_bytes(), self.now);
        endpoint.handle_body_end(exchange, self.now);
    }
}

const CHALLENGE: &str =
    r#"Bearer resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp""#;

pub(crate) const METADATA: &str = r#"{
    "issuer": "https://as.example",
    "authorization_endpoint": "https://as.example/authorize",
    "token_endpoint": "https://as.example/token",
    "response_types_supported": ["code"],
    "grant_types_supported": [
        "authorization_code", "client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"
    ],
    "code_challenge_methods_supported": ["S256"],
    "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
    "token_endpoint_auth_signing_alg_values_supported": ["ES256"]
}"#;

const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#;

const SUNNY: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"sunny"}]}"#;

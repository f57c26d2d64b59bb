//! A protected server driven by the test, without a network.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_sansio::http::{
    ExchangeId, HttpServerOptions, RequestHead, Response, ResponseHead, ServerTransmit,
};
use mcp_sansio::{Caller, Instant, Principal};
use mcp_sansio_handlers::endpoint::{HandlerCall, HandlerPoll, HttpServer, PendingHandler};
use mcp_sansio_handlers::handler::TokenResult;
use mcp_sansio_handlers::{Server, TokenRequirement};
use mcp_sansio_oauth::protected_resource::{
    Operation, ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken,
};
use mcp_sansio_oauth::{BearerChallenge, Challenge};
use serde_json::{Value, json};

pub(crate) const URI: &str = "http://localhost/mcp";
pub(crate) const METADATA: &str = "http://localhost/.well-known/oauth-protected-resource/mcp";

/// Requires `use` for every operation and `write` for the tool `delete`; `all` implies `write`.
pub(crate) fn resource() -> ProtectedResource {
    let resource = ProtectedResource::new(URI, ["https://auth.example.com"]).unwrap();
    let resource = resource.base_scopes(["use"]).unwrap();
    let resource = resource.scopes_for(Operation::tool("delete"), ["write"]).unwrap();
    resource.implies("all", ["write"]).unwrap()
}

/// Accepts tokens that spell out their meaning: `name/scope+scope/…`, with an optional third part
/// that makes them invalid.
pub(crate) fn check(check: &TokenCheck) -> TokenResult {
    let mut parts = check.token().split('/');
    let (name, scopes) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let token = VerifiedToken::new(Principal::new(name)).scopes(scopes.split('+'));
    match parts.next() {
        None => Ok(token.audiences([check.resource()]).expires_at(check.unix_time() + 60)),
        Some("forged") => Err(TokenRefusal::Invalid),
        Some("revoked") => Err(TokenRefusal::Expired),
        Some("old") => Ok(token.audiences([check.resource()]).expires_at(check.unix_time())),
        Some("other") => Ok(token.audiences(["http://localhost/other"])),
        Some(_) => Err(TokenRefusal::Unavailable),
    }
}

/// A protected server and its clients.
pub(crate) struct ProtectedServer {
    pub(crate) server: HttpServer,
    pub(crate) now: Instant,
    running: Vec<PendingHandler>,
    /// How many tokens were checked.
    pub(crate) checks: Arc<AtomicU64>,
}

/// The response to a request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    fields: Vec<(&'static str, String)>,
    pub(crate) text: String,
}

impl Reply {
    fn new(head: &ResponseHead) -> Self {
        let fields = head.fields().map(|(name, value)| (name, value.into_owned())).collect();
        Self { status: head.status.0, fields, text: String::new() }
    }

    fn whole(response: Response) -> Self {
        let text = String::from_utf8(response.body).unwrap();
        Self { text, ..Self::new(&response.head) }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(field, _)| *field == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Parses `WWW-Authenticate`.
    pub(crate) fn challenge(&self) -> Option<BearerChallenge> {
        let field = self.field("www-authenticate")?;
        BearerChallenge::select(&Challenge::parse([field.as_bytes()]))
    }

    /// Returns the status, and the error and scope of the challenge.
    pub(crate) fn refusal(&self) -> (u16, Option<String>, Option<String>) {
        let challenge = self.challenge();
        let (error, scope) = challenge.map_or((None, None), |it| (it.error, it.scope));
        (self.status, error, scope)
    }
}

impl ProtectedServer {
    pub(crate) fn new(server: Server) -> Self {
        Self::with(server, HttpServerOptions::new())
    }

    pub(crate) fn with(server: Server, options: HttpServerOptions) -> Self {
        let checks = Arc::<AtomicU64>::default();
        let counter = Arc::clone(&checks);
        let counted = move |asked: TokenCheck| {
            counter.fetch_add(1, Ordering::SeqCst);
            check(&asked)
        };
        let server = server.protect(resource(), counted).unix_time(|| 1_000);
        Self { checks, ..Self::from_server(&server, options) }
    }

    pub(crate) fn from_server(server: &Server, options: HttpServerOptions) -> Self {
        let server = server.http(options, [7; 32], 7).unwrap();
        Self { server, now: Instant::ZERO, running: Vec::new(), checks: Arc::default() }
    }

    /// Sends a request and returns its response, without waiting for other input.
    pub(crate) fn send(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        match self.begin(method, target, fields, body) {
            Ok(exchange) => self.read(exchange),
            Err(answer) => answer,
        }
    }

    /// Sends a request. Returns its exchange, or the response that refused it.
    pub(crate) fn begin(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> Result<ExchangeId, Reply> {
        let mut head = RequestHead::new(method, target);
        head.field("host", b"localhost");
        head.field("content-type", b"application/json");
        head.field("accept", b"application/json, text/event-stream");
        for (name, value) in fields {
            head.field(name, value.as_bytes());
        }
        let mut cx = Context::from_waker(Waker::noop());
        let mut checking = match self.server.authorize(&head, &Caller::ANONYMOUS) {
            TokenRequirement::Check(checking) => checking,
            TokenRequirement::Respond(response) => return Err(Reply::whole(response)),
            TokenRequirement::NotNeeded => panic!("no token is required"),
        };
        let granted = loop {
            if let Poll::Ready(granted) = Pin::new(&mut checking).poll(&mut cx) {
                break granted;
            }
        };
        let grant = granted.map_err(Reply::whole)?;
        self.server.admit(&head).map_err(Reply::whole)?;
        let now = self.now;
        let (exchange, work) =
            self.server.handle_request(&head, body.as_bytes(), &grant.into(), now);
        if let Some(work) = work {
            self.run(work);
        }
        self.pump();
        Ok(exchange)
    }

    fn run(&mut self, work: HandlerCall<'_>) {
        match work.run() {
            HandlerPoll::Ready(finished) => self.server.finish(finished, self.now),
            HandlerPoll::Pending(running) => {
                self.server.track(&running);
                self.running.push(running);
            }
        }
    }

    /// Runs handlers until all of them wait.
    fn pump(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..5 {
            self.server.poll_handlers(&mut cx, self.now);
            while let Some(work) = self.server.poll_call() {
                self.run(work);
            }
            for mut running in std::mem::take(&mut self.running) {
                match Pin::new(&mut running).poll(&mut cx) {
                    Poll::Ready(Some(finished)) => self.server.finish(finished, self.now),
                    Poll::Ready(None) => {}
                    Poll::Pending => self.running.push(running),
                }
            }
        }
    }

    /// Advances the clock, stopping at every deadline.
    pub(crate) fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.server.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.server.handle_timeout(self.now);
            self.pump();
        }
        self.now = end;
        self.pump();
    }

    /// Reads the response as far as it was sent.
    pub(crate) fn read(&mut self, exchange: ExchangeId) -> Reply {
        let mut answer = None;
        while let Some(transmit) = self.server.poll_transmit(exchange, self.now) {
            match transmit {
                ServerTransmit::Respond(response) => return Reply::whole(response),
                ServerTransmit::Open(head) => answer = Some(Reply::new(&head)),
                ServerTransmit::Chunk(bytes) => {
                    let text = &mut answer.as_mut().expect("a head").text;
                    text.push_str(std::str::from_utf8(bytes).unwrap());
                }
                ServerTransmit::Finish | ServerTransmit::Abort => break,
            }
        }
        answer.expect("a response")
    }

    /// Reads the chunks that were sent since the last read.
    pub(crate) fn read_on(&mut self, exchange: ExchangeId) -> String {
        let mut text = String::new();
        while let Some(ServerTransmit::Chunk(bytes)) = self.server.poll_transmit(exchange, self.now)
        {
            text.push_str(std::str::from_utf8(bytes).unwrap());
        }
        text
    }

    /// Calls a tool at the modern revision, with a token.
    pub(crate) fn call(&mut self, token: &str, tool: &str) -> Reply {
        let token = format!("Bearer {token}");
        self.call_with(&[("authorization", &token)], tool)
    }

    pub(crate) fn call_with(&mut self, fields: &[(&str, &str)], tool: &str) -> Reply {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": {}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "progressToken": 1,
            },
        } });
        let mut all = vec![
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        all.extend(fields);
        self.send("POST", "/mcp", &all, &body.to_string())
    }

    /// Lists the tools at the modern revision, with a token.
    pub(crate) fn list_tools(&mut self, token: &str) -> Reply {
        let token = format!("Bearer {token}");
        let params = json!({ "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        } });
        let fields = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/list"),
            ("authorization", token.as_str()),
        ];
        self.send("POST", "/mcp", &fields, &request(1, "tools/list", &params))
    }

    /// Opens a legacy session and returns its id.
    pub(crate) fn open(&mut self, token: &str) -> String {
        self.open_at("2025-11-25", token)
    }

    /// Opens a legacy session at this revision and returns its id.
    pub(crate) fn open_at(&mut self, revision: &str, token: &str) -> String {
        let bearer = format!("Bearer {token}");
        let params = json!({ "protocolVersion": revision,
            "capabilities": { "elicitation": {} }, "clientInfo": { "name": "c", "version": "1" } });
        let opened = self.send(
            "POST",
            "/mcp",
            &[("authorization", &bearer)],
            &request(0, "initialize", &params),
        );
        assert_eq!(opened.status, 200, "{opened:?}");
        let session = opened.field("mcp-session-id").expect("a session").to_owned();
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(self.post(token, &session, note).status, 202);
        session
    }

    /// Posts a message to a session.
    pub(crate) fn post(&mut self, token: &str, session: &str, body: &str) -> Reply {
        let token = format!("Bearer {token}");
        let fields = [("authorization", token.as_str()), ("mcp-session-id", session)];
        self.send("POST", "/mcp", &fields, body)
    }
}

pub(crate) fn request(id: u32, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Returns a legacy request that calls a tool.
pub(crate) fn legacy_call(id: u32, tool: &str) -> String {
    request(id, "tools/call", &json!({ "name": tool, "arguments": {} }))
}

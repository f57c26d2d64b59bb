//! A client, its application, a network with scripted servers, and a virtual clock.
//!
//! `run` performs all steps that are due and returns a line for each. Servers answer at once:
//! documents by their URL, the MCP server by the token that it accepts. The application answers
//! every action automatically; tests can change its answers. Every request is recorded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::time::Duration;

use mcp_sansio::http::{
    self, ClientTransmit, ExchangeFailure, ExchangeId, IncomingResponse, Location,
};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Status;
use mcp_sansio::peer::{self, CallHandle, CallOptions, ClientMachine, TransportFailure};
use mcp_sansio::protocol::Implementation;
use mcp_sansio::{Instant, Method, Revision, Revisions};
use mcp_sansio_oauth::client::{
    ActionFailure, ActionId, AuthorizationAction, AuthorizationClient, AuthorizationEvent,
    AuthorizationFailure, AuthorizationOptions, ClientSecret, Credential, CredentialKey,
    RegisteredClient, Routing, SigningKey,
};

use crate::answers::{Answer, Reply, challenge, issuer, mcp_answer, resource, status, token};
use crate::secrets::Secrets;
use crate::sent::{Sent, parameters};

pub(crate) const MCP: &str = "https://mcp.example/mcp";
pub(crate) const AS: &str = "https://as.example";
pub(crate) const REDIRECT: &str = "http://127.0.0.1:7777/callback";
/// Metadata URL of the MCP server.
pub(crate) const PRM: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
/// Metadata URL of the authorization server.
pub(crate) const ASM: &str = "https://as.example/.well-known/oauth-authorization-server";
pub(crate) const TOKEN: &str = "https://as.example/token";
pub(crate) const REGISTER: &str = "https://as.example/register";
/// Start of the clock, in seconds since 1970.
pub(crate) const START: u64 = 1_800_000_000;

/// The reaction of a user who is asked to sign in.
#[derive(Clone, Debug)]
pub(crate) enum User {
    /// Returns with a code. The text is added to the query: `&iss=...`.
    SignsIn(String),
    /// Returns with exactly this redirect.
    ComesBack(String),
    /// Returns with the redirect that this authorization server gives to these parameters.
    Follows(fn(&BTreeMap<String, String>) -> String),
    Declines,
    Stays,
}

/// A scripted server. Returns `None` if the request is not meant for it.
type Server = Box<dyn FnMut(&Sent) -> Option<Answer>>;

pub(crate) struct TestNetwork {
    pub(crate) http: http::Client,
    pub(crate) auth: AuthorizationClient,
    pub(crate) now: Instant,
    /// Every request that was sent.
    pub(crate) sent: Vec<Sent>,
    /// The secrets that every request and every output is checked for.
    pub(crate) secrets: Secrets,
    /// The credentials that the application has stored.
    pub(crate) store: BTreeMap<CredentialKey, Credential>,
    pub(crate) user: User,
    /// Answers of the application to `AuthorizationAction::Assert`, in order.
    pub(crate) assertions: VecDeque<Result<String, ActionFailure>>,
    /// Failure of `AuthorizationAction::Sign`, or `None` for a signature.
    pub(crate) signature: Option<ActionFailure>,
    /// Whether the application answers `AuthorizationAction::Sign` at all.
    pub(crate) signs: bool,
    /// Whether the application answers `AuthorizationAction::Load` at all.
    pub(crate) loads: bool,
    /// Whether `AuthorizationAction::Load` fails.
    pub(crate) store_fails: bool,
    /// Whether the next `Save` or `Remove` has an effect.
    pub(crate) store_writes: Box<dyn FnMut() -> bool>,
    /// The lock that the application holds or waits for.
    pub(crate) locked: Option<ActionId>,
    /// Whether another process holds the lock on the tokens.
    pub(crate) locked_elsewhere: bool,
    /// The decoded queries of the authorization URLs.
    pub(crate) authorizations: Vec<BTreeMap<String, String>>,
    /// The last action, so that tests can answer it.
    pub(crate) action: Option<ActionId>,
    /// Handles requests to the MCP endpoint first.
    pub(crate) mcp: Server,
    /// Handles all requests, before `mcp`.
    pub(crate) network: Server,
    /// The failures that were reported.
    pub(crate) failures: Vec<AuthorizationFailure>,
    /// Waiting requests, by the exchange ids of the HTTP client.
    pub(crate) waiting: BTreeSet<ExchangeId>,
    /// Values of `Authorization` that the MCP server accepts.
    pub(crate) accepted: Vec<String>,
    /// The parameters of its `Bearer` challenge.
    pub(crate) challenge: String,
    answers: BTreeMap<String, VecDeque<Answer>>,
    /// Exchanges without a response, in the order of their requests.
    silent: Vec<(ExchangeId, String)>,
    calls: Vec<CallHandle>,
    text: String,
}

/// Returns options for a user who signs in, and an application that is preregistered as `app`
/// without a secret.
pub(crate) fn code() -> AuthorizationOptions {
    code_bare().registered(client("app", None, ClientSecret::None)).expect("a client")
}

/// Returns options for a user who signs in, and an application that is not registered.
pub(crate) fn code_bare() -> AuthorizationOptions {
    AuthorizationOptions::code(REDIRECT).expect("a valid redirect URI")
}

pub(crate) fn client(id: &str, issuer: Option<&str>, secret: ClientSecret) -> RegisteredClient {
    let mut client = RegisteredClient::new(id, secret);
    client.issuer = issuer.map(Into::into);
    client
}

pub(crate) fn password(text: &str) -> ClientSecret {
    ClientSecret::Password(text.into())
}

/// Returns options with which calls do not read the list of tools.
fn http_options(server: Location) -> http::HttpClientOptions {
    let mut limits = http::ClientLimits::DEFAULT;
    limits.refresh_pages_max = 0;
    http::HttpClientOptions::new(server).limits(limits)
}

/// Returns an HTTP client for this revision.
fn http_client(options: http::HttpClientOptions, revision: Revision, now: Instant) -> http::Client {
    let peer = peer::ClientOptions::new(Implementation::new("demo", "1.0"));
    let peer = peer.revisions(Revisions::only(revision));
    http::Client::new(peer, options, 7, now)
}

impl TestNetwork {
    /// Creates matching servers at `MCP` and `AS`. The first token is `t1`, which the MCP server
    /// accepts.
    pub(crate) fn new(options: AuthorizationOptions) -> Self {
        Self::at(MCP, options)
    }

    pub(crate) fn at(server: &str, options: AuthorizationOptions) -> Self {
        Self::with_entropy(server, options, [7; 32])
    }

    pub(crate) fn with_entropy(
        server: &str,
        options: AuthorizationOptions,
        entropy: [u8; 32],
    ) -> Self {
        let server = Location::parse(server).expect("a URL");
        let secrets = Secrets::new(&server);
        let mut network = Self {
            http: http_client(http_options(server.clone()), Revision::V2026_07_28, Instant::ZERO),
            auth: AuthorizationClient::new(options, server, entropy, START, Instant::ZERO),
            now: Instant::ZERO,
            sent: Vec::new(),
            secrets,
            store: BTreeMap::new(),
            user: User::SignsIn(format!("&iss={AS}")),
            assertions: VecDeque::new(),
            signature: None,
            signs: true,
            loads: true,
            store_fails: false,
            store_writes: Box::new(|| true),
            locked: None,
            locked_elsewhere: false,
            authorizations: Vec::new(),
            action: None,
            mcp: Box::new(|_| None),
            network: Box::new(|_| None),
            failures: Vec::new(),
            waiting: BTreeSet::new(),
            accepted: vec!["Bearer t1".into()],
            challenge: String::new(),
            answers: BTreeMap::new(),
            silent: Vec::new(),
            calls: Vec::new(),
            text: String::new(),
        };
        network.get(PRM, resource(""));
        let iss = r#","authorization_response_iss_parameter_supported":true"#;
        network.get(ASM, issuer(AS, iss));
        network.post(TOKEN, token("t1", ""));
        network
    }

    /// Restarts the application with the same store and servers.
    pub(crate) fn again(self, options: AuthorizationOptions) -> Self {
        let new = Self::with_entropy(MCP, options, [8; 32]);
        let Self { store, secrets, answers, accepted, challenge, user, mcp, .. } = self;
        Self { store, secrets, answers, accepted, challenge, user, mcp, ..new }
    }

    // ------------------------------------------------------------------ servers

    /// Sets the answer to a GET of this URL.
    pub(crate) fn get(&mut self, url: &str, answer: impl Into<Answer>) {
        self.answers.insert(format!("GET {url}"), [answer.into()].into());
    }

    /// Sets the answer to a POST to this URL.
    pub(crate) fn post(&mut self, url: &str, answer: impl Into<Answer>) {
        self.answers.insert(format!("POST {url}"), [answer.into()].into());
    }

    /// Sets the answers to consecutive POSTs to this URL; the last one is repeated.
    pub(crate) fn posts(&mut self, url: &str, answers: impl IntoIterator<Item = Answer>) {
        self.answers.insert(format!("POST {url}"), answers.into_iter().collect());
    }

    fn answer(&mut self, request: &Sent) -> Answer {
        if let Some(answer) = (self.network)(request) {
            return answer;
        }
        let place = request.place();
        if let Some(answers) = self.answers.get_mut(&format!("{} {place}", request.method)) {
            let last = answers.len() < 2;
            return match last {
                true => answers.front().cloned(),
                false => answers.pop_front(),
            }
            .expect("an answer");
        }
        if !place.ends_with("/mcp") || place.contains("/.well-known/") {
            return status(404);
        }
        if let Some(answer) = (self.mcp)(request) {
            return answer;
        }
        let authorization = request.field("authorization");
        if !authorization.is_some_and(|it| self.accepted.iter().any(|known| known == it)) {
            let text = format!("Bearer {}", self.challenge);
            return challenge(401, text.trim_end());
        }
        mcp_answer(request)
    }

    // ------------------------------------------------------------------ application

    /// Returns whether the client can call tools: a server may have ended its last session.
    pub(crate) fn is_open(&self) -> bool {
        self.http.session().is_some() && !self.http.is_closed()
    }

    /// Calls this tool.
    pub(crate) fn call(&mut self, tool: &str) {
        let params = format!(r#"{{"name":"{tool}","arguments":{{}}}}"#);
        let params = RawJson::parse(&params).expect("parameters");
        // Long enough for a user to sign in.
        let hour = Some(Duration::from_secs(3600));
        let mut options = CallOptions::default();
        (options.timeout, options.timeout_hard) = (hour, hour);
        let call = self.http.call(Method::ToolsCall, &params, &options, self.now);
        self.calls.push(call.expect("a call"));
    }

    /// Returns the number of calls on this connection.
    pub(crate) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Cancels the last call.
    pub(crate) fn cancel(&mut self) {
        let call = *self.calls.last().expect("a call");
        self.http.cancel(call, "enough", self.now);
    }

    /// Replaces the HTTP client.
    pub(crate) fn reconnect(&mut self) {
        self.reconnect_at(Revision::V2026_07_28);
    }

    pub(crate) fn reconnect_at(&mut self, revision: Revision) {
        let server = Location::parse(MCP).expect("a URL");
        self.http = http_client(http_options(server), revision, self.now);
    }

    /// Replaces the HTTP client with one that has other options.
    pub(crate) fn reconnect_with(
        &mut self,
        options: impl FnOnce(http::HttpClientOptions) -> http::HttpClientOptions,
    ) {
        let server = Location::parse(MCP).expect("a URL");
        let options = options(http_options(server));
        self.http = http_client(options, Revision::V2026_07_28, self.now);
    }

    // ------------------------------------------------------------------ steps

    /// Performs all steps that are due, and returns a line for each.
    pub(crate) fn run(&mut self) -> String {
        for _ in 0..1000 {
            if !self.step() {
                return core::mem::take(&mut self.text);
            }
        }
        panic!("no end after 1000 steps:\n{}", self.text);
    }

    /// Advances the clock, and performs the steps that become due.
    pub(crate) fn advance(&mut self, duration: Duration) -> String {
        let until = self.now + duration;
        let mut text = self.run();
        for _ in 0..1000 {
            let due = [self.http.poll_timeout(), self.auth.poll_timeout()];
            let due = due.into_iter().flatten().min().filter(|due| *due <= until);
            self.now = due.unwrap_or(until).max(self.now);
            self.http.handle_timeout(self.now);
            self.auth.handle_timeout(self.now);
            text += &self.run();
            if due.is_none() {
                return text;
            }
        }
        panic!("the clock does not advance past {:?}:\n{text}", self.now);
    }

    fn step(&mut self) -> bool {
        let mut moved = false;
        while let Some(transmit) = self.http.poll_transmit() {
            if let ClientTransmit::Abort(inner) = transmit {
                self.waiting.remove(&inner);
            }
            self.auth.handle_transmit(transmit, self.now);
            moved = true;
        }
        while let Some(action) = self.auth.poll_action() {
            self.act(action);
            moved = true;
        }
        while let Some(event) = self.auth.poll_event() {
            self.tell(event);
            moved = true;
        }
        if let Some(transmit) = self.auth.poll_transmit() {
            self.transmit(transmit);
            return true;
        }
        while let Some(event) = self.http.poll_event() {
            if let peer::Event::Ended(ended) = event {
                let number = self.calls.iter().position(|it| *it == ended.call);
                let number = number.map_or(0, |at| at + 1);
                let outcome = if ended.outcome.is_ok() { "done" } else { "failed" };
                self.line(format_args!("call {number} {outcome}"));
            }
            moved = true;
        }
        moved
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{line}").expect("a line");
    }

    fn transmit(&mut self, transmit: ClientTransmit) {
        match transmit {
            ClientTransmit::Send(request) => {
                let exchange = request.exchange;
                let sent = Sent::from_request(&request);
                self.line(format_args!("{}", sent.describe()));
                self.secrets.check(&sent);
                self.secrets.check_shown(&format!("{request:?}"));
                self.sent.push(sent.clone());
                let answer = self.answer(&sent);
                self.secrets.learn(&sent, &answer);
                self.receive(exchange, &sent.place(), answer);
            }
            ClientTransmit::Abort(exchange) => {
                let at = self.silent.iter().position(|(it, _)| *it == exchange);
                let place = at.map_or_else(|| "?".into(), |at| self.silent.remove(at).1);
                self.line(format_args!("abort {place}"));
            }
        }
    }

    fn receive(&mut self, exchange: ExchangeId, place: &str, answer: Answer) {
        match answer {
            Answer::Silence => self.silent.push((exchange, place.into())),
            Answer::Fails(failure) => self.fails(exchange, failure),
            Answer::Reply(reply) => {
                self.head(exchange, &reply);
                // In pieces, the first of which is incomplete.
                let (first, rest) = reply.body.as_bytes().split_at(reply.body.len() / 2);
                for piece in [first, rest].into_iter().flat_map(|it| it.chunks(10_000)) {
                    self.body(exchange, piece);
                    self.secrets.check_shown(&format!("{:?}", self.auth));
                }
                self.end(exchange);
            }
        }
    }

    /// Answers the first pending request to this URL.
    pub(crate) fn answer_late(&mut self, place: &str, answer: impl Into<Answer>) {
        let at = self.silent.iter().position(|(_, it)| it == place).expect("a request");
        let (exchange, place) = self.silent.remove(at);
        self.receive(exchange, &place, answer.into());
    }

    /// Delivers a piece of a response body to the first pending request to this URL, after the head
    /// of `reply` if there is one.
    pub(crate) fn drip(&mut self, place: &str, reply: Option<&Reply>, bytes: &[u8]) {
        let at = self.silent.iter().find(|(_, it)| it == place);
        let Some((exchange, _)) = at.cloned() else { return };
        if let Some(reply) = reply {
            self.head(exchange, reply);
        }
        self.body(exchange, bytes);
    }

    /// Delivers the head of the response to the first pending request to this URL, and moves the
    /// request to the end of the queue.
    pub(crate) fn head_late(&mut self, place: &str, reply: &Reply) {
        let at = self.silent.iter().position(|(_, it)| it == place).expect("a request");
        let silent = self.silent.remove(at);
        self.silent.push(silent.clone());
        self.head(silent.0, reply);
    }

    fn head(&mut self, exchange: ExchangeId, reply: &Reply) {
        let mut head = IncomingResponse::new(Status(reply.status));
        for (name, value) in &reply.fields {
            head.field(name, value.as_bytes());
        }
        if let Routing::Forward(inner) = self.auth.handle_response(exchange, &head, self.now) {
            self.http.handle_response(inner, &head, self.now);
        }
    }

    fn body(&mut self, exchange: ExchangeId, bytes: &[u8]) {
        if let Routing::Forward(inner) = self.auth.handle_body(exchange, bytes, self.now) {
            self.http.handle_body(inner, bytes, self.now);
        }
    }

    fn end(&mut self, exchange: ExchangeId) {
        if let Routing::Forward(inner) = self.auth.handle_body_end(exchange, self.now) {
            self.http.handle_body_end(inner, self.now);
        }
    }

    fn fails(&mut self, exchange: ExchangeId, failure: ExchangeFailure) {
        let passage = self.auth.handle_exchange_failed(exchange, failure, self.now);
        if let Routing::Forward(inner) = passage {
            self.http.handle_exchange_failed(inner, failure, self.now);
        }
    }

    fn tell(&mut self, event: AuthorizationEvent) {
        self.secrets.check_shown(&format!("{event:?} {:?}", self.auth));
        if let AuthorizationEvent::Refused(_, failure) | AuthorizationEvent::Failed(failure) =
            &event
        {
            self.failures.push(AuthorizationFailure::clone(failure));
            let shown = failure.to_string();
            assert!(!shown.is_empty(), "{failure:?}");
            self.secrets.check_shown(&shown);
        }
        match event {
            AuthorizationEvent::Paused(inner) => {
                self.waiting.insert(inner);
                self.http.pause(inner, self.now);
                self.line(format_args!("waiting"));
            }
            AuthorizationEvent::Resumed(inner) => {
                self.waiting.remove(&inner);
                self.http.resume(inner, self.now);
                self.line(format_args!("resumed"));
            }
            AuthorizationEvent::Refused(inner, failure) => {
                self.waiting.remove(&inner);
                self.line(format_args!("refused: {failure}"));
                let reason = failure.to_string();
                let failure = TransportFailure::AuthorizationFailed { reason };
                self.http.refuse(inner, failure, self.now);
            }
            AuthorizationEvent::Authorized { issuer, scope } => {
                let scope = scope.map_or_else(String::new, |scope| format!(" for {scope}"));
                self.line(format_args!("authorized by {issuer}{scope}"));
            }
            AuthorizationEvent::Failed(failure) => self.line(format_args!("no token: {failure}")),
            other => self.line(format_args!("{other:?}")),
        }
    }

    fn act(&mut self, action: AuthorizationAction) {
        self.secrets.check_shown(&format!("{action:?}"));
        match action {
            AuthorizationAction::Load(id, key) => self.load(id, &key, "load"),
            AuthorizationAction::Lock(id, key) => {
                assert_eq!(self.locked, None, "two locks at once");
                self.locked = (!self.store_fails).then_some(id);
                match self.locked_elsewhere {
                    true => {
                        self.action = Some(id);
                        self.line(format_args!("lock {}", describe_key(&key)));
                    }
                    false => self.load(id, &key, "lock"),
                }
            }
            AuthorizationAction::Unlock(id) => {
                assert_eq!(self.locked.take(), Some(id), "another lock");
                self.line(format_args!("unlock"));
            }
            AuthorizationAction::Save(key, credential) => {
                self.line(format_args!("save {}", describe_key(&key)));
                if (self.store_writes)() {
                    self.store.insert(key, credential);
                }
            }
            AuthorizationAction::Remove(key) => {
                self.line(format_args!("remove {}", describe_key(&key)));
                if (self.store_writes)() {
                    self.store.remove(&key);
                }
            }
            AuthorizationAction::Withdraw(id) => {
                self.locked.take_if(|locked| *locked == id);
                let which = if self.action == Some(id) { "the last action" } else { "an action" };
                self.line(format_args!("withdraw {which}"));
            }
            AuthorizationAction::Authorize(request) => {
                self.action = Some(request.id);
                let (place, query) = request.url.split_once('?').expect("a query");
                self.line(format_args!("sign in at {place}"));
                let query: BTreeMap<_, _> = parameters(query).collect();
                let state = query["state"].clone();
                self.secrets.state(&state);
                let answered = query.clone();
                self.authorizations.push(query);
                let redirect = match self.user.clone() {
                    User::SignsIn(rest) => {
                        let number = self.secrets.states();
                        Ok(format!("/callback?code=code{number}&state={state}{rest}"))
                    }
                    User::ComesBack(query) => Ok(query.replace("STATE", &state)),
                    User::Follows(server) => Ok(server(&answered)),
                    User::Declines => Err(ActionFailure::Declined),
                    User::Stays => return,
                };
                let redirect = redirect.as_deref().map_err(Clone::clone);
                self.auth.handle_redirect(request.id, redirect, self.now);
            }
            AuthorizationAction::Sign(request) => {
                self.action = Some(request.id);
                let key = match &request.key {
                    SigningKey::Client(id) => format!("as {id}"),
                    _ => "a proof".into(),
                };
                self.line(format_args!("sign {key} with {}", request.algorithm));
                if self.signs {
                    let failure = self.signature.clone();
                    let signature = failure.map_or(Ok(&b"signature"[..]), Err);
                    self.auth.handle_signature(request.id, signature, self.now);
                }
            }
            AuthorizationAction::Assert(request) => {
                self.action = Some(request.id);
                self.line(format_args!("assert for {}", request.audience));
                if let Some(assertion) = self.assertions.pop_front() {
                    let assertion = assertion.as_deref().map_err(Clone::clone);
                    self.auth.handle_assertion(request.id, assertion, self.now);
                }
            }
        }
    }

    fn load(&mut self, id: ActionId, key: &CredentialKey, how: &str) {
        self.action = Some(id);
        let found = self.store.get(key).cloned();
        let what = if found.is_some() { "found" } else { "nothing" };
        self.line(format_args!("{how} {}: {what}", describe_key(key)));
        if self.loads {
            let failure = ActionFailure::Failed("the disk is full".into());
            let loaded = if self.store_fails { Err(failure) } else { Ok(found) };
            self.auth.handle_loaded(id, loaded, self.now);
        }
    }

    /// Lets another process release the lock that this application waits for.
    pub(crate) fn unlock_elsewhere(&mut self) {
        self.locked_elsewhere = false;
        let id = self.action.expect("a lock");
        let found = self.store.get(&CredentialKey::Tokens(MCP.into())).cloned();
        self.auth.handle_loaded(id, Ok(found), self.now);
    }

    // ------------------------------------------------------------------ inspection

    /// Returns the requests to this URL without its query.
    pub(crate) fn sent_to(&self, place: &str) -> Vec<&Sent> {
        self.sent.iter().filter(|it| it.place() == place).collect()
    }

    /// Returns the last request to this URL.
    pub(crate) fn last_to(&self, place: &str) -> &Sent {
        self.sent_to(place).pop().unwrap_or_else(|| panic!("nothing was sent to {place}"))
    }

    /// Returns the text of every request to an origin.
    pub(crate) fn bytes_to(&self, origin: &str) -> String {
        let mut text = String::new();
        let to_it = |it: &&Sent| it.url == origin || it.url.starts_with(&format!("{origin}/"));
        for request in self.sent.iter().filter(to_it) {
            writeln!(text, "{} {}", request.method, request.url).expect("text");
            for (name, value) in &request.fields {
                writeln!(text, "{name}: {value}").expect("text");
            }
            writeln!(text, "{}", request.body).expect("text");
        }
        text
    }

    /// Returns the stored credentials as text.
    pub(crate) fn kept(&self) -> String {
        self.store.values().map(Credential::as_str).collect()
    }
}

fn describe_key(key: &CredentialKey) -> String {
    match key {
        CredentialKey::Tokens(server) => format!("tokens for {server}"),
        CredentialKey::Client(issuer) => format!("client of {issuer}"),
        CredentialKey::Issuer(client_id) => format!("issuer of {client_id}"),
        other => format!("{other:?}"),
    }
}

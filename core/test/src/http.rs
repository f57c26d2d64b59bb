use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};

use mcp_sansio::http::{
    ClientTransmit, ExchangeFailure, ExchangeId, HttpClientOptions, HttpServerOptions,
    IncomingResponse, Location, OutgoingRequest, RequestHead, Response, ResponseHead,
    ServerTransmit,
};
use mcp_sansio::{Caller, Instant, PanicGuard, Side, Spawner};
use mcp_sansio_handlers::endpoint::{
    HandlerCall, HandlerPoll, HttpClientEndpoint, HttpEndpoint, HttpServer, PendingHandler,
};
use mcp_sansio_handlers::handler::Threading;
use mcp_sansio_handlers::{Client, Host, Server, ThreadSafe};

use super::faults::{Faults, Wire};
use super::identity::Identity;
use super::pair::{Pair, Transport, VirtualClock};
use super::transcript::Transcript;

/// A server and a client that exchange HTTP.
pub type HttpPair<K = ThreadSafe, H = ThreadSafe> = Pair<Http<K, HttpClientEndpoint<H>>>;

/// The URL of the server in [`connect_http`].
pub const URL: &str = "http://localhost:8080/mcp";

/// The secret of the server in [`connect_http`], which session ids are derived from.
const SECRET: [u8; 32] = [7; 32];

/// Connects `host` to `server` over Streamable HTTP at [`URL`], and opens the connection. Each
/// request comes from `identity`: see [`Http::identity`].
///
/// ```
/// use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
/// use mcp_sansio_test::{Identity, connect_http};
///
/// let server = Server::new("s", "1.0.0").tool("whoami", "Your name", |call: Call<NoArguments>| {
///     call.principal().map_or("nobody", |it| it.as_str()).to_owned()
/// });
/// let (client, mut pair) =
///     connect_http(&server, &Host::new("test", "1.0.0"), Identity::new("ann"));
/// let result = pair.run(client.call_tool("whoami", &NoArguments {}))?;
/// assert_eq!(result.content[0].as_text(), Some("ann"));
/// # Ok::<(), mcp_sansio_handlers::ClientError>(())
/// ```
///
/// # Panics
///
/// If an item of the server's catalog is invalid, or the connection cannot be opened, for example
/// because the identity may not do that.
#[track_caller]
pub fn connect_http<K: Threading, H: Threading>(
    server: &Server<K>,
    host: &Host<H>,
    identity: impl Into<Option<Identity>>,
) -> (Client, HttpPair<K, H>) {
    let server = server
        .http(HttpServerOptions::new(), SECRET, super::SEED)
        .unwrap_or_else(|error| panic!("{error}"));
    let location = Location::parse(URL).unwrap_or_else(|error| panic!("{error}"));
    let options = HttpClientOptions::new(location);
    let (client, endpoint) = host.connect_http(options, super::SEED, Instant::ZERO);
    let mut pair = Pair::new(Http::new(server, endpoint).identity(identity));
    super::open(&client, &mut pair);
    (client, pair)
}

/// Answers requests in place of the server; `None` leaves the request to the server.
type Intercept = Box<dyn FnMut(&OutgoingRequest) -> Option<Response> + Send>;

/// A server and a client that exchange HTTP in memory, without sockets.
pub struct Http<K: Threading = ThreadSafe, C = HttpClientEndpoint> {
    /// The server.
    pub server: HttpServer<K>,
    /// The client's side; take it to drop it.
    pub client: Option<C>,
    identity: Option<Identity>,
    intercept: Option<Intercept>,
    /// By the client's id.
    exchanges: BTreeMap<ExchangeId, Exchange>,
    running: Vec<Pin<Box<PendingHandler<K>>>>,
    /// For the server after a restart.
    spawner: Option<Spawner>,
    clock: Option<VirtualClock>,
    guard: PanicGuard,
    wire: Wire<Message>,
}

/// An exchange whose response the client has not received whole.
#[derive(Debug, Default)]
struct Exchange {
    /// The server's id, while the server has output for it.
    server: Option<ExchangeId>,
    /// The start of a line in the body.
    line: String,
}

/// A message that is under way. Exchanges have the client's id.
#[derive(Debug)]
enum Message {
    Request { request: OutgoingRequest, is_copy: bool },
    Abort(ExchangeId),
    Response(ExchangeId, Part),
}

/// A part of a response.
#[derive(Debug)]
enum Part {
    Head(ResponseHead),
    Body(Vec<u8>),
    End,
    Broken,
}

impl<K: Threading, C: HttpEndpoint> Http<K, C> {
    /// Connects a client to a server.
    pub fn new(server: HttpServer<K>, client: C) -> Self {
        Self {
            server,
            client: Some(client),
            identity: None,
            intercept: None,
            exchanges: BTreeMap::new(),
            running: Vec::new(),
            spawner: None,
            clock: None,
            guard: PanicGuard::NONE,
            wire: Wire::new(),
        }
    }

    /// Sets the sender of all later requests, as an adapter that checks their credentials does. The
    /// check of a protected server is skipped, and its scopes apply. Without an identity a
    /// protected server checks the tokens that the client sends; the check must not wait.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<Option<Identity>>) -> Self {
        self.identity = identity.into();
        self
    }

    /// Lets `respond` answer requests in place of the server: as an authorization server, or to
    /// test how a client handles a faulty server. If it returns `None`, the request goes to the
    /// server.
    ///
    /// ```
    /// use mcp_sansio::Instant;
    /// use mcp_sansio::http::{HttpClientOptions, HttpServerOptions, Location};
    /// use mcp_sansio::http::{Response, ResponseHead};
    /// use mcp_sansio::peer::Status;
    /// use mcp_sansio_handlers::{Host, Server};
    /// use mcp_sansio_test::{Http, Pair, URL};
    ///
    /// let server = Server::new("s", "1.0.0").http(HttpServerOptions::new(), [0; 32], 0)?;
    /// let options = HttpClientOptions::new(Location::parse(URL)?);
    /// let (client, endpoint) = Host::new("test", "1.0.0").connect_http(options, 0, Instant::ZERO);
    /// let down = |_: &_| {
    ///     let head = ResponseHead::new(Status::NOT_FOUND, None);
    ///     Some(Response::new(head, Vec::new()))
    /// };
    /// let mut pair = Pair::new(Http::new(server, endpoint).intercept(down));
    /// assert!(pair.run(client.opened()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn intercept(
        mut self,
        respond: impl FnMut(&OutgoingRequest) -> Option<Response> + Send + 'static,
    ) -> Self {
        self.intercept = Some(Box::new(respond));
        self
    }

    /// Replaces the server, as when its process restarts: exchanges fail, handlers are dropped.
    pub fn restart(&mut self, server: HttpServer<K>, now: Instant) {
        self.server = server;
        self.server.catch_panics(self.guard);
        if let Some(spawn) = &self.spawner {
            self.server.set_spawner(spawn.clone());
        }
        if let Some(clock) = &self.clock {
            self.server.set_unix_time(clock.to_unix_time());
        }
        self.running.clear();
        self.cut(now);
    }

    /// Returns how many handlers are pending.
    #[must_use]
    pub fn pending_handlers(&self) -> usize {
        self.running.len()
    }

    /// Sends the requests of the client.
    fn collect_requests(&mut self, now: Instant) {
        while let Some(outgoing) = self.client.as_mut().and_then(HttpEndpoint::poll_transmit) {
            let (id, message) = match outgoing {
                ClientTransmit::Send(request) => {
                    self.exchanges.insert(request.exchange, Exchange::default());
                    if self.wire.is_duplicate() {
                        let request = request.again(request.exchange, []);
                        self.wire.send(None, Message::Request { request, is_copy: true }, now);
                    }
                    (request.exchange, Message::Request { request, is_copy: false })
                }
                ClientTransmit::Abort(exchange) => (exchange, Message::Abort(exchange)),
            };
            self.wire.send(Some((id.to_number(), Side::Client)), message, now);
        }
    }

    /// Sends the output of the server.
    fn collect_responses(&mut self, now: Instant) {
        let open = self.exchanges.iter().filter_map(|(id, it)| Some((*id, it.server?)));
        for (id, theirs) in open.collect::<Vec<_>>() {
            while let Some(transmit) = self.server.poll_transmit(theirs, now) {
                let is_last = matches!(
                    transmit,
                    ServerTransmit::Respond(_) | ServerTransmit::Finish | ServerTransmit::Abort
                );
                match transmit {
                    ServerTransmit::Respond(response) => respond(&mut self.wire, id, response, now),
                    ServerTransmit::Open(head) => send(&mut self.wire, id, Part::Head(head), now),
                    ServerTransmit::Chunk(bytes) => send_body(&mut self.wire, id, bytes, now),
                    ServerTransmit::Finish => send(&mut self.wire, id, Part::End, now),
                    ServerTransmit::Abort => send(&mut self.wire, id, Part::Broken, now),
                }
                if is_last {
                    if let Some(exchange) = self.exchanges.get_mut(&id) {
                        exchange.server = None;
                    }
                    break;
                }
            }
        }
    }

    fn deliver(&mut self, cx: &mut Context<'_>, now: Instant, transcript: &mut Transcript) -> bool {
        let mut delivered = false;
        while let Some(message) = self.wire.poll(now) {
            delivered = true;
            match message {
                Message::Request { request, is_copy } => {
                    let body = String::from_utf8_lossy(&request.body);
                    let line = format!("{} {body}", request.method);
                    transcript.push(Side::Client, line.trim_end(), now);
                    self.receive_request(&request, is_copy, cx, now);
                }
                Message::Abort(id) => {
                    // The response may have been received whole in the meantime.
                    if let Some(exchange) = self.exchanges.remove(&id) {
                        transcript.push(Side::Client, "abort", now);
                        if let Some(theirs) = exchange.server {
                            self.server.handle_disconnect(theirs, now);
                        }
                    }
                }
                Message::Response(id, part) => self.receive_part(id, part, now, transcript),
            }
        }
        if self.wire.take_cut() {
            self.cut(now);
        }
        delivered
    }

    fn receive_request(
        &mut self,
        request: &OutgoingRequest,
        is_copy: bool,
        cx: &mut Context<'_>,
        now: Instant,
    ) {
        let id = request.exchange;
        let answer = self.intercept.as_mut().and_then(|intercept| intercept(request));
        let mut head = RequestHead::new(request.method, request.url().path_and_query());
        head.field("host", request.url().authority().as_bytes());
        for (name, value) in request.fields() {
            head.field(name, value.as_bytes());
        }
        let handled = match answer {
            Some(response) => Err(response),
            None => self
                .caller(&head, request)
                .map(|caller| self.server.handle_request(&head, &request.body, &caller, now)),
        };
        match handled {
            Err(response) if is_copy => drop(response),
            Err(response) => respond(&mut self.wire, id, response, now),
            Ok((theirs, call)) => {
                if !is_copy && let Some(exchange) = self.exchanges.get_mut(&id) {
                    exchange.server = Some(theirs);
                }
                run(&mut self.server, &mut self.running, call, cx, now);
            }
        }
    }

    /// Returns the sender of a request, or the response that refuses its token.
    fn caller(
        &self,
        head: &RequestHead<'_>,
        request: &OutgoingRequest,
    ) -> Result<Caller, Response> {
        let values = |name: &str| {
            let lines = request.fields().filter(|(it, _)| it.eq_ignore_ascii_case(name));
            lines.map(|(_, value)| value.as_bytes()).collect::<Vec<_>>()
        };
        let attach = |sender| self.server.reader().attach_headers(sender, values);
        match (self.server.resource(), &self.identity) {
            (Some(resource), Some(identity)) => attach(identity.granted(resource)?),
            (Some(_), None) => self.check_token(head, &attach(Caller::ANONYMOUS)?),
            (None, identity) => attach(identity.as_ref().map_or(Caller::ANONYMOUS, Caller::from)),
        }
    }

    /// Checks the token of a request.
    fn check_token(&self, head: &RequestHead<'_>, sender: &Caller) -> Result<Caller, Response> {
        use mcp_sansio_handlers::TokenRequirement;

        match self.server.authorize(head, sender) {
            TokenRequirement::NotNeeded => Ok(sender.clone()),
            TokenRequirement::Respond(response) => Err(response),
            TokenRequirement::Check(mut check) => {
                let mut cx = Context::from_waker(core::task::Waker::noop());
                match Pin::new(&mut check).poll(&mut cx) {
                    Poll::Ready(granted) => {
                        granted.map(|grant| Caller::from(grant).in_place_of(sender))
                    }
                    Poll::Pending => panic!("the token check waits: set an identity instead"),
                }
            }
        }
    }

    fn receive_part(
        &mut self,
        id: ExchangeId,
        part: Part,
        now: Instant,
        transcript: &mut Transcript,
    ) {
        // The client may have aborted the exchange.
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let line = &mut exchange.line;
        match &part {
            Part::Head(head) => transcript.push(Side::Server, head.status.0, now),
            Part::Body(bytes) => {
                line.push_str(&String::from_utf8_lossy(bytes));
                let rest = line.rfind('\n').map_or(0, |end| end + 1);
                let lines = mem::take(line);
                *line = lines[rest..].into();
                for line in lines[..rest].lines().filter(|line| !line.is_empty()) {
                    transcript.push(Side::Server, line, now);
                }
            }
            Part::End | Part::Broken => {
                if !line.is_empty() {
                    transcript.push(Side::Server, line, now);
                }
                if matches!(part, Part::Broken) {
                    transcript.push(Side::Server, "abort", now);
                }
                self.exchanges.remove(&id);
            }
        }
        let Some(client) = &mut self.client else { return };
        match part {
            Part::Head(head) => {
                let fields: Vec<_> = head.fields().collect();
                let mut received = IncomingResponse::new(head.status);
                for (name, value) in &fields {
                    received.field(name, value.as_bytes());
                }
                client.handle_response(id, &received, now);
            }
            Part::Body(bytes) => client.handle_body(id, &bytes, now),
            Part::End => client.handle_body_end(id, now),
            Part::Broken => client.handle_exchange_failed(id, ExchangeFailure::Broken, now),
        }
    }

    /// Polls the handlers. Returns whether one has finished.
    fn run_handlers(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        self.server.poll_handlers(cx, now);
        let mut moved = false;
        while let Some(call) = self.server.poll_call() {
            run(&mut self.server, &mut self.running, Some(call), cx, now);
            moved = true;
        }
        for mut handler in mem::take(&mut self.running) {
            match handler.as_mut().poll_at(cx, now) {
                Poll::Pending => self.running.push(handler),
                Poll::Ready(output) => {
                    moved = true;
                    if let Some(output) = output {
                        self.server.finish(output, now);
                    }
                }
            }
        }
        moved
    }
}

/// Runs a handler until it waits.
fn run<K: Threading>(
    server: &mut HttpServer<K>,
    running: &mut Vec<Pin<Box<PendingHandler<K>>>>,
    call: Option<HandlerCall<'_, K>>,
    cx: &mut Context<'_>,
    now: Instant,
) {
    match call.map(HandlerCall::run) {
        Some(HandlerPoll::Ready(output)) => server.finish(output, now),
        Some(HandlerPoll::Pending(handler)) => {
            server.track(&handler);
            running.push(Box::pin(handler));
            cx.waker().wake_by_ref();
        }
        None => {}
    }
}

/// Sends a whole response.
fn respond(wire: &mut Wire<Message>, id: ExchangeId, response: Response, now: Instant) {
    send(wire, id, Part::Head(response.head), now);
    send_body(wire, id, &response.body, now);
    send(wire, id, Part::End, now);
}

fn send_body(wire: &mut Wire<Message>, id: ExchangeId, bytes: &[u8], now: Instant) {
    for piece in bytes.chunks(wire.piece()) {
        send(wire, id, Part::Body(piece.to_vec()), now);
    }
}

fn send(wire: &mut Wire<Message>, id: ExchangeId, part: Part, now: Instant) {
    wire.send(Some((id.to_number(), Side::Server)), Message::Response(id, part), now);
}

impl<K: Threading, C: HttpEndpoint> Transport for Http<K, C> {
    fn step(&mut self, cx: &mut Context<'_>, now: Instant, transcript: &mut Transcript) -> bool {
        if let Some(client) = &mut self.client {
            client.poll_handlers(cx, now);
        }
        self.collect_requests(now);
        let mut moved = self.deliver(cx, now, transcript);
        moved |= self.run_handlers(cx, now);
        self.collect_responses(now);
        self.deliver(cx, now, transcript) || moved
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(client) = &mut self.client {
            client.handle_timeout(now);
        }
        self.server.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let client = self.client.as_ref().and_then(HttpEndpoint::poll_timeout);
        [client, self.server.poll_timeout(), self.wire.next()].into_iter().flatten().min()
    }

    fn set_spawner(&mut self, spawn: Spawner) {
        self.client.iter_mut().for_each(|it| it.set_spawner(spawn.clone()));
        self.server.set_spawner(spawn.clone());
        self.spawner = Some(spawn);
    }

    fn set_clock(&mut self, clock: &VirtualClock) {
        self.server.set_unix_time(clock.to_unix_time());
        self.clock = Some(clock.clone());
    }

    fn catch_panics(&mut self, guard: PanicGuard) {
        self.client.iter_mut().for_each(|it| it.catch_panics(guard));
        self.server.catch_panics(guard);
        self.guard = guard;
    }

    fn set_faults(&mut self, faults: Faults) {
        self.wire.set_faults(faults);
    }

    fn cut(&mut self, now: Instant) {
        self.wire.clear();
        for (id, exchange) in mem::take(&mut self.exchanges) {
            if let Some(theirs) = exchange.server {
                self.server.handle_disconnect(theirs, now);
            }
            if let Some(client) = &mut self.client {
                client.handle_exchange_failed(id, ExchangeFailure::Broken, now);
            }
        }
    }

    fn is_drained(&self) -> bool {
        self.client.as_ref().is_none_or(HttpEndpoint::is_drained)
    }

    fn assert_consistent(&self) {
        self.client.iter().for_each(HttpEndpoint::assert_consistent);
        self.server.assert_consistent();
    }
}

mcp_sansio::partial_debug! {
    impl<K: Threading, C: fmt::Debug> Debug for Http<K, C> { client, exchanges, .. }
}

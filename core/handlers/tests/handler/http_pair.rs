use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use mcp_sansio::Instant;
#[cfg(feature = "auth")]
use mcp_sansio::http::Response;
use mcp_sansio::http::{
    ClientTransmit, ExchangeFailure, ExchangeId, HttpServerOptions, IncomingResponse, Location,
    OutgoingRequest, RequestHead, ResponseHead, ServerTransmit as FromServer, Status,
};
use mcp_sansio_handlers::Server;
#[cfg(feature = "auth")]
use mcp_sansio_handlers::TokenRequirement;
use mcp_sansio_handlers::endpoint::{
    HandlerCall, HandlerPoll, HttpClientEndpoint, HttpEndpoint, HttpServer, PendingHandler,
};
#[cfg(feature = "auth")]
use mcp_sansio_oauth::protected_resource::Grant;

/// A client and a server that exchange HTTP in memory, driven by the test.
pub(crate) struct HttpPair {
    pub(crate) server: HttpServer,
    pub(crate) client: Option<HttpClientEndpoint>,
    pub(crate) now: Instant,
    /// Every request of the client with its method and message, and every status of the server.
    pub(crate) log: Vec<String>,
    /// Bytes of a body that are delivered at once.
    pub(crate) piece: usize,
    /// Seconds that have passed, for the clocks of the two sides.
    pub(crate) clock: Arc<AtomicU64>,
    /// Returns the status and JSON of another server, or `None` if the request is for this one.
    pub(crate) elsewhere: Option<Elsewhere>,
    /// The exchange of the server for each exchange of the client.
    under_way: BTreeMap<ExchangeId, ExchangeId>,
    running: Vec<Pin<Box<PendingHandler>>>,
    wakeups: Arc<CountingWaker>,
}

/// Answers requests to other servers.
pub(crate) type Elsewhere = Box<dyn FnMut(&OutgoingRequest) -> Option<(u16, String)>>;

#[derive(Default)]
struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Returns the URL of the server.
pub(crate) fn location() -> Location {
    Location::parse("http://localhost:8080/mcp").unwrap()
}

/// Creates the HTTP side of a server.
pub(crate) fn mount(server: &Server) -> HttpServer {
    server.http(HttpServerOptions::new(), [7; 32], 7).unwrap()
}

impl HttpPair {
    pub(crate) fn new(server: &Server, client: HttpClientEndpoint, piece: usize) -> Self {
        Self {
            server: mount(server),
            client: Some(client),
            now: Instant::ZERO,
            log: Vec::new(),
            piece,
            clock: Arc::default(),
            elsewhere: None,
            under_way: BTreeMap::new(),
            running: Vec::new(),
            wakeups: Arc::default(),
        }
    }

    /// Runs both drivers once. Returns whether there was progress, or a task was woken.
    pub(crate) fn turn(&mut self) -> bool {
        let rung = |wakeups: &CountingWaker| wakeups.0.load(Ordering::SeqCst);
        let (before, lines) = (rung(&self.wakeups), self.log.len());
        let waker = Waker::from(Arc::clone(&self.wakeups));
        let mut cx = Context::from_waker(&waker);
        if let Some(client) = &mut self.client {
            client.poll_handlers(&mut cx, self.now);
        }
        let mut moved = self.take_requests(&mut cx);
        moved |= self.run_handlers(&mut cx);
        moved |= self.take_responses();
        moved || self.log.len() > lines || rung(&self.wakeups) > before
    }

    fn take_requests(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Some(transmit) = self.client.as_mut().and_then(HttpEndpoint::poll_transmit) {
            moved = true;
            match transmit {
                ClientTransmit::Send(request) => self.take_request(&request, cx),
                ClientTransmit::Abort(exchange) => {
                    // The response may have been received whole in the meantime.
                    if let Some(theirs) = self.under_way.remove(&exchange) {
                        self.log.push("> abort".to_owned());
                        self.server.handle_disconnect(theirs, self.now);
                    }
                }
            }
        }
        moved
    }

    fn take_request(&mut self, request: &OutgoingRequest, cx: &mut Context<'_>) {
        let body = String::from_utf8_lossy(&request.body);
        self.log.push(format!("> {} {body}", request.method));
        let answer = self.elsewhere.as_mut().and_then(|elsewhere| elsewhere(request));
        if let Some((status, text)) = answer {
            let mut head = IncomingResponse::new(Status(status));
            head.field("content-type", b"application/json");
            let Some(client) = &mut self.client else { return };
            client.handle_response(request.exchange, &head, self.now);
            client.handle_body(request.exchange, text.as_bytes(), self.now);
            return client.handle_body_end(request.exchange, self.now);
        }
        let mut head = RequestHead::new(request.method, request.url().path_and_query());
        head.field("host", request.url().authority().as_bytes());
        for (name, value) in request.fields() {
            head.field(name, value.as_bytes());
        }
        #[cfg(feature = "auth")]
        let (theirs, work) = match self.grant(&head) {
            Ok(Some(grant)) => {
                self.server.handle_request(&head, &request.body, &grant.into(), self.now)
            }
            Ok(None) => self.server.handle_request(
                &head,
                &request.body,
                &mcp_sansio::Caller::ANONYMOUS,
                self.now,
            ),
            Err(response) => {
                self.log.push(format!("< {}", response.head.status.0));
                return self.hand_back(request.exchange, &response.head, &response.body);
            }
        };
        #[cfg(not(feature = "auth"))]
        let (theirs, work) = self.server.handle_request(
            &head,
            &request.body,
            &mcp_sansio::Caller::ANONYMOUS,
            self.now,
        );
        assert!(self.under_way.insert(request.exchange, theirs).is_none());
        run(&mut self.server, &mut self.running, work, cx, self.now);
    }

    /// Checks the token of a request, if the server requires one, and returns its grant.
    #[cfg(feature = "auth")]
    fn grant(&self, head: &RequestHead<'_>) -> Result<Option<Grant>, Response> {
        let mut checking = match self.server.authorize(head) {
            TokenRequirement::NotNeeded => return Ok(None),
            TokenRequirement::Respond(response) => return Err(response),
            TokenRequirement::Check(checking) => checking,
        };
        match Pin::new(&mut checking).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(granted) => granted.map(Some),
            Poll::Pending => panic!("the token check is pending"),
        }
    }

    /// Delivers a whole response to the client.
    #[cfg(feature = "auth")]
    fn hand_back(&mut self, exchange: ExchangeId, head: &ResponseHead, body: &[u8]) {
        let Some(client) = &mut self.client else { return };
        show(client, exchange, head, self.now);
        client.handle_body(exchange, body, self.now);
        client.handle_body_end(exchange, self.now);
    }

    fn run_handlers(&mut self, cx: &mut Context<'_>) -> bool {
        self.server.poll_handlers(cx, self.now);
        let mut moved = false;
        while let Some(work) = self.server.poll_call() {
            run(&mut self.server, &mut self.running, Some(work), cx, self.now);
            moved = true;
        }
        for mut handler in std::mem::take(&mut self.running) {
            match handler.as_mut().poll(cx) {
                Poll::Pending => self.running.push(handler),
                Poll::Ready(finished) => {
                    moved = true;
                    if let Some(finished) = finished {
                        self.server.finish(finished, self.now);
                    }
                }
            }
        }
        moved
    }

    fn take_responses(&mut self) -> bool {
        let Some(client) = &mut self.client else { return false };
        let (mut moved, now) = (false, self.now);
        for (ours, theirs) in self.under_way.clone() {
            while let Some(transmit) = self.server.poll_transmit(theirs, now) {
                moved = true;
                match transmit {
                    FromServer::Respond(response) => {
                        self.log.push(format!("< {}", response.head.status.0));
                        show(client, ours, &response.head, now);
                        for piece in response.body.chunks(self.piece) {
                            client.handle_body(ours, piece, now);
                        }
                        client.handle_body_end(ours, now);
                        self.under_way.remove(&ours);
                    }
                    FromServer::Open(head) => {
                        self.log.push(format!("< {} …", head.status.0));
                        show(client, ours, &head, now);
                    }
                    FromServer::Chunk(bytes) => {
                        for piece in bytes.chunks(self.piece) {
                            client.handle_body(ours, piece, now);
                        }
                    }
                    FromServer::Finish => {
                        client.handle_body_end(ours, now);
                        self.under_way.remove(&ours);
                    }
                    FromServer::Abort => {
                        client.handle_exchange_failed(ours, ExchangeFailure::Broken, now);
                        self.under_way.remove(&ours);
                    }
                }
            }
        }
        moved
    }

    /// Runs until there is no more progress.
    pub(crate) fn pump(&mut self) {
        for _ in 0..1000 {
            if !self.turn() {
                return;
            }
        }
        panic!("no end after 1000 rounds");
    }

    /// Runs until `future` is ready. Without progress, advances the clock to the next deadline.
    pub(crate) fn run<F: IntoFuture>(&mut self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future.into_future());
        for _ in 0..1000 {
            if let Some(output) = self.poll(future.as_mut()) {
                return output;
            }
            self.pass();
        }
        panic!("stuck after {:#?}", self.log)
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
        panic!("no end after 1000 rounds");
    }

    /// Advances the clock to the next deadline of either side.
    fn pass(&mut self) {
        let client = self.client.as_ref().and_then(HttpEndpoint::poll_timeout);
        let next = [client, self.server.poll_timeout()].into_iter().flatten().min();
        self.pass_to(next.expect("no deadline is pending"));
    }

    /// Advances the clock, stopping at every deadline.
    pub(crate) fn pass_until(&mut self, end: Instant) {
        self.pump();
        while self.now < end {
            let client = self.client.as_ref().and_then(HttpEndpoint::poll_timeout);
            let next = [client, self.server.poll_timeout()].into_iter().flatten().min();
            self.pass_to(next.map_or(end, |next| next.min(end)));
            self.pump();
        }
    }

    fn pass_to(&mut self, time: Instant) {
        self.now = time.max(self.now);
        let seconds = self.now.saturating_since(Instant::ZERO).as_secs();
        self.clock.store(seconds, Ordering::SeqCst);
        if let Some(client) = &mut self.client {
            client.handle_timeout(self.now);
        }
        self.server.handle_timeout(self.now);
    }

    /// Breaks every exchange, as a server that crashes does.
    pub(crate) fn cut_all(&mut self) {
        for ours in std::mem::take(&mut self.under_way).into_keys() {
            if let Some(client) = &mut self.client {
                client.handle_exchange_failed(ours, ExchangeFailure::Broken, self.now);
            }
        }
        self.running.clear();
    }

    /// Returns how many lines of the log contain `text`.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.log.iter().filter(|line| line.contains(text)).count()
    }

    /// Returns how many handlers run on the server.
    pub(crate) fn at_work(&self) -> usize {
        self.running.len()
    }
}

fn run(
    server: &mut HttpServer,
    running: &mut Vec<Pin<Box<PendingHandler>>>,
    work: Option<HandlerCall<'_>>,
    cx: &mut Context<'_>,
    now: Instant,
) {
    match work.map(HandlerCall::run) {
        Some(HandlerPoll::Ready(finished)) => server.finish(finished, now),
        Some(HandlerPoll::Pending(handler)) => {
            server.track(&handler);
            running.push(Box::pin(handler));
            cx.waker().wake_by_ref();
        }
        None => {}
    }
}

fn show(client: &mut HttpClientEndpoint, exchange: ExchangeId, head: &ResponseHead, now: Instant) {
    let fields: Vec<_> = head.fields().collect();
    let mut seen = IncomingResponse::new(head.status);
    for (name, value) in &fields {
        seen.field(name, value.as_bytes());
    }
    client.handle_response(exchange, &seen, now);
}

use std::collections::BTreeMap;

use mcp_sansio::http::{
    Client, ClientLimits, ClientTransmit as Sent, ExchangeFailure, ExchangeId, HttpClientOptions,
    HttpServerOptions, IncomingResponse, Location, OutgoingRequest, RequestHead, ResponseHead,
    Server, ServerTransmit,
};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{self, CallOptions, ClientMachine, Event, ServerMachine};
use mcp_sansio::protocol::{Implementation, ServerCapabilities, ToolsCapability};
use mcp_sansio::{Instant, Method, Revision, Revisions};

use crate::link::{Arrived, echoed};

const NOW: Instant = Instant::ZERO;

/// The machines of a client and a server on HTTP, connected by exchanges of heads and bodies: the
/// work of this project in an adapter, without encoding HTTP.
#[derive(Debug)]
pub struct HttpLink {
    client: Client,
    server: Server,
    /// Maps the exchanges of the server to those of the client.
    exchanges: BTreeMap<ExchangeId, ExchangeId>,
}

impl HttpLink {
    /// Opens a pair at `revision`, with a session if the revision has sessions.
    ///
    /// # Panics
    ///
    /// If the machines do not agree.
    #[must_use]
    pub fn open_at(revision: Revision) -> Self {
        let identity = Implementation::new("bench", "1.0.0");
        let offers = ServerCapabilities::new().tools(ToolsCapability::new());
        let server = peer::ServerOptions::new(identity.clone()).capabilities(offers);
        let server = Server::new(server, HttpServerOptions::new(), [1; 32], 2)
            .expect("the options are valid");
        let client = peer::ClientOptions::new(identity).revisions(Revisions::only(revision));
        let mut limits = ClientLimits::DEFAULT;
        // As many concurrent calls as are measured, so that queueing is not measured.
        limits.requests_max = 1024;
        let url = Location::parse("http://127.0.0.1:8000/mcp").expect("a URL");
        let client = Client::new(client, HttpClientOptions::new(url).limits(limits), 1, NOW);
        let mut web = Self { client, server, exchanges: BTreeMap::new() };
        web.exchange();
        assert!(web.client.session().is_some(), "not open");
        web
    }

    /// Calls a tool that returns the text of its arguments.
    ///
    /// # Panics
    ///
    /// If the call has no answer.
    pub fn echo(&mut self, params: &RawJson<'_>) {
        self.echo_at_once(params, 1);
    }

    /// Makes `count` concurrent calls.
    ///
    /// # Panics
    ///
    /// If a call has no answer.
    pub fn echo_at_once(&mut self, params: &RawJson<'_>, count: u32) {
        for _ in 0..count {
            let options = CallOptions::default();
            self.client.call(Method::ToolsCall, params, &options, NOW).expect("the call is made");
        }
        assert_eq!(self.exchange().ended, count, "each call has an answer");
    }

    /// Delivers all output until both sides are idle.
    fn exchange(&mut self) -> Arrived {
        let mut arrived = Arrived::default();
        loop {
            let mut moved = false;
            while let Some(sent) = self.client.poll_transmit() {
                moved = true;
                match sent {
                    Sent::Send(request) => self.carry(&request),
                    Sent::Abort(exchange) => self.disconnect(exchange),
                }
            }
            while let Some(exchange) = self.server.poll_ready() {
                moved = true;
                self.carry_back(exchange);
            }
            while let Some(event) = self.client.poll_event() {
                moved = true;
                if let Event::Ended(end) = event {
                    assert!(end.outcome.is_ok(), "{:?}", end.outcome);
                    arrived.ended += 1;
                }
            }
            while self.server.poll_event().is_some() {}
            if !moved {
                return arrived;
            }
        }
    }

    fn carry(&mut self, request: &OutgoingRequest) {
        let mut head = RequestHead::new(request.method, request.url().path_and_query());
        head.field("host", request.url().authority().as_bytes());
        for (name, value) in request.fields() {
            head.field(name, value.as_bytes());
        }
        self.server.admit(&head).expect("the request is admitted");
        let (exchange, event) =
            self.server.handle_request(&head, &request.body, &mcp_sansio::Caller::ANONYMOUS, NOW);
        self.exchanges.insert(exchange, request.exchange);
        if let Some(Event::Request(request)) = event {
            self.server.respond_with(request.handle, &echoed(&request), NOW).expect("due");
        }
    }

    fn carry_back(&mut self, exchange: ExchangeId) {
        let Self { client, server, exchanges } = self;
        let Some(near) = exchanges.get(&exchange).copied() else { return };
        while let Some(transmit) = server.poll_transmit(exchange, NOW) {
            match transmit {
                ServerTransmit::Respond(response) => {
                    show(client, near, &response.head);
                    client.handle_body(near, &response.body, NOW);
                    client.handle_body_end(near, NOW);
                    exchanges.remove(&exchange);
                }
                ServerTransmit::Open(head) => show(client, near, &head),
                ServerTransmit::Chunk(bytes) => client.handle_body(near, bytes, NOW),
                ServerTransmit::Finish => {
                    client.handle_body_end(near, NOW);
                    exchanges.remove(&exchange);
                }
                ServerTransmit::Abort => {
                    client.handle_exchange_failed(near, ExchangeFailure::Broken, NOW);
                    exchanges.remove(&exchange);
                }
            }
        }
    }

    fn disconnect(&mut self, near: ExchangeId) {
        let found = self.exchanges.iter().find(|(_, known)| **known == near);
        if let Some(exchange) = found.map(|(exchange, _)| *exchange) {
            self.exchanges.remove(&exchange);
            self.server.handle_disconnect(exchange, NOW);
        }
    }
}

fn show(client: &mut Client, exchange: ExchangeId, head: &ResponseHead) {
    let fields: Vec<_> = head.fields().collect();
    let mut received = IncomingResponse::new(head.status);
    for (name, value) in &fields {
        received.field(name, value.as_bytes());
    }
    client.handle_response(exchange, &received, NOW);
}

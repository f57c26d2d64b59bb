//! A client machine, a server machine, and a scripted network between them.

use std::collections::BTreeMap;

use mcp_sansio::http::{
    ClientTransmit as Sent, ExchangeFailure, ExchangeId, HttpClientOptions, HttpServerOptions,
    IncomingResponse, Location, OutgoingRequest, RequestHead, Response, ResponseHead,
    ServerTransmit,
};
use mcp_sansio::peer::{self, Event};
use mcp_sansio::{Instant, Revisions};

use crate::played::{self, HttpClient as Client, HttpServer as Server, Played};

/// The faults of event streams.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cuts {
    /// The current stream breaks once, after this many bytes of all streams.
    pub(crate) after: Option<usize>,
    /// Each stream breaks after this many of its own bytes.
    pub(crate) each: Option<usize>,
    /// Whether a cut looks like a regular end to the client.
    pub(crate) politely: bool,
}

/// Statistics of the network.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) exchanges: usize,
    pub(crate) cuts: usize,
    pub(crate) resumed: usize,
}

pub(crate) struct Network {
    pub(crate) client: Client,
    pub(crate) server: Server,
    pub(crate) now: Instant,
    pub(crate) counts: Counts,
    cuts: Cuts,
    /// Bytes of event streams that were delivered.
    carried: usize,
    links: BTreeMap<ExchangeId, Link>,
    _played: [Played; 2],
}

struct Link {
    server: ExchangeId,
    carried: usize,
}

/// The applications of both sides.
pub(crate) trait Application {
    fn on_client(&mut self, event: Event<'_>, client: &mut Client, now: Instant);
    fn on_server(&mut self, event: Event<'_>, server: &mut Server, now: Instant);
}

impl Network {
    pub(crate) fn new(
        client: peer::ClientOptions,
        server: peer::ServerOptions,
        revisions: Revisions,
        cuts: Cuts,
    ) -> Self {
        let url = Location::parse("http://127.0.0.1:8000/mcp").unwrap();
        let now = Instant::from_millis(1);
        let client = client.revisions(revisions);
        let (client, of_client) = played::http_client(client, HttpClientOptions::new(url), 7, now);
        let options = HttpServerOptions::new().legacy_sse("/sse", "/messages");
        let (server, of_server) = played::http_server(server, options);
        let played = [of_client, of_server];
        let (counts, links) = (Counts::default(), BTreeMap::new());
        Self { client, server, now, counts, cuts, carried: 0, links, _played: played }
    }

    /// Runs until nothing can be transferred and no deadline is pending, or until `done` returns
    /// true.
    pub(crate) fn run(
        &mut self,
        application: &mut impl Application,
        mut done: impl FnMut(&mut Self) -> bool,
    ) {
        for _ in 0..100_000 {
            while self.step(application) {}
            if done(self) {
                return;
            }
            let deadlines = [self.client.poll_timeout(), self.server.poll_timeout()];
            let Some(next) = deadlines.into_iter().flatten().min() else { return };
            self.now = self.now.max(next);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            let later = [self.client.poll_timeout(), self.server.poll_timeout()];
            assert!(
                later.into_iter().flatten().all(|later| later > self.now),
                "an expired deadline is still set: {later:?} at {:?}",
                self.now
            );
        }
        panic!("no end of the schedule");
    }

    /// Transfers everything that can be transferred now.
    fn step(&mut self, application: &mut impl Application) -> bool {
        let mut moved = false;
        self.client.assert_consistent();
        self.server.assert_consistent();
        while let Some(event) = self.client.poll_event() {
            application.on_client(event, &mut self.client, self.now);
            moved = true;
        }
        while let Some(event) = self.server.poll_event() {
            application.on_server(event, &mut self.server, self.now);
            moved = true;
        }
        while let Some(sent) = self.client.poll_transmit() {
            moved = true;
            match sent {
                Sent::Send(request) => self.carry_request(&request, application),
                Sent::Abort(exchange) => {
                    if let Some(link) = self.links.remove(&exchange) {
                        self.server.handle_disconnect(link.server, self.now);
                    }
                }
            }
        }
        let open: Vec<ExchangeId> = self.links.keys().copied().collect();
        for exchange in open {
            moved |= self.carry_response(exchange);
        }
        moved
    }

    fn carry_request(&mut self, request: &OutgoingRequest, application: &mut impl Application) {
        self.counts.exchanges += 1;
        let mut head = RequestHead::new(request.method, request.url().path_and_query());
        head.field("host", request.url().authority().as_bytes());
        for (name, value) in request.fields() {
            self.counts.resumed += usize::from(name == "last-event-id");
            head.field(name, value.as_bytes());
        }
        if let Err(refused) = self.server.admit(&head) {
            return self.respond(request.exchange, refused);
        }
        let (server, event) = self.server.handle_request(
            &head,
            &request.body,
            &mcp_sansio::Caller::ANONYMOUS,
            self.now,
        );
        self.links.insert(request.exchange, Link { server, carried: 0 });
        if let Some(event) = event {
            application.on_server(event, &mut self.server, self.now);
        }
    }

    fn respond(&mut self, exchange: ExchangeId, response: Response) {
        self.head(exchange, &response.head);
        self.client.handle_body(exchange, &response.body, self.now);
        self.client.handle_body_end(exchange, self.now);
        self.links.remove(&exchange);
    }

    fn head(&mut self, exchange: ExchangeId, head: &ResponseHead) {
        let fields: Vec<_> = head.fields().map(|(n, v)| (n, v.into_owned())).collect();
        let mut received = IncomingResponse::new(head.status);
        for (name, value) in &fields {
            received.field(name, value.as_bytes());
        }
        self.client.handle_response(exchange, &received, self.now);
    }

    /// Transfers one part of the server's output for an exchange.
    fn carry_response(&mut self, exchange: ExchangeId) -> bool {
        let Some(link) = self.links.get_mut(&exchange) else { return false };
        let room = [
            self.cuts.after.map(|after| after.saturating_sub(self.carried)),
            self.cuts.each.map(|each| each - link.carried),
        ];
        let room = room.into_iter().flatten().min();
        match self.server.poll_transmit(link.server, self.now) {
            None => return false,
            Some(ServerTransmit::Respond(response)) => self.respond(exchange, response),
            Some(ServerTransmit::Open(head)) => self.head(exchange, &head),
            Some(ServerTransmit::Chunk(bytes)) => {
                let length = room.map_or(bytes.len(), |room| room.min(bytes.len()));
                let bytes = bytes[..length].to_vec();
                link.carried += length;
                self.carried += length;
                self.client.handle_body(exchange, &bytes, self.now);
                if room == Some(length) {
                    self.cut(exchange);
                }
            }
            Some(ServerTransmit::Finish) => {
                self.client.handle_body_end(exchange, self.now);
                self.links.remove(&exchange);
            }
            Some(ServerTransmit::Abort) => self.cut(exchange),
        }
        true
    }

    fn cut(&mut self, exchange: ExchangeId) {
        self.counts.cuts += 1;
        self.cuts.after = None;
        if let Some(link) = self.links.remove(&exchange) {
            self.server.handle_disconnect(link.server, self.now);
        }
        if self.cuts.politely {
            self.client.handle_body_end(exchange, self.now);
        } else {
            self.client.handle_exchange_failed(exchange, ExchangeFailure::Broken, self.now);
        }
    }

    /// Returns whether no exchange is pending.
    pub(crate) fn is_idle(&self) -> bool {
        self.links.is_empty()
    }
}

use std::collections::VecDeque;

use mcp_sansio::Instant;
use mcp_sansio::framing::SseDecoder;
use mcp_sansio::http::{ExchangeId, OutgoingRequest, RequestHead};

use crate::scene::Scene;

/// A part of a response in transit to the client.
#[derive(Debug)]
pub(crate) enum Piece {
    Head {
        status: u16,
        fields: Vec<(String, String)>,
    },
    Bytes(Vec<u8>),
    /// The body looks complete to the client.
    End,
    /// The connection broke.
    Broken,
    /// The request was never sent.
    NotSent,
}

/// A pending exchange: its request, and the progress of its response.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) number: u64,
    /// Number of the client.
    pub(crate) client: usize,
    pub(crate) ours: Option<ExchangeId>,
    /// Exchange id of the server, or `None` before the request is received and after the end.
    pub(crate) theirs: Option<ExchangeId>,
    pub(crate) request: Carried,
    /// When the request is received by the server, or `None` if it was received or lost.
    pub(crate) arrives: Option<Instant>,
    pub(crate) pieces: VecDeque<(Instant, Piece)>,
    last: Instant,
    /// Whether the server has output for the exchange.
    pub(crate) ready: bool,
    pub(crate) pulled_at: Instant,
    pub(crate) delivered_at: Instant,
    /// Whether the output of the server is dropped.
    pub(crate) cut: bool,
    /// When the server is notified that the client has disconnected.
    pub(crate) server_hears_at: Option<Instant>,
    pub(crate) head_seen: bool,
    /// Decodes the events that the server sends, for the checker.
    pub(crate) events: Option<Box<SseDecoder<'static>>>,
    pub(crate) body: Vec<u8>,
    pub(crate) last_event: Option<(String, u64)>,
    /// The conversation that it belongs to: a session, or the request alone.
    pub(crate) conversation: String,
}

/// A request in transit.
#[derive(Clone, Debug)]
pub(crate) struct Carried {
    pub(crate) method: &'static str,
    pub(crate) target: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: bytes::Bytes,
}

impl Carried {
    pub(crate) fn from_request(request: &OutgoingRequest) -> Self {
        let mut fields = vec![("host".to_owned(), request.url().authority().to_owned())];
        fields.extend(request.fields().map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self {
            method: request.method,
            target: request.url().path_and_query().to_owned(),
            fields,
            body: request.body.clone(),
        }
    }

    pub(crate) fn field(&self, wanted: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        fields.find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    pub(crate) fn head(&self) -> RequestHead<'_> {
        let mut head = RequestHead::new(self.method, &self.target);
        for (name, value) in &self.fields {
            head.field(name, value.as_bytes());
        }
        head
    }
}

impl Flight {
    pub(crate) fn new(
        number: u64,
        client: usize,
        ours: Option<ExchangeId>,
        request: Carried,
        scene: &mut Scene,
    ) -> Self {
        let arrives = scene.now + scene.latency();
        Self {
            number,
            client,
            ours,
            theirs: None,
            request,
            arrives: Some(arrives),
            pieces: VecDeque::new(),
            last: Instant::ZERO,
            ready: false,
            pulled_at: Instant::ZERO,
            delivered_at: Instant::ZERO,
            cut: false,
            server_hears_at: None,
            head_seen: false,
            events: None,
            body: Vec::new(),
            last_event: None,
            conversation: String::new(),
        }
    }

    /// Queues a piece for delivery behind earlier ones.
    pub(crate) fn push(&mut self, piece: Piece, scene: &mut Scene) {
        if self.ours.is_none() {
            return;
        }
        let due = (scene.now + scene.latency()).max(self.last);
        self.last = due;
        self.pieces.push_back((due, piece));
    }

    /// Ends the exchange for the client, which disconnected or stopped waiting.
    pub(crate) fn abandon(&mut self, scene: &mut Scene) {
        self.ours = None;
        self.pieces.clear();
        self.cut = true;
        let late = scene.latency();
        self.server_hears_at.get_or_insert(scene.now + late);
    }

    /// Returns whether both sides have finished.
    pub(crate) fn is_over(&self) -> bool {
        self.ours.is_none() && self.theirs.is_none() && self.arrives.is_none()
    }

    /// Returns whether no delivery is pending, even if the exchange is open.
    pub(crate) fn is_quiet(&self) -> bool {
        self.pieces.is_empty()
            && self.arrives.is_none()
            && !self.ready
            && self.server_hears_at.is_none()
    }
}

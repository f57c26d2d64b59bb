//! Observes the messages over HTTP: finds the conversation of each, checks that events keep their
//! ids and their order, and passes each message to the checker.

use std::collections::BTreeMap;

use mcp_sansio::Side;
use mcp_sansio::framing::SseDecoder;

use crate::checker::Checker;
use crate::flight::{Flight, Piece};
use crate::scene::Scene;

/// All conversations: sessions by id, modern requests by number.
#[derive(Debug)]
pub(crate) struct Wire {
    conversations: BTreeMap<String, Conversation>,
    /// Whether the network repeats requests.
    copies: bool,
}

#[derive(Debug)]
struct Conversation {
    checker: Checker,
    /// The data of each event, by id.
    events: BTreeMap<String, String>,
}

impl Conversation {
    fn new(name: &str, copies: bool) -> Self {
        let mut checker = Checker::new(name.to_owned());
        checker.copies = copies;
        Self { checker, events: BTreeMap::new() }
    }
}

impl Wire {
    pub(crate) const fn new(copies: bool) -> Self {
        Self { conversations: BTreeMap::new(), copies }
    }

    /// Forgets all conversations after a restart of the server.
    pub(crate) fn forget(&mut self) {
        self.conversations.clear();
    }

    /// Handles a request of a client.
    pub(crate) fn sent(&mut self, flight: &mut Flight) {
        let old = flight.request.target.starts_with("/messages");
        flight.conversation = match flight.request.field("mcp-session-id") {
            Some(session) => session.to_owned(),
            None if old => flight.request.target.clone(),
            None => format!("#{}", flight.number),
        };
        let Ok(text) = str::from_utf8(&flight.request.body) else { panic!("not UTF-8") };
        if text.is_empty() {
            return;
        }
        let copies = self.copies;
        let name = &flight.conversation;
        let known = self.conversations.contains_key(name);
        let conversation = self
            .conversations
            .entry(name.clone())
            .or_insert_with(|| Conversation::new(name, copies));
        if !name.starts_with('#') && !known {
            // The session of a server that has been restarted. The client has not been notified
            // yet.
            conversation.checker.knows_nothing();
        }
        if flight.request.field("mcp-method").is_some() {
            conversation.checker.is_modern();
        }
        conversation.checker.examine(Side::Client, text);
    }

    /// Handles a part of a response.
    pub(crate) fn answered(&mut self, flight: &mut Flight, piece: &Piece, scene: &mut Scene) {
        match piece {
            Piece::Head { fields, .. } => {
                let field = |wanted: &str| {
                    let found = fields.iter().find(|(name, _)| name == wanted);
                    found.map(|(_, value)| value.as_str())
                };
                if field("content-type") == Some("text/event-stream") {
                    flight.events = Some(Box::new(SseDecoder::growing(1 << 22)));
                }
                if let Some(session) = field("mcp-session-id") {
                    self.rename(flight, session);
                }
            }
            Piece::Bytes(bytes) if flight.events.is_some() => {
                let Some(mut decoder) = flight.events.take() else { return };
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    rest = &rest[decoder.feed(rest)..];
                    while let Some(event) = decoder.next_event() {
                        let event = event.expect("a valid event");
                        let (id, kind) = (event.id.map(str::to_owned), event.event.to_owned());
                        let data = str::from_utf8(event.data).expect("UTF-8");
                        self.event(flight, id, &kind, data, scene);
                    }
                }
                flight.events = Some(decoder);
            }
            Piece::Bytes(bytes) => flight.body.extend_from_slice(bytes),
            Piece::End => {
                let body = std::mem::take(&mut flight.body);
                let text = String::from_utf8(body).expect("UTF-8");
                if !text.is_empty() && flight.request.method == "POST" {
                    self.message(flight, &text, scene);
                }
            }
            Piece::Broken | Piece::NotSent => {}
        }
    }

    /// Handles a part of a response that reaches the client. It may send a message again that was not
    /// handled.
    pub(crate) fn received(&mut self, flight: &Flight, piece: &Piece) {
        let is_executed = match piece {
            Piece::Head { status: 429 | 503, fields } => {
                !fields.iter().any(|(name, _)| name == "retry-after")
            }
            Piece::NotSent => false,
            _ => true,
        };
        if is_executed {
            return;
        }
        if let Some(conversation) = self.conversations.get_mut(&flight.conversation)
            && let Ok(text) = str::from_utf8(&flight.request.body)
        {
            conversation.checker.not_executed(Side::Client, text);
        }
    }

    /// Renames the conversation of a request that opens a session.
    fn rename(&mut self, flight: &mut Flight, session: &str) {
        if flight.conversation == session {
            return;
        }
        if let Some(conversation) = self.conversations.remove(&flight.conversation) {
            self.conversations.entry(session.to_owned()).or_insert(conversation);
        }
        flight.conversation = session.to_owned();
    }

    fn event(
        &mut self,
        flight: &mut Flight,
        id: Option<String>,
        kind: &str,
        data: &str,
        scene: &mut Scene,
    ) {
        if kind == "endpoint" {
            flight.conversation = data.to_owned();
            let copies = self.copies;
            let fresh = || Conversation::new(data, copies);
            self.conversations.entry(data.to_owned()).or_insert_with(fresh);
            return;
        }
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            if !data.is_empty() {
                self.message(flight, data, scene);
            }
            return;
        };
        // Event ids count within a stream. The decoder skips events that have only an id.
        let (stream, number) = id.rsplit_once('-').expect("a stream and a number");
        let number: u64 = number.parse().expect("a number");
        if let Some((before, last)) = &flight.last_event {
            let follows = before == stream && number > *last;
            assert!(follows, "{id} follows {before}-{last}");
        }
        flight.last_event = Some((stream.to_owned(), number));
        if let Some(conversation) = self.conversations.get_mut(&flight.conversation) {
            if let Some(before) = conversation.events.get(&id) {
                assert_eq!(before, data, "a repeated event has other data");
                return;
            }
            conversation.events.insert(id, data.to_owned());
        }
        if !data.is_empty() {
            self.message(flight, data, scene);
        }
    }

    fn message(&mut self, flight: &Flight, text: &str, scene: &mut Scene) {
        scene.tally.messages += 1;
        scene.tally.bytes += text.len() as u64;
        scene.note(format_args!("#{} the server sends {text}", flight.number));
        if let Some(conversation) = self.conversations.get_mut(&flight.conversation) {
            conversation.checker.examine(Side::Server, text);
        }
    }
}

//! HTTP exchanges of a recording and their event streams.

use std::collections::BTreeMap;
use std::fmt::Write;

use mcp_sansio::framing::SseDecoder;

use super::line::{Field, Line, Payload, Transmit};
use super::links::Reader;
use super::{Exchange, Kind, Side};

/// The maximum length of a drawn event in bytes, equal to the limit for request bodies.
const EVENT_LENGTH_MAX: usize = 4 * 1024 * 1024;

/// The exchanges of a recording.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    all: Vec<Open>,
    /// Open exchanges by the identifier that the machine uses.
    open: BTreeMap<Vec<u32>, usize>,
}

#[derive(Debug)]
struct Open {
    drawn: Exchange,
    begun: bool,
    ended: bool,
    /// The scope in which request ids are unique: a session, or this exchange alone.
    scope: String,
    events: Option<SseDecoder<'static>>,
    body: Vec<u8>,
    is_message: bool,
}

impl Exchanges {
    fn begin(&mut self, name: Vec<u32>, label: String, session: Option<&str>) -> usize {
        let number = self.all.len();
        let scope = session.map_or_else(|| format!("exchange {number}"), Into::into);
        self.all.push(Open {
            drawn: Exchange { name: label, ..Exchange::default() },
            begun: false,
            ended: false,
            scope,
            events: None,
            body: Vec::new(),
            is_message: false,
        });
        self.open.insert(name, number);
        number
    }

    pub(super) fn touch(&mut self, exchange: usize, row: usize) {
        let Some(open) = self.all.get_mut(exchange) else { return };
        if !std::mem::replace(&mut open.begun, true) {
            open.drawn.rows.0 = row;
        }
        open.drawn.rows.1 = row;
    }

    pub(super) fn finish(self, last: usize) -> Vec<Exchange> {
        let ended = self.all.into_iter().map(|mut open| {
            if !open.ended {
                open.drawn.rows.1 = last.max(open.drawn.rows.0);
            }
            open.drawn
        });
        ended.collect()
    }
}

fn field<'a>(fields: &'a [(String, Field)], name: &str) -> Option<&'a str> {
    fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.text())
}

/// Formats a head as HTTP does.
fn head(first: &str, fields: &[(String, Field)]) -> String {
    let mut text = String::from(first);
    for (name, value) in fields {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{name}: {}", value.text());
    }
    text
}

impl Reader {
    pub(super) fn take_exchange(&mut self, line: &Line<'_>, number: usize) {
        let said = &line.said;
        let named = said.exchange.as_ref();
        let known = named.and_then(|name| self.exchanges.open.get(name).copied());
        match (line.verb.as_str(), known) {
            ("request" | "send", _) => self.take_request(line, number),
            ("poll", Some(exchange)) => match &said.transmit {
                Some(Transmit::Respond { status, fields, body }) => {
                    self.take_head(exchange, *status, fields, number);
                    self.take_body(exchange, body, number);
                    self.end(exchange, number, None);
                }
                Some(Transmit::Open { status, fields }) => {
                    self.take_head(exchange, *status, fields, number);
                }
                Some(Transmit::Chunk { bytes }) => self.take_body(exchange, bytes, number),
                Some(Transmit::Finish {}) => self.end(exchange, number, None),
                Some(Transmit::Abort {}) => {
                    self.end(exchange, number, Some((Side::Server, "broken off", "")));
                }
                None => {}
            },
            ("response", Some(exchange)) => {
                self.take_head(exchange, said.status.unwrap_or_default(), &said.fields, number);
            }
            ("body", Some(exchange)) => {
                if let Some(bytes) = &said.bytes {
                    self.take_body(exchange, bytes, number);
                }
            }
            ("body_end", Some(exchange)) => self.end(exchange, number, None),
            ("abort", Some(exchange)) => {
                self.end(exchange, number, Some((Side::Client, "closed by the client", "")));
            }
            ("disconnect", Some(exchange)) => {
                self.end(exchange, number, Some((Side::Client, "the client disconnected", "")));
            }
            ("exchange_failed", Some(exchange)) => {
                let failure = said.failure.map_or("", |failure| failure.get());
                self.end(exchange, number, Some((Side::Server, "cut off", failure)));
            }
            _ => {}
        }
    }

    fn take_request(&mut self, line: &Line<'_>, number: usize) {
        let said = &line.said;
        let method = said.method.as_deref().unwrap_or_default();
        let target = said.target.as_deref().or(said.url.as_deref()).unwrap_or_default();
        let in_target = target.split_once("sessionId=").map(|(_, id)| id);
        let session = field(&said.fields, "mcp-session-id").or(in_target);
        let session = session.or(said.session.as_deref());
        let name = said.exchange.clone().unwrap_or_default();
        let count = self.exchanges.all.len() + 1;
        let label = format!("exchange {count}: {method}");
        let exchange = self.exchanges.begin(name, label, session);
        let detail = head(&format!("{method} {target}"), &said.fields);
        let scope = self.exchanges.all[exchange].scope.clone();
        match (method, field(&said.fields, "last-event-id")) {
            ("POST", _) => {
                for text in said.body.iter().flat_map(Payload::texts) {
                    self.message(number, Side::Client, &text, &scope, Some(exchange));
                    if let Some(row) = self.rows.last_mut() {
                        row.detail = format!("{detail}\n\n{}", row.detail);
                    }
                }
            }
            (_, Some(id)) => {
                let label = format!("{method} after event {id}");
                let (side, kind) = (Side::Client, Kind::Resumption);
                self.push_on(number, side, kind, label, detail, None, Some(exchange));
            }
            _ => {
                let (side, kind) = (Side::Client, Kind::Transport);
                self.push_on(number, side, kind, method, detail, None, Some(exchange));
            }
        }
    }

    fn take_head(
        &mut self,
        exchange: usize,
        status: u16,
        fields: &[(String, Field)],
        number: usize,
    ) {
        let events = field(fields, "content-type")
            .is_some_and(|media| media.starts_with("text/event-stream"));
        let open = &mut self.exchanges.all[exchange];
        if let Some(session) = field(fields, "mcp-session-id") {
            open.scope = session.into();
        }
        open.events = events.then(|| SseDecoder::growing(EVENT_LENGTH_MAX));
        open.is_message = !events;
        let label = match (status, events) {
            (_, true) => format!("{status}, an event stream"),
            _ => status.to_string(),
        };
        let kind = if status < 400 { Kind::Transport } else { Kind::Error };
        let detail = head(&format!("HTTP {status}"), fields);
        self.push_on(number, Side::Server, kind, label, detail, None, Some(exchange));
    }

    fn take_body(&mut self, exchange: usize, bytes: &Payload<'_>, number: usize) {
        let open = &mut self.exchanges.all[exchange];
        let bytes = bytes.bytes();
        let Some(decoder) = &mut open.events else {
            return open.body.extend_from_slice(&bytes);
        };
        let (mut rest, mut found) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            let taken = decoder.feed(rest);
            while let Some(event) = decoder.next_event() {
                if let Ok(event) = event {
                    let text = String::from_utf8_lossy(event.data).into_owned();
                    found.push((event.event.to_owned(), event.id.map(String::from), text));
                }
            }
            if taken == 0 {
                break;
            }
            rest = &rest[taken..];
        }
        let scope = open.scope.clone();
        for (kind, id, text) in found {
            if !text.starts_with(['{', '[']) {
                let label = if text.is_empty() { "an event without a message" } else { &kind };
                let (side, what) = (Side::Server, Kind::Transport);
                self.push_on(number, side, what, label, text, None, Some(exchange));
            } else {
                self.message(number, Side::Server, &text, &scope, Some(exchange));
            }
            if let (Some(id), Some(row)) = (id, self.rows.last_mut()) {
                row.detail = format!("event {id}\n\n{}", row.detail);
            }
        }
    }

    fn end(&mut self, exchange: usize, number: usize, cut: Option<(Side, &str, &str)>) {
        let open = &mut self.exchanges.all[exchange];
        let (body, scope) = (std::mem::take(&mut open.body), open.scope.clone());
        if open.is_message && !body.is_empty() {
            let text = String::from_utf8_lossy(&body).into_owned();
            self.message(number, Side::Server, &text, &scope, Some(exchange));
        }
        if let Some((side, label, detail)) = cut {
            self.push_on(number, side, Kind::Cut, label, detail, None, Some(exchange));
            self.exchanges.all[exchange].drawn.cut = true;
        }
        self.exchanges.all[exchange].ended = true;
        self.exchanges.open.retain(|_, open| *open != exchange);
    }
}

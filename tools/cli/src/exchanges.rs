//! An exchanger that shows HTTP exchanges to a viewer.

use std::borrow::Cow;
use std::fmt::Write;
use std::str;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use mcp_sansio::framing::{SseDecoder, SseEvent};
use mcp_sansio::http::{ExchangeFailure, IncomingResponse, OutgoingRequest};
use mcp_sansio_async::http_client::{Exchange, Exchanger};

use crate::wire::{Direction, shortened};

/// The events of an exchange, in this order.
#[derive(Debug)]
pub enum ExchangeEvent<'a> {
    /// A request is sent.
    Request(&'a OutgoingRequest),
    /// The head of the response has arrived.
    Head(&'a IncomingResponse<'a>),
    /// The body of a response that is not an event stream, possibly truncated, and its full length.
    Body(&'a [u8], usize),
    /// An event of an event stream. An id that contains the session id is replaced by `..`.
    Event(&'a SseEvent<'a>),
    /// An event that could not be decoded, with the reason.
    Unreadable(String),
    /// The response is complete.
    End,
    /// The exchange failed.
    Failed(ExchangeFailure),
    /// This side aborted the exchange.
    Aborted,
}

/// A callback for every event. Exchanges are numbered from one.
pub type ExchangeViewer = Box<dyn FnMut(usize, &ExchangeEvent<'_>) + Send>;

/// Performs exchanges with `X` and shows their events.
pub struct Watched<X> {
    exchanger: X,
    watch: Watch,
    count: usize,
}

/// A watched exchange.
pub struct WatchedExchange<X> {
    exchange: X,
    watch: Watch,
    number: usize,
    /// Some servers use it in the ids of their events.
    session: Option<String>,
    body: Body,
    over: bool,
}

/// The part of a body that has not been shown.
enum Body {
    Whole { bytes: Vec<u8>, length: usize },
    Events(SseDecoder<'static>),
}

/// The number of body bytes kept for display, which is more than is shown of a line.
const BODY_LENGTH_MAX: usize = 8 * 1024;

/// The maximum length of a shown event, equal to the limit of the client.
const EVENT_LENGTH_MAX: usize = 4 * 1024 * 1024;

#[derive(Clone)]
struct Watch(Option<Arc<Mutex<ExchangeViewer>>>);

impl Watch {
    fn show(&self, number: usize, event: &ExchangeEvent<'_>) {
        if let Some(viewer) = &self.0 {
            viewer.lock().unwrap_or_else(PoisonError::into_inner)(number, event);
        }
    }
}

impl<X> Watched<X> {
    /// Shows the exchanges of `exchanger` to `viewer`.
    #[must_use]
    pub fn new(exchanger: X, viewer: Option<ExchangeViewer>) -> Self {
        let watch = Watch(viewer.map(|viewer| Arc::new(Mutex::new(viewer))));
        Self { exchanger, watch, count: 0 }
    }
}

impl<X: Exchanger> Exchanger for Watched<X> {
    type Exchange = WatchedExchange<X::Exchange>;

    fn send(&mut self, request: &OutgoingRequest) -> Self::Exchange {
        self.count += 1;
        self.watch.show(self.count, &ExchangeEvent::Request(request));
        WatchedExchange {
            exchange: self.exchanger.send(request),
            watch: self.watch.clone(),
            number: self.count,
            session: session_of(request.fields()).map(Into::into),
            body: Body::Whole { bytes: Vec::new(), length: 0 },
            over: false,
        }
    }
}

impl<X: Exchange> Exchange for WatchedExchange<X> {
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<IncomingResponse<'_>, ExchangeFailure>> {
        let Self { exchange, watch, number, session, body, over } = self;
        let head = ready!(exchange.poll_head(cx));
        match &head {
            Ok(head) => {
                let kind = head.fields().find(|(name, _)| *name == "content-type");
                if kind.is_some_and(|(_, kind)| kind.starts_with(b"text/event-stream")) {
                    *body = Body::Events(SseDecoder::growing(EVENT_LENGTH_MAX));
                }
                if let Some(id) = session_of(head.fields()) {
                    *session = Some(String::from_utf8_lossy(id).into_owned());
                }
                watch.show(*number, &ExchangeEvent::Head(head));
            }
            Err(failure) => {
                *over = true;
                watch.show(*number, &ExchangeEvent::Failed(*failure));
            }
        }
        Poll::Ready(head)
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<&[u8]>, ExchangeFailure>> {
        let Self { exchange, watch, number, session, body, over } = self;
        let session = session.as_deref();
        let piece = ready!(exchange.poll_body(cx));
        // Without a viewer, nothing is kept or decoded.
        if watch.0.is_some() {
            match &piece {
                Ok(Some(bytes)) => body.take(bytes, session, |event| watch.show(*number, event)),
                Ok(None) => body.end(|event| watch.show(*number, event)),
                Err(failure) => watch.show(*number, &ExchangeEvent::Failed(*failure)),
            }
        }
        *over = !matches!(piece, Ok(Some(_)));
        Poll::Ready(piece)
    }
}

impl<X> Drop for WatchedExchange<X> {
    fn drop(&mut self) {
        if !self.over {
            self.watch.show(self.number, &ExchangeEvent::Aborted);
        }
    }
}

impl Body {
    fn take(&mut self, piece: &[u8], session: Option<&str>, show: impl Fn(&ExchangeEvent<'_>)) {
        match self {
            Self::Whole { bytes, length } => {
                *length += piece.len();
                let room = BODY_LENGTH_MAX.saturating_sub(bytes.len());
                bytes.extend_from_slice(&piece[..piece.len().min(room)]);
            }
            Self::Events(decoder) => {
                let mut rest = piece;
                while !rest.is_empty() {
                    let taken = decoder.feed(rest);
                    rest = &rest[taken..];
                    while let Some(event) = decoder.next_event() {
                        match event {
                            Ok(mut event) => {
                                event.id = event.id.map(|id| without_session(id, session));
                                show(&ExchangeEvent::Event(&event));
                            }
                            Err(error) => show(&ExchangeEvent::Unreadable(error.to_string())),
                        }
                    }
                    if taken == 0 {
                        return;
                    }
                }
            }
        }
    }

    fn end(&mut self, show: impl Fn(&ExchangeEvent<'_>)) {
        match self {
            Self::Whole { bytes, length } if *length > 0 => {
                show(&ExchangeEvent::Body(bytes, *length))
            }
            Self::Whole { .. } => {}
            Self::Events(decoder) => {
                if let Some(error) = decoder.handle_eof() {
                    show(&ExchangeEvent::Unreadable(error.to_string()));
                }
            }
        }
        show(&ExchangeEvent::End);
    }
}

/// Describes an event in one line, with further lines for header fields and the content. Omits
/// session ids and credentials.
#[must_use]
pub fn in_words(number: usize, event: &ExchangeEvent<'_>) -> String {
    let (direction, mut words) = match event {
        ExchangeEvent::Request(request) => {
            let url = without_query(request.url().as_str());
            let mut words = format!("{} {url}", request.method);
            let session = session_of(request.fields());
            for (name, value) in request.redacted_fields() {
                let is_event_id = name == "last-event-id";
                field(
                    &mut words,
                    name,
                    if is_event_id { without_session(value, session) } else { value },
                );
            }
            // A form is a token request with credentials.
            let mut fields = request.fields();
            if fields.any(|(name, value)| name == "content-type" && value.contains("form")) {
                words.push_str("\n      ..");
            } else {
                content(&mut words, &request.body, request.body.len());
            }
            (Direction::Out, words)
        }
        ExchangeEvent::Head(head) => {
            let mut words = head.status().0.to_string();
            for (name, value) in head.fields() {
                field(&mut words, name, &String::from_utf8_lossy(value));
            }
            (Direction::In, words)
        }
        ExchangeEvent::Body(bytes, length) => {
            let mut words = String::from("body");
            if gives_access(bytes) {
                words.push_str("\n      ..");
            } else {
                content(&mut words, bytes, *length);
            }
            (Direction::In, words)
        }
        ExchangeEvent::Event(event) => {
            let mut words = format!("event `{}`", event.event);
            // Writing to a string cannot fail.
            if let Some(id) = event.id {
                let _ = write!(words, ", id {id}");
            }
            if let Some(retry) = event.retry {
                let _ = write!(words, ", retry after {retry:?}");
            }
            // An `endpoint` event contains the URL for messages, whose query names the session.
            match str::from_utf8(event.data) {
                Ok(url) if event.event == "endpoint" => {
                    content(&mut words, without_query(url).as_bytes(), 0);
                }
                _ => content(&mut words, event.data, event.data.len()),
            }
            (Direction::In, words)
        }
        ExchangeEvent::Unreadable(why) => (Direction::In, format!("cannot be read: {why}")),
        ExchangeEvent::End => (Direction::In, "end".into()),
        ExchangeEvent::Failed(ExchangeFailure::NotSent) => {
            (Direction::In, "failed: not sent".into())
        }
        ExchangeEvent::Failed(_) => (Direction::In, "failed: broken".into()),
        ExchangeEvent::Aborted => (Direction::Out, "broken off".into()),
    };
    words.insert_str(0, &format!("{} [{number}] ", direction.as_str()));
    words
}

/// Header fields whose values are secret.
const SECRET: [&str; 6] =
    ["authorization", "cookie", "dpop", "mcp-session-id", "proxy-authorization", "set-cookie"];

/// JSON members whose values are secret.
const SECRET_MEMBERS: [&str; 5] = [
    "\"access_token\"",
    "\"client_secret\"",
    "\"id_token\"",
    "\"refresh_token\"",
    "\"registration_access_token\"",
];

/// Whether a body appears to contain tokens or passwords.
fn gives_access(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    SECRET_MEMBERS.iter().any(|member| text.contains(member))
}

fn field(words: &mut String, name: &str, value: &str) {
    let value = match name {
        _ if SECRET.contains(&name) => "..".into(),
        "location" => without_query(value),
        _ => Cow::Borrowed(value),
    };
    // Writing to a string cannot fail.
    let _ = write!(words, "\n      {name}: {value}");
}

fn content(words: &mut String, bytes: &[u8], length: usize) {
    if !bytes.is_empty() {
        let text = String::from_utf8_lossy(bytes);
        let _ = write!(words, "\n      {}", shortened(text.trim_end(), length));
    }
}

fn session_of<'a, V>(mut fields: impl Iterator<Item = (&'a str, V)>) -> Option<V> {
    fields.find(|(name, _)| *name == "mcp-session-id").map(|(_, id)| id)
}

fn without_session<'a>(text: &'a str, session: Option<&str>) -> &'a str {
    let contains = |session: &str| !session.is_empty() && text.contains(session);
    if session.is_some_and(contains) { ".." } else { text }
}

/// Returns a URL without its query, which may contain a session id or a key.
fn without_query(url: &str) -> Cow<'_, str> {
    match url.split_once('?') {
        Some((url, _)) => format!("{url}?..").into(),
        None => url.into(),
    }
}

impl<X> std::fmt::Debug for Watched<X> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("count", &self.count).finish_non_exhaustive()
    }
}

impl<X> std::fmt::Debug for WatchedExchange<X> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchedExchange").field("number", &self.number).finish_non_exhaustive()
    }
}

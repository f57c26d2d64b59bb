use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio_collections::{Key, Slab};
use mcp_sansio_sync::Arc;

use crate::framing::SseDecoder;
use crate::http::{ExchangeId, Location};
use crate::peer::TransportFailure;
use crate::{Attempts, Instant};

use super::message::{Message, RequestKind};

/// A request and its response.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) purpose: Purpose,
    /// The message that it carries, or whose stream it resumes.
    pub(super) message: Option<Message>,
    pub(super) receiving: Receiving,
    /// The state of the stream that it opens or resumes.
    pub(super) stream: Option<Box<Stream>>,
    pub(super) url: Arc<Location>,
    pub(super) redirects: u32,
    /// The number of the session that it names.
    pub(super) session: Option<u32>,
    /// The time at which it is aborted, if it has one: the rest of the response is not needed, or
    /// it carries a message without an answer.
    pub(super) cut_off_at: Option<Instant>,
    /// It waits for something on this side, such as a sign-in.
    pub(super) paused: bool,
    /// It has ended, so it cannot be aborted.
    pub(super) over: bool,
}

/// The purpose of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The POST of a message.
    Post,
    /// The GET that resumes the stream of a call.
    Resume,
    /// The GET of the listening stream.
    Listen,
    /// The GET of HTTP+SSE.
    HttpSse,
    /// The DELETE of the session.
    End,
}

/// The progress of the response.
#[derive(Debug)]
pub(super) enum Receiving {
    /// The head has not arrived yet.
    Head,
    /// A JSON body.
    Json(Vec<u8>),
    /// The body of a response that is not the answer. In a box, because few exchanges have one.
    ErrorBody(Box<ErrorResponse>),
    /// A stream of events.
    Events(Box<SseDecoder<'static>>),
    /// The rest of the response is ignored.
    Nothing,
}

/// A response with an error status, or without JSON or events.
#[derive(Debug)]
pub(super) struct ErrorResponse {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    /// The failure that the head means, without the body, if that is more than a status.
    pub(super) failure: Option<TransportFailure>,
    pub(super) body: Vec<u8>,
    /// The body exceeds the limit and is ignored.
    pub(super) overlong: bool,
}

/// An event stream, which may span several exchanges.
#[derive(Debug)]
pub(super) struct Stream {
    /// The id of the last event, after which the stream is resumed.
    pub(super) last_id: Option<String>,
    /// A hash of the data of the last event that set an id.
    pub(super) last_data: u64,
    /// Several events have the same id, so that their ids name no position.
    pub(super) repeats_id: bool,
    /// The reconnection delay that the server asked for.
    pub(super) retry: Option<Duration>,
    pub(super) attempts: Attempts,
    /// The current exchange resumes the stream, and no event with an id has arrived on it yet.
    pub(super) resumed: bool,
    /// This is a listen stream that was open before and is opened again.
    pub(super) reopened: bool,
    /// An event arrived on the current or last exchange.
    pub(super) heard: bool,
    /// The time at which the head of the current or last exchange arrived.
    pub(super) since: Instant,
    /// The first bytes have arrived.
    pub(super) begun: bool,
    /// Why the stream may have no answer, for the error if it ends without one.
    pub(super) fault: Option<Cow<'static, str>>,
}

impl Stream {
    pub(super) const fn new(attempts: Attempts, now: Instant) -> Self {
        Self {
            last_id: None,
            last_data: 0,
            repeats_id: false,
            retry: None,
            attempts,
            resumed: false,
            reopened: false,
            heard: false,
            since: now,
            begun: false,
            fault: None,
        }
    }

    /// Returns whether the current exchange has been open for `time`. If it ends after
    /// that, an intermediary may have closed an idle connection.
    pub(super) fn has_stood(&self, time: Duration, now: Instant) -> bool {
        now.saturating_since(self.since) >= time
    }
}

/// A stream that waits to be resumed, or a message that waits to be sent again.
#[derive(Debug)]
pub(super) struct Pause {
    pub(super) due: Instant,
    /// The request that the stream belongs to, or the message; `None` for the listening stream.
    pub(super) message: Option<Message>,
    pub(super) stream: Box<Stream>,
    /// The message was not handled, and is sent again.
    pub(super) again: bool,
}

impl Pause {
    /// Returns whether it is that of a notification or response.
    pub(super) fn is_control(&self) -> bool {
        self.message.as_ref().is_some_and(Message::is_control)
    }

    /// Returns whether the stream or the request is that of this id.
    pub(super) fn is_of(&self, id: i64) -> bool {
        let request = self.message.as_ref().and_then(Message::request);
        request.is_some_and(|(own, _)| own == id)
    }
}

/// All open exchanges, and the streams that wait to be resumed.
#[derive(Debug)]
pub(super) struct Exchanges {
    table: Slab<Exchange>,
    pub(super) pauses: Vec<Pause>,
    /// Exchanges for requests.
    requests: usize,
    /// Exchanges for other messages.
    control: usize,
    /// The number of paused exchanges.
    paused_count: usize,
}

impl Exchanges {
    pub(super) const fn new() -> Self {
        Self { table: Slab::new(), pauses: Vec::new(), requests: 0, control: 0, paused_count: 0 }
    }

    pub(super) fn insert(&mut self, exchange: Exchange) -> ExchangeId {
        debug_assert!(!exchange.paused, "a new exchange is not paused");
        if let Some(count) = self.count_of(&exchange) {
            *count += 1;
        }
        ExchangeId(self.table.insert(exchange))
    }

    pub(super) fn remove(&mut self, id: ExchangeId) -> Option<Exchange> {
        let exchange = self.table.remove(id.0)?;
        self.paused_count -= usize::from(exchange.paused);
        if let Some(count) = self.count_of(&exchange) {
            *count -= 1;
        }
        Some(exchange)
    }

    /// Takes the state out of an exchange, which then only absorbs the rest of its response.
    pub(super) fn detach(&mut self, id: ExchangeId, cut_off_at: Instant) -> Option<Exchange> {
        let entry = self.table.get_mut(id.0)?;
        let mut bare = Exchange {
            receiving: Receiving::Nothing,
            cut_off_at: entry.cut_off_at,
            over: entry.over,
            ..Exchange::new(entry.purpose, Arc::clone(&entry.url))
        };
        bare.cut_off_by(cut_off_at);
        let exchange = core::mem::replace(entry, bare);
        self.paused_count -= usize::from(exchange.paused);
        if let Some(count) = self.count_of(&exchange) {
            *count -= 1;
        }
        Some(exchange)
    }

    pub(super) fn get(&self, id: ExchangeId) -> Option<&Exchange> {
        self.table.get(id.0)
    }

    /// The caller must not change whether an exchange carries a request, because the counters
    /// depend on it.
    pub(super) fn get_mut(&mut self, id: ExchangeId) -> Option<&mut Exchange> {
        self.table.get_mut(id.0)
    }

    /// Pauses or resumes an exchange.
    pub(super) fn set_paused(&mut self, id: ExchangeId, still: bool) {
        let Some(exchange) = self.table.get_mut(id.0) else { return };
        self.paused_count -= usize::from(exchange.paused);
        self.paused_count += usize::from(still);
        exchange.paused = still;
    }

    /// Returns whether any exchange is paused.
    pub(super) const fn any_paused(&self) -> bool {
        self.paused_count > 0
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Checks that the counters match the table.
    pub(super) fn assert_consistent(&self) {
        let all = || self.table.iter().map(|(_, exchange)| exchange);
        let is_control = |exchange: &&Exchange| exchange.is_control();
        let carried = all().filter(|exchange| exchange.message.is_some()).count();
        assert_eq!(self.control, all().filter(is_control).count(), "control exchanges");
        assert_eq!(self.requests + self.control, carried, "exchanges with a message");
        let paused = all().filter(|exchange| exchange.paused).count();
        assert_eq!(self.paused_count, paused, "paused exchanges");
        assert!(all().all(|exchange| !exchange.over), "an exchange that is over");
    }

    /// Returns the number of open requests, including those whose stream waits to be resumed.
    pub(super) fn requests(&self) -> usize {
        let paused = self.pauses.iter().filter(|it| it.message.is_some() && !it.is_control());
        self.requests + paused.count()
    }

    /// Returns the number of exchanges for other messages, including those that wait to be sent
    /// again.
    pub(super) fn control(&self) -> usize {
        self.control + self.pauses.iter().filter(|pause| pause.is_control()).count()
    }

    /// Returns the first exchange that satisfies `wanted`, in slot order.
    pub(super) fn find(&self, wanted: impl Fn(&Exchange) -> bool) -> Option<ExchangeId> {
        self.table.find_from(0, wanted).map(ExchangeId)
    }

    /// Returns all exchanges that satisfy `wanted`, in slot order.
    pub(super) fn all(&self, wanted: impl Fn(&Exchange) -> bool) -> Vec<ExchangeId> {
        let found = self.table.iter().filter(|(_, exchange)| wanted(exchange));
        found.map(|(key, _): (Key, _)| ExchangeId(key)).collect()
    }

    /// Returns the exchange that carries or resumes the request with this id.
    pub(super) fn find_by_request(&self, id: i64) -> Option<ExchangeId> {
        self.find(|exchange| exchange.request_id() == Some(id))
    }

    /// Returns the first time at which an exchange must be aborted or a stream resumed.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let cuts = self.table.iter().filter_map(|(_, exchange)| exchange.cut_off_at);
        cuts.chain(self.pauses.iter().map(|pause| pause.due)).min()
    }

    fn count_of(&mut self, exchange: &Exchange) -> Option<&mut usize> {
        match &exchange.message {
            Some(message) if message.is_control() => Some(&mut self.control),
            Some(_) => Some(&mut self.requests),
            None => None,
        }
    }
}

impl Exchange {
    pub(super) const fn new(purpose: Purpose, url: Arc<Location>) -> Self {
        Self {
            purpose,
            message: None,
            receiving: Receiving::Head,
            stream: None,
            url,
            redirects: 0,
            session: None,
            cut_off_at: None,
            paused: false,
            over: false,
        }
    }

    /// Aborts it at this time, unless it is aborted earlier.
    pub(super) fn cut_off_by(&mut self, at: Instant) {
        self.cut_off_at = Some(self.cut_off_at.map_or(at, |before| before.min(at)));
    }

    /// Returns whether it carries a notification or response.
    pub(super) fn is_control(&self) -> bool {
        self.message.as_ref().is_some_and(Message::is_control)
    }

    /// Returns whether it carries the handshake.
    pub(super) fn opens_session(&self) -> bool {
        let request = self.message.as_ref().and_then(Message::request);
        request.is_some_and(|(_, asks)| asks == RequestKind::Initialize)
    }

    /// Returns whether the server no longer knows the session that it names.
    // MCP 2025-11-25 basic/transports#session-management [SESS-009]
    pub(super) fn has_lost_session(&self) -> bool {
        let unknown = matches!(&self.receiving, Receiving::ErrorBody(body) if body.status == 404);
        unknown && self.session.is_some()
    }

    /// Returns whether it is for a subscription, which has no end.
    pub(super) fn listens(&self) -> bool {
        let request = self.message.as_ref().and_then(Message::request);
        request.is_some_and(|(_, asks)| asks == RequestKind::Listen)
    }

    /// Returns the id of the request that it carries or resumes.
    pub(super) fn request_id(&self) -> Option<i64> {
        self.message.as_ref().and_then(Message::request).map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::client::message::Message;
    use crate::peer::outbox::Part;
    use crate::protocol::Method;

    fn exchange(message: Option<Message>) -> Exchange {
        let url = Arc::new(Location::parse("http://localhost/").unwrap());
        Exchange { message, ..Exchange::new(Purpose::Post, url) }
    }

    #[test]
    fn exchanges_are_counted_by_message_kind_until_detached() {
        let mut exchanges = Exchanges::new();
        let call = exchanges.insert(exchange(Some(Message::new_request(7, Method::ToolsList))));
        let answer = exchanges.insert(exchange(Some(Message::new(Part::Answers, String::new()))));
        exchanges.insert(exchange(None));
        assert_eq!((exchanges.requests(), exchanges.control(), exchanges.len()), (1, 1, 3));
        assert_eq!(exchanges.find_by_request(7), Some(call));
        let at = Instant::from_millis(5);
        assert!(exchanges.detach(call, at).is_some_and(|taken| taken.message.is_some()));
        assert_eq!((exchanges.requests(), exchanges.len()), (0, 3));
        assert_eq!((exchanges.find_by_request(7), exchanges.next_deadline()), (None, Some(at)));
        assert!(exchanges.detach(call, at).is_some_and(|taken| taken.message.is_none()));
        assert!(exchanges.remove(answer).is_some() && exchanges.remove(answer).is_none());
        assert_eq!((exchanges.control(), exchanges.len()), (0, 2));
    }

    #[test]
    fn paused_exchanges_are_counted_until_resumed_or_removed() {
        let mut exchanges = Exchanges::new();
        let all = [1, 2, 3].map(|_| exchanges.insert(exchange(None)));
        for id in all {
            exchanges.set_paused(id, true);
            exchanges.set_paused(id, true);
        }
        exchanges.set_paused(all[0], false);
        assert!(exchanges.detach(all[1], Instant::ZERO).is_some());
        assert!(exchanges.any_paused());
        assert!(exchanges.remove(all[2]).is_some());
        exchanges.set_paused(all[2], true);
        assert!(!exchanges.any_paused());
    }

    #[test]
    fn a_stream_waiting_for_resumption_counts_as_a_request() {
        let mut exchanges = Exchanges::new();
        let message = Message::new_request(7, Method::ToolsList);
        let attempts = || Attempts::new(crate::Backoff::DEFAULT, 1);
        for message in [Some(message), None] {
            let stream = Box::new(Stream::new(attempts(), Instant::ZERO));
            let (due, again) = (Instant::from_millis(9), false);
            exchanges.pauses.push(Pause { due, message, stream, again });
        }
        assert_eq!(exchanges.requests(), 1);
        assert_eq!(exchanges.next_deadline(), Some(Instant::from_millis(9)));
    }
}

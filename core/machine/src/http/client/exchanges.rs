use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio_collections::{Key, Slab};
use mcp_sansio_sync::Arc;

use crate::Instant;
use crate::framing::SseDecoder;
use crate::http::backoff::Attempts;
use crate::http::{ExchangeId, Location};

use super::message::Message;

/// A request and its response.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) purpose: Purpose,
    /// What it carries, or what the stream that it resumes answers.
    pub(super) message: Option<Message>,
    pub(super) receiving: Receiving,
    /// What is known of the stream that it opens or resumes.
    pub(super) stream: Option<Box<Stream>>,
    pub(super) url: Arc<Location>,
    pub(super) redirects: u32,
    /// The session that it names, by its number.
    pub(super) session: Option<u32>,
    /// When it is cut off: nothing that is still to come matters.
    pub(super) cut_off_at: Option<Instant>,
    /// It waits for something on this side.
    pub(super) paused: bool,
    /// It has ended, so that there is nothing to cut off.
    pub(super) over: bool,
}

/// What an exchange is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The POST of a message.
    Post,
    /// The GET that resumes the stream of a call.
    Resume,
    /// The GET of the listening stream.
    Listen,
    /// The GET of the transport of 2024-11-05.
    HttpSse,
    /// The DELETE of the session.
    End,
}

/// How far the response is.
#[derive(Debug)]
pub(super) enum Receiving {
    /// Its head is awaited.
    Head,
    /// A body of JSON.
    Json(Vec<u8>),
    /// The body of a refusal.
    ErrorBody(ErrorResponse),
    /// A stream of events.
    Events(Box<SseDecoder<'static>>),
    /// Nothing that is still to come matters.
    Nothing,
}

/// A response whose status refuses.
#[derive(Debug)]
pub(super) struct ErrorResponse {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
    /// The body is longer than the limit, so that it says nothing.
    pub(super) overlong: bool,
}

/// A stream of events, over all the exchanges that it takes.
#[derive(Debug)]
pub(super) struct Stream {
    /// The id to resume it after.
    pub(super) last_id: Option<String>,
    /// How long the server wants to be left alone.
    pub(super) retry: Option<Duration>,
    pub(super) attempts: Attempts,
    /// The exchange that is under way resumes the stream, and no event with an id came on it yet.
    pub(super) resumed: bool,
    /// It is a listen stream that stood before, and was opened again.
    pub(super) reopened: bool,
    /// The exchange that is under way, or was last, brought an event.
    pub(super) heard: bool,
    /// When the exchange that is under way, or was last, had its head.
    pub(super) since: Instant,
}

impl Stream {
    pub(super) const fn new(attempts: Attempts, now: Instant) -> Self {
        Self {
            last_id: None,
            retry: None,
            attempts,
            resumed: false,
            reopened: false,
            heard: false,
            since: now,
        }
    }
}

/// A stream that waits to be resumed.
#[derive(Debug)]
pub(super) struct Pause {
    pub(super) due: Instant,
    /// What the stream answers; `None`: the listening stream.
    pub(super) message: Option<Message>,
    pub(super) stream: Box<Stream>,
}

/// All exchanges that are under way, and what waits between two.
#[derive(Debug)]
pub(super) struct Exchanges {
    table: Slab<Exchange>,
    pub(super) pauses: Vec<Pause>,
    /// Exchanges for requests.
    requests: usize,
    /// Exchanges for other messages.
    control: usize,
    /// Exchanges that stand still.
    paused_count: usize,
}

impl Exchanges {
    pub(super) const fn new() -> Self {
        Self { table: Slab::new(), pauses: Vec::new(), requests: 0, control: 0, paused_count: 0 }
    }

    pub(super) fn insert(&mut self, exchange: Exchange) -> ExchangeId {
        debug_assert!(!exchange.paused, "it is only about to begin");
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

    /// Takes out what an exchange is about; of the exchange only what is still to come is left.
    pub(super) fn detach(&mut self, id: ExchangeId, cut_off_at: Instant) -> Option<Exchange> {
        let entry = self.table.get_mut(id.0)?;
        let bare = Exchange {
            receiving: Receiving::Nothing,
            cut_off_at: Some(entry.cut_off_at.unwrap_or(cut_off_at)),
            over: entry.over,
            ..Exchange::new(entry.purpose, Arc::clone(&entry.url))
        };
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

    /// What carries a request keeps its kind of message: the counts go by it.
    pub(super) fn get_mut(&mut self, id: ExchangeId) -> Option<&mut Exchange> {
        self.table.get_mut(id.0)
    }

    /// Lets an exchange stand still, or go on.
    pub(super) fn set_paused(&mut self, id: ExchangeId, still: bool) {
        let Some(exchange) = self.table.get_mut(id.0) else { return };
        self.paused_count -= usize::from(exchange.paused);
        self.paused_count += usize::from(still);
        exchange.paused = still;
    }

    /// Whether any exchange stands still.
    pub(super) const fn any_paused(&self) -> bool {
        self.paused_count > 0
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Requests under way, those included whose stream waits to be resumed.
    pub(super) fn requests(&self) -> usize {
        self.requests + self.pauses.iter().filter(|pause| pause.message.is_some()).count()
    }

    /// Other messages under way.
    pub(super) const fn control(&self) -> usize {
        self.control
    }

    /// The first exchange that satisfies `wanted`, in the order of their places.
    pub(super) fn find(&self, wanted: impl Fn(&Exchange) -> bool) -> Option<ExchangeId> {
        self.table.find_from(0, wanted).map(ExchangeId)
    }

    /// Those that satisfy `wanted`, in the order of their places.
    pub(super) fn all(&self, wanted: impl Fn(&Exchange) -> bool) -> Vec<ExchangeId> {
        let found = self.table.iter().filter(|(_, exchange)| wanted(exchange));
        found.map(|(key, _): (Key, _)| ExchangeId(key)).collect()
    }

    /// The exchange that carries or answers the request with this id.
    pub(super) fn find_by_request(&self, id: i64) -> Option<ExchangeId> {
        self.find(|exchange| exchange.request_id() == Some(id))
    }

    /// When the first of them is to be cut off or resumed.
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

    /// The id of the request that it carries or answers.
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
    fn exchanges_are_counted_by_what_they_carry_until_that_is_taken_out() {
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
    fn a_stream_that_waits_holds_the_place_of_its_call() {
        let mut exchanges = Exchanges::new();
        let message = Message::new_request(7, Method::ToolsList);
        let attempts = || Attempts::new(crate::http::Backoff::DEFAULT, 1);
        for message in [Some(message), None] {
            let stream = Box::new(Stream::new(attempts(), Instant::ZERO));
            exchanges.pauses.push(Pause { due: Instant::from_millis(9), message, stream });
        }
        assert_eq!(exchanges.requests(), 1);
        assert_eq!(exchanges.next_deadline(), Some(Instant::from_millis(9)));
    }
}

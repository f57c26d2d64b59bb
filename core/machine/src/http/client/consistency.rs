use crate::peer::ClientMachine;

use super::closing::CloseState;
use super::exchanges::{Exchange, Purpose, Receiving};
use super::listening::Listening;
use super::{Client, Transport};

impl Client {
    /// Checks that all tables of the machine match each other: each request in flight has an
    /// exchange, a place in the queue or a stream that will be resumed, and no entry outlives its
    /// call. The time is proportional to the square of the contents: call it in tests and fuzz
    /// targets, after each input.
    ///
    /// # Panics
    ///
    /// The tables disagree, which is a bug in this crate.
    pub fn assert_consistent(&self) {
        self.peer.assert_consistent();
        self.exchanges.assert_consistent();
        self.call_fields.assert_consistent(|call| self.peer.has_call(call));
        if self.peer.is_closed() {
            assert_ne!(self.close_state, CloseState::Open, "an end that is not handled");
            let deletes = matches!(self.close_state, CloseState::DeletingSession(_));
            assert!(deletes || self.exchanges.len() == 0, "exchanges after the end");
            assert_eq!(self.exchanges.pauses.len(), 0, "pauses after the end");
            assert_eq!(self.queue.request_ids().count(), 0, "queued requests after the end");
            return;
        }
        assert!(self.peer.next_message().is_none(), "a message that is not taken");
        for id in self.peer.requests_in_flight() {
            let places = self.places_of(id);
            assert_eq!(places, 1, "places of the request {id}");
        }
        let listens = |exchange: &Exchange| exchange.purpose == Purpose::Listen;
        let open = |exchange: &Exchange| exchange.cut_off_at.is_none();
        let listening = self.exchanges.all(|exchange| listens(exchange) && open(exchange)).len();
        let waiting = self.exchanges.pauses.iter().filter(|it| it.message.is_none()).count();
        let expected = match self.listening {
            Listening::Off | Listening::NotOffered => (0, 0),
            Listening::On { .. } => (1, 0),
            Listening::Waiting { .. } => (0, 1),
        };
        assert_eq!((listening, waiting), expected, "listening streams: {:?}", self.listening);
        if let Listening::On { exchange, .. } = self.listening {
            assert!(self.exchanges.get(exchange).is_some_and(listens), "the listening stream");
        }
    }

    /// Returns the number of places from which a response to the request can come.
    fn places_of(&self, id: i64) -> usize {
        let queued = self.queue.request_ids().filter(|queued| *queued == id).count();
        let carries = |exchange: &Exchange| {
            let open = exchange.cut_off_at.is_none()
                || matches!(exchange.receiving, Receiving::ErrorBody(_));
            exchange.request_id() == Some(id) && open
        };
        let carried = self.exchanges.all(carries).len();
        let paused = self.exchanges.pauses.iter().filter(|pause| pause.is_of(id));
        let waiting = self.tools.waiting_calls().filter(|waiting| *waiting == id).count();
        let places = queued + carried + paused.count() + waiting;
        match &self.transport {
            Transport::Streamable => places,
            Transport::Probing(probe) => places + usize::from(probe.carries(id)),
            // Responses arrive on the stream.
            Transport::HttpSse(_) => 1,
        }
    }
}

use crate::Era;
use crate::peer::calls::Purpose;

use super::Client;
use super::opening::State;

impl Client {
    /// Checks that all tables of the machine match each other: each call waits for a response, for
    /// input or for a deadline, and no entry outlives its call. The time is proportional to the
    /// contents: call it in tests and fuzz targets, after each input.
    ///
    /// # Panics
    ///
    /// The tables disagree, which is a bug in this crate.
    pub fn assert_consistent(&self) {
        let calls = &self.connection.calls;
        let legacy = self.era() == Some(Era::Legacy);
        self.connection.assert_consistent(legacy && self.state == State::Over);
        let mut openings = 0;
        for (key, call) in calls.iter() {
            let round = call.repeat.as_ref().and_then(|repeat| repeat.round);
            let is_known = round.is_none_or(|round| self.rounds.get(round).is_some());
            assert!(is_known, "a call waits for a round that is gone");
            let of_legacy = || self.subscriptions.iter().any(|(known, _)| *known == key);
            let waits = match call.purpose {
                Purpose::Waiting => of_legacy(),
                Purpose::Listen if self.suspended.is_some() => true,
                _ => round.is_some() != calls.is_on_wire(key, call),
            };
            assert!(waits, "a call that waits for nothing: {call:?}");
            openings += usize::from(call.purpose == Purpose::Opening);
        }
        assert_eq!(openings, usize::from(self.state != State::Over), "requests that open");
        let rounds = self.rounds.iter();
        let bytes: usize = rounds.map(|(key, round)| round.assert_consistent(key, calls)).sum();
        assert_eq!(self.input_bytes, bytes, "bytes of input rounds");
        for (key, legacy) in &self.subscriptions {
            legacy.assert_consistent(*key, calls);
        }
        if self.connection.closed.is_some() {
            let rest =
                self.rounds.len() + self.subscriptions.len() + self.connection.requests.len();
            assert_eq!(rest, 0, "entries of a closed connection");
        }
    }
}

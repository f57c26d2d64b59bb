use crate::Era;
use crate::peer::calls::Purpose;
use crate::peer::requests::RequestOwner;

use super::Server;

impl Server {
    /// Checks that all tables of the machine match each other: each call waits for a response or a
    /// deadline, each input round belongs to a request, and no entry outlives its call or request.
    /// The time is proportional to the contents: call it in tests and fuzz targets, after each
    /// input.
    ///
    /// # Panics
    ///
    /// The tables disagree, which is a bug in this crate.
    pub fn assert_consistent(&self) {
        self.connection.assert_consistent(self.is_initialized());
        let (calls, requests) = (&self.connection.calls, &self.connection.requests);
        for (key, call) in calls.iter() {
            let is_due_later = matches!(call.purpose, Purpose::InputTask { .. });
            assert_ne!(calls.is_on_wire(key, call), is_due_later, "a call and its id: {call:?}");
            if let Purpose::Input { round, index } | Purpose::InputTask { round, index } =
                call.purpose
            {
                let round = self.rounds.get(round);
                let question = round.and_then(|round| round.questions.get(index as usize));
                assert_eq!(question.and_then(|it| it.call), Some(key), "a call without its round");
            }
        }
        let rounds = self.rounds.iter();
        let bytes: usize =
            rounds.map(|(key, round)| round.assert_consistent(key, requests, calls)).sum();
        assert_eq!(self.input_bytes, bytes, "bytes of input rounds");
        let closed = self.connection.closed.is_some();
        for (_, entry) in requests.iter() {
            match &entry.owner {
                RequestOwner::Input { round } => {
                    assert!(self.rounds.get(*round).is_some(), "a request without its round");
                }
                RequestOwner::Listening(_) => assert!(!closed, "a listen stream after the end"),
                RequestOwner::Application => {}
            }
            let is_known = self.session.is_some() || entry.revision.era() == Era::Modern;
            assert!(is_known, "a request of a session that has ended");
            let batches = self.batches.as_ref();
            let found = entry
                .reply
                .batch
                .is_none_or(|batch| batches.is_some_and(|batches| batches.contains(batch)));
            assert!(found, "a request without its batch");
        }
        if let Some(batches) = &self.batches {
            batches.assert_consistent(requests);
        }
    }
}

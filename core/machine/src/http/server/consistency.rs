//! Checks the invariants of a server, for tests of its drivers.

use crate::peer::queue::Tag;

use super::exchange::State;
use super::sessions::Transport;
use super::stream::Stream;
use super::{Connection, Server};

impl Server {
    /// Checks that all counters of the machine match its contents. The time is proportional to the
    /// size of the contents: call it in tests and fuzz targets, after each input.
    ///
    /// # Panics
    ///
    /// A counter is wrong, which is a bug in this crate.
    pub fn assert_consistent(&self) {
        let connections = || self.connections.iter().map(|(_, connection)| connection);
        let streams = || connections().flat_map(|connection| connection.streams.iter());
        let logged_bytes: usize = streams().map(|stream| stream.log.len()).sum();
        assert_eq!(self.logged_bytes, logged_bytes, "bytes in the logs");
        if !self.answered.is_empty() {
            let answers = streams().filter(|stream| stream.answers != Tag::NONE).count();
            assert!(self.answered.len() <= answers, "answers of streams that are gone");
        }
        let kept = streams().filter(|stream| stream.kept_until.is_some()).count();
        assert_eq!(self.finished_count, kept, "finished streams");
        assert!(self.finished.len() <= 2 * kept + 65, "entries of finished streams");
        let replays = streams().filter(|stream| stream.replay.is_some()).count();
        assert_eq!(self.replays, replays, "readers of stored events");
        self.store.assert_consistent();
        let sessions = connections().filter(|connection| connection.session.is_some()).count();
        assert_eq!(self.sessions.len(), sessions, "sessions");
        for (key, connection) in self.connections.iter() {
            let Connection { session, streams, machine, .. } = connection;
            machine.assert_consistent();
            let read = streams.iter().filter(|stream| stream.reader.is_some()).count();
            match session {
                None => assert_eq!((read, streams.iter().count()), (1, 1), "a modern request"),
                Some(session) => {
                    assert_eq!(self.key_of_session(&session.id), Some(key));
                    assert_eq!(session.open, read, "open exchanges of a session");
                    let kept = streams.iter().filter(|stream| stream.kept_until.is_some());
                    assert!(kept.map(|stream| stream.number).eq(session.finished.iter().copied()));
                    let own = |stream: &&Stream| !stream.is_foreign();
                    assert!(
                        self.shared.is_some()
                            || streams
                                .iter()
                                .filter(own)
                                .all(|stream| stream.number < session.next_stream)
                    );
                    let whole = session.transport == Transport::EventStream;
                    assert!(!whole || read == 1, "a session of HTTP+SSE is its stream");
                }
            }
            for stream in streams.iter() {
                let reads = stream.reader.is_none_or(|reader| {
                    let exchange = self.exchanges.get(reader).expect("the reader is there");
                    exchange.connection == Some(key) && exchange.stream == stream.number
                });
                assert!(reads, "stream {} and its reader", stream.number);
                stream.assert_consistent();
                assert!(stream.kept_until.is_none() || stream.done, "kept before it is done");
            }
        }
        for (caller, [sessions, exchanges, replays, logged]) in self.callers.held() {
            let owned =
                connections().filter(|it| it.session.is_some() && it.caller == Some(caller));
            assert_eq!(owned.count(), sessions, "sessions of a caller");
            let owned = self.exchanges.iter().filter(|(_, it)| it.caller == Some(caller));
            assert_eq!(owned.count(), exchanges, "exchanges of a caller");
            let streams = || {
                let owned = connections().filter(|it| it.caller == Some(caller));
                owned.flat_map(|connection| connection.streams.iter())
            };
            let bytes: usize = streams().map(|stream| stream.log.len()).sum();
            assert_eq!(bytes, logged, "bytes in the logs of a caller");
            let readers = streams().filter(|stream| stream.replay.is_some()).count();
            assert_eq!(readers, replays, "readers of stored events of a caller");
        }
        let over = self.exchanges.iter().filter(|(_, exchange)| exchange.is_over).count();
        assert_eq!(over, self.exchanges_over, "exchanges that occupy nothing");
        for (key, exchange) in self.exchanges.iter() {
            let carried = exchange.connection.is_none_or(|connection| {
                let stream = self.stream(connection, exchange.stream).expect("a stream");
                stream.reader == Some(key)
            });
            assert!(carried, "an exchange and its stream");
            if matches!(exchange.state, State::Reading) {
                assert!(self.read_due(key).is_some(), "a head that waits for nothing");
            }
            let told = exchange.queued || !matches!(exchange.state, State::Whole(_));
            assert!(told || exchange.connection.is_none(), "a response that waits");
        }
        if let Some(shared) = &self.shared {
            shared.assert_consistent();
        }
    }

    /// Returns how much is kept for clients that may come back: the bytes of messages in the logs
    /// of all streams, and the number of finished streams that a client can still resume.
    #[must_use]
    pub fn retained(&self) -> (usize, usize) {
        (self.logged_bytes, self.finished_count)
    }
}

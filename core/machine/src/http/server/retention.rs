//! Keeps events for readers that lost their connection, and drops them in time.

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::peer::queue::Tag;

use super::timing::LEAST;
use super::{Connection, Server};

/// A finished stream that is kept for its reader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    pub(super) until: Instant,
    connection: Key,
    stream: u32,
}

impl Server {
    /// Keeps a finished stream without a reader for a while, if a client could resume it.
    pub(super) fn keep_finished(&mut self, key: Key, number: u32, now: Instant) {
        let until = now + self.options.timeouts.replay.max(LEAST);
        let finished_max = self.options.limits.finished_streams_max;
        let Some(Connection { session, streams, .. }) = self.connections.get_mut(key) else {
            return;
        };
        let Some(stream) = streams.get_mut(number) else { return };
        let Some(session) = session.as_mut().filter(|_| stream.can_resume()) else {
            return self.drop_stream(key, number);
        };
        if stream.kept_until.replace(until).is_none() {
            session.finished.insert(number);
            let surplus = session.finished.len() > finished_max;
            let oldest = session.finished.first().copied().filter(|_| surplus);
            self.finished_count += 1;
            self.finished.push_back(Finished { until, connection: key, stream: number });
            if let Some(oldest) = oldest {
                self.forget_finished(key, oldest);
            }
        }
        self.hold_total(key, number, now);
    }

    /// Removes entries of dropped streams once they are the majority: constant work per entry.
    pub(super) fn compact_finished(&mut self) {
        const SLACK: usize = 64;
        let Self { finished, connections, finished_count: kept, .. } = self;
        if finished.len() > 2 * *kept + SLACK {
            finished.retain(|entry| {
                let connection = connections.get(entry.connection);
                let stream = connection.and_then(|it| it.streams.get(entry.stream));
                stream.is_some_and(|stream| stream.kept_until.is_some())
            });
        }
    }

    /// Drops the finished streams that have expired.
    pub(super) fn give_up_finished(&mut self, now: Instant) {
        while let Some(oldest) = self.finished.front().copied()
            && oldest.until <= now
        {
            self.finished.pop_front();
            let stream = self.stream(oldest.connection, oldest.stream);
            match stream.and_then(|stream| stream.kept_until) {
                // It was read again in the meantime.
                Some(until) if until > now => {
                    self.finished.push_back(Finished { until, ..oldest });
                }
                Some(_) => self.forget_finished(oldest.connection, oldest.stream),
                None => {}
            }
        }
    }

    /// Stops keeping a finished stream: it is dropped now, or when its reader has gone.
    fn forget_finished(&mut self, key: Key, number: u32) {
        let Some(Connection { session, streams, .. }) = self.connections.get_mut(key) else {
            return;
        };
        let Some(stream) = streams.get_mut(number) else { return };
        if stream.reader.is_none() {
            return self.drop_stream(key, number);
        }
        if stream.kept_until.take().is_some() {
            self.finished_count -= 1;
            if let Some(session) = session {
                session.finished.remove(&number);
            }
            self.compact_finished();
        }
    }

    /// Forgets a response that can no longer be withdrawn.
    pub(super) fn forget_answer(&mut self, key: Key, number: u32, tag: Tag) {
        let place = (key.to_number(), tag);
        // A client may have used an id twice.
        if self.answered.get(&place) == Some(&number) {
            self.answered.remove(&place);
        }
    }

    pub(super) fn drop_stream(&mut self, key: Key, number: u32) {
        let Some(Connection { machine, session, streams, caller }) = self.connections.get_mut(key)
        else {
            return;
        };
        let Some(stream) = streams.get(number) else { return };
        let caller = *caller;
        if let Some(shared) = &mut self.shared {
            shared.forget_stream(key, number);
        }
        if let Some(session) = session {
            if stream.recorded > 0 {
                self.store.forget(session, Some(number), machine.caller().principal());
            }
            session.finished.remove(&number);
            session.open -= usize::from(stream.reader.is_some());
        }
        let (logged, replays, answers) =
            (stream.log.len(), stream.replay.is_some(), stream.answers);
        let is_kept = stream.kept_until.is_some();
        streams.remove(number);
        self.log_changed_of(caller, logged, 0);
        if replays {
            self.end_replays(key, 1);
        }
        if answers != Tag::NONE {
            self.forget_answer(key, number, answers);
        }
        if is_kept {
            self.finished_count -= 1;
            self.compact_finished();
        }
    }

    /// Applies the limits to a stream without a reader: the oldest events are dropped, and a client
    /// that resumes before them is told.
    pub(super) fn hold_unread(&mut self, key: Key, number: u32) {
        let limits = &self.options.limits;
        let (events, bytes) = (limits.replay_events_max, limits.replay_bytes_max);
        let Some(stream) = self.connections.get_mut(key).and_then(|it| it.streams.get_mut(number))
        else {
            return;
        };
        if stream.reader.is_none() {
            let before = stream.log.len();
            stream.keep(events, bytes, 1);
            let after = stream.log.len();
            self.log_changed(key, before, after);
        }
    }

    /// Counts the bytes of a log that has changed.
    pub(super) fn log_changed(&mut self, key: Key, before: usize, after: usize) {
        let caller = self.connections.get(key).and_then(|connection| connection.caller);
        self.log_changed_of(caller, before, after);
    }

    /// Counts the changed number of logged bytes of this caller.
    pub(super) fn log_changed_of(&mut self, caller: Option<Key>, before: usize, after: usize) {
        if after > before {
            self.logged_bytes += after - before;
        } else {
            self.logged_bytes -= before - after;
        }
        self.callers.change_logged(caller, before, after);
    }

    /// Applies the total limit after a stream has grown: finished streams are dropped first, oldest
    /// first, then the events that this stream keeps for resumption.
    pub(super) fn hold_total(&mut self, key: Key, number: u32, now: Instant) {
        self.hold_kept(key, number);
        let limits = &self.options.limits;
        let caller = self.connections.get(key).and_then(|connection| connection.caller);
        let logged = self.callers.logged(caller);
        if logged > limits.replay_bytes_per_caller_max
            || logged > limits.unread_bytes_per_caller_max
            || self.logged_bytes > limits.unread_bytes_total_max
        {
            self.hold_share(key, number);
            self.hold_unread_total(key, number, now);
        }
    }

    fn hold_kept(&mut self, key: Key, number: u32) {
        let most = self.options.limits.replay_bytes_total_max;
        while self.logged_bytes > most
            && let Some(oldest) = self.finished.pop_front()
        {
            self.forget_finished(oldest.connection, oldest.stream);
        }
        if self.logged_bytes > most {
            self.shrink_stream(key, number, 1);
        }
    }

    /// Applies the limit of its caller after a stream has grown: the finished streams of its
    /// session are dropped first, oldest first, then all events that this stream keeps.
    fn hold_share(&mut self, key: Key, number: u32) {
        let most = self.options.limits.replay_bytes_per_caller_max;
        while let Some(Connection { caller, session, .. }) = self.connections.get(key)
            && self.callers.logged(*caller) > most
        {
            let finished = session.as_ref().and_then(|session| session.finished.first());
            let Some(oldest) = finished.copied() else {
                return self.shrink_stream(key, number, 0);
            };
            self.forget_finished(key, oldest);
        }
    }

    /// Drops the events that a stream keeps for a reader that resumes it; without a reader, also
    /// those that no reader has taken, except for the last `spared`.
    fn shrink_stream(&mut self, key: Key, number: u32, spared: usize) {
        let Some(stream) = self.stream_mut(key, number) else { return };
        let before = stream.log.len();
        stream.trim(0, 0);
        if stream.reader.is_none() {
            stream.keep(spared, 0, spared);
        }
        let after = stream.log.len();
        self.log_changed(key, before, after);
    }

    /// Disconnects the reader of a stream that has grown, if all streams or those of its caller
    /// have too many unread events, and this one has more than its part of them.
    fn hold_unread_total(&mut self, key: Key, number: u32, now: Instant) {
        let limits = &self.options.limits;
        let (total, share) = (limits.unread_bytes_total_max, limits.unread_bytes_per_caller_max);
        let Some(Connection { caller, streams, .. }) = self.connections.get(key) else { return };
        let Some(stream) = streams.get(number) else { return };
        let Some(reader) = stream.reader else { return };
        let is_above_part =
            |most: usize, exchanges: usize| stream.unread() > (most / exchanges.max(1)) as u64;
        let is_excessive = self.callers.logged(*caller) > share
            && is_above_part(share, caller.map_or(1, |caller| self.callers.exchanges(caller)))
            || self.logged_bytes > total && is_above_part(total, self.exchanges.len());
        if is_excessive {
            self.cut_off(reader, now);
        }
    }
}

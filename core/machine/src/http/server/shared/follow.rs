//! Readers of streams that another node produces.

use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_collections::Key;
use serde_json::value::RawValue;

use crate::Instant;
use crate::http::{ExchangeId, Response};
use crate::jsonrpc::{ErrorObject, RawJson, write_error};
use crate::peer::outbox::Channel;

use super::super::callers::Sender;
use super::super::exchange::{Exchange, State};
use super::super::log::EventId;
use super::super::reader::closing;
use super::super::replay::{Replay, gone};
use super::super::sessions::STANDALONE;
use super::super::store::{EventPosition, NotStored, StoreAction, StoredEvent};
use super::super::stream::Stream;
use super::super::{Connection, Server};
use super::lease::HEARTBEATS;
use super::relay::NodeMessage;
use super::sessions::is_standalone;
use super::{NodeId, SharedOptions};

/// The progress of a reader in a stream that another node produces. The events are all read from
/// the store.
#[derive(Debug)]
pub(in super::super) struct Follow {
    /// The ids of the requests that the stream answers, once they were read.
    ids: Option<Option<String>>,
    since: Instant,
    /// Whether any read has found the stream.
    found: bool,
    /// When to look for new events. `None`: now, when the last ones are taken.
    pub(in super::super) again: Option<Instant>,
    /// Whether there may be new events since the pending read.
    grown: bool,
    /// The number of the next event, as the node that produces the stream has told last.
    next: u64,
    /// When that node was last asked for it.
    asked: Instant,
    /// Since when the store does not have events before that one.
    behind: Option<Instant>,
    /// Whether the last event was read.
    ended: bool,
    /// Whether the node that produces it is gone.
    orphaned: bool,
    /// When this node has last tried to end it.
    concluded: Option<Instant>,
}

/// The error of a request whose node has failed.
const NODE_FAILED: &str = "the server that ran this request has failed; its outcome is unknown";

impl Server {
    /// Returns the node of a replica, if it is known.
    pub(super) fn owner_of(&self, key: Key, replica: u32) -> Option<NodeId> {
        let owners = &self.shared.as_ref()?.replicas.get(&key.to_number())?.owners;
        owners.iter().find(|(number, _)| *number == replica).map(|(_, node)| *node)
    }

    /// Resumes a stream of another node after an event.
    // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-006] [RESUME-007]
    pub(super) fn follow(
        &mut self,
        key: Key,
        last: EventId,
        owner: NodeId,
        sender: Sender<'_>,
        now: Instant,
    ) -> Result<ExchangeId, Response> {
        self.check_replays(key)?;
        let number = last.stream;
        if self.closing && is_standalone(number) {
            return Err(closing(None));
        }
        if self.stream(key, number).is_some() {
            // The previous reader has lost its connection unnoticed.
            let before = self.detach(key, number);
            self.drop_stream(key, number);
            if let Some(before) = before {
                self.end_exchange(before, None, now);
            }
        }
        let Some(connection) = self.connections.get_mut(key) else { return Err(gone()) };
        let polls = connection.polls();
        let mut stream = Stream::foreign(number, polls);
        let mut replay = Replay::from(last.sequence.saturating_add(1));
        replay.follow = Some(Follow {
            ids: None,
            since: now,
            found: false,
            again: None,
            grown: false,
            next: 0,
            asked: now,
            behind: None,
            ended: false,
            orphaned: false,
            concluded: None,
        });
        stream.resume_behind(replay);
        connection.streams.insert(stream);
        self.count_replay(key);
        let mut exchange = Exchange::new(Some(key), number, State::Reading);
        exchange.polls = polls;
        let exchange = self.open_exchange(exchange, sender.caller);
        self.join_session(key, number, exchange, now);
        if let Some(shared) = self.shared_mut() {
            shared.following.insert((key.to_number(), number), owner);
        }
        self.ask_owner(key, number);
        self.read_on(key, number, now);
        self.depose_silent(now);
        Ok(ExchangeId(exchange))
    }

    /// Asks the node that produces a stream how far it has come, and to tell its new events.
    fn ask_owner(&mut self, key: Key, number: u32) {
        let Some(session) = self.name_of(key) else { return };
        let origin = self.origin_of(key);
        let Some(shared) = self.shared_mut() else { return };
        let owner = shared.following.get(&(key.to_number(), number)).copied();
        let node = alloc::format!("{}", shared.node);
        let message = NodeMessage::Follow { session: session.into(), stream: number, node };
        self.send(&origin, owner, &message);
    }

    fn follow_of(&mut self, key: Key, number: u32) -> Option<&mut Follow> {
        self.stream_mut(key, number)?.replay.as_mut()?.follow.as_mut()
    }

    /// Returns whether the next read is for the ids of the requests that a stream answers.
    pub(in super::super) fn expects_ids(&self, key: Key, number: u32) -> bool {
        let replay = self.stream(key, number).and_then(|stream| stream.replay.as_ref());
        replay.and_then(|it| it.follow.as_ref()).is_some_and(|follow| follow.ids.is_none())
    }

    /// Handles the events that a read of a followed stream has found.
    pub(in super::super) fn handle_followed(
        &mut self,
        key: Key,
        number: u32,
        from: &EventPosition,
        events: Result<Vec<StoredEvent>, NotStored>,
        now: Instant,
    ) {
        let Some(shared) = &self.shared else { return };
        let SharedOptions { patience, poll, lease, .. } = shared.options;
        let limits = self.options.limits.clone();
        let Some(replay) = self.stream_mut(key, number).and_then(|it| it.replay.as_mut()) else {
            return;
        };
        replay.end_read();
        let Some(follow) = &mut replay.follow else { return };
        let grown = core::mem::take(&mut follow.grown);
        let Ok(mut events) = events else {
            // The first events of a stream may not have arrived at the store yet.
            if follow.found || follow.orphaned || now >= follow.since + patience {
                return self.fail_replay(key, number, gone(), now);
            }
            follow.again = Some(now + poll);
            return self.rearm(key, number);
        };
        follow.found = true;
        if follow.ids.is_none() {
            let first = events.into_iter().next().filter(|event| event.position.sequence == 0);
            let ids = first.and_then(|event| String::from_utf8(event.message).ok());
            follow.ids = Some(ids.filter(|ids| !ids.is_empty()));
            return self.read_on(key, number, now);
        }
        if events.is_empty() {
            let waited = follow.concluded.is_none_or(|at| now >= at + poll);
            if follow.orphaned && waited {
                return self.conclude(key, number, now);
            }
            if grown {
                return self.read_on(key, number, now);
            }
            // An event may arrive at the store after the message about it.
            if !follow.orphaned && from.sequence < follow.next {
                let since = *follow.behind.get_or_insert(now);
                if now >= since + poll {
                    return self.fail_replay(key, number, gone(), now);
                }
            }
            follow.again = Some(now + poll);
            // Not before it is known whether the client has to be told of a loss.
            let is_told = follow.next > 0 || now >= follow.since + poll;
            let opens = is_told && follow.behind.is_none();
            if now >= follow.asked + lease / HEARTBEATS {
                follow.asked = now;
                self.ask_owner(key, number);
            }
            if !opens && self.is_unopened(key, number) {
                return self.rearm(key, number);
            }
            return self.continue_reader(key, number, now);
        }
        follow.behind = None;
        // The stream ended without a response, or the store has lost the ids of its requests. No
        // client gets the id of this event: one of the node that is gone may have the same id.
        let is_void = |event: &StoredEvent| event.last && event.message.is_empty();
        if !is_standalone(number) && events.last().is_some_and(is_void) {
            events.pop();
            if events.is_empty() {
                return self.fail_replay(key, number, gone(), now);
            }
        }
        let Some(page) = Replay::page_of(&events, from, u64::MAX, &limits) else {
            return self.fail_replay(key, number, gone(), now);
        };
        let count = usize::try_from(page.next_sequence() - from.sequence).unwrap_or(usize::MAX);
        let last = count.checked_sub(1).and_then(|at| events.get(at));
        follow.ended |= last.is_some_and(|event| event.last);
        replay.turn_to(page);
        self.continue_reader(key, number, now);
    }

    /// Returns whether the response to a reader has not begun.
    fn is_unopened(&self, key: Key, number: u32) -> bool {
        let reader = self.stream(key, number).and_then(|stream| stream.reader);
        let entry = reader.and_then(|reader| self.exchanges.get(reader));
        entry.is_some_and(|entry| matches!(entry.state, State::Reading))
    }

    /// Sets the deadline of a reader whose head was not sent yet.
    fn rearm(&mut self, key: Key, number: u32) {
        if let Some(reader) = self.stream(key, number).and_then(|stream| stream.reader) {
            self.rest(reader);
        }
    }

    /// Looks for new events.
    pub(in super::super) fn look_again(&mut self, key: Key, number: u32, now: Instant) {
        if let Some(follow) = self.follow_of(key, number) {
            follow.again = None;
            self.read_on(key, number, now);
        }
    }

    /// Handles a notification that a stream has events before the number `next`.
    pub(super) fn handle_growth(&mut self, key: Key, number: u32, next: Option<u64>, now: Instant) {
        let Some(follow) = self.follow_of(key, number) else { return };
        follow.next = follow.next.max(next.unwrap_or_default());
        if follow.again.is_some() {
            self.look_again(key, number, now);
        } else {
            follow.grown = true;
        }
    }

    /// Continues a followed stream whose events were taken. Returns whether there is more now.
    pub(in super::super) fn look_at_followed(
        &mut self,
        key: Key,
        number: u32,
        now: Instant,
    ) -> bool {
        let Some(follow) = self.follow_of(key, number) else { return false };
        if follow.ended {
            if is_standalone(number) {
                self.take_over_standalone(key, number, now);
                return false;
            }
            self.end_replays(key, 1);
            if let Some(shared) = self.shared_mut() {
                shared.forget_stream(key, number);
            }
            if let Some(stream) = self.stream_mut(key, number) {
                (stream.replay, stream.done) = (None, true);
            }
        } else if follow.again.is_none() {
            self.read_on(key, number, now);
        }
        false
    }

    /// Handles the end of the node that produces a stream.
    pub(super) fn orphan(&mut self, key: Key, number: u32, now: Instant) {
        let Some(follow) = self.follow_of(key, number) else { return };
        follow.orphaned = true;
        // Otherwise the next read without events ends it.
        if follow.again.is_some() {
            self.look_again(key, number, now);
        }
    }

    /// Ends a stream whose node is gone, after its last event. If the store refuses, another node
    /// was faster, and its event is read next.
    fn conclude(&mut self, key: Key, number: u32, now: Instant) {
        if is_standalone(number) {
            return self.take_over_standalone(key, number, now);
        }
        let Some(position) = self.position_after(key, number) else { return };
        let Some(follow) = self.follow_of(key, number) else { return };
        follow.concluded = Some(now);
        let message = follow.ids.clone().flatten().map(|ids| failures(&ids)).unwrap_or_default();
        let event = StoredEvent::new(position, message.into_bytes()).last();
        self.store.push(self.account_of(key), StoreAction::Append { event });
        self.read_on(key, number, now);
    }

    /// Continues a stream of messages without a request, whose node is gone, with that of this
    /// node.
    fn take_over_standalone(&mut self, key: Key, number: u32, now: Instant) {
        let Some(reader) = self.detach(key, number) else { return };
        self.drop_stream(key, number);
        let before = self.detach(key, STANDALONE);
        if let Some(before) = before {
            self.end_exchange(before, None, now);
        }
        let Some(stream) = self.stream_mut(key, STANDALONE) else { return };
        let (own, length) = (stream.number, stream.log.len());
        let was_open = stream.opened;
        stream.open();
        if was_open {
            stream.prime();
        }
        stream.reader = Some(reader);
        stream.behind = None;
        let grown = self.stream(key, STANDALONE).map_or(0, |it| it.log.len());
        self.log_changed(key, length, grown);
        if let Some(entry) = self.exchanges.get_mut(reader) {
            entry.stream = own;
            if matches!(entry.state, State::Reading) {
                entry.state = State::Opening;
            }
        }
        self.record_ids(key, own);
        self.rest(reader);
        self.make_ready(reader);
        self.announce_listener(key);
    }

    /// Ends the response that carries a followed stream. Its client may resume it.
    pub(in super::super) fn leave_foreign(&mut self, key: Key, number: u32) {
        let Some(reader) = self.detach(key, number) else { return };
        self.drop_stream(key, number);
        if let Some(session) = self.connections.get_mut(key).and_then(|it| it.session.as_mut()) {
            session.open -= 1;
        }
        let Some(entry) = self.exchanges.get_mut(reader) else { return };
        entry.connection = None;
        match entry.state {
            State::Reading | State::Opening => {
                (entry.state, entry.closes) = (State::Opening, true);
            }
            _ => entry.state = State::Closing,
        }
        self.exchange_deadlines.clear(reader.slot);
        self.make_ready(reader);
    }

    // ------------------------------------------------------------------ own streams

    /// Stores the end of a stream that ends without a message.
    pub(in super::super) fn record_end(&mut self, key: Key, number: u32) {
        if self.shared.is_none() {
            return;
        }
        let Some(Connection { machine, session: Some(session), streams, .. }) =
            self.connections.get(key)
        else {
            return;
        };
        let Some(stream) = streams.get(number).filter(|stream| stream.recorded > 0) else { return };
        let position = EventPosition {
            session: session.id,
            stream: stream.number,
            sequence: stream.log.next_sequence(),
            principal: machine.caller().principal().cloned(),
        };
        let event = StoredEvent::new(position, Vec::new()).last();
        let account = session.account;
        self.store.push(account, StoreAction::Append { event });
        self.notify_followers(key, number);
    }

    /// Handles an event that a shared store has stored, or failed to store: its reader gets it now
    /// if the server is [durable](super::SharedOptions::durable).
    pub fn handle_appended(&mut self, position: &EventPosition) {
        if !self.store.is_durable() {
            return;
        }
        let Some(key) = self.key_of_session(&position.session) else { return };
        let Some(stream) = self.stream_mut(key, position.stream) else { return };
        if stream.is_foreign() || stream.stored == u64::MAX {
            return;
        }
        stream.stored = stream.stored.max(position.sequence.saturating_add(1));
        if let Some(reader) = stream.reader {
            self.make_ready(reader);
        }
    }

    /// Handles an event that a shared store has refused, because another node has ended the stream:
    /// it stops here too. Its requests are cancelled, and its reader is disconnected.
    pub fn handle_append_refused(&mut self, position: &EventPosition, now: Instant) {
        let Some(key) = self.key_of_session(&position.session) else { return };
        let number = position.stream;
        let Some(stream) = self.stream_mut(key, number).filter(|stream| !stream.is_foreign())
        else {
            return;
        };
        // Nothing more is stored, and the stream in the store is not removed.
        (stream.resumable, stream.recorded, stream.stored) = (false, 0, u64::MAX);
        let reader = stream.reader;
        if let Some(connection) = self.connections.get_mut(key) {
            connection.machine.handle_channel_closed(Channel(number), now);
        }
        if let Some(reader) = reader {
            self.cut_off(reader, now);
        }
        if !is_standalone(number) {
            self.drop_stream(key, number);
        }
        self.pump(key, now);
    }
}

/// Returns the responses to requests whose node has failed.
fn failures(ids: &str) -> String {
    let error = ErrorObject::internal(NODE_FAILED);
    let write = |text: &str| {
        let id = RawJson::parse(text).ok().and_then(|id| id.to_id());
        let mut out = String::new();
        write_error(&mut out, id.as_ref(), &error);
        out
    };
    match RawJson::parse(ids).ok().and_then(|ids| {
        let ids = ids.decode::<Vec<&RawValue>>().ok()?;
        Some(ids.into_iter().map(|id| write(id.get())).collect::<Vec<_>>())
    }) {
        Some(failures) => alloc::format!("[{}]", failures.join(",")),
        None => write(ids),
    }
}

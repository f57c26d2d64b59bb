use alloc::collections::VecDeque;
use alloc::string::String;
use core::hash::BuildHasher;
use core::time::Duration;

use bytestring::ByteString;
use mcp_sansio_collections::KeyedHash;
use mcp_sansio_collections::{Deadlines, Index};
use mcp_sansio_collections::{Key, Slab};

use crate::Instant;
use crate::jsonrpc::{RawJson, WriteError, WriteJson};
use crate::protocol::{LoggingLevel, Method};

use super::augmentation::Lasts;
use super::limits::Limits;
use super::operation::CallContext;
use super::outbox::Channel;
use super::outgoing::ReadNumber;
#[cfg(feature = "server")]
use super::server::Server;

/// The pending requests that this side sent.
#[derive(Debug)]
pub(super) struct Calls {
    entries: Slab<Call>,
    ids: Index,
    pub(super) deadlines: Deadlines<Instant>,
    next_id: i64,
    /// Abandoned calls, whose late responses are expected.
    tombstones: VecDeque<Tombstone>,
    /// Buffer of an ended call, reused for the parameters of the next call that stores them.
    spare: String,
}

/// Maximum size of the reused buffer, in bytes: enough for the parameters of most calls. An idle
/// connection should not hold more for calls that it may never make.
pub(super) const SPARE_MAX: usize = 2048;

/// The time until which a late response is expected, and its id.
pub(super) type Tombstone = (Instant, i64);

/// A pending call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: i64,
    /// `None` for a method that the protocol does not define.
    pub(super) method: Option<Method>,
    pub(super) purpose: Purpose,
    /// The channel that carried the request and would carry its cancellation.
    pub(super) channel: Channel,
    pub(super) timing: Timing,
    /// Set while the deadlines of the call are paused.
    pub(super) paused: Option<PausedTime>,
    /// How to parse progress values, if the call asked for progress.
    pub(super) wants_progress: Option<ReadNumber>,
    pub(super) last_progress: Option<f64>,
    /// Data for sending the call again; only set if a further round is possible.
    pub(super) repeat: Option<Repeat>,
    /// Decides whether the call continues after its response; only set if it asks for a task.
    pub(super) task: Option<Lasts>,
}

/// Why a call was made, which decides how its end is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A call of the application.
    Application,
    /// A client's `server/discover` or `initialize` that opens the connection.
    Opening,
    /// A keep-alive ping.
    KeepAlive,
    /// A client's open `subscriptions/listen`.
    Listen,
    /// A client's `resources/subscribe` on behalf of a subscription.
    SubscribeResource { subscription: Key, index: u32 },
    /// A request of the machine itself whose response is ignored.
    Chore,
    /// A legacy server's input request to the host on behalf of a request, or a request about the
    /// task that it has become.
    Input { round: Key, index: u32 },
    /// No request is on the wire: the next one about the task of an input request is not due yet.
    InputTask { round: Key, index: u32 },
    /// The response is awaited only to cancel its task, which is not needed any more.
    #[cfg(feature = "server")]
    UnneededTask(CancelTask),
    /// No request is on the wire: a legacy subscription, or a call between two rounds.
    Waiting,
    /// The call was answered with a task, whose progress continues.
    Task,
}

/// Cancels the task in a response. A pointer, so that a server that requires no input does not
/// contain the function.
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug)]
pub(super) struct CancelTask(pub(super) fn(&mut Server, Channel, &RawJson<'_>, Instant));

/// There is one such function.
#[cfg(feature = "server")]
impl PartialEq for CancelTask {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::fn_addr_eq(self.0, other.0)
    }
}

#[cfg(feature = "server")]
impl Eq for CancelTask {}

/// The two deadlines of a call. Progress extends the first; the second is fixed.
// MCP 2025-11-25 basic/lifecycle#timeouts [TIME-005] [TIME-006]
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) timeout: Duration,
    pub(super) hard: Instant,
    pub(super) extend_on_progress: bool,
}

impl Timing {
    pub(super) const NEVER: Self = Self {
        timeout: Duration::MAX,
        hard: Instant::from_nanos(u64::MAX),
        extend_on_progress: false,
    };

    fn next(&self, now: Instant) -> Instant {
        (now + self.timeout).min(self.hard)
    }
}

/// The remaining time of a call while its deadlines are paused.
#[derive(Clone, Copy, Debug)]
pub(super) struct PausedTime {
    since: Instant,
    /// The time left until its deadline, if it has one.
    left: Option<Duration>,
}

/// Data that is sent again after a round of input.
#[derive(Debug)]
pub(super) struct Repeat {
    pub(super) params: Parameters,
    /// The caller's own members of `_meta`.
    pub(super) meta: Option<RawJson<'static>>,
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) rounds: u32,
    /// The input round that the call waits for.
    pub(super) round: Option<Key>,
    /// The context of the caller, for an observer of each round.
    pub(super) context: Option<CallContext>,
}

/// Parameters that are stored after the request was sent.
#[derive(Debug)]
pub(super) enum Parameters {
    /// Text shared with the caller.
    Shared(ByteString),
    Written(String),
}

impl WriteJson for Parameters {
    fn write_json(&self, out: &mut String) -> Result<(), WriteError> {
        out.push_str(match self {
            Self::Shared(text) => text,
            Self::Written(text) => text,
        });
        Ok(())
    }
}

/// How the id of a response was resolved.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answered {
    Call(Key),
    /// A recently abandoned call.
    Late,
    Unknown,
}

impl Calls {
    pub(super) fn new() -> Self {
        Self {
            entries: Slab::new(),
            ids: Index::default(),
            deadlines: Deadlines::default(),
            next_id: 1,
            tombstones: VecDeque::new(),
            spare: String::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the only call, if no response to another request is expected either.
    pub(super) fn only(&self) -> Option<&Call> {
        let mut calls = self.entries.iter().map(|(_, call)| call);
        calls.next().filter(|_| self.entries.len() == 1 && self.tombstones.is_empty())
    }

    /// Returns a new id. Ids count up and are never reused.
    // MCP 2025-11-25 basic/index#requests [RPC-004]
    // MCP 2026-07-28 basic/index#requests [RPC-005]
    pub(super) const fn fresh_id(&mut self) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// Sets the next id, so that machines for the same peer use different ids.
    #[cfg(feature = "http")]
    pub(super) const fn start_ids(&mut self, first: i64) {
        self.next_id = first;
    }

    pub(super) fn insert(&mut self, call: Call, now: Instant) -> Key {
        let (id, timing) = (call.id, call.timing);
        let key = self.entries.insert(call);
        self.ids.insert_hashed(hash(id), key.to_number());
        self.schedule(key, timing, now);
        key
    }

    /// Adds a call whose request is not sent yet, until `call.timing` ends. Its id answers nothing.
    pub(super) fn insert_waiting(&mut self, call: Call, now: Instant) -> Key {
        let timing = call.timing;
        let key = self.entries.insert(call);
        self.schedule(key, timing, now);
        key
    }

    /// Marks the call as sent again under another id.
    pub(super) fn reissue(&mut self, key: Key, id: i64, now: Instant) {
        self.resume(key, now);
        let Some(call) = self.entries.get_mut(key) else { return };
        let (old, timing) = (core::mem::replace(&mut call.id, id), call.timing);
        call.last_progress = None;
        self.forget(old, key);
        self.ids.insert_hashed(hash(id), key.to_number());
        self.schedule(key, timing, now);
    }

    pub(super) fn get(&self, key: Key) -> Option<&Call> {
        self.entries.get(key)
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Call> {
        self.entries.get_mut(key)
    }

    /// Returns the call whose current request has `id`.
    pub(super) fn by_id(&self, id: i64) -> Option<Key> {
        let has_id =
            |key| self.entries.get(Key::from_number(key)).is_some_and(|call| call.id == id);
        self.ids.find_hashed(hash(id), &has_id).map(Key::from_number)
    }

    /// Resolves the id of a response.
    pub(super) fn answered(&mut self, id: Option<i64>, now: Instant) -> Answered {
        let Some(id) = id else { return Answered::Unknown };
        if let Some(key) = self.by_id(id) {
            return Answered::Call(key);
        }
        while self.tombstones.front().is_some_and(|(until, _)| *until <= now) {
            self.tombstones.pop_front();
        }
        match self.tombstones.iter().position(|(_, dead)| *dead == id) {
            Some(at) => {
                self.tombstones.remove(at);
                Answered::Late
            }
            None => Answered::Unknown,
        }
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Call> {
        let mut call = self.entries.remove(key)?;
        self.forget(call.id, key);
        self.deadlines.clear(key.slot);
        if let Some(Repeat { params: Parameters::Written(text), .. }) = &mut call.repeat
            && (self.spare.capacity()..=SPARE_MAX).contains(&text.capacity())
        {
            self.spare = core::mem::take(text);
            self.spare.clear();
        }
        Some(call)
    }

    /// Stores the parameters of a call for a further round.
    pub(super) fn keep_parameters(
        &mut self,
        params: &dyn WriteJson,
    ) -> Result<Parameters, WriteError> {
        if let Some(text) = params.as_raw_json().and_then(RawJson::shared) {
            return Ok(Parameters::Shared(text.clone()));
        }
        let mut text = core::mem::take(&mut self.spare);
        params.write_json(&mut text)?;
        Ok(Parameters::Written(text))
    }

    /// Takes the call off the wire but keeps its entry, because it waits for a local event. Its
    /// hard deadline stays in force.
    pub(super) fn park(&mut self, key: Key, now: Instant) {
        self.resume(key, now);
        let Some(call) = self.entries.get_mut(key) else { return };
        let (id, hard) = (call.id, call.timing.hard);
        self.forget(id, key);
        if hard == Timing::NEVER.hard {
            self.deadlines.clear(key.slot);
        } else {
            self.deadlines.set(key.slot, hard);
        }
    }

    /// Marks a call as asking for a task.
    pub(super) fn augment(&mut self, key: Key, lasts: Lasts) {
        if let Some(call) = self.entries.get_mut(key) {
            call.task = Some(lasts);
        }
    }

    /// Keeps an answered call if it continues as a task, and returns whether it does.
    pub(super) fn keep(&mut self, key: Key, result: &RawJson<'_>) -> bool {
        let Some(call) = self.entries.get_mut(key) else { return false };
        let lasts = call.task.is_some_and(|lasts| lasts(call, result));
        if lasts {
            self.deadlines.clear(key.slot);
        }
        lasts
    }

    /// Records that a late response to `id` is expected.
    // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-005] [CANC-006]
    pub(super) fn bury(&mut self, id: i64, limits: &Limits, now: Instant) {
        while self.tombstones.len() >= limits.tombstones_max.max(1) {
            self.tombstones.pop_front();
        }
        self.tombstones.push_back((now + limits.tombstone_duration, id));
    }

    /// Extends the deadline because of progress.
    pub(super) fn extend(&mut self, key: Key, now: Instant) {
        let Some(call) = self.entries.get(key) else { return };
        if call.timing.extend_on_progress && call.paused.is_none() {
            self.schedule(key, call.timing, now);
        }
    }

    /// Pauses the deadlines of the call until [`resume`](Self::resume), because it waits for a
    /// local event and not for the peer.
    #[cfg(any(feature = "http", test))]
    pub(super) fn pause(&mut self, key: Key, now: Instant) {
        let Some(call) = self.entries.get_mut(key) else { return };
        if call.paused.is_none() {
            let deadline = self.deadlines.get(key.slot);
            let left = deadline.map(|deadline| deadline.saturating_since(now));
            call.paused = Some(PausedTime { since: now, left });
            self.deadlines.clear(key.slot);
        }
    }

    /// Resumes the deadlines of the call with the time that was left.
    pub(super) fn resume(&mut self, key: Key, now: Instant) {
        let Some(call) = self.entries.get_mut(key) else { return };
        let Some(PausedTime { since, left }) = call.paused.take() else { return };
        call.timing.hard = call.timing.hard + now.saturating_since(since);
        if let Some(left) = left {
            self.deadlines.set(key.slot, now + left);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| at)
    }

    /// Returns a call whose deadline has passed.
    pub(super) fn expired(&self, now: Instant) -> Option<Key> {
        let (at, slot) = self.deadlines.first()?;
        if at > now { None } else { self.entries.key_at(slot) }
    }

    /// Clears all deadlines before all calls end. Removing them one by one, in another order, would
    /// cost more per call the more calls there are.
    pub(super) fn forget_deadlines(&mut self) {
        self.deadlines = Deadlines::default();
    }

    /// Returns whether there is a call with this purpose.
    pub(super) fn any(&self, purpose: Purpose) -> bool {
        self.entries.find_from(0, |call| call.purpose == purpose).is_some()
    }

    /// Returns the first call at or after `slot`, to end all calls in order.
    pub(super) fn first_from(&self, slot: u32) -> Option<Key> {
        self.entries.find_from(slot, |_| true)
    }

    /// Removes the id from the index, if it still belongs to the call.
    fn forget(&mut self, id: i64, key: Key) {
        self.ids.remove_hashed(hash(id), &|known| known == key.to_number());
    }

    fn schedule(&mut self, key: Key, timing: Timing, now: Instant) {
        let deadline = timing.next(now);
        if deadline == Timing::NEVER.hard {
            self.deadlines.clear(key.slot);
        } else {
            self.deadlines.set(key.slot, deadline);
        }
    }
}

/// This side chooses the ids, so a peer cannot cause collisions.
fn hash(id: i64) -> u64 {
    KeyedHash::default().hash_one(id)
}

impl Calls {
    /// Checks that the index and the deadlines belong to the calls of the table, and that each call
    /// waits for something.
    pub(in crate::peer) fn assert_consistent(&self) {
        let (mut on_wire, mut timed) = (0, 0);
        for (key, call) in self.entries.iter() {
            let deadline = self.deadlines.get(key.slot).is_some();
            assert!(!(deadline && call.paused.is_some()), "a paused call with a deadline");
            // The application may wait for ever.
            let never = call.timing.hard == Timing::NEVER.hard;
            let untimed = matches!(call.purpose, Purpose::Waiting | Purpose::Task);
            let waits = deadline || call.paused.is_some() || never || untimed;
            assert!(waits, "a call without a deadline: {call:?}");
            on_wire += usize::from(self.is_on_wire(key, call));
            timed += usize::from(deadline);
        }
        assert_eq!(self.ids.len(), on_wire, "ids of calls that are gone");
        assert_eq!(self.deadlines.len(), timed, "deadlines of calls that are gone");
    }

    pub(in crate::peer) fn iter(&self) -> impl Iterator<Item = (Key, &Call)> {
        self.entries.iter()
    }

    /// Returns whether a response to the last request of the call would be accepted.
    pub(in crate::peer) fn is_on_wire(&self, key: Key, call: &Call) -> bool {
        self.by_id(call.id) == Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(calls: &mut Calls, timeout: Duration, hard: Instant, now: Instant) -> Key {
        let id = calls.fresh_id();
        let timing = Timing { timeout, hard, extend_on_progress: true };
        let call = Call {
            id,
            method: None,
            purpose: Purpose::Application,
            channel: Channel::UNSOLICITED,
            timing,
            paused: None,
            wants_progress: Some(|number| number.decode().ok()),
            last_progress: None,
            repeat: None,
            task: None,
        };
        calls.insert(call, now)
    }

    #[test]
    fn progress_pushes_the_soft_deadline_back_but_not_the_hard_one() {
        // Rule: [TIME-005] [TIME-006].
        let second = Duration::from_secs(1);
        let (start, hard) = (Instant::ZERO, Instant::from_millis(1500));
        let mut calls = Calls::new();
        let key = call(&mut calls, second, hard, start);
        assert_eq!(calls.expired(Instant::from_millis(999)), None);
        calls.extend(key, Instant::from_millis(999));
        assert_eq!(calls.next_deadline(), Some(hard));
        assert_eq!(calls.expired(hard), Some(key));
    }

    #[test]
    fn a_resumed_call_keeps_its_remaining_time() {
        let at = Instant::from_millis;
        let mut calls = Calls::new();
        let key = call(&mut calls, Duration::from_secs(1), at(1500), Instant::ZERO);
        calls.pause(key, at(400));
        calls.pause(key, at(900));
        calls.extend(key, at(950));
        assert_eq!((calls.next_deadline(), calls.expired(at(9_000))), (None, None));
        calls.resume(key, at(10_400));
        calls.resume(key, at(10_500));
        assert_eq!(calls.next_deadline(), Some(at(11_000)));
        // The hard deadline was paused as well.
        calls.extend(key, at(10_900));
        assert_eq!(calls.next_deadline(), Some(at(11_500)));
    }

    #[test]
    fn a_call_without_a_deadline_stays_without_one_after_a_pause() {
        let mut calls = Calls::new();
        let key = call(&mut calls, Duration::MAX, Timing::NEVER.hard, Instant::ZERO);
        calls.pause(key, Instant::ZERO);
        calls.resume(key, Instant::from_millis(5));
        assert_eq!(calls.next_deadline(), None);
        calls.extend(key, Instant::from_millis(5));
        assert_eq!(calls.next_deadline(), None);
    }

    #[test]
    fn a_late_answer_is_expected_once_and_for_a_while() {
        // Rule: [CANC-005].
        let limits = Limits::DEFAULT;
        let mut calls = Calls::new();
        let now = Instant::ZERO;
        for id in [7, 8] {
            calls.bury(id, &limits, now);
        }
        assert_eq!(calls.answered(Some(7), now), Answered::Late);
        assert_eq!(calls.answered(Some(7), now), Answered::Unknown);
        assert_eq!(calls.answered(Some(8), now + limits.tombstone_duration), Answered::Unknown);
    }

    #[test]
    fn a_small_parameter_buffer_is_reused_by_the_next_call() {
        let mut calls = Calls::new();
        let mut end = |params: &str| {
            let params = calls.keep_parameters(&RawJson::trusted(params)).unwrap();
            let key = call(&mut calls, Duration::MAX, Timing::NEVER.hard, Instant::ZERO);
            let repeat = Repeat {
                params,
                meta: None,
                log_level: None,
                rounds: 0,
                round: None,
                context: None,
            };
            calls.get_mut(key).unwrap().repeat = Some(repeat);
            calls.remove(key);
            (calls.spare.len(), calls.spare.capacity())
        };
        assert_eq!(end("[0,1,2,3]"), (0, 9));
        assert_eq!(end("{}"), (0, 9));
        let (length, room) = end(&alloc::format!("[{}]", " ".repeat(SPARE_MAX)));
        assert!(length == 0 && room <= SPARE_MAX);
    }

    #[test]
    fn shared_parameters_are_not_copied() {
        let mut calls = Calls::new();
        let shared = RawJson::trusted(r#"{"a":1}"#).into_owned();
        let kept = calls.keep_parameters(&shared).unwrap();
        let Parameters::Shared(text) = kept else { panic!("{kept:?}") };
        assert_eq!(text.as_ptr(), shared.as_str().as_ptr());
    }

    #[test]
    fn ids_count_up_and_a_reissued_call_answers_to_its_new_id_only() {
        // Rule: [RPC-004] [MRTR-014].
        let mut calls = Calls::new();
        let key = call(&mut calls, Duration::MAX, Timing::NEVER.hard, Instant::ZERO);
        let id = calls.fresh_id();
        calls.reissue(key, id, Instant::ZERO);
        assert_eq!(calls.by_id(1), None);
        assert_eq!(calls.by_id(2), Some(key));
        assert_eq!(calls.next_deadline(), None);
    }
}

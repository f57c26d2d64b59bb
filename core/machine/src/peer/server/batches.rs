use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_collections::{Index, Key, Slab};

use crate::jsonrpc::{self, ErrorObject, Malformed};
use crate::peer::connection::Flow;
use crate::peer::connection::write_error_unread;
use crate::peer::event::{Cancelled, Event, Subject, Violation};
use crate::peer::handle::RequestHandle;
use crate::peer::outbox::{Channel, Lane, Part, Verdict};
use crate::peer::queue::Tag;
use crate::peer::requests::{ReplyTo, RequestOwner, Requests};
use crate::{Instant, Revision};

use super::{Server, ServerSession};

/// The revision that supports batches.
const BATCHES: Revision = Revision::V2025_03_26;

/// Error message for a request of a batch whose client has too much unread output.
const TOO_MANY_QUEUED: &str = "too many responses are queued; read them and try again";

/// The batches with pending responses.
#[derive(Debug, Default)]
pub(in crate::peer) struct Batches {
    entries: Slab<Batch>,
    /// Number of bytes of the collected responses.
    bytes: usize,
    /// Positions of the collected responses, by tag.
    places: Index,
}

/// A batch of requests that are answered in one frame.
#[derive(Debug)]
pub(in crate::peer) struct Batch {
    /// Number of pending requests, plus one while the batch is being read.
    waiting: usize,
    /// The concatenated texts of the collected responses.
    answers: String,
    /// The collected responses, in order.
    answered: Vec<Answered>,
    channel: Channel,
}

/// A response that waits for other responses of its batch.
#[derive(Clone, Copy, Debug)]
pub(in crate::peer) struct Answered {
    tag: Tag,
    length: usize,
}

impl Answered {
    fn is_withdrawn(&self) -> bool {
        self.tag == Tag::WITHDRAWN
    }
}

/// Encodes the position of a collected response, its batch and index, as a number.
fn place(batch: Key, at: usize) -> u64 {
    u64::from(batch.slot) << 32 | at as u64
}

/// Decodes the batch and the index from a number.
#[allow(clippy::cast_possible_truncation, reason = "both halves fit into 32 bits")]
fn find(batches: &Slab<Batch>, number: u64) -> Option<(Key, usize)> {
    Some((batches.key_at((number >> 32) as u32)?, number as u32 as usize))
}

impl Batch {
    const fn new(channel: Channel) -> Self {
        Self { waiting: 1, answers: String::new(), answered: Vec::new(), channel }
    }

    fn is_empty(&self) -> bool {
        self.answered.iter().all(Answered::is_withdrawn)
    }
}

impl Batches {
    pub(super) fn contains(&self, batch: Key) -> bool {
        self.entries.get(batch).is_some()
    }

    /// Checks that each batch waits for requests, and that the counters match their contents.
    pub(super) fn assert_consistent(&self, requests: &Requests) {
        for (key, batch) in self.entries.iter() {
            let pending = requests.iter().filter(|(_, entry)| entry.reply.batch == Some(key));
            assert_eq!(batch.waiting, pending.count(), "pending requests of a batch");
            let length: usize = batch.answered.iter().map(|answered| answered.length).sum();
            assert_eq!(batch.answers.len(), length, "responses of a batch");
        }
        let bytes: usize = self.entries.iter().map(|(_, batch)| batch.answers.len()).sum();
        assert_eq!(self.bytes, bytes, "bytes of collected responses");
        let answered = self.entries.iter().flat_map(|(_, batch)| &batch.answered);
        let answered = answered.filter(|it| !it.is_withdrawn() && it.tag != Tag::NONE).count();
        assert_eq!(self.places.len(), answered, "positions of collected responses");
    }

    /// Withdraws the response with this tag, and returns whether there was one.
    fn withdraw(&mut self, hash: u64, tag: Tag) -> bool {
        let Self { entries, places, .. } = self;
        let has_tag = |number| {
            let (key, at) = find(entries, number)?;
            Some(entries.get(key)?.answered.get(at)?.tag == tag)
        };
        let found = places.remove_hashed(hash, &|number| has_tag(number) == Some(true));
        let Some((key, at)) = found.and_then(|number| find(entries, number)) else { return false };
        if let Some(batch) = entries.get_mut(key) {
            batch.answered[at].tag = Tag::WITHDRAWN;
        }
        true
    }
}

impl Server {
    fn batch(&mut self, key: Key) -> Option<&mut Batch> {
        self.batches.as_mut()?.entries.get_mut(key)
    }

    /// Handles a batch: returns the first event and queues the others.
    // MCP 2025-03-26 basic/index#batching [BATCH-001] [BATCH-003]
    // MCP 2025-06-18 basic/transports#stdio [BATCH-010] [STDIO-010]
    pub(super) fn receive_batch<'f>(
        &mut self,
        batch: jsonrpc::Batch<'f>,
        channel: Channel,
        now: Instant,
    ) -> Flow<'f> {
        let revision = self.session.as_ref().map(ServerSession::revision);
        if revision.is_some_and(|revision| revision != BATCHES)
            || !self.config.revisions.contains(BATCHES)
        {
            // No other responses arrive to the calls whose responses are in it.
            for refused in batch.filter_map(Malformed::element_refused) {
                self.end_call_of_malformed(&refused, now);
            }
            return self.connection.malformed_frame(&Malformed::batch_refused(), revision, channel);
        }
        let key = self.batches.get_or_insert_default().entries.insert(Batch::new(channel));
        let mut first = None;
        for message in batch {
            let flow = match message {
                Ok(jsonrpc::Message::Request(request)) => {
                    if let Some(batch) = self.batch(key) {
                        batch.waiting += 1;
                    }
                    let reply = ReplyTo { channel, batch: Some(key) };
                    if self.connection.is_congested() {
                        // Between two frames the driver would stop reading.
                        let error = ErrorObject::internal(TOO_MANY_QUEUED);
                        self.answer_error(&request.id, &error, reply);
                        continue;
                    }
                    self.receive(jsonrpc::Message::Request(request), (None, None), reply, now)
                }
                Ok(message) => {
                    self.receive(message, (None, None), ReplyTo { channel, batch: Some(key) }, now)
                }
                Err(malformed) => {
                    if let Some(error) = malformed.answer() {
                        if let Some(batch) = self.batch(key) {
                            batch.waiting += 1;
                        }
                        let tag =
                            malformed.id.as_ref().map_or(Tag::NONE, |id| self.connection.tag(id));
                        self.answer_in_batch(key, tag, |out| {
                            write_error_unread(out, malformed.id.as_ref(), &error, Some(BATCHES));
                        });
                    }
                    self.connection.malformed(Violation::Malformed(malformed.reason))
                }
            };
            match flow {
                Ok(event) => self.connection.keep_in_order(&mut first, event),
                Err(closed) => {
                    self.connection.keep_first(first);
                    self.leave_batch(Some(key));
                    return Err(closed);
                }
            }
        }
        self.leave_batch(Some(key));
        Ok(first)
    }

    /// Writes a response, either as a frame of its own or into its batch.
    pub(super) fn write_answer(
        &mut self,
        lane: Lane,
        id: &jsonrpc::RequestId,
        reply: ReplyTo,
        verdict: Verdict,
        write: impl FnOnce(&mut String),
    ) {
        match reply.batch {
            None => {
                let (part, tag) = (Part::Answer(verdict), self.connection.tag(id));
                self.connection.outbox.push(lane, reply.channel, part, tag, write);
            }
            Some(key) => self.answer_in_batch(key, self.connection.tag(id), write),
        }
    }

    fn answer_in_batch(&mut self, key: Key, tag: Tag, write: impl FnOnce(&mut String)) {
        if let Some(Batches { entries, bytes, places }) = self.batches.as_deref_mut()
            && let Some(batch) = entries.get_mut(key)
        {
            let before = batch.answers.len();
            write(&mut batch.answers);
            let length = batch.answers.len() - before;
            let at = batch.answered.len();
            batch.answered.push(Answered { tag, length });
            *bytes += length;
            if batch.waiting > 1 && tag != Tag::NONE {
                places.insert_hashed(self.connection.requests.hash(tag), place(key, at));
            }
            // Without this limit, responses would be buffered until the slowest request completes.
            // MCP 2025-03-26 basic/transports#sending-messages-to-the-server [BATCH-009]
            if *bytes > self.connection.config.limits.batch_bytes_max && batch.waiting > 1 {
                self.send_batched(key, Part::Answers);
            }
        }
        self.leave_batch(Some(key));
    }

    /// Sends the collected responses of a batch.
    fn send_batched(&mut self, key: Key, part: Part) {
        let Some(Batches { entries, bytes, places }) = self.batches.as_deref_mut() else { return };
        let Some(batch) = entries.get_mut(key) else { return };
        let (texts, channel) = (core::mem::take(&mut batch.answers), batch.channel);
        let answered = core::mem::take(&mut batch.answered);
        *bytes -= texts.len();
        for (answer, at) in answered.iter().zip(0..) {
            let hash = self.connection.requests.hash(answer.tag);
            places.remove_hashed(hash, &|known| known == place(key, at));
        }
        let mut rest = &*texts;
        let messages = answered.iter().filter_map(|answer| {
            let (text, after) = rest.split_at(answer.length);
            rest = after;
            (!answer.is_withdrawn()).then_some((answer.tag, text))
        });
        let messages: Vec<_> = messages.collect();
        if !messages.is_empty() {
            self.connection.outbox.push_batch(channel, part, &messages);
        }
    }

    /// Withdraws the queued messages for a request that was answered, including its response.
    pub(super) fn withdraw_answer(&mut self, id: &jsonrpc::RequestId) {
        let tag = self.connection.tag(id);
        self.connection.outbox.withdraw(tag);
        let hash = self.connection.requests.hash(tag);
        let batches = self.batches.as_deref_mut();
        if !batches.is_some_and(|batches| batches.withdraw(hash, tag)) {
            self.connection.outbox.signal(Channel::UNSOLICITED, Part::Recalled(tag));
        }
    }

    /// Drops a request that the client cancelled.
    pub(super) fn give_up_request<'f>(
        &mut self,
        key: Key,
        reason: Option<Cow<'f, str>>,
        now: Instant,
    ) -> Option<Event<'f>> {
        let request = self.connection.requests.remove(key)?;
        self.connection.observed.cancelled(self.connection.tag(&request.id));
        self.connection.withdraw(&request.id);
        self.withdraw(request.reply);
        match request.owner {
            // MCP 2026-07-28 basic/patterns/subscriptions#cancellation [SUBS-010]
            RequestOwner::Listening(_) => return None,
            RequestOwner::Input { round } => self.abandon_round(round, now),
            RequestOwner::Application => {}
        }
        let subject = Subject::Request(RequestHandle::new(key));
        Some(Event::Cancelled(Cancelled { subject, reason }))
    }

    /// Handles a request that needs no response any more.
    pub(super) fn withdraw(&mut self, reply: ReplyTo) {
        match reply.batch {
            None => self.connection.outbox.signal(reply.channel, Part::Withdrawn),
            batch => self.leave_batch(batch),
        }
    }

    /// Handles a request of a batch that needs no response any more. After the last one, the
    /// collected responses are sent.
    pub(super) fn leave_batch(&mut self, batch: Option<Key>) {
        let Some(key) = batch else { return };
        let Some(batch) = self.batch(key) else { return };
        batch.waiting -= 1;
        if batch.waiting > 0 {
            return;
        }
        if batch.is_empty() {
            let channel = batch.channel;
            self.connection.outbox.signal(channel, Part::Withdrawn);
        } else {
            self.send_batched(key, Part::Answer(Verdict::Result));
        }
        if let Some(batches) = &mut self.batches
            && let Some(batch) = batches.entries.remove(key)
        {
            // Those that were withdrawn, if no other was collected.
            batches.bytes -= batch.answers.len();
        }
    }

    #[inline(never)]
    pub(super) fn answer_error(
        &mut self,
        id: &jsonrpc::RequestId,
        error: &ErrorObject<'_>,
        reply: ReplyTo,
    ) {
        let passed = self.connection.pass_error(id, error);
        let error = passed.as_ref().unwrap_or(error);
        self.write_error_answer(id, error, reply, Verdict::Failed(error.code));
    }

    /// Answers a request that is refused before it is handled.
    #[inline(never)]
    pub(super) fn answer_refusal(
        &mut self,
        id: &jsonrpc::RequestId,
        error: &ErrorObject<'_>,
        reply: ReplyTo,
    ) {
        let passed = self.connection.pass_error(id, error);
        let error = passed.as_ref().unwrap_or(error);
        self.write_error_answer(id, error, reply, Verdict::Refused(error.code));
    }

    /// Answers with an error that has passed the middleware.
    pub(super) fn write_error_answer(
        &mut self,
        id: &jsonrpc::RequestId,
        error: &ErrorObject<'_>,
        reply: ReplyTo,
        verdict: Verdict,
    ) {
        self.connection.observed.refused(self.connection.tag(id), error);
        self.write_answer(Lane::Bulk, id, reply, verdict, |out| {
            jsonrpc::write_error(out, Some(id), error);
        });
    }
}

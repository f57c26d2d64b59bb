use alloc::vec::Vec;

use crate::jsonrpc::{self, ErrorObject};
use crate::peer::connection::{Flow, write_error_unread};
use crate::peer::outbox::{Channel, Lane, Part, Verdict};
use crate::peer::requests::ReplyTo;
use crate::peer::slab::Key;
use crate::{Instant, Revision};

use super::{Server, Session};

/// The revision that has batches.
const BATCHES: Revision = Revision::V2025_03_26;

/// What a request of a batch is refused with whose client has too much to read already.
const MUCH_WAITS: &str = "too many answers wait to be read; try again later";

/// A batch of requests whose answers leave together.
#[derive(Debug)]
pub(in crate::peer) struct Batch {
    /// Requests that are not answered yet, and one more while the batch is being read.
    waiting: usize,
    /// The answers so far, separated by commas.
    answers: Vec<u8>,
    /// How much of them is counted among those of all batches.
    counted: usize,
    channel: Channel,
}

impl Server {
    /// Takes a batch: the first event is returned, the others wait in the queue of events.
    // MCP 2025-03-26 basic/index#batching [BATCH-001] [BATCH-003]
    // MCP 2025-06-18 basic/transports#stdio [BATCH-010] [STDIO-010]
    pub(super) fn receive_batch<'f>(
        &mut self,
        batch: jsonrpc::Batch<'f>,
        channel: Channel,
        now: Instant,
    ) -> Flow<'f> {
        let revision = self.session.as_ref().map(Session::revision);
        if revision.is_some_and(|revision| revision != BATCHES) || !self.revisions.contains(BATCHES)
        {
            return self.connection.malformed(
                &jsonrpc::Malformed::batch_refused(),
                revision,
                channel,
            );
        }
        let key =
            self.batches.insert(Batch { waiting: 1, answers: Vec::new(), counted: 0, channel });
        let mut first = None;
        for message in batch {
            let flow = match message {
                Ok(jsonrpc::Message::Request(request)) => {
                    if let Some(batch) = self.batches.get_mut(key) {
                        batch.waiting += 1;
                    }
                    let reply = ReplyTo { channel, batch: Some(key) };
                    if self.connection.is_congested() {
                        // Between two frames nothing more would be read.
                        let error = ErrorObject::internal(MUCH_WAITS);
                        self.answer_error(&request.id, &error, reply);
                        continue;
                    }
                    self.receive(jsonrpc::Message::Request(request), None, reply, now)
                }
                Ok(message) => {
                    self.receive(message, None, ReplyTo { channel, batch: Some(key) }, now)
                }
                Err(malformed) => {
                    if let Some(error) = malformed.answer() {
                        if let Some(batch) = self.batches.get_mut(key) {
                            batch.waiting += 1;
                        }
                        self.answer_in_batch(key, |out| {
                            write_error_unread(out, malformed.id.as_ref(), &error, Some(BATCHES));
                        });
                    }
                    let violation = crate::peer::Violation::Malformed(malformed.reason);
                    self.connection.violation(self.connection.terms.policy.malformed, violation)
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

    /// Writes an answer to where it belongs: on its own, or into its batch.
    pub(super) fn write_answer(
        &mut self,
        lane: Lane,
        reply: ReplyTo,
        verdict: Verdict,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        match reply.batch {
            None => {
                self.connection.outbox.push(lane, reply.channel, Part::Answer(verdict), write);
            }
            Some(key) => self.answer_in_batch(key, write),
        }
    }

    fn answer_in_batch(&mut self, key: Key, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(batch) = self.batches.get_mut(key) {
            if !batch.answers.is_empty() {
                batch.answers.push(b',');
            }
            write(&mut batch.answers);
            self.batched += batch.answers.len() - batch.counted;
            batch.counted = batch.answers.len();
            // More would be held for as long as the slowest request takes.
            // MCP 2025-03-26 basic/transports#sending-messages-to-the-server [BATCH-009]
            if self.batched > self.connection.terms.limits.batch_bytes_max && batch.waiting > 1 {
                self.send_batched(key, Part::Message);
            }
        }
        self.leave_batch(Some(key));
    }

    /// Sends the answers that a batch has so far.
    fn send_batched(&mut self, key: Key, part: Part) {
        let Some(batch) = self.batches.get_mut(key) else { return };
        let (answers, channel) = (core::mem::take(&mut batch.answers), batch.channel);
        self.batched -= core::mem::take(&mut batch.counted);
        self.connection.outbox.push(Lane::Bulk, channel, part, |out| {
            out.push(b'[');
            out.extend_from_slice(&answers);
            out.push(b']');
        });
    }

    /// A request needs no answer any more.
    pub(super) fn withdraw(&mut self, reply: ReplyTo) {
        match reply.batch {
            None => self.connection.outbox.post(reply.channel, Part::Withdrawn),
            batch => self.leave_batch(batch),
        }
    }

    /// One of a batch needs no answer any more. The last one sends what there is.
    pub(super) fn leave_batch(&mut self, batch: Option<Key>) {
        let Some(key) = batch else { return };
        let Some(batch) = self.batches.get_mut(key) else { return };
        batch.waiting -= 1;
        if batch.waiting > 0 {
            return;
        }
        if batch.answers.is_empty() {
            let channel = batch.channel;
            self.connection.outbox.post(channel, Part::Withdrawn);
        } else {
            self.send_batched(key, Part::Answer(Verdict::Result));
        }
        self.batches.remove(key);
    }

    pub(super) fn answer_error(
        &mut self,
        id: &jsonrpc::RequestId,
        error: &ErrorObject<'_>,
        reply: ReplyTo,
    ) {
        let verdict = Verdict::Failed(error.code);
        self.write_answer(Lane::Bulk, reply, verdict, |out| {
            jsonrpc::write_error(out, Some(id), error);
        });
    }

    /// Answers a request that is not let through, whatever it is about.
    pub(super) fn answer_refusal(
        &mut self,
        id: &jsonrpc::RequestId,
        error: &ErrorObject<'_>,
        reply: ReplyTo,
    ) {
        let verdict = Verdict::Refused(error.code);
        self.write_answer(Lane::Bulk, reply, verdict, |out| {
            jsonrpc::write_error(out, Some(id), error);
        });
    }
}

//! What a connection can cost at most: the sum of all limits, in bytes of the heap.

use alloc::string::String;

use mcp_sansio_collections::{Index, Slab};

use crate::Instant;
use crate::jsonrpc::{ErrorObject, INLINE_LENGTH_MAX};

use super::calls::{self, Call, Tombstone};
use super::event::{CloseReason, Event};
use super::limits::Limits;
use super::outbox::Outbox;
use super::queue::{PIECE, Tag};
use super::requests::InFlight;
use super::{client, server};

/// How long messages are, for [`Limits::server_memory_max`] and [`Limits::client_memory_max`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLengths {
    /// The longest message that comes in, in bytes: the limit of the framing.
    pub received_max: usize,
    /// The longest that this side's application sends at once, in bytes: an answer with its
    /// envelope, a page of its catalog, or the questions of one round together.
    pub sent_max: usize,
}

impl MessageLengths {
    /// Lengths in bytes.
    #[must_use]
    pub const fn new(received_max: usize, sent_max: usize) -> Self {
        Self { received_max, sent_max }
    }
}

impl Limits {
    /// The most heap that a [`Server`](super::Server) takes for one connection over a byte stream,
    /// in bytes, whatever its client does.
    ///
    /// It holds for every client as long as the driving contract is kept: events are taken before
    /// the next input, and nothing is read while the machine is congested. An allocator's headers
    /// and rounding are part of it, as is the moment when a table moves to a larger place. Not part
    /// of it: the memory of the framing, see
    /// [`LineDecoder::memory_max`](crate::framing::LineDecoder::memory_max); what the server is made
    /// of, its options and its catalog, which are there before there is a client; what handlers hold
    /// while they work; and notifications and calls of the application's own that it sends on while
    /// the machine is congested.
    ///
    /// It reckons with each table at the moment that it doubles, and with everything ending at once.
    /// What tests bring a client to is between a fifth and a half of it.
    ///
    /// ```
    /// use mcp_sansio::peer::{Limits, MessageLengths};
    ///
    /// const LENGTHS: MessageLengths = MessageLengths::new(1024, 512);
    /// const _: () = assert!(Limits::SMALL.server_memory_max(LENGTHS) < 112 * 1024);
    /// ```
    #[must_use]
    pub const fn server_memory_max(&self, lengths: MessageLengths) -> usize {
        let MessageLengths { received_max, .. } = lengths;
        let sent_max = add(at_least(lengths.sent_max, ANSWER), PIECE);
        let streams = self.listen_streams_max;
        let requests = self.requests_in_flight_max;
        let names = self.subscribed_resources_max;
        // Requests that are worked on, and those that stand open as listen streams.
        let requested = self.requests_max(add(requests, streams));
        // Of each stream a list of resources and one of tasks; all streams share the names.
        let listening = add(
            mul(streams, mul(2, vector::<String>(LEAST))),
            mul(2, add(vector::<String>(names), self.names_max(names))),
        );
        // A round hands all its answers back in one text, which is written while they are there.
        let rounds = sum(&[
            slab::<server::Round>(requests),
            mul(requests, vector::<server::PendingInput>(self.inputs_per_round_max)),
            mul(mul(requests, add(2, self.inputs_per_round_max)), mul(2, ALLOCATION)),
            mul(2, self.input_bytes_max),
        ]);
        let batched = add(self.batch_bytes_max, sent_max) / LEAST_ANSWER;
        let batches = sum(&[
            size_of::<server::Batches>(),
            slab::<server::Batch>(add(requests, 1)),
            mul(3, add(self.batch_bytes_max, mul(2, sent_max))),
            mul(add(requests, 1), mul(2, ALLOCATION)),
            // What is noted of each answer: of every batch of a few, and of all together, the last
            // time while they leave.
            mul(add(requests, 1), mul(LEAST, size_of::<server::Answered>())),
            mul(batched, 3 * size_of::<server::Answered>() + size_of::<(Tag, &[u8])>()),
            index(batched),
        ]);
        // Resources of a session, and those that a client is still to be told of.
        let session = sum(&[
            received_max,
            ALLOCATION,
            boxed::<CloseReason>(),
            set::<String>(names),
            self.names_max(names),
            set::<String>(mul(2, names)),
            self.names_max(mul(2, names)),
            at_most(received_max, server::DECLARED_LENGTH_MAX),
            ALLOCATION,
        ]);
        let events = add(self.batch_length_max, add(self.calls_in_flight_max, requests));
        // Answers to all that is under way, and the two messages that end each stream, which say its
        // id three times.
        let answers = add(
            mul(add(add(requests, mul(2, streams)), 1), sent_max),
            self.ids_sent_max(add(add(requests, mul(3, streams)), 1)),
        );
        sum(&[
            requested,
            listening,
            rounds,
            self.calls_max(),
            self.events_max(events, received_max),
            batches,
            session,
            self.outbox_max(answers, received_max),
            mul(PASSING, received_max),
        ])
    }

    /// The same of a [`Client`](super::Client), whatever its server does.
    ///
    /// Not part of it, beside what is not part of it there: the parameters of calls under way, which
    /// are kept for further rounds (the room that one leaves to the next one is), the answers of the
    /// host, and subscriptions to legacy servers.
    #[must_use]
    pub const fn client_memory_max(&self, lengths: MessageLengths) -> usize {
        let MessageLengths { received_max, .. } = lengths;
        let sent_max = add(at_least(lengths.sent_max, ANSWER), PIECE);
        let (requests, calls) = (self.requests_in_flight_max, self.calls_in_flight_max);
        // Each question has a text of some length, and all texts together have theirs.
        let questions = at_most(
            mul(calls, self.inputs_per_round_max),
            self.input_bytes_max / client::INPUT_REQUEST_LENGTH_MIN,
        );
        let rounds = sum(&[
            slab::<client::Round>(calls),
            mul(calls, mul(2, ALLOCATION)),
            mul(2, mul(questions, size_of::<client::PendingInput>())),
            mul(calls, mul(LEAST, size_of::<client::PendingInput>())),
            mul(questions, mul(2, ALLOCATION)),
            self.input_bytes_max,
        ]);
        // What the server says of itself, the refusal of an opening that was tried before, and the
        // reason of the end.
        let session = sum(&[
            mul(3, add(received_max, mul(2, ALLOCATION))),
            boxed::<ErrorObject<'static>>(),
            boxed::<CloseReason>(),
        ]);
        let events = add(self.batch_length_max, add(calls, add(questions, requests)));
        let answers = add(mul(add(requests, 2), sent_max), self.ids_sent_max(add(requests, 2)));
        sum(&[
            // Servers before 2026-07-28 make requests of their own, and calls to later ones alone keep
            // their parameters.
            at_least(self.requests_max(requests), add(calls::SPARE_MAX, ALLOCATION)),
            rounds,
            self.calls_max(),
            self.events_max(events, received_max),
            session,
            self.outbox_max(answers, received_max),
            mul(PASSING, received_max),
        ])
    }

    const fn requests_max(&self, count: usize) -> usize {
        sum(&[
            slab::<InFlight>(count),
            index(count),
            // An id and a progress token each, and those that are on their way.
            mul(mul(2, add(count, 1)), self.id_max()),
        ])
    }

    /// The heap of an id.
    const fn id_max(&self) -> usize {
        if self.id_length_max > INLINE_LENGTH_MAX { add(self.id_length_max, ALLOCATION) } else { 0 }
    }

    /// What messages take beyond what is reckoned for each, where they say an id so often.
    const fn ids_sent_max(&self, count: usize) -> usize {
        mul(count, self.id_length_max.saturating_sub(INLINE_LENGTH_MAX))
    }

    const fn calls_max(&self) -> usize {
        let count = self.calls_in_flight_max;
        sum(&[
            slab::<Call>(count),
            index(count),
            vector::<(Instant, u32)>(count),
            vector::<u32>(count),
            vector::<Tombstone>(at_least(self.tombstones_max, 1)),
        ])
    }

    /// Events that wait, of one message and of the end of the connection, with their texts.
    const fn events_max(&self, count: usize, received_max: usize) -> usize {
        let texts = mul(add(self.batch_length_max, self.inputs_per_round_max), mul(3, ALLOCATION));
        sum(&[vector::<Event<'static>>(add(count, 2)), texts, received_max])
    }

    /// What waits to be sent, with `answers` beyond the limit.
    const fn outbox_max(&self, answers: usize, received_max: usize) -> usize {
        let waiting = sum(&[
            self.transmit_bytes_max,
            // What one frame is answered with: it may say again what was in it.
            received_max,
            mul(at_least(self.batch_length_max, 1), REFUSAL + PIECE),
            answers,
            mul(self.calls_in_flight_max, CANCELLATION + PIECE),
            KEEP_ALIVE,
        ]);
        Outbox::memory_max(self.transmit_bytes_max, waiting)
    }

    /// The texts of so many resources or tasks.
    const fn names_max(&self, count: usize) -> usize {
        mul(count, add(self.uri_length_max, ALLOCATION))
    }
}

/// What an allocation takes beside what was asked for: a header, and rounding to two words.
pub(crate) const ALLOCATION: usize = 3 * size_of::<usize>();

/// What a collection makes room for when the first entry comes.
const LEAST: usize = 4;

/// The shortest answer, in bytes: an empty result.
const LEAST_ANSWER: usize = 36;

/// The least that is reckoned for an answer, in bytes: an error has one sentence.
const ANSWER: usize = 512;

/// A refusal, but for what it repeats.
const REFUSAL: usize = 192;

/// A cancellation.
const CANCELLATION: usize = 160;

/// Keep-alive pings that are not answered yet.
const KEEP_ALIVE: usize = 256;

/// Copies of one message that its reading and its answer need, for the time: resolved escapes, the
/// parts of an error, each with the room that it grows into.
const PASSING: usize = 6;

/// The heap of a value in a place of its own.
const fn boxed<T>() -> usize {
    add(size_of::<T>(), ALLOCATION)
}

/// The heap of a vector or queue of so many entries that came one by one, while it grows.
pub(crate) const fn vector<T>(count: usize) -> usize {
    vector_of(count, size_of::<T>())
}

/// The same, of entries that take `size` bytes each.
const fn vector_of(count: usize, size: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let capacity = at_least(count, LEAST).next_power_of_two();
    // The last place that it grew out of is half as large.
    add(mul(capacity + capacity / 2, size), 2 * ALLOCATION)
}

/// The heap of a slab of so many entries, while it grows.
const fn slab<T>(count: usize) -> usize {
    vector_of(count, Slab::<T>::ENTRY_SIZE)
}

/// The heap of an index of so many entries, while it grows.
const fn index(count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    /// Bytes that it looks at together, and that its entries are aligned to.
    const GROUP: usize = 16;
    // Entries that come and go leave marks, and it grows unless it is less than half full.
    let mut buckets = LEAST;
    while (if buckets < 8 { buckets - 1 } else { buckets / 8 * 7 }) < mul(2, count) {
        buckets *= 2;
    }
    let bytes = add(mul(buckets, Index::ENTRY_SIZE + 1), 2 * GROUP);
    add(bytes + bytes / 2, 2 * ALLOCATION)
}

/// The heap of an ordered set of so many entries.
pub(crate) const fn set<T>(count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    /// Entries that a node has room for, and how many it has at least unless it is the root.
    const ROOM: usize = 11;
    const FILLED: usize = 5;
    let node = ROOM * size_of::<T>() + (ROOM + 3) * size_of::<usize>() + ALLOCATION;
    // One below another: fewer than a quarter more are needed above those that hold the entries.
    let nodes = count / FILLED + 1;
    mul(nodes + nodes / 4 + 1, node)
}

pub(crate) const fn add(a: usize, b: usize) -> usize {
    a.saturating_add(b)
}

pub(crate) const fn mul(a: usize, b: usize) -> usize {
    a.saturating_mul(b)
}

pub(crate) const fn sum(parts: &[usize]) -> usize {
    let (mut total, mut at) = (0_usize, 0);
    while at < parts.len() {
        total = add(total, parts[at]);
        at += 1;
    }
    total
}

const fn at_least(a: usize, b: usize) -> usize {
    if a < b { b } else { a }
}

const fn at_most(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
}

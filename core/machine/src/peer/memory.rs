//! The maximum memory of a connection: the sum of all limits, in bytes of heap.

use alloc::string::String;

use mcp_sansio_collections::{Index, Slab};

use crate::Instant;
use crate::jsonrpc::{ErrorObject, INLINE_LENGTH_MAX};
#[cfg(feature = "server")]
use crate::protocol::SubscriptionFilter;

use super::calls::{self, Call, Tombstone};
#[cfg(feature = "client")]
use super::client;
use super::event::{CloseReason, Event};
use super::limits::Limits;
use super::outbox::Outbox;
use super::queue::{PIECE, Tag};
use super::requests::InFlight;
#[cfg(feature = "server")]
use super::server;

/// Message lengths, for [`Limits::server_memory_max`] and [`Limits::client_memory_max`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageLengths {
    /// Maximum length of a received message in bytes: the framing limit.
    pub received_max: usize,
    /// Maximum length of the data that the application sends at once, in bytes: a response with its
    /// envelope, a catalog page, or the input requests of one round.
    pub sent_max: usize,
}

impl MessageLengths {
    /// Creates lengths in bytes.
    #[must_use]
    pub const fn new(received_max: usize, sent_max: usize) -> Self {
        Self { received_max, sent_max }
    }
}

impl Limits {
    /// Returns the maximum heap use of a [`Server`](super::Server) for one connection over a byte
    /// stream, in bytes, for any client behavior.
    ///
    /// The bound holds as long as the driving contract is kept: events are taken before the next
    /// input, and the driver does not read while the machine is congested. It includes allocator
    /// headers and rounding, and the temporary cost of growing a table. It does not include: the
    /// memory of the framing, see
    /// [`LineDecoder::memory_max`](crate::framing::LineDecoder::memory_max); the server's options
    /// and catalog, which exist before a client connects; memory that handlers use while they run;
    /// and notifications and calls that the application sends while the machine is congested.
    ///
    /// It assumes that each table is at the moment of doubling and that all entries end at once.
    /// Tests with adverse clients reach between a fifth and a half of it.
    ///
    /// ```
    /// use mcp_sansio::peer::{Limits, MessageLengths};
    ///
    /// const LENGTHS: MessageLengths = MessageLengths::new(1024, 512);
    /// const _: () = assert!(Limits::SMALL.server_memory_max(LENGTHS) < 112 * 1024);
    /// ```
    #[must_use]
    #[cfg(feature = "server")]
    pub const fn server_memory_max(&self, lengths: MessageLengths) -> usize {
        let MessageLengths { received_max, .. } = lengths;
        let sent_max = add(at_least(lengths.sent_max, ANSWER), PIECE);
        let streams = self.listen_streams_max;
        let requests = self.requests_in_flight_max;
        let names = self.subscribed_resources_max;
        // Requests in progress, and those that are open as listen streams.
        let requested = self.requests_max(add(requests, streams));
        // Each stream has a filter with a list of resources and a list of tasks; the names are
        // shared.
        let listening = add(
            mul(streams, add(boxed::<SubscriptionFilter>(), mul(2, vector::<String>(LEAST)))),
            mul(2, add(vector::<String>(names), self.names_max(names))),
        );
        // A round concatenates all its input responses into one text while the originals still
        // exist.
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
            // Records of each response: in each batch of a few responses, and for all together in
            // the final batch while it is sent.
            mul(add(requests, 1), mul(LEAST, size_of::<server::Answered>())),
            mul(batched, 3 * size_of::<server::Answered>() + size_of::<(Tag, &[u8])>()),
            index(batched),
        ]);
        // The resources of a session, and those with a deferred update notification.
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
        // Responses to all pending requests, and the two messages that end each stream, which
        // contain its id three times.
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

    /// Returns the maximum heap use of a [`Client`](super::Client), in bytes, for any server
    /// behavior.
    ///
    /// In addition to the exclusions of [`server_memory_max`](Self::server_memory_max), it does not
    /// include the parameters of pending calls that are stored for further rounds (except for the
    /// buffer that is reused), the input responses of the host, and subscriptions at legacy
    /// servers.
    #[must_use]
    #[cfg(feature = "client")]
    pub const fn client_memory_max(&self, lengths: MessageLengths) -> usize {
        let MessageLengths { received_max, .. } = lengths;
        let sent_max = add(at_least(lengths.sent_max, ANSWER), PIECE);
        let (requests, calls) = (self.requests_in_flight_max, self.calls_in_flight_max);
        // Each input request has a minimum length, and their total length is limited.
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
        // The server's self-description, the refusal of an earlier opening attempt, and the close
        // reason.
        let session = sum(&[
            mul(3, add(received_max, mul(2, ALLOCATION))),
            boxed::<ErrorObject<'static>>(),
            boxed::<CloseReason>(),
        ]);
        let events = add(self.batch_length_max, add(calls, add(questions, requests)));
        let answers = add(mul(add(requests, 2), sent_max), self.ids_sent_max(add(requests, 2)));
        sum(&[
            // Servers before 2026-07-28 send their own requests; only calls to later servers store
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
            // Each request has an id and a progress token, plus those of the message being
            // processed.
            mul(mul(2, add(count, 1)), self.id_max()),
        ])
    }

    /// Heap size of an id.
    const fn id_max(&self) -> usize {
        if self.id_length_max > INLINE_LENGTH_MAX { add(self.id_length_max, ALLOCATION) } else { 0 }
    }

    /// Length of `count` ids in messages, as far as they exceed the inline length that the message
    /// lengths include.
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

    /// Heap of the events that one message and the close cause, including their texts.
    const fn events_max(&self, count: usize, received_max: usize) -> usize {
        let texts = mul(add(self.batch_length_max, self.inputs_per_round_max), mul(3, ALLOCATION));
        sum(&[vector::<Event<'static>>(add(count, 2)), texts, received_max])
    }

    /// Heap of the output queue, with `answers` bytes beyond the limit.
    const fn outbox_max(&self, answers: usize, received_max: usize) -> usize {
        let waiting = sum(&[
            self.transmit_bytes_max,
            // The response to one frame may repeat its content.
            received_max,
            mul(at_least(self.batch_length_max, 1), REFUSAL + PIECE),
            answers,
            mul(self.calls_in_flight_max, CANCELLATION + PIECE),
            KEEP_ALIVE,
        ]);
        Outbox::memory_max(self.transmit_bytes_max, waiting)
    }

    /// Heap of `count` names, of resources or tasks.
    const fn names_max(&self, count: usize) -> usize {
        mul(count, add(self.uri_length_max, ALLOCATION))
    }
}

/// Overhead of an allocation: a header, and rounding to two words.
pub(crate) const ALLOCATION: usize = 3 * size_of::<usize>();

/// Capacity of a collection after the first insertion.
const LEAST: usize = 4;

/// Length of the shortest response in bytes: an empty result.
const LEAST_ANSWER: usize = 36;

/// Minimum length assumed for a response, in bytes: an error has one sentence.
const ANSWER: usize = 512;

/// Length of a refusal, without the text it repeats.
const REFUSAL: usize = 192;

/// Length of a cancellation.
const CANCELLATION: usize = 160;

/// Length of unanswered keep-alive pings.
const KEEP_ALIVE: usize = 256;

/// Temporary copies of one message while it is read and answered: resolved escapes and parts of an
/// error, each with spare capacity.
const PASSING: usize = 6;

/// Heap of a boxed value.
const fn boxed<T>() -> usize {
    add(size_of::<T>(), ALLOCATION)
}

/// Heap of a vector or queue that grew to `count` entries one by one, including the reallocation.
pub(crate) const fn vector<T>(count: usize) -> usize {
    vector_of(count, size_of::<T>())
}

/// Like [`vector`], for entries of `size` bytes.
const fn vector_of(count: usize, size: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let capacity = at_least(count, LEAST).next_power_of_two();
    // During a reallocation the previous buffer has half the size.
    add(mul(capacity + capacity / 2, size), 2 * ALLOCATION)
}

/// Heap of a slab that grew to `count` entries.
const fn slab<T>(count: usize) -> usize {
    vector_of(count, Slab::<T>::ENTRY_SIZE)
}

/// Heap of an index that grew to `count` entries.
const fn index(count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    /// Number of bytes that the table probes at once, and the alignment of its entries.
    const GROUP: usize = 16;
    // Removed entries leave tombstones, and the table grows unless it is less than half full.
    let mut buckets = LEAST;
    while (if buckets < 8 { buckets - 1 } else { buckets / 8 * 7 }) < mul(2, count) {
        buckets *= 2;
    }
    let bytes = add(mul(buckets, Index::ENTRY_SIZE + 1), 2 * GROUP);
    add(bytes + bytes / 2, 2 * ALLOCATION)
}

/// Heap of an ordered set with `count` entries.
pub(crate) const fn set<T>(count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    /// Capacity of a node, and its minimum fill unless it is the root.
    const ROOM: usize = 11;
    const FILLED: usize = 5;
    let node = ROOM * size_of::<T>() + (ROOM + 3) * size_of::<usize>() + ALLOCATION;
    // The inner levels add less than a quarter to the nodes that hold the entries.
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

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;

use crate::Revision;
use crate::binding::Binding;
use crate::jsonrpc::ErrorCode;
use crate::protocol::Method;

use super::queue::{self, MOVED_MIN, Queue, Tag};

/// The transmit queue. On a byte stream: complete lines, in order within each of two lanes.
///
/// The control lane (cancellations, ping responses) overtakes the bulk lane between lines, so that
/// it does not wait behind megabytes of results.
///
/// On a binding with one channel per request: single messages in order, each with its channel.
#[derive(Debug)]
pub(crate) struct Outbox {
    bulk: Queue,
    /// Created with its first message, on a byte stream only.
    control: Option<Box<Queue>>,
    /// The messages of the bulk queue, if they are taken one at a time.
    by_channel: Option<VecDeque<ChannelMessage>>,
    /// The lane of the last chunk. The other lane waits until that chunk is sent.
    last: Lane,
    /// Whether [`Outbox::poll`] returned the chunk; it is then discarded on the next access.
    given: bool,
}

/// The channel of a message on bindings with several: the channel of the request that it answers or
/// relates to. A byte stream has one channel and ignores this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Channel(pub(crate) u32);

impl Channel {
    /// Channel for messages that are not tied to a request.
    pub(crate) const UNSOLICITED: Self = Self(u32::MAX);
}

/// A message on a binding with channels, or a signal on a channel without a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelMessage {
    pub(crate) channel: Channel,
    pub(crate) part: Part,
    /// The request that a response answers.
    pub(crate) tag: Tag,
    length: usize,
}

/// The kind of a message on its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A request of this side.
    Request(SentRequest),
    /// A notification of this side.
    Notification(SentNotification),
    /// A batch's responses, but not the last ones.
    Answers,
    /// The response to the message received on the channel, and the last message on it.
    Answer(Verdict),
    /// No message: the request on the channel was cancelled and gets no response.
    Withdrawn,
    /// No message: a request that was already answered was cancelled.
    Recalled(Tag),
    /// No message: the request with this id is abandoned, in an era that signals this by closing
    /// its channel.
    Abort(i64),
}

impl Part {
    /// A notification whose method the protocol does not define.
    pub(crate) const OTHER_NOTIFICATION: Self =
        Self::Notification(SentNotification { method: None, cancelled: None });
}

/// A sent request. A binding repeats some of these values outside of the message, without parsing
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentRequest {
    pub(crate) id: i64,
    /// The method, if the protocol defines it.
    pub(crate) method: Option<Method>,
    /// The revision in its `_meta`.
    pub(crate) revision: Option<Revision>,
    /// Offset in the message of the parameter members after `_meta`, if within the first 4 GiB.
    pub(crate) members: u32,
}

/// A sent notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentNotification {
    /// The method, if the protocol defines it.
    pub(crate) method: Option<Method>,
    /// The cancelled request of this side, if this is a cancellation.
    pub(crate) cancelled: Option<i64>,
}

impl From<Method> for Part {
    /// Creates a notification that names no request.
    fn from(method: Method) -> Self {
        Self::Notification(SentNotification { method: Some(method), cancelled: None })
    }
}

/// The outcome of a response, for bindings that also report it outside of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A result, or a batch of responses.
    Result,
    /// An error from the handler of the request.
    Failed(ErrorCode),
    /// The request was refused before it was handled: it is malformed, its method is unknown, or
    /// the capability checks failed.
    Refused(ErrorCode),
}

/// The lane of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lane {
    #[default]
    Bulk,
    Control,
}

/// Maximum capacity that an empty queue keeps. More would burden an idle connection after a burst;
/// less would reallocate for each message of ordinary size.
const RETAINED: usize = 256 * 1024;

/// Like [`RETAINED`], for the control lane: about ten short messages.
const CONTROL_RETAINED: usize = 1024;

/// Initial capacity for a message of ordinary size, in bytes.
const MESSAGE_LENGTH: usize = 256;

impl Outbox {
    pub(crate) fn new(binding: Binding) -> Self {
        Self {
            bulk: Queue::new(RETAINED),
            control: None,
            by_channel: binding.has_channels().then(VecDeque::new),
            last: Lane::default(),
            given: false,
        }
    }

    /// Returns the maximum memory of a line queue, in bytes, if at most `waiting` bytes are
    /// queued and `transmit_bytes_max` is the limit given to [`hold_to`](Self::hold_to).
    pub(super) const fn memory_max(transmit_bytes_max: usize, waiting: usize) -> usize {
        // The output is in two lanes, of which one grows at a time; the other may be empty and keep
        // its retained capacity.
        queue::memory_max(waiting)
            .saturating_add(MOVED_MIN * 2)
            .saturating_add(bulk_retained(transmit_bytes_max))
            .saturating_add(queue::pieces_retained(bulk_retained(transmit_bytes_max)))
            .saturating_add(CONTROL_RETAINED)
            .saturating_add(queue::pieces_retained(CONTROL_RETAINED))
    }

    /// Limits the memory of the empty queue in proportion to `transmit_bytes_max`.
    pub(super) const fn hold_to(&mut self, transmit_bytes_max: usize) {
        self.bulk.retained = bulk_retained(transmit_bytes_max);
    }

    /// Sets the seed of the hash tables for names that the peer chooses.
    pub(super) const fn key_with(&mut self, seed: u64) {
        self.bulk.key_with(seed);
    }

    /// Appends one message. `write` writes its JSON on one line.
    // MCP 2026-07-28 basic/transports/stdio#stdio [STDIO-001]: messages are delimited by newlines.
    pub(crate) fn push(
        &mut self,
        lane: Lane,
        channel: Channel,
        part: Part,
        tag: Tag,
        write: impl FnOnce(&mut String),
    ) {
        let written = self.try_push(lane, channel, part, tag, |out| {
            write(out);
            Ok::<(), core::convert::Infallible>(())
        });
        match written {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Appends one message, or nothing if `write` fails.
    pub(crate) fn try_push<E>(
        &mut self,
        lane: Lane,
        channel: Channel,
        part: Part,
        tag: Tag,
        write: impl FnOnce(&mut String) -> Result<(), E>,
    ) -> Result<(), E> {
        self.try_push_as(lane, channel, tag, |out| write(out).map(|()| part))
    }

    /// Like [`try_push`](Self::try_push), if the part is known only after writing.
    pub(crate) fn try_push_as<E>(
        &mut self,
        lane: Lane,
        channel: Channel,
        tag: Tag,
        write: impl FnOnce(&mut String) -> Result<Part, E>,
    ) -> Result<(), E> {
        let Self { bulk, control, by_channel, .. } = self;
        let queue = if by_channel.is_some() { bulk } else { queue_of(bulk, control, lane) };
        let text = &mut queue.text;
        if by_channel.is_some() && text.capacity() == 0 {
            // The buffer is moved out with its message, so each message allocates a new one, once
            // and not in steps.
            text.reserve(MESSAGE_LENGTH);
        }
        let before = text.len();
        let part = match write(text) {
            Ok(part) => part,
            Err(error) => {
                text.truncate(before);
                return Err(error);
            }
        };
        match by_channel {
            Some(by_channel) => {
                let length = text.len() - before;
                by_channel.push_back(ChannelMessage { channel, part, tag, length });
            }
            None => {
                text.push('\n');
                let length = text.len() - before;
                queue.note(tag, length);
            }
        }
        Ok(())
    }

    /// Appends messages as one array, from which each can be withdrawn.
    // MCP 2025-03-26 basic/index#batching [BATCH-001]
    pub(crate) fn push_batch(&mut self, channel: Channel, part: Part, messages: &[(Tag, &str)]) {
        let Self { bulk, by_channel, .. } = self;
        let before = bulk.text.len();
        for (_, message) in messages {
            bulk.text.push(if bulk.text.len() == before { '[' } else { ',' });
            bulk.text.push_str(message);
        }
        match by_channel {
            Some(by_channel) => {
                bulk.text.push(']');
                let length = bulk.text.len() - before;
                by_channel.push_back(ChannelMessage { channel, part, tag: Tag::NONE, length });
            }
            None => {
                bulk.text.push_str(queue::ARRAY_END);
                bulk.note_array(messages);
            }
        }
    }

    /// Withdraws all messages with this tag that are not being sent, and returns whether there were
    /// any. On a binding with channels no messages wait here.
    pub(crate) fn withdraw(&mut self, tag: Tag) -> bool {
        let bulk = self.bulk.withdraw(tag);
        self.control.as_mut().is_some_and(|control| control.withdraw(tag)) || bulk
    }

    /// Returns whether messages with this tag wait that are not being sent.
    pub(crate) fn is_waiting(&mut self, tag: Tag) -> bool {
        let bulk = self.bulk.is_waiting(tag);
        bulk || self.control.as_mut().is_some_and(|control| control.is_waiting(tag))
    }

    /// Queues a signal for a channel. Does nothing on a byte stream.
    pub(crate) fn signal(&mut self, channel: Channel, part: Part) {
        if let Some(by_channel) = &mut self.by_channel {
            by_channel.push_back(ChannelMessage { channel, part, tag: Tag::NONE, length: 0 });
        }
    }

    /// Returns the next message without removing it.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn next_message(&self) -> Option<(ChannelMessage, &str)> {
        let message = *self.by_channel.as_ref()?.front()?;
        Some((message, self.bulk.message(message.length)))
    }

    /// Removes the next message, without returning its bytes.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn skip_message(&mut self) {
        if let Some(message) = self.by_channel.as_mut().and_then(VecDeque::pop_front) {
            self.bulk.advance(message.length);
        }
    }

    /// Removes the next message and returns its bytes, without a copy if it is the only one.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn take_message(&mut self) -> String {
        let Some(message) = self.by_channel.as_mut().and_then(VecDeque::pop_front) else {
            return String::new();
        };
        if self.bulk.head == 0 && self.bulk.text.len() == message.length {
            return core::mem::take(&mut self.bulk.text);
        }
        let text = String::from(self.bulk.message(message.length));
        self.bulk.advance(message.length);
        text
    }

    /// Drops all queued output, including partially sent lines.
    pub(crate) fn clear(&mut self) {
        self.given = false;
        self.bulk.clear();
        if let Some(control) = &mut self.control {
            control.clear();
        }
    }

    /// Releases spare memory if the queue is empty.
    #[cfg(feature = "http")]
    pub(crate) fn shrink(&mut self) {
        /// Capacity for a few small messages.
        const RETAINED: usize = 1024;
        const MESSAGES: usize = 8;
        if self.bulk.len() == 0 && self.bulk.text.capacity() > RETAINED {
            self.bulk.text = String::new();
        }
        if let Some(by_channel) = self.by_channel.as_mut().filter(|it| it.is_empty())
            && by_channel.capacity() > MESSAGES
        {
            *by_channel = VecDeque::new();
        }
    }

    /// Returns the number of queued bytes, including those being sent.
    pub(crate) fn len(&self) -> usize {
        let given = if self.given { self.sending().leaving } else { 0 };
        self.bulk.len() + self.control.as_ref().map_or(0, |control| control.len()) - given
    }

    /// Like [`len`](Self::len), plus the overhead of each message.
    pub(crate) fn held(&self) -> usize {
        let given = if self.given { self.sending().leaving } else { 0 };
        self.bulk.held() + self.control.as_ref().map_or(0, |control| control.held()) - given
    }

    /// Returns the next chunk, for a caller that writes all of it.
    pub(crate) fn poll(&mut self) -> Option<&[u8]> {
        self.retire();
        if !self.select() {
            return None;
        }
        self.given = true;
        let queue = self.sending();
        Some(queue.chunk(queue.leaving))
    }

    /// Returns the next chunk, for a caller that may write only some of it and reports the number
    /// of bytes with [`Outbox::consume`].
    pub(crate) fn peek(&mut self) -> &[u8] {
        self.retire();
        self.select();
        let queue = self.sending();
        queue.chunk(queue.leaving)
    }

    /// Removes the first `length` bytes returned by [`Outbox::peek`].
    pub(crate) fn consume(&mut self, length: usize) {
        let queue = queue_of(&mut self.bulk, &mut self.control, self.last);
        queue.advance(length.min(queue.leaving));
        self.given &= queue.leaving > 0;
    }

    fn retire(&mut self) {
        if self.given {
            self.consume(usize::MAX);
        }
    }

    /// Starts the next chunk if none is being sent. Returns whether there is one.
    fn select(&mut self) -> bool {
        if self.sending().leaving > 0 {
            return true;
        }
        // The lanes alternate if both have messages, so that a flood of pings does not block
        // responses.
        let bulk_waits = self.bulk.len() > 0;
        let control_waits = self.control.as_ref().is_some_and(|control| control.len() > 0);
        if control_waits && !(bulk_waits && self.last == Lane::Control) {
            self.last = Lane::Control;
        } else if bulk_waits {
            self.last = Lane::Bulk;
        } else {
            return false;
        }
        queue_of(&mut self.bulk, &mut self.control, self.last).select()
    }

    /// Returns the queue of the current chunk.
    fn sending(&self) -> &Queue {
        self.control.as_deref().filter(|_| self.last == Lane::Control).unwrap_or(&self.bulk)
    }
}

fn queue_of<'a>(
    bulk: &'a mut Queue,
    control: &'a mut Option<Box<Queue>>,
    lane: Lane,
) -> &'a mut Queue {
    match lane {
        Lane::Bulk => bulk,
        Lane::Control => control.get_or_insert_with(|| control_of(bulk)),
    }
}

#[cold]
fn control_of(bulk: &Queue) -> Box<Queue> {
    Box::new(bulk.alike(CONTROL_RETAINED))
}

/// Capacity that the empty bulk lane keeps.
const fn bulk_retained(transmit_bytes_max: usize) -> usize {
    let quarter = transmit_bytes_max / 4;
    if quarter < MESSAGE_LENGTH {
        MESSAGE_LENGTH
    } else if quarter < RETAINED {
        quarter
    } else {
        RETAINED
    }
}

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;

use crate::Revision;
use crate::binding::Binding;
use crate::jsonrpc::ErrorCode;
use crate::protocol::Method;

use super::queue::{self, MOVED_MIN, Queue, Tag};

/// What waits to be sent. On a byte stream: whole lines, in order within each of two lanes.
///
/// The control lane (cancellations, answers to pings) overtakes the bulk lane, never inside a
/// line, so that it is not stuck behind megabytes of results.
///
/// On a binding with a channel for each request: single messages, in order, each with its channel.
#[derive(Debug)]
pub(crate) struct Outbox {
    bulk: Queue,
    /// Made with its first message, on a byte stream only.
    control: Option<Box<Queue>>,
    /// The messages in the bulk queue one by one, where they are taken one by one.
    by_channel: Option<VecDeque<ChannelMessage>>,
    /// The lane of the last chunk. The other lane waits until that has gone.
    last: Lane,
    /// The chunk was given out by [`Outbox::poll`]: it is gone as soon as anything is asked for
    /// again.
    given: bool,
}

/// The channel of a message, on bindings with more than one: that of the request which it answers or
/// on whose behalf it is sent. A byte stream has one channel and ignores this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Channel(pub(crate) u32);

impl Channel {
    /// Channel for messages that are not tied to a request.
    pub(crate) const UNSOLICITED: Self = Self(u32::MAX);
}

/// One message on a binding with channels, or a signal on a channel without a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelMessage {
    pub(crate) channel: Channel,
    pub(crate) part: Part,
    /// Of an answer: the request that it answers.
    pub(crate) tag: Tag,
    length: usize,
}

/// What a message is to its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A request of this side.
    Request(SentRequest),
    /// A notification of this side.
    Notification(SentNotification),
    /// Some of the answers of a batch, but not the last ones.
    Answers,
    /// The answer to what came on the channel: the last message on it.
    Answer(Verdict),
    /// No message: what came on the channel gets no answer, as it was cancelled.
    Withdrawn,
    /// No message: a request that is answered was cancelled.
    Recalled(Tag),
    /// No message: the request with this id is given up, in an era that says so by closing its channel.
    Abort(i64),
}

/// A request as its writer knows it. A binding repeats some of it outside of the message, and need
/// not parse the message for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentRequest {
    pub(crate) id: i64,
    /// The method, if it is one of the table.
    pub(crate) method: Option<Method>,
    /// The revision that its `_meta` names.
    pub(crate) revision: Option<Revision>,
    /// Where in the message the members of its parameters begin that follow `_meta`: in the first
    /// 4 GiB.
    pub(crate) members: u32,
}

/// A notification as its writer knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentNotification {
    pub(crate) method: Method,
    /// Of a cancellation: the request of this side that it names.
    pub(crate) cancelled: Option<i64>,
}

impl From<Method> for Part {
    /// A notification that names no request.
    fn from(method: Method) -> Self {
        Self::Notification(SentNotification { method, cancelled: None })
    }
}

/// What an answer says, for bindings that say it a second time in terms of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A result, or a batch of answers.
    Result,
    /// An error of whoever worked on the request.
    Failed(ErrorCode),
    /// The request was not let through: malformed, of an unknown method, beyond the gate.
    Refused(ErrorCode),
}

/// Which line of traffic a message belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lane {
    #[default]
    Bulk,
    Control,
}

/// Capacity that an empty queue keeps at most. More would be memory that an idle connection holds
/// for a burst long gone; less would be allocated again with every message of ordinary size.
const RETAINED: usize = 256 * 1024;

/// The same of the control lane, whose messages are short: some ten of them.
const CONTROL_RETAINED: usize = 1024;

/// Room for a message of ordinary size, in bytes.
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

    /// The most memory that one of whole lines takes, in bytes, where never more than `waiting`
    /// bytes wait and `transmit_bytes_max` is the limit that it was [made for](Self::hold_to).
    pub(super) const fn memory_max(transmit_bytes_max: usize, waiting: usize) -> usize {
        // What waits is in two lanes, of which one grows at a time; the other may be empty and
        // hold what it retains.
        queue::memory_max(waiting)
            .saturating_add(MOVED_MIN * 2)
            .saturating_add(bulk_retained(transmit_bytes_max))
            .saturating_add(queue::pieces_retained(bulk_retained(transmit_bytes_max)))
            .saturating_add(CONTROL_RETAINED)
            .saturating_add(queue::pieces_retained(CONTROL_RETAINED))
    }

    /// Keeps no more memory, when it is empty, than becomes one that holds so many bytes.
    pub(super) const fn hold_to(&mut self, transmit_bytes_max: usize) {
        self.bulk.retained = bulk_retained(transmit_bytes_max);
    }

    /// Keys the hash tables of what the other side names.
    pub(super) const fn key_with(&mut self, seed: u64) {
        self.bulk.key_with(seed);
    }

    /// Appends one message: `write` writes its JSON, on one line.
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

    /// The same where only the writer can tell what it is.
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
            // It leaves as it is, so each message makes room anew: at once, not bit by bit.
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

    /// Appends messages as one array, each of which can be withdrawn.
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

    /// Withdraws all with this tag that is not on its way; whether there was anything. On a binding
    /// with channels nothing waits here.
    pub(crate) fn withdraw(&mut self, tag: Tag) -> bool {
        let bulk = self.bulk.withdraw(tag);
        self.control.as_mut().is_some_and(|control| control.withdraw(tag)) || bulk
    }

    /// Whether anything with this tag waits that is not on its way.
    pub(crate) fn is_waiting(&mut self, tag: Tag) -> bool {
        let bulk = self.bulk.is_waiting(tag);
        bulk || self.control.as_mut().is_some_and(|control| control.is_waiting(tag))
    }

    /// Says something of a channel without a message. On a byte stream there is nothing to say.
    pub(crate) fn signal(&mut self, channel: Channel, part: Part) {
        if let Some(by_channel) = &mut self.by_channel {
            by_channel.push_back(ChannelMessage { channel, part, tag: Tag::NONE, length: 0 });
        }
    }

    /// The next message, which stays until it is taken.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn next_message(&self) -> Option<(ChannelMessage, &str)> {
        let message = *self.by_channel.as_ref()?.front()?;
        Some((message, self.bulk.message(message.length)))
    }

    /// Takes the next message away, without its bytes.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn skip_message(&mut self) {
        if let Some(message) = self.by_channel.as_mut().and_then(VecDeque::pop_front) {
            self.bulk.advance(message.length);
        }
    }

    /// Takes the next message away, with its bytes; copies nothing where it is the only one.
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

    /// Drops what waits, in part sent or not: nobody reads it any more.
    pub(crate) fn clear(&mut self) {
        self.given = false;
        self.bulk.clear();
        if let Some(control) = &mut self.control {
            control.clear();
        }
    }

    /// Gives back the memory of a busier time, where nothing waits.
    #[cfg(feature = "http")]
    pub(crate) fn shrink(&mut self) {
        /// A few small messages.
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

    /// Bytes that wait, those on their way included.
    pub(crate) fn len(&self) -> usize {
        let given = if self.given { self.sending().leaving } else { 0 };
        self.bulk.len() + self.control.as_ref().map_or(0, |control| control.len()) - given
    }

    /// The same, and what is kept for each message of them.
    pub(crate) fn held(&self) -> usize {
        let given = if self.given { self.sending().leaving } else { 0 };
        self.bulk.held() + self.control.as_ref().map_or(0, |control| control.held()) - given
    }

    /// The next chunk, for a caller that writes all of it.
    pub(crate) fn poll(&mut self) -> Option<&[u8]> {
        self.retire();
        if !self.select() {
            return None;
        }
        self.given = true;
        let queue = self.sending();
        Some(queue.chunk(queue.leaving))
    }

    /// The next chunk, for a caller that may write part of it and says how much with
    /// [`Outbox::consume`].
    pub(crate) fn peek(&mut self) -> &[u8] {
        self.retire();
        self.select();
        let queue = self.sending();
        queue.chunk(queue.leaving)
    }

    /// Takes away the first `length` bytes of what [`Outbox::peek`] showed.
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

    /// Sees to it that a chunk is on its way, if anything waits; whether one is.
    fn select(&mut self) -> bool {
        if self.sending().leaving > 0 {
            return true;
        }
        // By turns where both wait: a flood of pings must not keep answers from leaving.
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

    /// The lane of the chunk that is on its way, if one is.
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

/// What the bulk lane keeps when it is empty.
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

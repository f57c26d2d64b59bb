use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::jsonrpc::ErrorCode;

/// What waits to be sent. On a byte stream: whole lines, in order within each of two lanes.
///
/// The control lane (cancellations, answers to pings) overtakes the bulk lane, never inside a
/// line, so that it is not stuck behind megabytes of results.
///
/// A binding with a way of its own for each request makes it an outbox [of
/// posts](Outbox::of_posts): single messages, in order, each with the channel that it belongs to.
#[derive(Debug)]
pub(crate) struct Outbox {
    bulk: Queue,
    control: Queue,
    /// The messages in the bulk queue one by one, where they are taken one by one.
    posts: Option<VecDeque<Post>>,
    /// The chunk that is on its way out; the other lane waits until it has gone.
    sending: Option<Sending>,
    /// The lane of the last chunk.
    last: Lane,
    /// Bytes ever put into the bulk lane.
    bulk_total: u64,
}

/// The most that a queue holds on to of `waiting` bytes and of what has left of it since it was
/// moved over, with the place that it grows out of: it moves once a quarter of it has left, and
/// grows by doubling.
const fn queue_memory_max(waiting: usize) -> usize {
    let length = waiting.saturating_add(waiting / 3).saturating_add(MOVED_MIN);
    length.saturating_mul(3)
}

/// A place in the bulk lane: the end of the message that was queued last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64);

/// The way that a message takes, for bindings with more than one: that of the request which it
/// answers or on whose behalf it is sent. A byte stream has one way and ignores this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Channel(pub(crate) u32);

impl Channel {
    /// The way of what belongs to no request.
    pub(crate) const UNSOLICITED: Self = Self(u32::MAX);
}

/// One message of an outbox of posts, or the news that none will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Post {
    pub(crate) channel: Channel,
    pub(crate) part: Part,
    length: usize,
}

/// What a post is to its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A request or a notification of this side.
    Message,
    /// The answer to what came on the channel: the last message on it.
    Answer(Verdict),
    /// No message: what came on the channel gets no answer, as it was cancelled.
    Withdrawn,
    /// No message: the request with this id is given up, in an era that says so by closing its way.
    Abort(i64),
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

#[derive(Clone, Copy, Debug)]
struct Sending {
    lane: Lane,
    length: usize,
    /// Given out by [`Outbox::poll`]: gone as soon as anything is asked for again.
    given: bool,
}

#[derive(Debug)]
struct Queue {
    bytes: Vec<u8>,
    head: usize,
    /// Capacity that it keeps when it is empty.
    retained: usize,
}

/// The most that a bulk chunk takes at once, whole lines permitting: control traffic waits for at
/// most this much. One write of 64 KiB fills a pipe.
const CHUNK: usize = 64 * 1024;

/// Capacity that an empty queue keeps at most. More would be memory that an idle connection holds
/// for a burst long gone; less would be allocated again with every message of ordinary size.
const RETAINED: usize = 256 * 1024;

/// The same of the control lane, whose messages are short: some ten of them.
const CONTROL_RETAINED: usize = 1024;

/// What has left of a queue is worth moving the rest for.
const MOVED_MIN: usize = 256;

/// Room for a message of ordinary size, in bytes.
const POST_LENGTH: usize = 256;

impl Default for Outbox {
    fn default() -> Self {
        Self {
            bulk: Queue::retaining(RETAINED),
            control: Queue::retaining(CONTROL_RETAINED),
            posts: None,
            sending: None,
            last: Lane::default(),
            bulk_total: 0,
        }
    }
}

impl Outbox {
    /// The most memory that one of whole lines takes, in bytes, where never more than `waiting`
    /// bytes wait and `transmit_bytes_max` is the limit that it was [made for](Self::hold_to).
    pub(super) const fn memory_max(transmit_bytes_max: usize, waiting: usize) -> usize {
        // What waits is in two lanes, of which one grows at a time; the other may be empty and
        // hold what it retains.
        queue_memory_max(waiting)
            .saturating_add(MOVED_MIN * 2)
            .saturating_add(bulk_retained(transmit_bytes_max))
            .saturating_add(CONTROL_RETAINED)
    }

    /// Keeps no more memory, when it is empty, than becomes one that holds so many bytes.
    pub(super) const fn hold_to(&mut self, transmit_bytes_max: usize) {
        self.bulk.retained = bulk_retained(transmit_bytes_max);
    }

    /// An outbox whose messages are taken one by one, with [`Outbox::next_post`].
    #[cfg(any(feature = "http", test))]
    pub(crate) fn of_posts() -> Self {
        Self { posts: Some(VecDeque::new()), ..Self::default() }
    }

    /// Appends one message: `write` writes its JSON, on one line.
    // MCP 2026-07-28 basic/transports/stdio#stdio [STDIO-001]: messages are delimited by newlines.
    pub(crate) fn push(
        &mut self,
        lane: Lane,
        channel: Channel,
        part: Part,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let written = self.try_push(lane, channel, part, |out| {
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
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let lane = if self.posts.is_some() { Lane::Bulk } else { lane };
        let whole_lines = self.posts.is_none();
        let bytes = &mut self.queue(lane).bytes;
        if !whole_lines && bytes.capacity() == 0 {
            // It leaves as it is, so each message makes room anew: at once, not bit by bit.
            bytes.reserve(POST_LENGTH);
        }
        let before = bytes.len();
        if let Err(error) = write(bytes) {
            bytes.truncate(before);
            return Err(error);
        }
        if whole_lines {
            bytes.push(b'\n');
        }
        let length = bytes.len() - before;
        if let Some(posts) = &mut self.posts {
            posts.push_back(Post { channel, part, length });
        }
        self.count(lane, length);
        Ok(())
    }

    /// Says something of a channel without a message. On a byte stream there is nothing to say.
    pub(crate) fn post(&mut self, channel: Channel, part: Part) {
        if let Some(posts) = &mut self.posts {
            posts.push_back(Post { channel, part, length: 0 });
        }
    }

    /// Whether messages are taken one by one.
    pub(crate) const fn is_of_posts(&self) -> bool {
        self.posts.is_some()
    }

    /// The next message, which stays until it is taken.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn next_post(&self) -> Option<(Post, &[u8])> {
        let post = *self.posts.as_ref()?.front()?;
        Some((post, self.bulk.chunk(post.length)))
    }

    /// Takes the next message away, without its bytes.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn skip_post(&mut self) {
        if let Some(post) = self.posts.as_mut().and_then(VecDeque::pop_front) {
            self.bulk.advance(post.length);
        }
    }

    /// Takes the next message away, with its bytes; copies nothing where it is the only one.
    #[cfg(any(feature = "http", test))]
    pub(crate) fn take_post(&mut self) -> Vec<u8> {
        let Some(post) = self.posts.as_mut().and_then(VecDeque::pop_front) else {
            return Vec::new();
        };
        if self.bulk.head == 0 && self.bulk.bytes.len() == post.length {
            return core::mem::take(&mut self.bulk.bytes);
        }
        let bytes = self.bulk.chunk(post.length).to_vec();
        self.bulk.advance(post.length);
        bytes
    }

    /// Drops what waits, in part sent or not: nobody reads it any more.
    pub(crate) fn clear(&mut self) {
        self.sending = None;
        for queue in [&mut self.bulk, &mut self.control] {
            queue.advance(queue.len());
        }
    }

    /// Gives back the memory of a busier time, where nothing waits.
    #[cfg(feature = "http")]
    pub(crate) fn give_back_memory(&mut self) {
        /// A few small messages.
        const RETAINED: usize = 1024;
        const POSTS: usize = 8;
        if self.bulk.len() == 0 && self.bulk.bytes.capacity() > RETAINED {
            self.bulk.bytes = Vec::new();
        }
        if let Some(posts) = self.posts.as_mut().filter(|posts| posts.is_empty())
            && posts.capacity() > POSTS
        {
            *posts = VecDeque::new();
        }
    }

    /// The end of what the bulk lane holds now.
    pub(crate) const fn mark(&self) -> Mark {
        Mark(self.bulk_total)
    }

    /// Whether everything up to `mark` has left or is about to: what goes into the control lane
    /// cannot overtake it any more.
    pub(crate) fn has_departed(&self, mark: Mark) -> bool {
        let leaving = match self.sending {
            Some(Sending { lane: Lane::Bulk, length, .. }) => length,
            _ => 0,
        };
        mark.0 + (self.bulk.len() - leaving) as u64 <= self.bulk_total
    }

    /// Bytes that wait, those on their way included.
    pub(crate) fn len(&self) -> usize {
        let given = match self.sending {
            Some(Sending { length, given: true, .. }) => length,
            _ => 0,
        };
        self.bulk.len() + self.control.len() - given
    }

    /// The next chunk, for a caller that writes all of it.
    pub(crate) fn poll(&mut self) -> Option<&[u8]> {
        self.retire();
        self.select();
        let sending = self.sending.as_mut()?;
        sending.given = true;
        let Sending { lane, length, .. } = *sending;
        Some(self.queue(lane).chunk(length))
    }

    /// The next chunk, for a caller that may write part of it and says how much with
    /// [`Outbox::consume`].
    pub(crate) fn peek(&mut self) -> &[u8] {
        self.retire();
        self.select();
        match self.sending {
            Some(Sending { lane, length, .. }) => self.queue(lane).chunk(length),
            None => &[],
        }
    }

    /// Takes away the first `length` bytes of what [`Outbox::peek`] showed.
    pub(crate) fn consume(&mut self, length: usize) {
        let Some(sending) = self.sending else { return };
        let length = length.min(sending.length);
        self.queue(sending.lane).advance(length);
        let rest = sending.length - length;
        self.sending = (rest > 0).then_some(Sending { length: rest, ..sending });
    }

    /// The first `length` bytes of what [`Outbox::peek`] showed last.
    #[cfg(feature = "recording")]
    pub(crate) fn peeked(&self, length: usize) -> &[u8] {
        match self.sending {
            Some(sending) => {
                let queue = if sending.lane == Lane::Bulk { &self.bulk } else { &self.control };
                queue.chunk(length.min(sending.length))
            }
            None => &[],
        }
    }

    fn retire(&mut self) {
        if let Some(Sending { length, given: true, .. }) = self.sending {
            self.consume(length);
        }
    }

    fn select(&mut self) {
        if self.sending.is_some() {
            return;
        }
        // By turns where both wait: a flood of pings must not keep answers from leaving.
        let bulk_turn = self.last == Lane::Control && self.bulk.len() > 0;
        let lane = if self.control.len() > 0 && !bulk_turn { Lane::Control } else { Lane::Bulk };
        let length = self.queue(lane).next_chunk();
        if length > 0 {
            self.last = lane;
            self.sending = Some(Sending { lane, length, given: false });
        }
    }

    const fn count(&mut self, lane: Lane, length: usize) {
        if matches!(lane, Lane::Bulk) {
            self.bulk_total += length as u64;
        }
    }

    const fn queue(&mut self, lane: Lane) -> &mut Queue {
        match lane {
            Lane::Bulk => &mut self.bulk,
            Lane::Control => &mut self.control,
        }
    }
}

/// What the bulk lane keeps when it is empty.
const fn bulk_retained(transmit_bytes_max: usize) -> usize {
    let quarter = transmit_bytes_max / 4;
    if quarter < POST_LENGTH {
        POST_LENGTH
    } else if quarter < RETAINED {
        quarter
    } else {
        RETAINED
    }
}

impl Queue {
    const fn retaining(retained: usize) -> Self {
        Self { bytes: Vec::new(), head: 0, retained }
    }

    const fn len(&self) -> usize {
        self.bytes.len() - self.head
    }

    fn chunk(&self, length: usize) -> &[u8] {
        &self.bytes[self.head..self.head + length]
    }

    /// The length of as many whole lines as fit a chunk, of the first line if it does not.
    fn next_chunk(&self) -> usize {
        let waiting = &self.bytes[self.head..];
        if waiting.len() <= CHUNK {
            return waiting.len();
        }
        match memchr::memrchr(b'\n', &waiting[..CHUNK]) {
            Some(last) => last + 1,
            None => memchr::memchr(b'\n', waiting).map_or(waiting.len(), |end| end + 1),
        }
    }

    fn advance(&mut self, length: usize) {
        self.head += length;
        if self.head == self.bytes.len() {
            self.head = 0;
            self.bytes.clear();
            if self.bytes.capacity() > self.retained {
                self.bytes.shrink_to(self.retained);
            }
        } else if self.head >= MOVED_MIN && self.head >= self.bytes.len() / 4 {
            // Moves at most three times as much as was sent since the last move: constant work per
            // byte. Were it left to later, a queue that is never empty would grow far beyond what
            // waits in it.
            self.bytes.drain(..self.head);
            self.head = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn push(outbox: &mut Outbox, lane: Lane, text: &str) {
        outbox.push(lane, Channel::UNSOLICITED, Part::Message, |bytes| {
            bytes.extend_from_slice(text.as_bytes());
        });
    }

    #[test]
    fn posts_are_taken_one_by_one_with_the_channel_of_each() {
        let mut outbox = Outbox::of_posts();
        push(&mut outbox, Lane::Bulk, "one");
        outbox.push(Lane::Control, Channel(7), Part::Answer(Verdict::Result), |bytes| {
            bytes.extend_from_slice(b"two");
        });
        outbox.post(Channel(8), Part::Withdrawn);
        let (post, bytes) = outbox.next_post().unwrap();
        assert_eq!(
            (post.channel, post.part, bytes),
            (Channel::UNSOLICITED, Part::Message, &b"one"[..])
        );
        outbox.skip_post();
        assert_eq!(outbox.next_post().unwrap().0.channel, Channel(7));
        assert_eq!(outbox.take_post(), b"two");
        let (post, bytes) = outbox.next_post().unwrap();
        assert_eq!((post.part, bytes), (Part::Withdrawn, &b""[..]));
        outbox.skip_post();
        assert_eq!(outbox.next_post(), None);
        assert_eq!(outbox.len(), 0);
    }

    fn poll(outbox: &mut Outbox) -> Option<String> {
        outbox.poll().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn queued_messages_leave_in_one_chunk_and_control_goes_first() {
        let mut outbox = Outbox::default();
        push(&mut outbox, Lane::Bulk, "one");
        push(&mut outbox, Lane::Bulk, "two");
        push(&mut outbox, Lane::Control, "urgent");
        assert_eq!(poll(&mut outbox).unwrap(), "urgent\n");
        assert_eq!(poll(&mut outbox).unwrap(), "one\ntwo\n");
        assert_eq!(poll(&mut outbox), None);
        assert_eq!(poll(&mut outbox), None);
    }

    #[test]
    fn a_flood_of_control_traffic_leaves_bulk_its_turn() {
        let mut outbox = Outbox::default();
        push(&mut outbox, Lane::Bulk, "answer");
        push(&mut outbox, Lane::Control, "ping");
        assert_eq!(poll(&mut outbox).unwrap(), "ping\n");
        push(&mut outbox, Lane::Control, "ping");
        assert_eq!(poll(&mut outbox).unwrap(), "answer\n");
        assert_eq!(poll(&mut outbox).unwrap(), "ping\n");
    }

    #[test]
    fn control_never_enters_a_chunk_that_is_half_written() {
        let mut outbox = Outbox::default();
        push(&mut outbox, Lane::Bulk, "bulk");
        assert_eq!(outbox.peek(), b"bulk\n");
        outbox.consume(2);
        push(&mut outbox, Lane::Control, "urgent");
        assert_eq!(outbox.peek(), b"lk\n");
        outbox.consume(3);
        assert_eq!(outbox.peek(), b"urgent\n");
        assert_eq!(outbox.len(), 7);
    }

    #[test]
    fn control_waits_for_one_chunk_of_whole_lines_at_most() {
        let mut outbox = Outbox::default();
        let line = "x".repeat(40_000);
        for _ in 0..3 {
            push(&mut outbox, Lane::Bulk, &line);
        }
        assert_eq!(outbox.poll().unwrap().len(), 40_001);
        push(&mut outbox, Lane::Control, "urgent");
        assert_eq!(poll(&mut outbox).unwrap(), "urgent\n");
        assert_eq!(outbox.poll().unwrap().len(), 40_001);
    }

    #[test]
    fn a_queue_that_is_never_empty_takes_no_more_memory_than_it_must() {
        let mut outbox = Outbox::default();
        outbox.hold_to(4096);
        for _ in 0..10_000 {
            push(&mut outbox, Lane::Bulk, &"x".repeat(100));
            let taken = outbox.peek().len();
            push(&mut outbox, Lane::Bulk, &"x".repeat(100));
            outbox.consume(taken);
        }
        assert!(outbox.bulk.bytes.capacity() <= Outbox::memory_max(4096, 202), "grown");
        assert!(outbox.bulk.bytes.capacity() < 2048, "{}", outbox.bulk.bytes.capacity());
    }

    #[test]
    fn a_message_has_departed_once_its_chunk_is_on_its_way() {
        let mut outbox = Outbox::default();
        push(&mut outbox, Lane::Bulk, "first");
        let first = outbox.mark();
        assert!(!outbox.has_departed(first));
        assert_eq!(outbox.peek(), b"first\n");
        assert!(outbox.has_departed(first));
        push(&mut outbox, Lane::Bulk, "second");
        let second = outbox.mark();
        assert!(outbox.has_departed(first) && !outbox.has_departed(second));
    }

    #[test]
    fn a_message_that_fails_to_be_written_leaves_nothing_behind() {
        let mut outbox = Outbox::default();
        let failed = outbox.try_push(Lane::Bulk, Channel::UNSOLICITED, Part::Message, |bytes| {
            bytes.extend_from_slice(b"half");
            Err(())
        });
        assert_eq!(failed, Err(()));
        assert_eq!(outbox.len(), 0);
        assert_eq!(outbox.poll(), None);
    }

    #[test]
    fn memory_of_a_burst_is_given_back() {
        let mut outbox = Outbox::default();
        push(&mut outbox, Lane::Bulk, &"x".repeat(2 * RETAINED));
        outbox.poll();
        outbox.poll();
        assert!(outbox.bulk.bytes.capacity() <= RETAINED);
    }
}

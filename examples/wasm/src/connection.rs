//! One connection: a server endpoint and its input buffer.

use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Waker};

use mcp_sansio::Instant;
use mcp_sansio::stream::{self, Action, StreamSettings};
use mcp_sansio_handlers::endpoint::ServerEndpoint;

use crate::clock::Clock;
use crate::service;

/// The maximum length of a received line, in bytes.
const LINE_LENGTH_MAX: usize = 256 * 1024;

/// The maximum number of bytes per [`receive`](Connection::receive).
const INPUT_LENGTH_MAX: usize = 64 * 1024;

/// How often handlers are polled in one call of the host. A handler that is always ready continues
/// in the next call, which is due immediately.
const ROUNDS_MAX: usize = 16;

pub(crate) struct Connection {
    stream: stream::StreamConnection<'static, ServerEndpoint, Infallible>,
    clock: Clock,
    /// The buffer that the host writes to.
    input: Vec<u8>,
    /// The part of `input` that has not been read.
    rest: Range<usize>,
    /// Whether the host has reported the end of the input.
    has_ended: bool,
    is_over: bool,
    woken: Arc<Woken>,
    waker: Waker,
}

/// Records that a handler was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Connection {
    /// Creates a connection at `now`. `seed` keys its hash tables. Returns `None` if the server has
    /// an invalid name, which is a bug of this module.
    pub(crate) fn new(seed: u64, now: Instant) -> Option<Self> {
        let clock = Clock::default();
        clock.set(now);
        let mut settings = StreamSettings::DEFAULT;
        settings.frame_length_max = LINE_LENGTH_MAX;
        // All input of a call is processed before the call returns to the host.
        settings.frames_per_poll_max = INPUT_LENGTH_MAX;
        let endpoint = service::server(&clock).endpoint(seed).ok()?;
        let stream = stream::StreamConnection::new(endpoint, settings);
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(Arc::clone(&woken));
        let (input, rest, has_ended, is_over) = (Vec::new(), 0..0, false, false);
        Some(Self { stream, clock, input, rest, has_ended, is_over, woken, waker })
    }

    /// Returns the address at which the host can write `length` bytes. Returns `None` for more than
    /// [`INPUT_LENGTH_MAX`], after the end of input, and while output has to be consumed first.
    pub(crate) fn input_buffer(&mut self, length: usize) -> Option<*mut u8> {
        if length > INPUT_LENGTH_MAX || !self.rest.is_empty() || self.has_ended {
            return None;
        }
        if self.input.len() < length {
            self.input.resize(length, 0);
        }
        Some(self.input.as_mut_ptr())
    }

    /// Reads `length` bytes that the host has written. Returns whether they fit into the buffer.
    pub(crate) fn receive(&mut self, length: usize, now: Instant) -> bool {
        if length > self.input.len() || !self.rest.is_empty() || self.has_ended {
            return false;
        }
        self.rest = 0..length;
        self.advance(now);
        true
    }

    /// Reports the end of the input.
    pub(crate) fn end_of_input(&mut self, now: Instant) {
        self.has_ended = true;
        self.advance(now);
    }

    /// Advances the connection at `now` as far as possible.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.clock.set(now);
        let now = self.clock.now();
        let mut rounds = 0;
        self.stream.reset_budget();
        loop {
            match self.stream.advance(&mut Context::from_waker(&self.waker), now) {
                // The host fetches the pending output after the call.
                Action::Write => {}
                Action::Wait if self.stream.wants_read() && self.read(now) => {}
                Action::Wait
                    if rounds < ROUNDS_MAX && self.woken.0.swap(false, Ordering::Relaxed) =>
                {
                    rounds += 1;
                }
                Action::Wait => return,
                Action::Yield => return self.woken.wake_by_ref(),
                Action::Close | Action::Restart | Action::Done => {
                    self.is_over = true;
                    return;
                }
            }
        }
    }

    /// Reads from the input buffer. Returns whether there was input or the end of it.
    fn read(&mut self, now: Instant) -> bool {
        if self.rest.is_empty() && !self.has_ended {
            return false;
        }
        let space = self.stream.space();
        let length = space.len().min(self.rest.len());
        space[..length].copy_from_slice(&self.input[self.rest.start..][..length]);
        self.rest.start += length;
        self.stream.handle_read(Ok(length), now);
        true
    }

    /// Returns the first contiguous part of the pending output. There may be more after it.
    pub(crate) fn output(&mut self) -> (*const u8, usize) {
        let mut output = (core::ptr::null(), 0);
        self.stream.transmit(&mut |bytes| {
            output = (bytes.as_ptr(), bytes.len());
            0
        });
        output
    }

    /// Removes output that the host has sent, and continues with input that had to wait. Returns
    /// `false` if `length` exceeds the output.
    pub(crate) fn consume(&mut self, length: usize) -> bool {
        if length > self.output().1 {
            return false;
        }
        let mut left = length;
        self.stream.transmit(&mut |bytes| core::mem::take(&mut left).min(bytes.len()));
        let now = self.clock.now();
        self.stream.handle_written(now);
        if self.output().1 == 0 {
            self.stream.handle_flushed();
        }
        self.advance(now);
        true
    }

    /// Returns the time at which to call [`advance`](Self::advance) if no other call comes before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.woken.0.load(Ordering::Relaxed) {
            return Some(self.clock.now());
        }
        [self.stream.poll_timeout(), self.clock.deadline()].into_iter().flatten().min()
    }

    /// Whether the connection has ended and all output has been consumed.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }
}

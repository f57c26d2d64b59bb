//! One connection: the server's side of it, and the bytes on their way in.

use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Waker};

use mcp_sansio::Instant;
use mcp_sansio::stream::{self, Action, Settings};
use mcp_sansio_handlers::ServerEndpoint;

use crate::clock::Clock;
use crate::service;

/// The longest line that is taken, in bytes.
const LINE_LENGTH_MAX: usize = 256 * 1024;

/// The most bytes that are taken at once.
const INPUT_LENGTH_MAX: usize = 64 * 1024;

/// How often handlers go on in one call of the host. One that always could is left for the next
/// call, which is due at once.
const ROUNDS_MAX: usize = 16;

pub(crate) struct Connection {
    stream: stream::Connection<'static, ServerEndpoint, Infallible>,
    clock: Clock,
    /// Where the host writes.
    input: Vec<u8>,
    /// What of it was not read yet.
    rest: Range<usize>,
    /// The host has said that nothing comes behind it.
    has_ended: bool,
    is_over: bool,
    woken: Arc<Woken>,
    waker: Waker,
}

/// Notes that a handler can go on.
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
    /// A connection that begins at `now`. `seed` keys its hash tables. `None`, a fault of this
    /// module, when something that is offered has a bad name.
    pub(crate) fn new(seed: u64, now: Instant) -> Option<Self> {
        let clock = Clock::default();
        clock.set(now);
        let mut settings = Settings::DEFAULT;
        settings.frame_length_max = LINE_LENGTH_MAX;
        // All that the host has written is taken before it gets its turn.
        settings.frames_per_poll_max = INPUT_LENGTH_MAX;
        let endpoint = service::server(&clock).endpoint(seed).ok()?;
        let stream = stream::Connection::new(endpoint, settings);
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(Arc::clone(&woken));
        let (input, rest, has_ended, is_over) = (Vec::new(), 0..0, false, false);
        Some(Self { stream, clock, input, rest, has_ended, is_over, woken, waker })
    }

    /// Where the host can write `length` bytes. `None` for more than it may at once, and while
    /// output has to be taken first.
    pub(crate) fn input_buffer(&mut self, length: usize) -> Option<*mut u8> {
        if length > INPUT_LENGTH_MAX || !self.rest.is_empty() || self.has_ended {
            return None;
        }
        if self.input.len() < length {
            self.input.resize(length, 0);
        }
        Some(self.input.as_mut_ptr())
    }

    /// Takes what the host has written; whether there was room for so much.
    pub(crate) fn receive(&mut self, length: usize, now: Instant) -> bool {
        if length > self.input.len() || !self.rest.is_empty() || self.has_ended {
            return false;
        }
        self.rest = 0..length;
        self.go_on(now);
        true
    }

    /// Takes the end of the input.
    pub(crate) fn end_of_input(&mut self, now: Instant) {
        self.has_ended = true;
        self.go_on(now);
    }

    /// Moves everything that moves at `now`.
    pub(crate) fn go_on(&mut self, now: Instant) {
        self.clock.set(now);
        let now = self.clock.now();
        let mut rounds = 0;
        self.stream.reset_budget();
        loop {
            match self.stream.advance(&mut Context::from_waker(&self.waker), now) {
                // The host takes what waits when it has room for it.
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

    /// Reads what the host has written. Whether there was news.
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

    /// What waits to be sent, in one piece: there may be another behind it.
    pub(crate) fn output(&mut self) -> (*const u8, usize) {
        let mut output = (core::ptr::null(), 0);
        self.stream.transmit(&mut |bytes| {
            output = (bytes.as_ptr(), bytes.len());
            0
        });
        output
    }

    /// Takes away what the host has sent; whether so much was shown. What there was no room for
    /// goes on.
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
        self.go_on(now);
        true
    }

    /// When to [go on](Self::go_on), if nothing comes before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.woken.0.load(Ordering::Relaxed) {
            return Some(self.clock.now());
        }
        [self.stream.poll_timeout(), self.clock.deadline()].into_iter().flatten().min()
    }

    /// Whether nothing more will come, and nothing waits to be sent or answered.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }
}

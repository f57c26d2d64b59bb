//! One connection: the server's side of it, and the bytes on their way in.

use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Waker};

use mcp_sansio::Instant;
use mcp_sansio::framing::LineDecoder;
use mcp_sansio_handlers::{Endpoint, ServerEndpoint};

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
    endpoint: ServerEndpoint,
    clock: Clock,
    decoder: LineDecoder<'static>,
    /// Where the host writes.
    input: Vec<u8>,
    /// What of it has no room in the decoder yet.
    rest: Range<usize>,
    end: End,
    woken: Arc<Woken>,
    waker: Waker,
}

/// The end of the input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Ahead,
    /// The host has said so; there may be lines left.
    Reached,
    /// The endpoint knows, too.
    Told,
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
        let endpoint = service::server(&clock).endpoint(seed).ok()?;
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(Arc::clone(&woken));
        let decoder = LineDecoder::growing(LINE_LENGTH_MAX);
        let (input, rest, end) = (Vec::new(), 0..0, End::Ahead);
        Some(Self { endpoint, clock, decoder, input, rest, end, woken, waker })
    }

    /// Where the host can write `length` bytes. `None` for more than it may at once, and while
    /// output has to be taken first.
    pub(crate) fn input_buffer(&mut self, length: usize) -> Option<*mut u8> {
        if length > INPUT_LENGTH_MAX || !self.rest.is_empty() || self.end != End::Ahead {
            return None;
        }
        if self.input.len() < length {
            self.input.resize(length, 0);
        }
        Some(self.input.as_mut_ptr())
    }

    /// Takes what the host has written; whether there was room for so much.
    pub(crate) fn receive(&mut self, length: usize, now: Instant) -> bool {
        if length > self.input.len() || !self.rest.is_empty() || self.end != End::Ahead {
            return false;
        }
        self.rest = 0..length;
        self.go_on(now);
        true
    }

    /// Takes the end of the input.
    pub(crate) fn end_of_input(&mut self, now: Instant) {
        if self.end == End::Ahead {
            self.end = End::Reached;
        }
        self.go_on(now);
    }

    /// Moves everything that moves at `now`.
    pub(crate) fn go_on(&mut self, now: Instant) {
        self.clock.set(now);
        let now = self.clock.now();
        if self.endpoint.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.take_frames(now);
        for _ in 0..ROUNDS_MAX {
            self.woken.0.store(false, Ordering::Relaxed);
            self.endpoint.poll_handlers(&mut Context::from_waker(&self.waker), now);
            if !self.is_woken() {
                break;
            }
        }
    }

    /// Hands over frames until there are none, or too much waits to be sent.
    fn take_frames(&mut self, now: Instant) {
        let Self { endpoint, decoder, input, rest, end, .. } = self;
        while !endpoint.is_congested() {
            if let Some(frame) = decoder.next_frame() {
                endpoint.handle_frame(frame, now);
            } else if !Range::is_empty(rest) {
                rest.start += decoder.feed(&input[rest.clone()]);
            } else {
                if *end == End::Reached {
                    *end = End::Told;
                    if let Some(truncated) = decoder.handle_eof() {
                        endpoint.handle_frame(Err(truncated), now);
                    }
                    endpoint.handle_eof(now);
                }
                return;
            }
        }
    }

    /// What waits to be sent, in one piece: there may be another behind it.
    pub(crate) fn output(&mut self) -> (*const u8, usize) {
        let mut output = (core::ptr::null(), 0);
        self.endpoint.transmit(&mut |bytes| {
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
        self.endpoint.transmit(&mut |bytes| core::mem::take(&mut left).min(bytes.len()));
        self.go_on(self.clock.now());
        true
    }

    /// When to [go on](Self::go_on), if nothing comes before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.is_woken() {
            return Some(self.clock.now());
        }
        [self.endpoint.poll_timeout(), self.clock.deadline()].into_iter().flatten().min()
    }

    /// Whether nothing more will come, and nothing waits to be sent or answered.
    pub(crate) fn is_over(&self) -> bool {
        self.endpoint.is_drained()
    }

    fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::Relaxed)
    }
}

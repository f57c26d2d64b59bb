use alloc::boxed::Box;
use core::task::Context;

use mcp_sansio_sync::Arc;

use crate::framing::FrameError;
use crate::{Instant, PanicGuard};

/// One side of a connection with its application attached. It is driven by a
/// [`StreamConnection`](super::StreamConnection), or by an adapter whose transport has messages
/// instead of a byte stream. The loop of such an adapter:
///
/// 1. [`poll_handlers`](Self::poll_handlers), so that handlers make progress;
/// 2. [`transmit`](Self::transmit) as much as the transport accepts without blocking;
/// 3. wait for the first of: a message (unless [`is_congested`](Self::is_congested)), space to
///    write (if output is left), [`poll_timeout`](Self::poll_timeout), the waker of step 1;
/// 4. push the input: [`handle_frame`](Self::handle_frame), [`handle_eof`](Self::handle_eof) at
///    the end of the input, [`handle_timeout`](Self::handle_timeout) when the deadline has passed;
///    repeat.
///
/// The loop ends when [`is_drained`](Self::is_drained), or a limited time after the end of the
/// input: a handler may still be computing a response that the peer reads.
pub trait Endpoint {
    /// Runs the application's functions in `guard`: handlers, input handlers, callbacks and
    /// observers. Call it before all other methods if the adapter can catch panics.
    ///
    /// If a handler or an observer panics, the request is answered with an internal error and the
    /// connection continues. Does nothing by default.
    fn catch_panics(&mut self, guard: PanicGuard) {
        let _ = guard;
    }

    /// Runs [jobs](crate::Job) that may block with `spawn`, unless the application has set where
    /// they run.
    /// Call it before all other methods if the adapter has threads that may block. `spawn` is
    /// called where the endpoint is driven, and must not block.
    ///
    /// Without it such a job runs where the endpoint is driven, which then waits for it. Does
    /// nothing by default.
    fn set_spawner(&mut self, spawn: Spawner) {
        let _ = spawn;
    }

    /// Sets the clock that returns the seconds since 1970, unless the application has set its own.
    /// Call it before all other methods if the adapter has such a clock: without it, nothing that
    /// expires at a time of day works. Does nothing by default.
    fn set_unix_time(&mut self, unix_time: Box<dyn Fn() -> u64 + Send + Sync>) {
        let _ = unix_time;
    }

    /// Handles one frame or a framing error.
    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, now: Instant);

    /// Handles the end of the input.
    fn handle_eof(&mut self, now: Instant);

    /// Handles the end of a stream that the adapter can replace, with a new process of the same
    /// server. Returns `true` if the endpoint continues on the new stream; all later output is for
    /// that stream. Returns `false` if nothing changed; call [`handle_eof`](Self::handle_eof) next.
    /// See [`peer::Client::restart`](crate::peer::Client::restart).
    fn restart(&mut self, now: Instant) -> bool {
        let _ = now;
        false
    }

    /// Processes expired deadlines. Extra calls do nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// Polls the handlers that can continue, and collects output of the application. The waker in
    /// `cx` is woken when there is more to do.
    fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant);

    /// Passes the queued bytes to `write`, which returns the number of bytes it accepted, until it
    /// accepts less than it was given or the queue is empty.
    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize);

    /// Returns the time of the next [`handle_timeout`](Self::handle_timeout), if one is needed.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Returns whether the queued output is so large that reading should pause.
    fn is_congested(&self) -> bool;

    /// Returns whether the connection is closed, all output is sent and no response is pending.
    fn is_drained(&self) -> bool;

    /// Returns whether the connection is closed. Responses may still be pending.
    fn is_closed(&self) -> bool;

    /// Checks that the tables of the endpoint and its machine match each other, for tests. Checks
    /// nothing by default.
    ///
    /// # Panics
    ///
    /// The tables disagree, which is a bug of the endpoint.
    fn assert_consistent(&self)
    where
        Self: Sized,
    {
    }
}

/// A function of the application that may block, with its inputs: a call of a blocking handler for
/// one request. Running it answers the request; dropping it answers the request with an internal
/// error.
///
/// This crate starts no threads, so an adapter provides a function that runs jobs: see
/// [`Endpoint::set_spawner`].
pub type Job = Box<dyn FnOnce() + Send>;

/// Runs [jobs](Job) where they may block. Clones run them in the same place.
#[derive(Clone)]
pub struct Spawner(Arc<Box<dyn Fn(Job) + Send + Sync>>);

impl Spawner {
    /// Creates a spawner. `spawn` passes a job on and returns at once.
    pub fn new(spawn: impl Fn(Job) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Box::new(spawn)))
    }

    /// Runs a job. Does not wait for it.
    pub fn spawn(&self, job: Job) {
        (self.0)(job);
    }
}

crate::partial_debug! { impl Debug for Spawner(..) }

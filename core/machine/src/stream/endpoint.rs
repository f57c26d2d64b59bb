use core::task::Context;

use crate::framing::FrameError;
use crate::{Instant, PanicGuard};

/// One side of a connection with its application attached: what a [`Connection`](super::Connection)
/// drives, or an adapter whose transport has messages instead of a stream of bytes. The loop of
/// such an adapter:
///
/// 1. [`poll_handlers`](Self::poll_handlers), so that handlers go on;
/// 2. [`transmit`](Self::transmit) as much as the transport takes without blocking;
/// 3. wait for the first of: a message (unless [`is_congested`](Self::is_congested)), room to
///    write (if there was not enough), [`poll_timeout`](Self::poll_timeout), the waker of step 1;
/// 4. push what came: [`handle_frame`](Self::handle_frame), [`handle_eof`](Self::handle_eof) at the
///    end of the input, [`handle_timeout`](Self::handle_timeout) when the deadline has come; start
///    again.
///
/// The loop ends when [`is_drained`](Self::is_drained), or, after the end of the input, when the
/// adapter's patience does: a handler may still be working on an answer that the other side reads.
pub trait Endpoint {
    /// Runs the application's functions in `guard` from here on: handlers, hosts' answers,
    /// callbacks and observers. Called before anything else, where the adapter can catch a panic.
    ///
    /// A request whose handler panics is answered with an internal error, and so is one that an
    /// observer panics at; the connection goes on. Does nothing by default.
    fn catch_panics(&mut self, guard: PanicGuard) {
        let _ = guard;
    }

    /// Takes one frame, or what the decoder found instead of one.
    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, now: Instant);

    /// Takes the end of the input.
    fn handle_eof(&mut self, now: Instant);

    /// Takes the end of a stream in whose place the adapter can have another one, to a new process of
    /// the same server. `true`: the endpoint goes on with that one; all that it transmits from here
    /// on is for it. `false`: nothing has changed, and [`handle_eof`](Self::handle_eof) comes next. See
    /// [`peer::Client::restart`](crate::peer::Client::restart).
    fn restart(&mut self, now: Instant) -> bool {
        let _ = now;
        false
    }

    /// Does what is due at `now`. Extra calls do nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// Lets handlers go on that can, and takes what the application wants to send. The waker in
    /// `cx` is woken when there is more to do.
    fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant);

    /// Shows the bytes that wait to `write`, which says how many it took; again and again until it
    /// takes fewer than it was shown, or none wait.
    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize);

    /// When [`handle_timeout`](Self::handle_timeout) has something to do, if nothing comes before.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Whether so much waits to be sent that nothing more should be read.
    fn is_congested(&self) -> bool;

    /// Whether the connection is over and nothing waits to be sent or answered.
    fn is_drained(&self) -> bool;

    /// Whether the connection is over, though answers may still be on their way.
    fn is_closed(&self) -> bool;
}

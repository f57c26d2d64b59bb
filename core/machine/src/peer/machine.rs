use crate::Instant;
use crate::framing::FrameError;

use super::error::{CommandError, ConnectionClosed};
use super::event::Event;
use super::handle::CallHandle;

/// A protocol machine over any binding: the operations that do not depend on the transport.
///
/// The four machines of this crate implement it, and so does a recorder that wraps one of them.
pub trait Machine {
    /// The commands of the machine.
    type Command<'a>;

    /// Applies a command of the application.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if the command could not be carried out.
    fn apply(&mut self, command: Self::Command<'_>, now: Instant) -> Result<Applied, CommandError>;

    /// Processes expired deadlines. Extra calls do nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the next event that was not caused by a received message.
    fn poll_event(&mut self) -> Option<Event<'static>>;

    /// Returns the time of the next [`handle_timeout`](Self::handle_timeout), if one is needed.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Checks that the tables of the machine match each other, for tests and fuzz targets.
    ///
    /// # Panics
    ///
    /// The tables disagree, which is a bug of the machine.
    fn assert_consistent(&self) {}
}

/// The outcome of a successful command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applied {
    /// The command is complete.
    Done,
    /// The command started a call, which ends with [`Event::Ended`].
    Started(CallHandle),
}

impl Applied {
    /// Returns the started call, if there is one.
    #[must_use]
    pub const fn call(self) -> Option<CallHandle> {
        match self {
            Self::Started(call) => Some(call),
            Self::Done => None,
        }
    }
}

/// A machine of either role over a byte stream.
pub trait StreamMachine: Machine {
    /// Handles one frame and returns the event it causes, if any.
    ///
    /// # Errors
    ///
    /// Fails if the connection is closed, before or because of this frame.
    fn handle_message<'f>(
        &mut self,
        frame: &'f [u8],
        now: Instant,
    ) -> Result<Option<Event<'f>>, ConnectionClosed>;

    /// Reports a framing error.
    ///
    /// # Errors
    ///
    /// Fails if the connection is closed.
    fn handle_frame_error(
        &mut self,
        error: FrameError,
    ) -> Result<Option<Event<'static>>, ConnectionClosed>;

    /// Handles the end of the input.
    fn handle_eof(&mut self);

    /// Returns the next bytes for the stream, complete lines. The caller must write all of them.
    fn poll_transmit(&mut self) -> Option<&[u8]>;

    /// Returns the next bytes for the stream, for a driver that may write only some of them.
    fn peek_transmit(&mut self) -> &[u8];

    /// Removes the first `length` bytes returned by [`peek_transmit`](Self::peek_transmit).
    fn consume_transmit(&mut self, length: usize);

    /// Passes the queued output to `write`, which returns the number of bytes it wrote, until it
    /// writes less than it was given.
    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        loop {
            let waiting = self.peek_transmit();
            let length = waiting.len();
            if length == 0 {
                return;
            }
            let written = write(waiting);
            self.consume_transmit(written);
            if written < length {
                return;
            }
        }
    }

    /// Returns whether the queued output exceeds
    /// [`Limits::transmit_bytes_max`](super::Limits::transmit_bytes_max).
    fn is_congested(&self) -> bool;

    /// Returns whether the connection is closed.
    fn is_closed(&self) -> bool;

    /// Returns whether the connection is closed, all output is sent and no response is pending.
    fn is_drained(&self) -> bool;
}

/// Implements [`Machine`] by delegating to the methods of the same names.
macro_rules! machine {
    ($machine:ty, $command:ident) => {
        impl $crate::peer::Machine for $machine {
            type Command<'a> = $command<'a>;

            // Inlined like the method itself, so that unused commands are not linked into the
            // program.
            #[inline(always)]
            fn apply(
                &mut self,
                command: $command<'_>,
                now: $crate::Instant,
            ) -> Result<$crate::peer::Applied, $crate::peer::CommandError> {
                self.apply(command, now)
            }

            fn handle_timeout(&mut self, now: $crate::Instant) {
                self.handle_timeout(now);
            }

            fn poll_event(&mut self) -> Option<$crate::peer::Event<'static>> {
                self.poll_event()
            }

            fn poll_timeout(&self) -> Option<$crate::Instant> {
                self.poll_timeout()
            }

            fn assert_consistent(&self) {
                self.assert_consistent();
            }
        }
    };
}
pub(crate) use machine;

/// Implements [`StreamMachine`] by delegating to the methods of the same names.
macro_rules! stream_machine {
    ([$($generics:tt)*] $machine:ty) => {
        impl<$($generics)*> $crate::peer::StreamMachine for $machine {
            fn handle_message<'f>(
                &mut self,
                frame: &'f [u8],
                now: $crate::Instant,
            ) -> Result<Option<$crate::peer::Event<'f>>, $crate::peer::ConnectionClosed> {
                self.handle_message(frame, now)
            }

            fn handle_frame_error(
                &mut self,
                error: $crate::framing::FrameError,
            ) -> Result<Option<$crate::peer::Event<'static>>, $crate::peer::ConnectionClosed> {
                self.handle_frame_error(error)
            }

            fn handle_eof(&mut self) {
                self.handle_eof();
            }

            fn poll_transmit(&mut self) -> Option<&[u8]> {
                self.poll_transmit()
            }

            fn peek_transmit(&mut self) -> &[u8] {
                self.peek_transmit()
            }

            fn consume_transmit(&mut self, length: usize) {
                self.consume_transmit(length);
            }

            fn is_congested(&self) -> bool {
                self.is_congested()
            }

            fn is_closed(&self) -> bool {
                self.is_closed()
            }

            fn is_drained(&self) -> bool {
                self.is_drained()
            }
        }
    };
}
pub(crate) use stream_machine;

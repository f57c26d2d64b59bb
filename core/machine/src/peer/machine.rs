use crate::framing::FrameError;
use crate::{Instant, Revision};

use super::client::Session;
use super::command::{ClientCommand, ServerCommand};
use super::error::{CommandError, ConnectionClosed};
use super::event::Event;
use super::handle::{CallHandle, RequestHandle};

/// A protocol machine over any binding: what does not depend on how messages come and go.
///
/// The four machines of this crate implement it, and so does a recorder around any of them.
pub trait Machine {
    /// What an application can ask of the machine.
    type Command<'a>;

    /// Carries out a command of the application.
    ///
    /// # Errors
    ///
    /// See [`CommandError`].
    fn apply(&mut self, command: Self::Command<'_>, now: Instant) -> Result<Applied, CommandError>;

    /// Does what is due at `now`. Extra calls do nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// The next event that the machine made by itself.
    fn poll_event(&mut self) -> Option<Event<'static>>;

    /// When [`handle_timeout`](Self::handle_timeout) has something to do, if nothing comes before.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// What came of a command that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applied {
    /// It is done.
    Done,
    /// A call began; it ends with [`Event::Ended`].
    Started(CallHandle),
}

impl Applied {
    /// The call that began: of commands that begin one.
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
    /// Takes one frame, and returns what the application must know of it.
    ///
    /// # Errors
    ///
    /// The connection is over, before or because of this frame.
    fn handle_message<'f>(
        &mut self,
        frame: &'f [u8],
        now: Instant,
    ) -> Result<Option<Event<'f>>, ConnectionClosed>;

    /// Reports a framing error.
    ///
    /// # Errors
    ///
    /// The connection is over.
    fn handle_frame_error(
        &mut self,
        error: FrameError,
    ) -> Result<Option<Event<'static>>, ConnectionClosed>;

    /// Takes the end of the input.
    fn handle_eof(&mut self);

    /// The next bytes for the stream, whole lines. Whoever takes them writes all of them.
    fn poll_transmit(&mut self) -> Option<&[u8]>;

    /// The next bytes for the stream, for a driver that may write only part of them.
    fn peek_transmit(&mut self) -> &[u8];

    /// Takes away the first `length` bytes that [`peek_transmit`](Self::peek_transmit) showed.
    fn consume_transmit(&mut self, length: usize);

    /// Hands what waits to be sent to `write`, which returns how many bytes it has written, until it
    /// writes less than that.
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

    /// Whether more waits to be sent than
    /// [`Limits::transmit_bytes_max`](super::Limits::transmit_bytes_max).
    fn is_congested(&self) -> bool;

    /// Whether the connection is over.
    fn is_closed(&self) -> bool;

    /// Whether the connection is over and nothing waits to be sent or answered.
    fn is_drained(&self) -> bool;
}

/// A client machine over any binding.
pub trait ClientMachine: for<'a> Machine<Command<'a> = ClientCommand<'a>> {
    /// What was agreed on, once the connection is open.
    fn session(&self) -> Option<&Session>;
}

/// A server machine over any binding.
pub trait ServerMachine: for<'a> Machine<Command<'a> = ServerCommand<'a>> {
    /// The revision of a request that waits for an answer of the application.
    fn revision_of(&self, request: RequestHandle) -> Option<Revision>;
}

/// Implements [`Machine`] with the methods of the same names.
macro_rules! machine {
    ($machine:ty, $command:ident) => {
        impl $crate::peer::Machine for $machine {
            type Command<'a> = $command<'a>;

            // As the method of the same name: what a program does not use is not in its image.
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
        }
    };
}
pub(crate) use machine;

/// Implements [`StreamMachine`] with the methods of the same names.
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

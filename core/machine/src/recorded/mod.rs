//! Machines that can be recorded.
//!
//! A recorder is a value, which only the module `recording` creates: its code is linked into
//! programs that record. Without that module, nothing is left of a recorder.

#[cfg(feature = "client")]
mod client;
#[cfg(all(feature = "client", feature = "http"))]
mod http_client;
#[cfg(all(feature = "http", feature = "server"))]
mod http_server;
#[cfg(feature = "server")]
mod server;

use alloc::boxed::Box;
use core::any::Any;
use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;

use crate::catalog::Catalog;
use crate::framing::FrameError;
use crate::peer::machine::stream_machine;
use crate::peer::{Applied, CommandError, ConnectionClosed, Event, Machine, StreamMachine};
use crate::{Caller, Instant, SessionKey};

#[cfg(all(feature = "client", feature = "http"))]
pub(crate) use http_client::HttpClientCall;
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) use http_server::HttpServerCall;

/// A machine that records its commands, inputs and outputs if it was created with a [`Tape`].
///
/// It is driven like the machine, and dereferences to it for read access.
#[derive(Debug)]
pub struct Recorded<M: Recordable> {
    pub(crate) machine: M,
    recorder: Option<AnyRecorder<M>>,
}

/// The recorder of a machine.
#[cfg(feature = "recording")]
type AnyRecorder<M> = Box<dyn Recorder<M>>;

/// There is no recorder, and the compiler removes what is done for one: a device has no room for
/// it.
#[cfg(not(feature = "recording"))]
type AnyRecorder<M> = NoRecorder<M>;

/// A machine that can be recorded.
#[allow(unnameable_types, reason = "only the machines of this crate implement it")]
pub trait Recordable: Machine + fmt::Debug + Sized {
    /// What the machine is created from.
    type Settings: 'static;
    /// A call of the machine that is no command, as a recorder gets it.
    type Call<'a>;
}

/// Records one machine.
pub(crate) trait Recorder<M: Recordable>: fmt::Debug + Send + Sync {
    /// Applies a command to the machine and records it.
    fn apply(
        &mut self,
        machine: &mut M,
        command: M::Command<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError>;

    /// Records that timeouts are handled.
    fn note_timeout(&mut self, now: Instant);

    /// Records an event that was polled.
    fn note_event(&mut self, event: &Event<'_>);

    /// Records another call.
    fn note(&mut self, call: M::Call<'_>);
}

/// A type without values.
#[allow(dead_code, reason = "used only without the feature `recording`")]
#[derive(Debug)]
pub(crate) struct NoRecorder<M>(Infallible, PhantomData<fn() -> M>);

impl<M: Recordable> Recorder<M> for NoRecorder<M> {
    fn apply(&mut self, _: &mut M, _: M::Command<'_>, _: Instant) -> Result<Applied, CommandError> {
        match self.0 {}
    }

    fn note_timeout(&mut self, _: Instant) {
        match self.0 {}
    }

    fn note_event(&mut self, _: &Event<'_>) {
        match self.0 {}
    }

    fn note(&mut self, _: M::Call<'_>) {
        match self.0 {}
    }
}

/// A call of a machine over a byte stream.
#[allow(unnameable_types, reason = "only the module `recording` reads it")]
#[derive(Debug)]
pub enum StreamCall<'a> {
    /// A frame and its outcome.
    Message {
        frame: &'a [u8],
        now: Instant,
        outcome: &'a Result<Option<Event<'a>>, ConnectionClosed>,
    },
    FrameError {
        error: FrameError,
        outcome: &'a Result<Option<Event<'a>>, ConnectionClosed>,
    },
    EndOfInput,
    /// These bytes were polled and removed.
    Transmit(&'a [u8]),
    /// The next bytes were read, and are usually removed at once.
    Peek,
    /// The bytes that were read stay in the queue.
    Keep,
    /// These bytes were removed.
    Consume(&'a [u8]),
    Restart(Instant),
    Suspend,
    Resume(Instant),
    /// The application has just edited the catalog.
    Edited(&'a mut Catalog, &'a Caller),
    /// The machine has taken over the edit. The key is that of its session.
    Catalog(&'a Catalog, SessionKey),
}

/// A destination for the recording of one machine. The module `recording` creates it.
pub struct Tape(pub(crate) TapeOpener);

#[cfg(feature = "recording")]
type TapeOpener = Box<dyn OpenTape>;
#[cfg(not(feature = "recording"))]
type TapeOpener = NoTape;

/// A type without values.
#[allow(dead_code, reason = "used only without the feature `recording`")]
pub(crate) struct NoTape(Infallible);

impl NoTape {
    #[allow(dead_code, reason = "used only without the feature `recording`")]
    fn open(self, _: &dyn Any) -> Option<Box<dyn Any>> {
        match self.0 {}
    }
}

/// Creates the recorder of a machine.
pub(crate) trait OpenTape: Send + Sync {
    /// Returns a `Box<dyn Recorder<M>>`, given the settings of a machine `M`.
    ///
    /// It does not name the machines, so that a program contains only those that it uses.
    fn open(self: Box<Self>, settings: &dyn Any) -> Option<Box<dyn Any>>;
}

impl Tape {
    /// Whether the program can have a tape: only with the feature `recording`. A constant, so that
    /// other programs need not even ask for one.
    pub const IS_POSSIBLE: bool = size_of::<Self>() > 0;

    fn open<M: Recordable + 'static>(self, settings: &M::Settings) -> Option<AnyRecorder<M>> {
        self.0.open(settings)?.downcast().ok().map(|recorder| *recorder)
    }
}

crate::partial_debug! { impl Debug for Tape(..) }

impl<M: Recordable> Recorded<M> {
    #[inline]
    pub(crate) fn note(&mut self, call: M::Call<'_>) {
        if let Some(recorder) = &mut self.recorder {
            Self::tell(recorder, call);
        }
    }

    fn tell(recorder: &mut AnyRecorder<M>, call: M::Call<'_>) {
        recorder.note(call);
    }
}

impl<M: Recordable> Recorded<M> {
    /// Executes a command of the application.
    ///
    /// # Errors
    ///
    /// See [`CommandError`].
    // Inlined like the method of the machine.
    #[inline(always)]
    pub fn apply(
        &mut self,
        command: M::Command<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        match &mut self.recorder {
            Some(recorder) => recorder.apply(&mut self.machine, command, now),
            None => self.machine.apply(command, now),
        }
    }

    /// Handles the timeouts that are due at `now`. Extra calls have no effect.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note_timeout(now);
        }
        self.machine.handle_timeout(now);
    }

    /// Returns the next event that the machine generated without an input.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event<'static>> {
        let event = self.machine.poll_event()?;
        if let Some(recorder) = &mut self.recorder {
            recorder.note_event(&event);
        }
        Some(event)
    }
}

impl<M: Recordable> Machine for Recorded<M> {
    type Command<'a> = M::Command<'a>;

    #[inline(always)]
    fn apply(&mut self, command: M::Command<'_>, now: Instant) -> Result<Applied, CommandError> {
        self.apply(command, now)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn poll_event(&mut self) -> Option<Event<'static>> {
        self.poll_event()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn assert_consistent(&self) {
        self.machine.assert_consistent();
    }
}

impl<M: for<'c> Recordable<Call<'c> = StreamCall<'c>> + StreamMachine> Recorded<M> {
    /// Handles one frame, and returns an event if the application has to know of it.
    ///
    /// # Errors
    ///
    /// The connection was already closed, or this frame closed it.
    pub fn handle_message<'f>(
        &mut self,
        frame: &'f [u8],
        now: Instant,
    ) -> Result<Option<Event<'f>>, ConnectionClosed> {
        let recorder = self.recorder.as_mut().filter(|_| !self.machine.is_closed());
        let outcome = self.machine.handle_message(frame, now);
        if let Some(recorder) = recorder {
            recorder.note(StreamCall::Message { frame, now, outcome: &outcome });
        }
        outcome
    }

    /// Reports a framing error.
    ///
    /// # Errors
    ///
    /// The connection is closed.
    pub fn handle_frame_error(
        &mut self,
        error: FrameError,
    ) -> Result<Option<Event<'static>>, ConnectionClosed> {
        let recorder = self.recorder.as_mut().filter(|_| !self.machine.is_closed());
        let outcome = self.machine.handle_frame_error(error);
        if let Some(recorder) = recorder {
            recorder.note(StreamCall::FrameError { error, outcome: &outcome });
        }
        outcome
    }

    /// Handles the end of the input.
    pub fn handle_eof(&mut self) {
        self.note(StreamCall::EndOfInput);
        self.machine.handle_eof();
    }

    /// Returns the next bytes for the stream, in whole lines. The caller must write all of them.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<&[u8]> {
        let bytes = self.machine.poll_transmit();
        if let (Some(recorder), Some(bytes)) = (&mut self.recorder, bytes) {
            recorder.note(StreamCall::Transmit(bytes));
        }
        bytes
    }

    /// Returns the next bytes for the stream, for drivers that may write only part of them.
    #[must_use]
    pub fn peek_transmit(&mut self) -> &[u8] {
        let bytes = self.machine.peek_transmit();
        if let Some(recorder) = self.recorder.as_mut().filter(|_| !bytes.is_empty()) {
            recorder.note(StreamCall::Peek);
        }
        bytes
    }

    /// Removes the first `length` bytes of those that [`peek_transmit`](Self::peek_transmit)
    /// returned.
    pub fn consume_transmit(&mut self, length: usize) {
        if let Some(recorder) = &mut self.recorder {
            let shown = self.machine.peek_transmit();
            recorder.note(StreamCall::Consume(&shown[..length.min(shown.len())]));
        }
        self.machine.consume_transmit(length);
    }

    /// Returns whether the output queue is so full that the driver should stop reading.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.machine.is_congested()
    }

    /// Returns whether the connection is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.machine.is_closed()
    }

    /// Returns whether the connection is closed and nothing is left to send or answer.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.machine.is_drained()
    }
}

stream_machine!([M: for<'c> Recordable<Call<'c> = StreamCall<'c>> + StreamMachine] Recorded<M>);

impl<M: Recordable> From<M> for Recorded<M> {
    /// Wraps the machine without a tape.
    fn from(machine: M) -> Self {
        Self { machine, recorder: None }
    }
}

impl<M: Recordable> Deref for Recorded<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.machine
    }
}

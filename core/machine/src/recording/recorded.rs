use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use crate::framing::FrameError;
use crate::jsonrpc::RequestId;
use crate::peer::machine::stream_machine;
use crate::peer::{
    Applied, ClientMachine, CommandError, ConnectionClosed, Event, Machine, RequestHandle,
    ServerMachine, StreamMachine,
};
use crate::{Instant, Revision};

use super::arguments::{MISPLACED, Unperformable};
use super::call::Call;
use super::event::describe;
#[cfg(feature = "http")]
use super::exchange::StandIns;
use super::payload::Payload;
use super::tape::Tape;

/// Wraps a machine and records its commands, inputs and outputs on a [`Tape`].
///
/// It is driven like the machine, and dereferences to it for read access.
#[derive(Debug)]
pub struct Recorded<M> {
    pub(super) machine: M,
    pub(super) notes: Option<Box<Notes>>,
}

/// A tape, and the stand-ins for secrets.
#[allow(unnameable_types, reason = "only this crate creates it")]
#[derive(Debug)]
pub struct Notes {
    pub(super) tape: Tape,
    #[cfg(feature = "http")]
    pub(super) stand_ins: StandIns,
}

impl Notes {
    pub(super) fn new(tape: Tape) -> Self {
        Self {
            tape,
            #[cfg(feature = "http")]
            stand_ins: StandIns::NONE,
        }
    }
}

/// A machine that can be recorded.
#[allow(unnameable_types, reason = "only the machines of this crate implement it")]
pub trait Recordable: Machine + fmt::Debug {
    /// Executes a command and records it.
    #[doc(hidden)]
    fn apply_noted(
        &mut self,
        command: Self::Command<'_>,
        now: Instant,
        notes: &mut Notes,
    ) -> Result<Applied, CommandError>;
}

impl<M> Recorded<M> {
    pub(super) fn with(machine: M, notes: Option<Notes>) -> Self {
        Self { machine, notes: notes.map(Box::new) }
    }

    /// Records the call that `describe` returns, if there is a tape. Without one, nothing is
    /// computed: a description parses and copies messages.
    #[inline]
    pub(super) fn note<'c, C: Into<Option<Call<'c>>>>(&mut self, describe: impl FnOnce() -> C) {
        if let Some(notes) = &mut self.notes {
            notes.tape.note(describe());
        }
    }

    pub(super) fn take_notes(&mut self) -> Vec<u8> {
        self.notes.as_mut().map_or_else(Vec::new, |notes| notes.tape.take())
    }
}

impl<M: Recordable> Recorded<M> {
    /// Executes a command of the application.
    ///
    /// # Errors
    ///
    /// See [`CommandError`].
    pub fn apply(
        &mut self,
        command: M::Command<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        match &mut self.notes {
            Some(notes) => self.machine.apply_noted(command, now, notes),
            None => self.machine.apply(command, now),
        }
    }

    /// Handles the timeouts that are due at `now`. Extra calls have no effect.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.note(|| Call::Timeout { at: now.as_nanos() });
        self.machine.handle_timeout(now);
    }

    /// Returns the next event that the machine generated without an input.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event<'static>> {
        let event = self.machine.poll_event()?;
        self.note(|| Call::Event { event: describe(&event).into() });
        Some(event)
    }
}

impl<M: Recordable> Machine for Recorded<M> {
    type Command<'a> = M::Command<'a>;

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

impl<M: Recordable + ClientMachine> ClientMachine for Recorded<M> {
    fn has_call(&self, call: crate::peer::CallHandle) -> bool {
        self.machine.has_call(call)
    }

    fn catch_panics(&mut self, guard: crate::PanicGuard) {
        self.machine.catch_panics(guard);
    }

    fn session(&self) -> Option<&crate::peer::ClientSession> {
        self.machine.session()
    }

    fn observation_of_input(
        &self,
        input: crate::peer::InputHandle,
    ) -> Option<mcp_sansio_sync::Arc<dyn crate::peer::Observation>> {
        self.machine.observation_of_input(input)
    }

    fn observation_of(
        &self,
        request: RequestHandle,
    ) -> Option<mcp_sansio_sync::Arc<dyn crate::peer::Observation>> {
        self.machine.observation_of(request)
    }
}

impl<M: Recordable + ServerMachine> ServerMachine for Recorded<M> {
    fn revision_of(&self, request: RequestHandle) -> Option<Revision> {
        self.machine.revision_of(request)
    }

    fn id_of(&self, request: RequestHandle) -> Option<&RequestId> {
        self.machine.id_of(request)
    }

    fn observation_of(
        &self,
        request: RequestHandle,
    ) -> Option<mcp_sansio_sync::Arc<dyn crate::peer::Observation>> {
        self.machine.observation_of(request)
    }
}

impl<M: Recordable + StreamMachine> Recorded<M> {
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
        let was_open = !self.machine.is_closed();
        let taken = self.machine.handle_message(frame, now);
        self.note(|| was_open.then(|| Call::message(frame, now, &taken)));
        taken
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
        let was_open = !self.machine.is_closed();
        let taken = self.machine.handle_frame_error(error);
        self.note(|| was_open.then(|| Call::frame_error(error, &taken)));
        taken
    }

    /// Handles the end of the input.
    pub fn handle_eof(&mut self) {
        self.note(|| Call::EndOfInput {});
        self.machine.handle_eof();
    }

    /// Returns the next bytes for the stream, in whole lines. The caller must write all of them.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<&[u8]> {
        let bytes = self.machine.poll_transmit();
        if let Some(notes) = &mut self.notes {
            notes
                .tape
                .note(bytes.map(|bytes| Call::Transmit { bytes: Payload::from_bytes(bytes) }));
        }
        bytes
    }

    /// Returns the next bytes for the stream, for drivers that may write only part of them.
    #[must_use]
    pub fn peek_transmit(&mut self) -> &[u8] {
        let bytes = self.machine.peek_transmit();
        if let Some(notes) = self.notes.as_mut().filter(|_| !bytes.is_empty()) {
            notes.tape.note_peek();
        }
        bytes
    }

    /// Removes the first `length` bytes of those that [`peek_transmit`](Self::peek_transmit)
    /// returned.
    pub fn consume_transmit(&mut self, length: usize) {
        if let Some(notes) = &mut self.notes {
            let shown = self.machine.peek_transmit();
            let bytes = Payload::from_bytes(&shown[..length.min(shown.len())]);
            notes.tape.note(Call::Sent { bytes });
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

    /// Executes the call on a line, one of any machine over a byte stream.
    pub(super) fn perform_on_stream(&mut self, call: &Call<'_>) -> Result<(), Unperformable> {
        let at = Instant::from_nanos;
        // The outcome of a call is compared when it is recorded again.
        match call {
            Call::Message { at: now, frame, .. } => {
                drop(self.handle_message(&frame.bytes()?, at(*now)));
            }
            Call::FrameError { error, .. } => drop(self.handle_frame_error((*error).into())),
            Call::EndOfInput {} => self.handle_eof(),
            Call::Timeout { at: now } => self.handle_timeout(at(*now)),
            Call::Transmit { .. } => drop(self.poll_transmit().map(<[u8]>::len)),
            Call::Peek {} => {
                let _shown = self.peek_transmit();
                self.note(|| Call::Peek {});
            }
            Call::Sent { bytes } => {
                let length = bytes.bytes()?.len();
                let _shown = self.peek_transmit();
                self.consume_transmit(length);
            }
            Call::Event { .. } => drop(self.poll_event()),
            _ => return Err(MISPLACED),
        }
        Ok(())
    }
}

stream_machine!([M: Recordable + StreamMachine] Recorded<M>);

impl<M> From<M> for Recorded<M> {
    /// Wraps the machine without a tape.
    fn from(machine: M) -> Self {
        Self { machine, notes: None }
    }
}

impl<M> Deref for Recorded<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.machine
    }
}

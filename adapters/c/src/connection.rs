//! A machine of either role on a byte stream, driven by calls from C.
//!
//! Callbacks run while the stream is borrowed and the machine is not: a callback may answer and call,
//! but not receive or send.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::convert::Infallible;
use core::task::{Context, Waker};

use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio::peer::{Event, Machine as _, StreamMachine};
use mcp_sansio::stream::{Action, Endpoint, StreamConnection, StreamSettings};

use crate::McpError;

/// One side of a connection: a machine, and what the program does with its events.
pub(crate) trait Side {
    type Machine: StreamMachine;

    fn machine(&self) -> &RefCell<Self::Machine>;

    /// Handles an event. The machine is not borrowed.
    fn on_event(&self, event: Event<'_>, now: Instant);
}

/// A side as the endpoint of a stream.
pub(crate) struct Bound<S>(Rc<S>);

impl<S: Side> Bound<S> {
    fn take_queued(&self, now: Instant) {
        loop {
            let event = self.0.machine().borrow_mut().poll_event();
            let Some(event) = event else { return };
            self.0.on_event(event, now);
        }
    }
}

impl<S: Side> Endpoint for Bound<S> {
    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, now: Instant) {
        let event = match frame {
            Ok(frame) => self.0.machine().borrow_mut().handle_message(frame, now),
            Err(error) => self.0.machine().borrow_mut().handle_frame_error(error),
        };
        // A closed connection is reported by a separate event.
        if let Ok(Some(event)) = event {
            self.0.on_event(event, now);
        }
        self.take_queued(now);
    }

    fn handle_eof(&mut self, now: Instant) {
        self.0.machine().borrow_mut().handle_eof();
        self.take_queued(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.0.machine().borrow_mut().handle_timeout(now);
        self.take_queued(now);
    }

    fn poll_handlers(&mut self, _: &mut Context<'_>, now: Instant) {
        self.take_queued(now);
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        self.0.machine().borrow_mut().transmit(write);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.machine().borrow().poll_timeout()
    }

    fn is_congested(&self) -> bool {
        self.0.machine().borrow().is_congested()
    }

    fn is_drained(&self) -> bool {
        self.0.machine().borrow().is_drained()
    }

    fn is_closed(&self) -> bool {
        self.0.machine().borrow().is_closed()
    }
}

/// A side with its stream.
pub(crate) struct Connection<S: Side> {
    pub(crate) side: Rc<S>,
    stream: RefCell<StreamConnection<'static, Bound<S>, Infallible>>,
    has_ended: Cell<bool>,
    is_over: Cell<bool>,
}

impl<S: Side> Connection<S> {
    pub(crate) fn new(side: S, settings: StreamSettings) -> Self {
        let side = Rc::new(side);
        let stream = StreamConnection::new(Bound(Rc::clone(&side)), settings);
        let (has_ended, is_over) = (Cell::new(false), Cell::new(false));
        Self { side, stream: RefCell::new(stream), has_ended, is_over }
    }

    /// Returns the memory for the next input. Its length is zero if none is accepted now.
    pub(crate) fn space(&self) -> Result<(*mut u8, usize), McpError> {
        let mut stream = self.stream.try_borrow_mut().map_err(|_| McpError::Busy)?;
        if self.is_over.get() || !stream.wants_read() {
            return Ok((core::ptr::null_mut(), 0));
        }
        let space = stream.space();
        Ok((space.as_mut_ptr(), space.len()))
    }

    /// Takes `length` bytes that were written to the space, and handles them.
    pub(crate) fn received(&self, length: usize, now: u64) -> Result<(), McpError> {
        if length == 0 {
            return Ok(());
        }
        self.read(now, |space| if length <= space.len() { Some(length) } else { None })
    }

    /// Takes as many bytes as are accepted now. Returns their number.
    pub(crate) fn receive(&self, bytes: &[u8], now: u64) -> Result<usize, McpError> {
        let mut taken = 0;
        while taken < bytes.len() && self.space()?.1 > 0 {
            self.read(now, |space| {
                let length = space.len().min(bytes.len() - taken);
                space[..length].copy_from_slice(&bytes[taken..][..length]);
                taken += length;
                Some(length)
            })?;
        }
        Ok(taken)
    }

    fn read(
        &self,
        now: u64,
        fill: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<(), McpError> {
        let mut stream = self.stream.try_borrow_mut().map_err(|_| McpError::Busy)?;
        if self.is_over.get() || !stream.wants_read() {
            return Err(McpError::State);
        }
        let length = fill(stream.space()).ok_or(McpError::Space)?;
        let now = Instant::from_millis(now);
        stream.handle_read(Ok(length), now);
        self.run(&mut stream, now);
        Ok(())
    }

    /// Reports the end of the input.
    pub(crate) fn end_of_input(&self, now: u64) -> Result<(), McpError> {
        let mut stream = self.stream.try_borrow_mut().map_err(|_| McpError::Busy)?;
        if !self.has_ended.replace(true) {
            stream.handle_read(Ok(0), Instant::from_millis(now));
        }
        self.run(&mut stream, Instant::from_millis(now));
        Ok(())
    }

    /// Processes expired deadlines.
    pub(crate) fn advance(&self, now: u64) -> Result<(), McpError> {
        let mut stream = self.stream.try_borrow_mut().map_err(|_| McpError::Busy)?;
        self.run(&mut stream, Instant::from_millis(now));
        Ok(())
    }

    /// Handles all input that was read, until the program has to send or to wait.
    fn run(&self, stream: &mut StreamConnection<'static, Bound<S>, Infallible>, now: Instant) {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            stream.reset_budget();
            match stream.advance(&mut context, now) {
                // `sent` continues.
                Action::Write if peek(stream).1 > 0 => return,
                Action::Write | Action::Yield => {}
                Action::Wait => return,
                Action::Close | Action::Restart | Action::Done => {
                    self.is_over.set(true);
                    return;
                }
            }
        }
    }

    /// Returns the first part of the queued output.
    pub(crate) fn output(&self) -> Result<(*const u8, usize), McpError> {
        let mut stream = self.stream.try_borrow_mut().map_err(|_| McpError::Busy)?;
        Ok(peek(&mut stream))
    }

    /// Removes output that was sent, and continues with input that had to wait.
    pub(crate) fn sent(&self, length: usize, now: u64) -> Result<(), McpError> {
        let mut stream = self.stream.try_borrow_mut().map_err(|_| McpError::Busy)?;
        if length > peek(&mut stream).1 {
            return Err(McpError::Space);
        }
        let mut left = length;
        stream.transmit(&mut |bytes| core::mem::take(&mut left).min(bytes.len()));
        let now = Instant::from_millis(now);
        stream.handle_written(now);
        if peek(&mut stream).1 == 0 {
            stream.handle_flushed();
        }
        self.run(&mut stream, now);
        Ok(())
    }

    /// Returns the next deadline in milliseconds, or the largest number.
    pub(crate) fn deadline(&self) -> u64 {
        let deadline = match self.stream.try_borrow() {
            Ok(stream) => stream.poll_timeout(),
            // In a callback. Only the stream knows the deadline of an ending connection; zero is never
            // too late.
            Err(_) => match self.machine() {
                Ok(machine) if !self.has_ended.get() && !machine.is_closed() => {
                    machine.poll_timeout()
                }
                _ => Some(Instant::from_millis(0)),
            },
        };
        deadline.map_or(u64::MAX, |deadline| deadline.as_nanos().div_ceil(NANOS_PER_MILLI))
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Returns the machine, for commands of the program.
    pub(crate) fn machine(&self) -> Result<core::cell::RefMut<'_, S::Machine>, McpError> {
        self.side.machine().try_borrow_mut().map_err(|_| McpError::Busy)
    }

    /// Delivers the events that a command caused. In a callback, the call that runs it does that.
    pub(crate) fn deliver(&self, now: u64) {
        let _in_callback = self.advance(now);
    }

    /// Returns whether a callback is running.
    pub(crate) fn is_busy(&self) -> bool {
        self.stream.try_borrow_mut().is_err()
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Returns a time in milliseconds.
pub(crate) const fn millis(now: Instant) -> u64 {
    now.as_nanos() / NANOS_PER_MILLI
}

fn peek<S: Side>(
    stream: &mut StreamConnection<'static, Bound<S>, Infallible>,
) -> (*const u8, usize) {
    let mut output = (core::ptr::null(), 0);
    stream.transmit(&mut |bytes| {
        output = (bytes.as_ptr(), bytes.len());
        0
    });
    output
}

/// Handles of a machine by number, which C keeps: the slot of the handle, and a count that
/// recognizes stale numbers. The last event of a handle must be handled before another handle is
/// inserted in its slot.
pub(crate) struct Numbers<T> {
    entries: Vec<(u32, Option<T>)>,
}

impl<T> Numbers<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Notes a value in a slot, and returns its number, which is not zero.
    pub(crate) fn insert(&mut self, slot: u32, value: T) -> u64 {
        let index = slot as usize;
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || (0, None));
        }
        let (count, place) = &mut self.entries[index];
        *count = count.wrapping_add(1).max(1);
        *place = Some(value);
        u64::from(*count) << 32 | u64::from(slot)
    }

    fn place(&mut self, number: u64) -> Option<&mut Option<T>> {
        // The lower half is the slot.
        let (count, place) = self.entries.get_mut((number & u64::from(u32::MAX)) as usize)?;
        if u64::from(*count) == number >> 32 { Some(place) } else { None }
    }

    pub(crate) fn get(&mut self, number: u64) -> Option<&T> {
        self.place(number)?.as_ref()
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        self.place(number)?.take()
    }

    /// Returns the number of the value in a slot.
    pub(crate) fn number(&self, slot: u32) -> Option<u64> {
        let (count, value) = self.entries.get(slot as usize)?;
        value.as_ref().map(|_| u64::from(*count) << 32 | u64::from(slot))
    }
}

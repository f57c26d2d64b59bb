use core::task::Context;

use crate::Instant;
use crate::framing::FrameError;
#[cfg(feature = "client")]
use crate::peer::Client;
#[cfg(feature = "server")]
use crate::peer::Server;
use crate::peer::{Event, StreamMachine};

use super::Endpoint;

/// A machine with a callback for its events: an [`Endpoint`] without handlers.
///
/// The callback receives each event with the machine, for responses and calls, and the time. Events
/// are delivered in the order of their causes, before the next input.
#[derive(Clone, Debug)]
pub struct OnEvent<M, F> {
    machine: M,
    on_event: F,
}

impl<M, F: FnMut(Event<'_>, &mut M, Instant)> OnEvent<M, F> {
    /// Creates an endpoint that calls `on_event` for each event of `machine`, a [`Server`] or a
    /// [`Client`].
    #[must_use]
    pub const fn new(machine: M, on_event: F) -> Self {
        Self { machine, on_event }
    }

    /// Returns the machine.
    #[must_use]
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    /// Returns the machine for commands.
    #[must_use]
    pub const fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }
}

macro_rules! impl_endpoint {
    ($machine:ty, $restart:expr) => {
        impl<F: FnMut(Event<'_>, &mut $machine, Instant)> OnEvent<$machine, F> {
            fn take_queued(&mut self, now: Instant) {
                while let Some(event) = self.machine.poll_event() {
                    (self.on_event)(event, &mut self.machine, now);
                }
            }
        }

        impl<F: FnMut(Event<'_>, &mut $machine, Instant)> Endpoint for OnEvent<$machine, F> {
            fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, now: Instant) {
                let event = match frame {
                    Ok(frame) => self.machine.handle_message(frame, now),
                    Err(error) => self.machine.handle_frame_error(error),
                };
                // A closed connection is reported by a separate event.
                if let Ok(Some(event)) = event {
                    (self.on_event)(event, &mut self.machine, now);
                }
                self.take_queued(now);
            }

            fn handle_eof(&mut self, now: Instant) {
                self.machine.handle_eof();
                self.take_queued(now);
            }

            fn restart(&mut self, now: Instant) -> bool {
                let restart: fn(&mut $machine, Instant) -> bool = $restart;
                restart(&mut self.machine, now)
            }

            fn handle_timeout(&mut self, now: Instant) {
                self.machine.handle_timeout(now);
                self.take_queued(now);
            }

            fn poll_handlers(&mut self, _: &mut Context<'_>, now: Instant) {
                self.take_queued(now);
            }

            fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
                StreamMachine::transmit(&mut self.machine, write);
            }

            fn poll_timeout(&self) -> Option<Instant> {
                self.machine.poll_timeout()
            }

            fn is_congested(&self) -> bool {
                self.machine.is_congested()
            }

            fn is_drained(&self) -> bool {
                self.machine.is_drained()
            }

            fn is_closed(&self) -> bool {
                self.machine.is_closed()
            }
        }
    };
}

#[cfg(feature = "server")]
impl_endpoint!(Server, |_, _| false);
#[cfg(feature = "client")]
impl_endpoint!(Client, Client::restart);

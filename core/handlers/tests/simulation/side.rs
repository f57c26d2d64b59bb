//! The two sides of a byte stream: a machine with its application, as used by a driver.

use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio::peer::{Event, ServerMachine};

use crate::client_application::ClientApplication;
use crate::coverage::Happening;
use crate::played::{Client, Played, Server};
use crate::scene::Scene;
use crate::server_application::ServerApplication;

/// The interface that a byte stream driver uses.
pub(crate) trait Side {
    fn take(&mut self, frame: Result<&[u8], FrameError>, scene: &mut Scene);
    /// Handles the end of the input.
    fn end(&mut self, scene: &mut Scene);
    fn wake(&mut self, scene: &mut Scene);
    /// Lets the application perform a random action.
    fn act(&mut self, scene: &mut Scene);
    /// Passes the pending bytes to `write`, which returns how many it accepted.
    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize);
    fn deadline(&self) -> Option<Instant>;
    /// Checks that the tables of the machine match each other.
    fn assert_consistent(&self);
    fn is_congested(&self) -> bool;
    fn is_closed(&self) -> bool;
    fn is_drained(&self) -> bool;
    /// Returns the number of pending calls, input requests and requests.
    fn pending(&self) -> usize;
    /// Closes the connection from this side.
    fn leave(&mut self, scene: &mut Scene);
    /// Sends a broadcast.
    fn announce(&mut self, _scene: &mut Scene) {}
    /// Returns the last broadcast that was received, and the number of updates.
    fn heard(&self) -> Option<(u64, u64)> {
        None
    }
    /// Returns the last broadcast that was sent.
    fn said(&self) -> u64 {
        0
    }
    /// Returns whether broadcasts must be received, and how many subscriptions receive each update.
    fn listens(&self) -> (bool, Option<u64>) {
        (false, None)
    }
}

/// The machine of a client and its application.
#[derive(Debug)]
pub(crate) struct ClientSide {
    pub(crate) machine: Client,
    pub(crate) application: ClientApplication,
    pub(crate) _played: Played,
}

impl Side for ClientSide {
    fn take(&mut self, frame: Result<&[u8], FrameError>, scene: &mut Scene) {
        let Self { machine, application, .. } = self;
        let event = match frame {
            Ok(frame) => machine.handle_message(frame, scene.now),
            Err(error) => machine.handle_frame_error(error),
        };
        // A closed machine accepts no input, and the end is an event of its own.
        let event = event.map(|event| event.map(Event::into_owned));
        assert!(event.is_ok() || machine.is_closed());
        if let Ok(Some(event)) = event {
            application.hear(event, machine, scene);
        }
        application.listen(machine, scene);
    }

    fn end(&mut self, scene: &mut Scene) {
        self.machine.handle_eof();
        self.application.listen(&mut self.machine, scene);
        assert!(self.application.closed.is_some(), "the end of the input closes the connection");
    }

    fn wake(&mut self, scene: &mut Scene) {
        self.machine.handle_timeout(scene.now);
        self.application.listen(&mut self.machine, scene);
    }

    fn act(&mut self, scene: &mut Scene) {
        self.application.act(&mut self.machine, scene);
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        let taken = write(self.machine.peek_transmit());
        self.machine.consume_transmit(taken);
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn assert_consistent(&self) {
        self.machine.assert_consistent();
    }

    fn is_congested(&self) -> bool {
        self.machine.is_congested()
    }

    fn is_closed(&self) -> bool {
        self.machine.is_closed()
    }

    fn is_drained(&self) -> bool {
        self.machine.is_drained()
    }

    fn pending(&self) -> usize {
        self.application.calls() + self.application.questions()
    }

    fn leave(&mut self, scene: &mut Scene) {
        self.application.leave(&mut self.machine, scene);
    }

    fn heard(&self) -> Option<(u64, u64)> {
        Some((self.application.last_broadcast(), self.application.updates))
    }

    fn listens(&self) -> (bool, Option<u64>) {
        self.application.listens(&self.machine)
    }
}

/// The machine of a server and its application.
#[derive(Debug)]
pub(crate) struct ServerSide {
    pub(crate) machine: Server,
    pub(crate) application: ServerApplication,
    pub(crate) _played: Played,
}

impl Side for ServerSide {
    fn take(&mut self, frame: Result<&[u8], FrameError>, scene: &mut Scene) {
        let Self { machine, application, .. } = self;
        let event = match frame {
            Ok(frame) => machine.handle_message(frame, scene.now),
            Err(error) => machine.handle_frame_error(error),
        };
        if let Ok(Some(event)) = event {
            application.hear(event, scene);
        }
        application.listen(machine, scene);
    }

    fn end(&mut self, scene: &mut Scene) {
        self.machine.handle_eof();
        self.application.listen(&mut self.machine, scene);
        assert!(self.application.closed, "the end of the input closes the connection");
    }

    fn wake(&mut self, scene: &mut Scene) {
        self.machine.handle_timeout(scene.now);
        self.application.listen(&mut self.machine, scene);
    }

    fn act(&mut self, scene: &mut Scene) {
        if scene.strikes(150) && !self.machine.is_closed() {
            scene.count(Happening::ServerClosed);
            return self.leave(scene);
        }
        self.application.act(&mut self.machine, scene);
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        let taken = write(self.machine.peek_transmit());
        self.machine.consume_transmit(taken);
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn assert_consistent(&self) {
        self.machine.assert_consistent();
    }

    fn is_congested(&self) -> bool {
        self.machine.is_congested()
    }

    fn is_closed(&self) -> bool {
        self.machine.is_closed()
    }

    fn is_drained(&self) -> bool {
        self.machine.is_drained()
    }

    fn pending(&self) -> usize {
        self.application.jobs() + self.application.waiting()
    }

    fn leave(&mut self, scene: &mut Scene) {
        scene.note(format_args!("{} closes", self.application.name));
        self.machine.close(scene.now);
        self.application.listen(&mut self.machine, scene);
        assert!(self.application.closed, "closing is reported at once");
    }

    fn announce(&mut self, scene: &mut Scene) {
        self.application.broadcast(&mut self.machine, scene);
        self.application.update(&mut self.machine, scene);
        assert!(self.machine.poll_event().is_none(), "answering causes no event");
    }

    fn said(&self) -> u64 {
        self.application.broadcast
    }
}

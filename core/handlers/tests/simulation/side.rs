//! The two sides of a byte stream: a machine with its application, as a driver sees it.

use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio::peer::{Client, Event, Server};

use crate::client_application::ClientApplication;
use crate::coverage::Happening;
use crate::scene::Scene;
use crate::server_application::ServerApplication;

/// What a driver of byte streams drives.
pub(crate) trait Side {
    fn take(&mut self, frame: Result<&[u8], FrameError>, scene: &mut Scene);
    /// The end of the input.
    fn end(&mut self, scene: &mut Scene);
    fn wake(&mut self, scene: &mut Scene);
    /// The application does something of its own accord.
    fn act(&mut self, scene: &mut Scene);
    /// Shows the bytes that wait to `write`, which says how many it took.
    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize);
    fn deadline(&self) -> Option<Instant>;
    fn is_congested(&self) -> bool;
    fn is_closed(&self) -> bool;
    fn is_drained(&self) -> bool;
    /// What is under way: calls, questions, requests.
    fn pending(&self) -> usize;
    /// Closes the connection from this side.
    fn leave(&mut self, scene: &mut Scene);
    /// Says something to everybody who wants to hear it.
    fn announce(&mut self, _scene: &mut Scene) {}
    /// Unasked messages that came: the last one to everybody, and how many updates.
    fn heard(&self) -> Option<(u64, u64)> {
        None
    }
    /// The last message to everybody.
    fn said(&self) -> u64 {
        0
    }
    /// Whether messages to everybody are to be heard, and how many updates of one change.
    fn listens(&self) -> (bool, Option<u64>) {
        (false, None)
    }
}

/// A client's machine and its application.
#[derive(Debug)]
pub(crate) struct ClientSide {
    pub(crate) machine: Client,
    pub(crate) guest: ClientApplication,
}

impl Side for ClientSide {
    fn take(&mut self, frame: Result<&[u8], FrameError>, scene: &mut Scene) {
        let Self { machine, guest } = self;
        let event = match frame {
            Ok(frame) => machine.handle_message(frame, scene.now),
            Err(error) => machine.handle_frame_error(error),
        };
        // Once it is over, nothing is taken any more, and the end is an event of its own.
        let event = event.map(|event| event.map(Event::into_owned));
        assert!(event.is_ok() || machine.is_closed());
        if let Ok(Some(event)) = event {
            guest.hear(event, machine, scene);
        }
        guest.listen(machine, scene);
    }

    fn end(&mut self, scene: &mut Scene) {
        self.machine.handle_eof();
        self.guest.listen(&mut self.machine, scene);
        assert!(self.guest.closed.is_some(), "the end of the input is the end");
    }

    fn wake(&mut self, scene: &mut Scene) {
        self.machine.handle_timeout(scene.now);
        self.guest.listen(&mut self.machine, scene);
    }

    fn act(&mut self, scene: &mut Scene) {
        self.guest.act(&mut self.machine, scene);
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        let taken = write(self.machine.peek_transmit());
        self.machine.consume_transmit(taken);
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.poll_timeout()
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
        self.guest.calls() + self.guest.questions()
    }

    fn leave(&mut self, scene: &mut Scene) {
        self.guest.leave(&mut self.machine, scene);
    }

    fn heard(&self) -> Option<(u64, u64)> {
        Some((self.guest.last_broadcast(), self.guest.updates))
    }

    fn listens(&self) -> (bool, Option<u64>) {
        self.guest.listens(&self.machine)
    }
}

/// A server's machine and its application.
#[derive(Debug)]
pub(crate) struct ServerSide {
    pub(crate) machine: Server,
    pub(crate) desk: ServerApplication,
}

impl Side for ServerSide {
    fn take(&mut self, frame: Result<&[u8], FrameError>, scene: &mut Scene) {
        let Self { machine, desk } = self;
        let event = match frame {
            Ok(frame) => machine.handle_message(frame, scene.now),
            Err(error) => machine.handle_frame_error(error),
        };
        if let Ok(Some(event)) = event {
            desk.hear(event, scene);
        }
        desk.listen(machine, scene);
    }

    fn end(&mut self, scene: &mut Scene) {
        self.machine.handle_eof();
        self.desk.listen(&mut self.machine, scene);
        assert!(self.desk.closed, "the end of the input is the end");
    }

    fn wake(&mut self, scene: &mut Scene) {
        self.machine.handle_timeout(scene.now);
        self.desk.listen(&mut self.machine, scene);
    }

    fn act(&mut self, scene: &mut Scene) {
        if scene.strikes(150) && !self.machine.is_closed() {
            scene.count(Happening::ServerClosed);
            return self.leave(scene);
        }
        self.desk.act(&mut self.machine, scene);
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        let taken = write(self.machine.peek_transmit());
        self.machine.consume_transmit(taken);
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.poll_timeout()
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
        self.desk.jobs() + self.desk.waiting()
    }

    fn leave(&mut self, scene: &mut Scene) {
        scene.note(format_args!("{} closes", self.desk.name));
        self.machine.close();
        self.desk.listen(&mut self.machine, scene);
        assert!(self.desk.closed, "closing is told at once");
    }

    fn announce(&mut self, scene: &mut Scene) {
        self.desk.broadcast(&mut self.machine, scene);
        self.desk.update(&mut self.machine, scene);
        assert!(self.machine.poll_event().is_none(), "nothing comes back");
    }

    fn said(&self) -> u64 {
        self.desk.broadcast
    }
}

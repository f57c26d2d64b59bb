//! The two sides of HTTP: a machine with its application, as used by a driver.

use mcp_sansio::Instant;
use mcp_sansio::http::{
    ClientTransmit, ExchangeFailure, ExchangeId, IncomingResponse, Server,
    ServerTransmit as FromServer, StoreAction,
};
use mcp_sansio::peer::ServerMachine;
use mcp_sansio::peer::Status;

use crate::client_application::ClientApplication;
use crate::event_store::Completion;
use crate::flight::{Carried, Piece};
use crate::played::{HttpClient, HttpServer, Played};
use crate::scene::Scene;
use crate::server_application::ServerApplication;

/// The interface that an HTTP driver uses on the client.
pub(crate) trait WebClient {
    /// Handles a part of a response.
    fn take(&mut self, exchange: ExchangeId, piece: Piece, scene: &mut Scene);
    fn wake(&mut self, scene: &mut Scene);
    fn act(&mut self, scene: &mut Scene);
    fn transmit(&mut self) -> Option<ClientTransmit>;
    fn deadline(&self) -> Option<Instant>;
    /// Checks that the tables of the machine match each other.
    fn assert_consistent(&self);
    fn is_congested(&self) -> bool;
    fn is_closed(&self) -> bool;
    fn is_drained(&self) -> bool;
    /// Returns the number of pending calls and input requests.
    fn pending(&self) -> usize;
    fn leave(&mut self, scene: &mut Scene);
    /// Sends a request, to detect whether the session still exists.
    fn touch(&mut self, _scene: &mut Scene) {}
    /// Returns the last broadcast that was received, and the number of updates.
    fn heard(&self) -> Option<(u64, u64)> {
        None
    }
    /// Returns whether broadcasts must be received, and how many subscriptions receive each update.
    fn listens(&self) -> (bool, Option<u64>) {
        (false, None)
    }
}

/// The interface that an HTTP driver uses on the server.
pub(crate) trait WebServer {
    /// Handles a request. Returns its exchange, or the response that refuses it.
    fn request(&mut self, request: &Carried, scene: &mut Scene) -> Result<ExchangeId, Vec<Piece>>;
    fn disconnect(&mut self, exchange: ExchangeId, scene: &mut Scene);
    fn wake(&mut self, scene: &mut Scene);
    fn act(&mut self, scene: &mut Scene);
    fn ready(&mut self) -> Option<ExchangeId>;
    /// Returns the next output of an exchange: pieces, and whether the exchange is over.
    fn transmit(&mut self, exchange: ExchangeId, scene: &mut Scene) -> Option<(Vec<Piece>, bool)>;
    fn store(&mut self) -> Option<StoreAction>;
    fn stored(&mut self, completion: Completion, scene: &mut Scene);
    /// Returns the machine.
    fn machine(&self) -> &Server;
    fn deadline(&self) -> Option<Instant>;
    /// Returns the number of pending requests.
    fn pending(&self) -> usize;
    /// Makes the application answer the requests that it left unanswered.
    fn remember(&mut self);
    fn close(&mut self, scene: &mut Scene);
    /// Sends a broadcast.
    fn announce(&mut self, _scene: &mut Scene) {}
    /// Returns the last broadcast that was sent.
    fn said(&self) -> u64 {
        0
    }
}

/// The machine of a client and its application.
#[derive(Debug)]
pub(crate) struct BareClient {
    pub(crate) machine: HttpClient,
    pub(crate) application: ClientApplication,
    pub(crate) _played: Played,
}

impl WebClient for BareClient {
    fn take(&mut self, exchange: ExchangeId, piece: Piece, scene: &mut Scene) {
        let Self { machine, application, .. } = self;
        let now = scene.now;
        match piece {
            Piece::Head { status, fields } => {
                let mut head = IncomingResponse::new(Status(status));
                for (name, value) in &fields {
                    head.field(name, value.as_bytes());
                }
                machine.handle_response(exchange, &head, now);
            }
            Piece::Bytes(bytes) => machine.handle_body(exchange, &bytes, now),
            Piece::End => machine.handle_body_end(exchange, now),
            Piece::Broken => {
                machine.handle_exchange_failed(exchange, ExchangeFailure::Broken, now);
            }
            Piece::NotSent => {
                machine.handle_exchange_failed(exchange, ExchangeFailure::NotSent, now);
            }
        }
        application.listen(machine, scene);
    }

    fn wake(&mut self, scene: &mut Scene) {
        self.machine.handle_timeout(scene.now);
        self.application.listen(&mut self.machine, scene);
    }

    fn act(&mut self, scene: &mut Scene) {
        self.application.act(&mut self.machine, scene);
    }

    fn transmit(&mut self) -> Option<ClientTransmit> {
        self.machine.poll_transmit()
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

    fn touch(&mut self, scene: &mut Scene) {
        self.application.touch(&mut self.machine, scene);
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
pub(crate) struct BareServer {
    pub(crate) machine: HttpServer,
    pub(crate) application: ServerApplication,
    pub(crate) _played: Played,
}

/// Returns the parts of a response that a machine sends, and whether it is over.
pub(crate) fn pieces_of(transmit: FromServer<'_>) -> (Vec<Piece>, bool) {
    let head = |head: &mcp_sansio::http::ResponseHead| Piece::Head {
        status: head.status.0,
        fields: head.fields().map(|(name, value)| (name.to_owned(), value.into_owned())).collect(),
    };
    match transmit {
        FromServer::Respond(response) => {
            let pieces = vec![head(&response.head), Piece::Bytes(response.body), Piece::End];
            (pieces, true)
        }
        FromServer::Open(opened) => (vec![head(&opened)], false),
        FromServer::Chunk(bytes) => (vec![Piece::Bytes(bytes.to_vec())], false),
        FromServer::Finish => (vec![Piece::End], true),
        FromServer::Abort => (vec![Piece::Broken], true),
    }
}

impl WebServer for BareServer {
    fn request(&mut self, request: &Carried, scene: &mut Scene) -> Result<ExchangeId, Vec<Piece>> {
        let Self { machine, application, .. } = self;
        let head = request.head();
        if let Err(refused) = machine.admit(&head) {
            return Err(pieces_of(FromServer::Respond(refused)).0);
        }
        let (exchange, event) =
            machine.handle_request(&head, &request.body, &mcp_sansio::Caller::ANONYMOUS, scene.now);
        if let Some(event) = event {
            application.hear(event, scene);
        }
        application.listen(machine, scene);
        Ok(exchange)
    }

    fn disconnect(&mut self, exchange: ExchangeId, scene: &mut Scene) {
        self.machine.handle_disconnect(exchange, scene.now);
        self.application.listen(&mut self.machine, scene);
    }

    fn wake(&mut self, scene: &mut Scene) {
        self.machine.handle_timeout(scene.now);
        self.application.listen(&mut self.machine, scene);
    }

    fn act(&mut self, scene: &mut Scene) {
        self.application.act(&mut self.machine, scene);
    }

    fn ready(&mut self) -> Option<ExchangeId> {
        self.machine.poll_ready()
    }

    fn transmit(&mut self, exchange: ExchangeId, scene: &mut Scene) -> Option<(Vec<Piece>, bool)> {
        let transmit = self.machine.poll_transmit(exchange, scene.now).map(pieces_of);
        self.application.listen(&mut self.machine, scene);
        transmit
    }

    fn store(&mut self) -> Option<StoreAction> {
        self.machine.poll_store()
    }

    fn stored(&mut self, (read, events): Completion, scene: &mut Scene) {
        self.machine.handle_stored(read, events, scene.now);
        self.application.listen(&mut self.machine, scene);
    }

    fn machine(&self) -> &Server {
        &self.machine
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn pending(&self) -> usize {
        self.application.jobs() + self.application.waiting()
    }

    fn remember(&mut self) {
        self.application.remember();
    }

    fn close(&mut self, scene: &mut Scene) {
        self.machine.close(scene.now);
        self.application.listen(&mut self.machine, scene);
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

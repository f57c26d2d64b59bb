//! Clients of one server over HTTP, and a network that loses, delays, repeats, reorders, refuses
//! and cuts exchanges, and may notify only one of the two sides.

use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::http::{ClientTransmit, ExchangeId};

use crate::coverage::Happening;
use crate::event_store::EventStore;
use crate::flight::{Carried, Flight, Piece};
use crate::scene::Scene;
use crate::web::{WebClient, WebServer};
use crate::wire::Wire;

/// Creates the nodes of a schedule.
pub(crate) trait WebMaker {
    fn client(&mut self, name: String, scene: &mut Scene) -> Box<dyn WebClient>;
    fn server(&mut self, name: String, scene: &mut Scene) -> Box<dyn WebServer>;
    /// Whether the network repeats requests.
    fn copies(&self) -> bool;
}

pub(crate) struct Node {
    pub(crate) client: Box<dyn WebClient>,
    generation: u32,
    acts_at: Instant,
    pub(crate) wakes_at: Instant,
    wake_ups: WakeUps,
}

/// The next step of a schedule.
#[derive(Clone, Copy, Debug)]
enum Move {
    ClientWakes(usize),
    ClientActs(usize),
    Send,
    ServerWakes,
    ServerActs,
    Store,
    Stored,
    Arrive(usize),
    Pull(usize),
    Deliver(usize),
    Disconnect(usize),
}

pub(crate) struct Exchanges<M> {
    maker: M,
    pub(crate) nodes: Vec<Node>,
    pub(crate) server: Box<dyn WebServer>,
    /// How often the server was started.
    life: u32,
    pub(crate) server_acts_at: Instant,
    pub(crate) server_wakes_at: Instant,
    server_wake_ups: WakeUps,
    store_at: Instant,
    /// Whether the server may have store actions.
    stores: bool,
    pub(crate) event_store: EventStore,
    pub(crate) flights: Vec<Flight>,
    /// Exchanges that were polled from the machines of clients.
    pub(crate) outbox: Vec<(usize, ClientTransmit)>,
    wire: Wire,
    renewals: u32,
}

impl<M: WebMaker> Exchanges<M> {
    pub(crate) fn new(mut maker: M, scene: &mut Scene) -> Self {
        let server = maker.server("server 0".to_owned(), scene);
        let count = 1 + scene.random.index(5);
        let nodes = (0..count)
            .map(|number| Node {
                client: maker.client(format!("client {number}.0"), scene),
                generation: 0,
                acts_at: scene.now,
                wakes_at: Instant::ZERO,
                wake_ups: WakeUps::default(),
            })
            .collect();
        let wire = Wire::new(maker.copies());
        Self {
            maker,
            nodes,
            server,
            life: 0,
            server_acts_at: scene.now,
            server_wakes_at: Instant::ZERO,
            server_wake_ups: WakeUps::default(),
            store_at: Instant::ZERO,
            stores: true,
            event_store: EventStore::default(),
            flights: Vec::new(),
            outbox: Vec::new(),
            wire,
            renewals: 6,
        }
    }

    /// Calls `visit` with every possible move and its time.
    fn moves(&mut self, now: Instant, calm: bool, mut visit: impl FnMut(Instant, Move)) {
        for (number, node) in self.nodes.iter_mut().enumerate() {
            while let Some(transmit) = node.client.transmit() {
                self.outbox.push((number, transmit));
            }
            if let Some(deadline) = node.client.deadline() {
                visit(deadline.max(node.wakes_at).max(now), Move::ClientWakes(number));
            }
            if !calm || node.client.pending() > 0 {
                visit(node.acts_at, Move::ClientActs(number));
            }
        }
        if !self.outbox.is_empty() {
            // In order, so that an abort follows its request.
            visit(now, Move::Send);
        }
        if let Some(deadline) = self.server.deadline() {
            visit(deadline.max(self.server_wakes_at).max(now), Move::ServerWakes);
        }
        if !calm || self.server.pending() > 0 {
            visit(self.server_acts_at, Move::ServerActs);
        }
        // The driver is not notified of store actions.
        if !calm || self.stores {
            visit(self.store_at, Move::Store);
        }
        if let Some(due) = self.event_store.due() {
            visit(due, Move::Stored);
        }
        for (at, flight) in self.flights.iter().enumerate() {
            if let Some(arrives) = flight.arrives {
                visit(arrives, Move::Arrive(at));
            }
            if let Some(hears_at) = flight.server_hears_at
                && flight.arrives.is_none()
            {
                visit(hears_at, Move::Disconnect(at));
            }
            if flight.ready && flight.theirs.is_some() {
                visit(flight.pulled_at, Move::Pull(at));
            }
            if let Some((due, piece)) = flight.pieces.front() {
                let body = matches!(piece, Piece::Bytes(_));
                let congested = body && self.nodes[flight.client].client.is_congested();
                if !congested {
                    visit((*due).max(flight.delivered_at), Move::Deliver(at));
                }
            }
        }
    }

    /// Makes one of the moves that are due, or advances the clock.
    pub(crate) fn step(&mut self, scene: &mut Scene) {
        scene.tally.steps += 1;
        let now = scene.now;
        let (mut ready, mut next) = (Vec::new(), Instant::from_nanos(u64::MAX));
        self.moves(now, scene.calm, |due, what| {
            if due <= now {
                ready.push(what);
            } else {
                next = next.min(due);
            }
        });
        let Some(&what) = scene.random.pick(&ready) else {
            return scene.pass_to(next);
        };
        self.make(what, scene);
        self.stores |= !matches!(what, Move::Store);
        while let Some(exchange) = self.server.ready() {
            if let Some(flight) = self.flights.iter_mut().find(|it| it.theirs == Some(exchange)) {
                flight.ready = true;
            }
        }
        self.check();
        self.flights.retain(|flight| !flight.is_over());
    }

    /// Checks the invariants that hold between any two moves.
    pub(crate) fn check(&self) {
        let machine = self.server.machine();
        machine.assert_consistent();
        for node in &self.nodes {
            node.client.assert_consistent();
        }
        let limits = crate::make::WEB_LIMITS;
        assert!(machine.session_count() <= limits.sessions_max, "sessions");
        assert!(machine.exchange_count() <= limits.exchanges_max + 1, "exchanges");
        let carried = self.flights.iter().filter(|flight| flight.theirs.is_some()).count();
        assert_eq!(machine.exchange_count(), carried, "exchanges unknown to the network");
    }

    fn make(&mut self, what: Move, scene: &mut Scene) {
        match what {
            Move::ClientWakes(number) => {
                let node = &mut self.nodes[number];
                if scene.strikes(15) {
                    scene.count(Happening::LateWake);
                    node.wakes_at = scene.now + scene.stall();
                    return;
                }
                node.client.wake(scene);
                node.wake_ups.check(node.client.deadline(), scene.now);
            }
            Move::ClientActs(number) => {
                let pause = if scene.calm { 300 } else { 1500 };
                let node = &mut self.nodes[number];
                node.acts_at = scene.now + Duration::from_millis(1) + scene.random.millis(pause);
                node.client.act(scene);
                self.trouble(number, scene);
            }
            Move::Send => {
                let (number, transmit) = self.outbox.remove(0);
                match transmit {
                    ClientTransmit::Send(request) => {
                        self.send(number, request.exchange, Carried::from_request(&request), scene);
                    }
                    ClientTransmit::Abort(exchange) => {
                        let of =
                            |it: &&mut Flight| it.client == number && it.ours == Some(exchange);
                        if let Some(flight) = self.flights.iter_mut().find(of) {
                            scene.note(format_args!("#{} is aborted", flight.number));
                            flight.abandon(scene);
                        }
                    }
                }
            }
            Move::ServerWakes => {
                if scene.strikes(15) {
                    scene.count(Happening::LateWake);
                    self.server_wakes_at = scene.now + scene.stall();
                    return;
                }
                self.server.wake(scene);
                self.server_wake_ups.check(self.server.deadline(), scene.now);
            }
            Move::ServerActs => {
                let pause = if scene.calm { 100 } else { 400 };
                self.server_acts_at =
                    scene.now + Duration::from_millis(1) + scene.random.millis(pause);
                self.server.act(scene);
            }
            Move::Store => {
                self.stores = false;
                self.store_at = scene.now + Duration::from_millis(1) + scene.latency();
                while let Some(action) = self.server.store() {
                    self.event_store.take(action, scene);
                }
            }
            Move::Stored => {
                if let Some(completion) = self.event_store.complete(scene) {
                    self.server.stored(completion, scene);
                }
            }
            Move::Arrive(at) => self.arrive(at, scene),
            Move::Pull(at) => self.pull(at, scene),
            Move::Deliver(at) => self.deliver(at, scene),
            Move::Disconnect(at) => {
                let flight = &mut self.flights[at];
                flight.server_hears_at = None;
                if let Some(theirs) = flight.theirs.take() {
                    scene.note(format_args!(
                        "#{}: the server is notified of its end",
                        flight.number
                    ));
                    self.server.disconnect(theirs, scene);
                }
            }
        }
    }

    // ------------------------------------------------------------------ the network

    fn send(&mut self, number: usize, ours: ExchangeId, request: Carried, scene: &mut Scene) {
        let serial = scene.serial();
        let mut flight = Flight::new(serial, number, Some(ours), request, scene);
        let text = String::from_utf8_lossy(&flight.request.body);
        let Carried { method, target, .. } = &flight.request;
        scene.note(format_args!("#{serial} of client {number}: {method} {target} {text}"));
        scene.tally.messages += u64::from(!flight.request.body.is_empty());
        scene.tally.bytes += flight.request.body.len() as u64;
        if flight.request.field("last-event-id").is_some() {
            scene.count(Happening::Resumed);
        }
        self.wire.sent(&mut flight);
        if scene.strikes(40) {
            scene.count(Happening::NotSent);
            flight.arrives = None;
            flight.push(Piece::NotSent, scene);
        } else if scene.strikes(60) {
            scene.count(Happening::Lost);
            flight.arrives = None;
        } else if scene.strikes(40) {
            scene.count(Happening::Proxy);
            let status = scene.random.one_of([429, 500, 502, 503, 504]);
            scene.note(format_args!("#{serial} is refused by a proxy with {status}"));
            let fields = vec![("content-type".to_owned(), "text/html".to_owned())];
            flight.push(Piece::Head { status, fields }, scene);
            flight.push(Piece::Bytes(b"<html>busy</html>".to_vec()), scene);
            flight.push(Piece::End, scene);
            if scene.random.once_in(2) {
                flight.arrives = None;
            } else {
                // The server still receives it, but its response is dropped.
                flight.cut = true;
                flight.server_hears_at = Some(scene.now + scene.stall());
            }
        } else if self.maker.copies() && scene.strikes(20) {
            scene.count(Happening::Duplicated);
            let mut copy = Flight::new(scene.serial(), number, None, flight.request.clone(), scene);
            copy.conversation = flight.conversation.clone();
            copy.cut = true;
            copy.server_hears_at = Some(scene.now + scene.stall());
            self.flights.push(copy);
        }
        self.flights.push(flight);
    }

    fn arrive(&mut self, at: usize, scene: &mut Scene) {
        let flight = &mut self.flights[at];
        flight.arrives = None;
        match self.server.request(&flight.request, scene) {
            Ok(theirs) => flight.theirs = Some(theirs),
            Err(pieces) => {
                for piece in pieces {
                    flight.push(piece, scene);
                }
            }
        }
    }

    /// Takes the output of the server for an exchange, and sometimes cuts it.
    fn pull(&mut self, at: usize, scene: &mut Scene) {
        let flight = &mut self.flights[at];
        if scene.strikes(60) {
            scene.count(Happening::SlowReader);
            flight.pulled_at = scene.now + scene.stall();
            return;
        }
        let Some(theirs) = flight.theirs else { return };
        let Some((pieces, over)) = self.server.transmit(theirs, scene) else {
            flight.ready = false;
            return;
        };
        if over {
            flight.theirs = None;
            flight.ready = false;
            flight.server_hears_at = None;
        }
        for piece in pieces {
            if matches!(piece, Piece::Broken) {
                scene.count(Happening::Aborted);
            }
            self.wire.answered(flight, &piece, scene);
            if flight.cut {
                continue;
            }
            if let Piece::Bytes(bytes) = &piece
                && scene.strikes(40)
            {
                cut(flight, bytes.clone(), scene);
                continue;
            }
            flight.push(piece, scene);
        }
    }

    fn deliver(&mut self, at: usize, scene: &mut Scene) {
        let flight = &mut self.flights[at];
        if scene.strikes(80) {
            scene.count(Happening::Stall);
            flight.delivered_at = scene.now + scene.stall();
            return;
        }
        let Some((due, mut piece)) = flight.pieces.pop_front() else { return };
        let Some(ours) = flight.ours else { return };
        if let Piece::Bytes(bytes) = &mut piece
            && bytes.len() > 1
            && scene.strikes(3)
        {
            scene.count(Happening::Split);
            let rest = bytes.split_off(1 + scene.random.index(bytes.len() - 1));
            flight.pieces.push_front((due, Piece::Bytes(rest)));
        }
        scene.note(format_args!("#{}: {}", flight.number, describe(&piece)));
        self.wire.received(flight, &piece);
        if matches!(piece, Piece::End | Piece::Broken | Piece::NotSent) {
            flight.ours = None;
            flight.pieces.clear();
        }
        let (client, number) = (flight.client, flight.number);
        if matches!(piece, Piece::Head { .. }) {
            flight.head_seen = true;
            let earlier = |it: &Flight| {
                it.client == client && it.number < number && !it.head_seen && it.ours.is_some()
            };
            if self.flights.iter().any(earlier) {
                scene.count(Happening::Reordered);
            }
        }
        let node = &mut self.nodes[client];
        node.client.take(ours, piece, scene);
        if node.client.is_congested() {
            scene.count(Happening::Congested);
        }
    }

    // ------------------------------------------------------------------ faults

    fn trouble(&mut self, number: usize, scene: &mut Scene) {
        let over = {
            let client = &self.nodes[number].client;
            client.is_closed() && client.is_drained()
        };
        let dies = scene.strikes(150);
        if !scene.calm && self.renewals > 0 && (over && scene.random.once_in(3) || dies) {
            self.renewals -= 1;
            self.renew(number, scene);
        }
        if scene.strikes(250) {
            self.restart(scene);
        }
        if scene.strikes(20)
            && let Some(at) = Some(scene.random.index(self.flights.len()))
            && let Some(flight) = self.flights.get_mut(at)
            && flight.theirs.is_some()
            && flight.ours.is_some()
        {
            cut(flight, Vec::new(), scene);
        }
    }

    /// Replaces a client that has ended or crashed.
    fn renew(&mut self, number: usize, scene: &mut Scene) {
        let generation = self.nodes[number].generation + 1;
        if !self.nodes[number].client.is_drained() {
            scene.count(Happening::ClientRestart);
        }
        scene.note(format_args!("client {number} restarts"));
        self.outbox.retain(|(client, _)| *client != number);
        for flight in self.flights.iter_mut().filter(|flight| flight.client == number) {
            flight.abandon(scene);
        }
        let client = self.maker.client(format!("client {number}.{generation}"), scene);
        let now = scene.now;
        let wake_ups = WakeUps::default();
        self.nodes[number] = Node { client, generation, acts_at: now, wakes_at: now, wake_ups };
    }

    /// Replaces the server process.
    fn restart(&mut self, scene: &mut Scene) {
        self.life += 1;
        scene.count(Happening::ServerRestart);
        let kept = scene.random.once_in(2);
        scene.count(if kept { Happening::StoreKept } else { Happening::StoreLost });
        scene.note(format_args!("the server restarts; its store is kept: {kept}"));
        self.event_store.outlive(kept);
        self.wire.forget();
        self.server = self.maker.server(format!("server {}", self.life), scene);
        for flight in self.flights.iter_mut().filter(|flight| flight.theirs.is_some()) {
            flight.theirs = None;
            flight.ready = false;
            flight.server_hears_at = None;
            flight.push(Piece::Broken, scene);
        }
    }
}

/// The latest wake-ups of a node, each of which asked for another one after the shortest pause.
#[derive(Debug, Default)]
struct WakeUps(u32);

impl WakeUps {
    /// Asserts that a deadline is in the future, so that no node wakes twice for it, and that the
    /// node does not wake for nothing again and again.
    fn check(&mut self, deadline: Option<Instant>, now: Instant) {
        let later = deadline.is_none_or(|deadline| deadline > now);
        assert!(later, "an expired deadline is still set: {deadline:?} at {now:?}");
        let soon = deadline.is_some_and(|it| it <= now + Duration::from_millis(1));
        self.0 = if soon { self.0 + 1 } else { 0 };
        assert!(self.0 < 100, "nothing but wake-ups until {now:?}");
    }
}

/// Cuts an exchange, in the middle of `bytes` if there are any. The client sees an error or what
/// looks like the end; the server is notified soon, or much later.
fn cut(flight: &mut Flight, mut bytes: Vec<u8>, scene: &mut Scene) {
    scene.count(Happening::Cut);
    if !bytes.is_empty() {
        scene.count(Happening::CutInFrame);
        bytes.truncate(scene.random.index(bytes.len()));
    }
    scene.note(format_args!("#{} is cut", flight.number));
    let streams = flight.events.is_some();
    flight.push(Piece::Bytes(bytes), scene);
    if streams && scene.random.once_in(3) {
        scene.count(Happening::Polite);
        flight.push(Piece::End, scene);
    } else {
        flight.push(Piece::Broken, scene);
    }
    flight.cut = true;
    let late = if scene.random.once_in(3) {
        scene.count(Happening::HalfOpen);
        scene.stall() * 4
    } else {
        scene.latency()
    };
    if flight.theirs.is_some() {
        flight.server_hears_at = Some(scene.now + late);
    }
}

fn describe(piece: &Piece) -> String {
    match piece {
        Piece::Head { status, fields } => format!("{status} {fields:?}"),
        Piece::Bytes(bytes) => String::from_utf8_lossy(bytes).replace('\n', "|"),
        Piece::End => "the end".to_owned(),
        Piece::Broken => "broken".to_owned(),
        Piece::NotSent => "not sent".to_owned(),
    }
}

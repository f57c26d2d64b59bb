//! The end of a schedule over HTTP: the network recovers, every listening client receives a
//! broadcast, and no state is left.

use std::time::Duration;

use crate::exchanges::{Exchanges, Node, WebMaker};
use crate::flight::{Flight, Piece};
use crate::scene::Scene;

/// More moves than any calm phase needs.
const MOVES_MAX: usize = 400_000;

impl<M: WebMaker> Exchanges<M> {
    pub(crate) fn run(&mut self, moves: usize, scene: &mut Scene) {
        for _ in 0..moves {
            self.step(scene);
        }
        self.calm(scene);
        self.pump(false, 0, scene);
        for node in &mut self.nodes {
            node.client.touch(scene);
        }
        // Streams need time to reconnect.
        self.pump(false, 45, scene);
        self.probe(scene);
        for node in &mut self.nodes {
            if !node.client.is_closed() {
                node.client.leave(scene);
            }
        }
        self.server.remember();
        self.pump(true, 0, scene);
        for (number, node) in self.nodes.iter().enumerate() {
            assert!(node.client.is_drained(), "client {number} is not drained");
            assert_eq!(node.client.deadline(), None, "client {number} has a deadline");
            assert_eq!(node.client.pending(), 0, "client {number} has pending work");
        }
        self.end_server(scene);
    }

    fn calm(&mut self, scene: &mut Scene) {
        scene.calm = true;
        scene.note(format_args!("calm"));
        for node in &mut self.nodes {
            node.wakes_at = scene.now;
        }
        self.server_wakes_at = scene.now;
        for flight in &mut self.flights {
            (flight.pulled_at, flight.delivered_at) = (scene.now, scene.now);
            // Lost requests are ended by the operating system.
            let lost = flight.theirs.is_none()
                && flight.arrives.is_none()
                && flight.pieces.is_empty()
                && flight.ours.is_some();
            if lost {
                flight.push(Piece::Broken, scene);
            }
        }
    }

    /// Runs until there are no pending exchanges, or no exchanges at all if `whole`, and for at
    /// least `patience` seconds.
    fn pump(&mut self, whole: bool, patience: u64, scene: &mut Scene) {
        let quiet_from = scene.now + Duration::from_secs(patience);
        for _ in 0..MOVES_MAX {
            if scene.now >= quiet_from && self.is_quiet(whole) {
                return;
            }
            self.step(scene);
        }
        panic!("no end after {MOVES_MAX} moves");
    }

    fn is_quiet(&mut self, whole: bool) -> bool {
        let clients = self.nodes.iter().all(|node| {
            let over = node.client.is_closed() && node.client.is_drained();
            over || (!whole && !node.client.is_closed() && node.client.pending() == 0)
        });
        clients
            && self.outbox.is_empty()
            && self.event_store.is_idle()
            && self.flights.iter().all(Flight::is_quiet)
            && (!whole || (self.flights.is_empty() && self.server.pending() == 0))
    }

    /// Checks that every listening client still receives broadcasts and updates.
    fn probe(&mut self, scene: &mut Scene) {
        let heard = |node: &Node| Some((node.client.heard()?, node.client.listens()));
        let before: Vec<_> = self.nodes.iter().map(heard).collect();
        scene.note(format_args!("the probe"));
        self.server.announce(scene);
        let said = self.server.said();
        self.step(scene);
        // A client that lost its stream reconnects after at most the longest retry delay.
        self.pump(false, 50, scene);
        for (number, before) in before.into_iter().enumerate() {
            let Some(((_, updates), (hears, subscribed))) = before else { continue };
            let Some(((broadcast, updates_now), _)) = heard(&self.nodes[number]) else { continue };
            assert!(!hears || broadcast == said, "client {number}: {broadcast} of {said}");
            if let Some(expected) = subscribed {
                assert_eq!(updates_now - updates, expected, "updates of client {number}");
            }
        }
    }

    /// Checks that a server without clients releases all of its state.
    fn end_server(&mut self, scene: &mut Scene) {
        self.server.close(scene);
        for _ in 0..MOVES_MAX {
            while let Some(action) = self.server.store() {
                self.event_store.take(action, scene);
            }
            let Some(deadline) = self.server.deadline() else { break };
            scene.now = scene.now.max(deadline);
            self.server.wake(scene);
            self.check();
        }
        let machine = self.server.machine();
        assert!(machine.is_drained(), "the server is not drained");
        assert_eq!(self.server.deadline(), None, "the server has a deadline");
        assert_eq!(machine.session_count(), 0, "sessions are left after the end");
        assert_eq!(machine.retained(), (0, 0), "events are left after the end");
    }
}

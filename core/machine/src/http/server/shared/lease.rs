//! The lease of a node, and the end of nodes that have lost theirs.

use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio_collections::Key;

use crate::Instant;

use super::super::Server;
use super::super::exchange::State;
use super::super::store::StoreAction;
use super::super::store_queue::Account;
use super::super::timing::LEAST;
use super::sessions::{Doubt, Replica, Stored};
use super::waits::{Purpose, unavailable};
use super::{Lease, NodeId};

/// How often a lease is extended while it lasts.
pub(super) const HEARTBEATS: u32 = 3;
/// The pause after a heartbeat that failed. 1 s: sessions are stored again soon after a store that
/// has lost them answers, and a store that cannot be reached gets few actions.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

impl Server {
    /// Extends the lease.
    pub(super) fn beat(&mut self, now: Instant) {
        let Some(shared) = &mut self.shared else { return };
        if shared.next_heartbeat.is_none() {
            return;
        }
        shared.next_heartbeat = Some(now + (shared.options.lease / HEARTBEATS).max(LEAST));
        if core::mem::replace(&mut shared.beating, true) {
            // The result of the pending one may be older than the question.
            shared.beats_again = true;
            return;
        }
        shared.tasks.begin_beat(now);
        let absent = core::mem::take(&mut shared.absent);
        shared.asked.extend(absent);
        for replica in shared.replicas.values_mut().filter(|it| it.doubt == Doubt::New) {
            replica.doubt = Doubt::Asked;
        }
        let (node, lease, joins) = (shared.node, shared.options.lease, !shared.joined);
        // Another number each time: the store may lose its contents again.
        let contents = self.session_ids.draw_number();
        self.ask_store(Account::Node, Purpose::Heartbeat, now, |action| StoreAction::Heartbeat {
            action,
            node,
            lease,
            joins,
            contents,
        });
    }

    /// Handles the result of a heartbeat.
    pub(super) fn handle_lease(&mut self, lease: Lease, now: Instant) {
        let Some(shared) = &mut self.shared else { return };
        let was_available = core::mem::replace(&mut shared.available, true);
        shared.beating = false;
        let before = shared.contents.replace(lease.contents);
        let emptied = before.is_some_and(|before| before != lease.contents);
        if before != Some(lease.contents) || !was_available {
            shared.reached = now;
        }
        if emptied {
            shared.emptied = Some(now);
            shared.replicas.values_mut().for_each(|replica| replica.stored = Stored::No);
        }
        if before.is_none() {
            // The store may have lost what was stored before the first lease.
            let stored = shared.replicas.values_mut().filter(|it| it.stored != Stored::New);
            stored.for_each(|replica| replica.stored = Stored::No);
        }
        shared.tasks.end_beat(lease.held.then_some(shared.options.lease), emptied);
        let beats_again = core::mem::take(&mut shared.beats_again);
        if !lease.held {
            shared.joined = false;
            if !emptied {
                // Another node has ended what this one was doing.
                self.fence(now);
            }
            self.settle_absences(now);
            return self.beat(now);
        }
        shared.joined = true;
        let before = core::mem::replace(&mut shared.nodes, lease.nodes.into_iter().collect());
        let gone: Vec<NodeId> = before.difference(&shared.nodes).copied().collect();
        if !gone.is_empty() {
            shared.followers.retain(|_, nodes| {
                nodes.retain(|node| !gone.contains(node));
                !nodes.is_empty()
            });
        }
        self.store_replicas(now);
        self.settle_absences(now);
        self.drop_doubted(now);
        self.depose_silent(now);
        if beats_again {
            self.beat(now);
        }
    }

    /// Handles a heartbeat without a result.
    pub(super) fn handle_silence(&mut self, now: Instant) {
        let Some(shared) = &mut self.shared else { return };
        (shared.available, shared.beating, shared.beats_again) = (false, false, false);
        shared.next_heartbeat = shared.next_heartbeat.map(|next| next.min(now + RETRY_PAUSE));
        shared.tasks.refuse_absences();
        let mut absent = core::mem::take(&mut shared.absent);
        absent.append(&mut shared.asked);
        for session in absent {
            self.answer_parked(&session, unavailable);
        }
    }

    /// Stores the sessions that the store does not have.
    fn store_replicas(&mut self, now: Instant) {
        for key in self.replicas_that(|replica| replica.stored == Stored::No) {
            self.put_session(key, None, now);
        }
    }

    /// Drops the sessions that the store has lost although it has kept its contents: they were
    /// ended.
    fn drop_doubted(&mut self, now: Instant) {
        let is_gone = |it: &Replica| it.stored == Stored::Yes && it.doubt == Doubt::Asked;
        for key in self.replicas_that(is_gone) {
            self.end_removed(key, now);
        }
    }

    fn replicas_that(&self, wanted: fn(&Replica) -> bool) -> Vec<Key> {
        let replicas = self.shared.iter().flat_map(|shared| &shared.replicas);
        let found = replicas.filter(|(_, replica)| wanted(replica));
        found.map(|(number, _)| Key::from_number(*number)).collect()
    }

    /// Deposes the nodes that do not extend their leases and whose streams have a reader here.
    pub(super) fn depose_silent(&mut self, now: Instant) {
        let Some(shared) = &mut self.shared else { return };
        if !shared.joined {
            return;
        }
        let mut silent: Vec<NodeId> = shared.following.values().copied().collect();
        silent.retain(|node| !shared.nodes.contains(node));
        for node in silent {
            let Some(shared) = &mut self.shared else { return };
            if shared.deposing.insert(node) {
                self.depose(Purpose::Depose(node), node, now);
            }
        }
    }

    /// Asks the store to remove a node that does not extend its lease.
    pub(super) fn depose(&mut self, purpose: Purpose, node: NodeId, now: Instant) {
        let contents = self.shared.as_ref().and_then(|shared| shared.contents).unwrap_or_default();
        self.ask_store(Account::Node, purpose, now, |action| StoreAction::Depose {
            action,
            node,
            contents,
        });
    }

    /// Handles the result of deposing a node.
    pub(super) fn handle_deposed(&mut self, node: NodeId, deposed: bool, now: Instant) {
        let Some(shared) = &mut self.shared else { return };
        shared.deposing.remove(&node);
        if !deposed {
            return;
        }
        let streams = shared.following.iter().filter(|(_, owner)| **owner == node);
        let streams: Vec<(u64, u32)> = streams.map(|(stream, _)| *stream).collect();
        for (session, stream) in streams {
            self.orphan(Key::from_number(session), stream, now);
        }
    }

    /// Ends everything that this node owned, because another one may have ended it for the clients.
    /// Requests without a response get one error; streams break off, and are resumed elsewhere.
    fn fence(&mut self, now: Instant) {
        let node = NodeId(self.session_ids.draw_number());
        let Some(shared) = &mut self.shared else { return };
        shared.node = node;
        shared.tasks.depose();
        let keys: Vec<u64> = shared.replicas.keys().copied().collect();
        for number in keys {
            self.drop_replica(Key::from_number(number), now);
        }
    }

    /// Drops a session of this node, which others may continue.
    fn drop_replica(&mut self, key: Key, now: Instant) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.machine.abandon(now);
        let readers: Vec<Key> =
            connection.streams.iter().filter_map(|stream| stream.reader).collect();
        self.collect_events(key);
        self.forget_session(key);
        for reader in readers {
            let Some(entry) = self.exchanges.get_mut(reader) else { continue };
            entry.connection = None;
            entry.state = match entry.state {
                State::Waiting | State::Reading | State::Opening => State::Whole(unavailable()),
                _ => State::Aborted,
            };
            self.exchange_deadlines.clear(reader.slot);
            self.make_ready(reader);
        }
    }
}

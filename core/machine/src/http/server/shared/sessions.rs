//! Sessions in the store, and their replicas on this node.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio_collections::Key;
use sha2::{Digest, Sha256};

use crate::http::{Response, SessionId};
use crate::jsonrpc::{Json, RawJson};
use crate::peer::server::SessionState;
use crate::protocol::{Capabilities, Capability, LoggingLevel};
use crate::{Instant, Principal, Revision};

use super::super::sessions::Transport;
use super::super::sessions::no_session;
use super::super::store::StoreAction;
use super::super::store_queue::Account;
use super::super::{Connection, Server};
use super::relay::{NodeMessage, Origin};
use super::tasks::session_requestor;
use super::waits::{Held, Purpose, unavailable};
use super::{NodeId, SessionRecord, StoreError};

/// A session on this node.
#[derive(Debug)]
pub(super) struct Replica {
    /// The name of the session in messages.
    pub(super) name: String,
    /// Identifies its caller in the shares of mailboxes.
    pub(super) caller: String,
    /// The nodes of all known replicas, by the numbers of these.
    pub(super) owners: Vec<(u32, NodeId)>,
    /// When its expiry in the store was last extended.
    touched: Instant,
    /// Whether the store has it, as far as this node knows.
    pub(super) stored: Stored,
    /// Whether the store did not have it when it was last used.
    pub(super) doubt: Doubt,
}

impl Replica {
    fn new(
        session: &SessionId,
        caller: String,
        owners: Vec<(u32, NodeId)>,
        stored: Stored,
        now: Instant,
    ) -> Self {
        let name = session_name(session);
        Self { name, caller, owners, touched: now, stored, doubt: Doubt::No }
    }
}

/// Whether the store may have lost a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    No,
    New,
    /// The pending heartbeat finds out.
    Asked,
}

/// Whether the store has a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// No action was sent yet.
    New,
    No,
    /// The action is pending.
    Pending,
    Yes,
}

/// The number of the replica on the node that creates a session.
pub(in super::super) const FIRST_REPLICA: u32 = 1;

/// The bits of a stream's number that count the streams of its replica: 262,144. A replica that has
/// used them gets another number, of which there are 16,383.
const STREAM_BITS: u32 = 18;
/// The bits of an id that count a replica's requests to the client: too many to be used up. All ids
/// have 53 bits, so that clients written in JavaScript return them unchanged.
// MCP 2025-11-25 basic/index#requests [RPC-004]: each replica has ids of its own.
const CALL_BITS: u32 = 39;
/// The number after the last replica.
const REPLICAS_MAX: u32 = 1 << (32 - STREAM_BITS);

/// Returns how many numbers to skip after those taken when a session is stored again in a store
/// that has lost it. The node may not know the last replicas, and their numbers must not be used
/// again, because clients may know ids of their events. At least 16, and random up to half of those
/// left, because the store may lose it again, and another node may do the same.
fn unknown_replicas(taken: u32, random: u64) -> u32 {
    let left = u64::from(REPLICAS_MAX.saturating_sub(taken));
    16 + u32::try_from(random % (left / 2).max(1)).unwrap_or_default()
}

/// The longest description of a client, and of its extensions, that is stored, in bytes. A session
/// takes at most 1 KiB. Longer ones are known to the node only that opened the session.
const CLIENT_INFO_LENGTH_MAX: usize = 256;

/// How long a store refuses writes to a session that has ended, in leases: until each node that
/// lives has taken the message about it or its lease has expired. 1 minute by default, as long as
/// messages wait.
const REMOVED_LEASES: u32 = 4;

/// Returns the number of a replica's first stream.
pub(in super::super) const fn first_of(replica: u32) -> u32 {
    replica << STREAM_BITS
}

/// Returns the id of a replica's first request to the client.
fn first_call_of(replica: u32) -> i64 {
    (i64::from(replica) << CALL_BITS) + 1
}

/// Returns the replica to which a request to the client belongs.
pub(super) fn replica_of_call(id: i64) -> Option<u32> {
    u32::try_from(id >> CALL_BITS).ok()
}

/// Returns the replica to which a stream belongs.
pub(super) const fn replica_of(number: u32) -> u32 {
    number >> STREAM_BITS
}

/// Returns whether a replica has no number for another stream after this one.
pub(super) const fn is_used_up(next_stream: u32) -> bool {
    next_stream.trailing_ones() >= STREAM_BITS
}

/// Returns whether a stream is for messages that belong to no request.
pub(in super::super) const fn is_standalone(number: u32) -> bool {
    number.trailing_zeros() >= STREAM_BITS
}

/// Field names of a session.
const REVISION: &str = "revision";
const CAPABILITIES: &str = "capabilities";
const CLIENT: &str = "client";
const EXTENSIONS: &str = "extensions";
const PRINCIPAL: &str = "principal";
pub(super) const INITIALIZED: &str = "initialized";
pub(super) const LEVEL: &str = "level";
const SUBSCRIPTION: &str = "sub:";

/// Returns the field for a subscription.
pub(super) fn subscription(uri: &str) -> String {
    format!("{SUBSCRIPTION}{uri}")
}

impl Server {
    /// Registers a session that this node has just opened.
    pub(in super::super) fn share_session(&mut self, key: Key, now: Instant) {
        let Some(connection) = self.connections.get(key) else { return };
        let Some(session) = connection.session_id() else { return };
        let caller = self.callers.label(connection.caller);
        let Some(shared) = &mut self.shared else { return };
        let owners = alloc::vec![(FIRST_REPLICA, shared.node)];
        shared.insert_replica(key, Replica::new(&session, caller, owners, Stored::New, now));
        shared.opened = Some(key);
        if let Some(connection) = self.connections.get_mut(key) {
            connection.machine.start_call_ids(first_call_of(FIRST_REPLICA));
        }
    }

    /// Stores a session of this node.
    pub(super) fn put_session(&mut self, key: Key, held: Option<Held>, now: Instant) {
        let node = self.shared.as_ref().map(|shared| shared.node);
        let Some(Connection { machine, session: Some(session), streams, .. }) =
            self.connections.get(key)
        else {
            return;
        };
        let (Some(node), Some(state)) = (node, machine.session_state()) else { return };
        let (session, replica) = (session.id, replica_of(streams.first_number()));
        let fields = fields_of(&state, machine.caller().principal());
        let idle = self.stored_idle();
        let known = self.shared.as_ref().and_then(|it| it.replicas.get(&key.to_number()));
        let highest = known.into_iter().flat_map(|it| &it.owners).map(|(number, _)| *number).max();
        let taken = highest.unwrap_or(replica);
        let again = known.is_some_and(|known| known.stored != Stored::New);
        let random = if again { self.session_ids.draw_number() } else { 0 };
        let skipped = if again { unknown_replicas(taken, random) } else { 0 };
        self.set_stored(key, Stored::Pending);
        let account = self.account_of(key);
        self.ask_store(account, Purpose::Put { session: key, held }, now, |action| {
            StoreAction::PutSession { action, session, replica, taken, skipped, node, fields, idle }
        });
    }

    pub(super) fn set_stored(&mut self, key: Key, stored: Stored) {
        if let Some(replica) =
            self.shared_mut().and_then(|shared| shared.replicas.get_mut(&key.to_number()))
        {
            (replica.stored, replica.doubt) = (stored, Doubt::No);
        }
    }

    /// Handles a session that this node has and the store does not. A heartbeat finds out whether
    /// the session was ended or the store has lost its contents.
    pub(super) fn doubt(&mut self, key: Key, now: Instant) {
        if let Some(replica) =
            self.shared_mut().and_then(|shared| shared.replicas.get_mut(&key.to_number()))
        {
            replica.doubt = Doubt::New;
            self.beat(now);
        }
    }

    /// Returns how long the store keeps a session after its last use: longer than a node, which
    /// extends the expiry of a session whose stream is open only when it would be idle.
    pub(super) fn stored_idle(&self) -> Duration {
        self.options.timeouts.session_idle.saturating_mul(2)
    }

    /// Extends the expiry of a session that is in use, four times while it lasts.
    pub(in super::super) fn touch_shared(&mut self, key: Key, now: Instant) {
        let pause = self.options.timeouts.session_idle / 4;
        let Some(replica) =
            self.shared_mut().and_then(|shared| shared.replicas.get_mut(&key.to_number()))
        else {
            return;
        };
        if now >= replica.touched + pause {
            self.change_session(key, Vec::new(), Purpose::Change { session: key, held: None }, now);
        }
    }

    /// Changes fields of a session in the store, and completes `purpose` with the outcome.
    pub(super) fn change_session(
        &mut self,
        key: Key,
        fields: Vec<(String, Option<String>)>,
        purpose: Purpose,
        now: Instant,
    ) {
        let idle = self.stored_idle();
        let Some(session) = self.connections.get(key).and_then(Connection::session_id) else {
            return;
        };
        if let Some(replica) =
            self.shared_mut().and_then(|shared| shared.replicas.get_mut(&key.to_number()))
        {
            replica.touched = now;
        }
        let origin = self.origin_of(key);
        for (field, value) in &fields {
            let set = NodeMessage::Set {
                session: session_name(&session).into(),
                field: field.into(),
                value: value.as_deref().map(Into::into),
            };
            self.broadcast(&origin, &set);
        }
        self.ask_store(origin.account, purpose, now, |action| StoreAction::SetFields {
            action,
            session,
            fields,
            idle,
        });
    }

    /// Applies a change that another node has made.
    pub(super) fn adopt_change(&mut self, key: Key, field: &str, value: Option<&str>) {
        let Some(Connection { machine, .. }) = self.connections.get_mut(key) else { return };
        match (field, field.strip_prefix(SUBSCRIPTION)) {
            (_, Some(uri)) => machine.set_subscribed(uri, value.is_some()),
            (INITIALIZED, _) => machine.set_initialized(),
            (LEVEL, _) => {
                if let Some(level) = value.and_then(level_of) {
                    machine.set_log_level_of_session(level);
                }
            }
            _ => {}
        }
    }

    /// Ends a session on all nodes and in the store.
    pub(in super::super) fn end_shared_session(&mut self, key: Key, now: Instant) {
        let Some(connection) = self.connections.get(key) else { return };
        let session = connection.session_id();
        let principal = connection.machine.caller().principal().cloned();
        let replicas = self.shared.as_ref().map(|shared| &shared.replicas);
        let is_shared = replicas.is_some_and(|it| it.contains_key(&key.to_number()));
        let account = self.account_of(key);
        self.end_session(key, now);
        if let Some(session) = session.filter(|_| is_shared) {
            self.remove_session((session, account), principal.as_ref(), None, now);
        }
    }

    /// Removes a session that has ended here from the store and from all other nodes.
    pub(super) fn remove_session(
        &mut self,
        (session, account): (SessionId, Account),
        principal: Option<&Principal>,
        held: Option<Held>,
        now: Instant,
    ) {
        let Some(shared) = &self.shared else { return };
        let refused_for = shared.options.lease * REMOVED_LEASES;
        let requestor = principal.is_none().then(|| session_requestor(&session));
        self.note_ended_tasks(&session);
        // The end of a session is among what traffic cannot displace.
        let origin = Origin { account, ..Origin::node() };
        self.broadcast(&origin, &NodeMessage::Ended { session: session_name(&session).into() });
        self.ask_store(account, Purpose::Relay(held), now, |action| StoreAction::RemoveSession {
            action,
            session,
            requestor,
            refused_for,
        });
    }

    // ------------------------------------------------------------------ replicas

    /// Handles the record of a session for which requests wait: only if this node needs another
    /// replica, and they may use it, one is opened.
    pub(super) fn handle_read(&mut self, session: &SessionId, record: SessionRecord, now: Instant) {
        let used_up = match self.key_of_session(session) {
            Some(key) => {
                self.adopt_record(key, record);
                let connection = self.connections.get(key);
                let known = connection.and_then(|connection| connection.session.as_ref());
                known.is_some_and(|known| is_used_up(known.next_stream))
            }
            None => {
                if let Err(response) = self.check_record(session, &record, now) {
                    return self.answer_parked(session.as_str(), || response.clone());
                }
                true
            }
        };
        if used_up {
            return self.request_session(*session, now);
        }
        self.resume_parked(session, now);
    }

    /// Checks whether this node may open a replica of a session.
    fn check_record(
        &mut self,
        session: &SessionId,
        record: &SessionRecord,
        now: Instant,
    ) -> Result<(), Response> {
        let Some((_, principal)) = state_of(&record.fields) else { return Err(no_session(None)) };
        let Some((identity, remote)) = self.parked_sender(session, &principal) else {
            return Err(no_session(None));
        };
        let caller = self.callers.enter(identity.principal(), remote);
        let checked = self.check_session_limits(caller, None, now);
        self.callers.close_exchange(caller);
        checked
    }

    /// Adopts the fields that other nodes have stored for a session of this node.
    fn adopt_record(&mut self, key: Key, record: SessionRecord) {
        for (field, value) in &record.fields {
            self.adopt_change(key, field, Some(value));
        }
        self.adopt_owners(key, record.owners);
    }

    /// Adopts the nodes of all replicas of a session.
    pub(super) fn adopt_owners(&mut self, key: Key, owners: Vec<(u32, NodeId)>) {
        if let Some(shared) = self.shared_mut()
            && let Some(known) = shared.replicas.get_mut(&key.to_number())
        {
            // The store may have lost what this node knows about itself.
            known.owners.retain(|(number, node)| {
                *node == shared.node && owners.iter().all(|(other, _)| other != number)
            });
            known.owners.extend(owners);
        }
    }

    /// Opens a replica of a session from its record, and handles the requests that wait for it.
    pub(super) fn handle_record(
        &mut self,
        session: &SessionId,
        record: SessionRecord,
        now: Instant,
    ) {
        let own = self.shared.as_ref().map(|shared| shared.node);
        let owner = record.owners.iter().find(|(number, _)| *number == record.replica);
        if owner.is_some_and(|(_, node)| Some(*node) != own) {
            // This node has lost its lease and its id meanwhile: the replica could not be reached.
            return self.request_session(*session, now);
        }
        if let Err(response) = self.open_replica(session, record, now) {
            return self.answer_parked(session.as_str(), || response.clone());
        }
        self.resume_parked(session, now);
    }

    fn open_replica(
        &mut self,
        session: &SessionId,
        record: SessionRecord,
        now: Instant,
    ) -> Result<(), Response> {
        let SessionRecord { replica: number, owners, fields } = record;
        let is_valid = (1..REPLICAS_MAX).contains(&number);
        // Not used if it is invalid.
        let first = first_of(number & (REPLICAS_MAX - 1));
        if let Some(key) = self.key_of_session(session) {
            // It was opened meanwhile, or its replica is used up.
            self.adopt_record(key, SessionRecord { replica: number, owners, fields });
            if let Some(Connection { machine, session: Some(session), .. }) =
                self.connections.get_mut(key)
                && is_used_up(session.next_stream)
            {
                if !is_valid {
                    return Err(no_session(None));
                }
                session.next_stream = first + 1;
                machine.start_call_ids(first_call_of(number));
            }
            return Ok(());
        }
        if !is_valid {
            return Err(no_session(None));
        }
        let Some((state, principal)) = state_of(&fields) else { return Err(no_session(None)) };
        let Some((identity, remote)) = self.parked_sender(session, &principal) else {
            return Err(no_session(None));
        };
        let caller = self.callers.enter(identity.principal(), remote);
        let checked = self.check_session_limits(caller, None, now);
        if checked.is_ok() {
            let mut machine = self.fresh_machine();
            machine.restore_session(state);
            machine.start_call_ids(first_call_of(number));
            machine.set_caller(&identity);
            let key =
                self.insert_session(*session, Transport::Streamable, first, machine, caller, now);
            self.prime_standalone(key);
            let label = self.callers.label(caller);
            let replica = Replica::new(session, label, owners, Stored::Yes, now);
            if let Some(shared) = self.shared_mut() {
                shared.insert_replica(key, replica);
            }
        }
        self.callers.close_exchange(caller);
        checked
    }

    /// Handles a session that the store does not have. A heartbeat finds out whether the store has
    /// lost it, so that no client gives up a session that another node still has.
    pub(super) fn handle_absence(&mut self, session: &SessionId, now: Instant) {
        match self.shared_mut() {
            Some(shared) if shared.next_heartbeat.is_some() => {
                shared.absent.push(session.as_str().into());
                self.beat(now);
            }
            // The node has left.
            _ => self.refuse_parked(session),
        }
    }

    /// Answers the requests for sessions that the store does not have.
    pub(super) fn settle_absences(&mut self, now: Instant) {
        let Some(shared) = self.shared_mut() else { return };
        let lost = shared.is_recovering(now);
        let error = if lost { StoreError::Unavailable } else { StoreError::Missing };
        shared.tasks.settle_absences(error);
        for session in core::mem::take(&mut shared.asked) {
            if lost {
                self.answer_parked(&session, unavailable);
            } else {
                self.answer_parked(&session, || no_session(None));
            }
        }
    }
}

/// Returns the fields of a session.
fn fields_of(state: &SessionState, principal: Option<&Principal>) -> Vec<(String, String)> {
    let names: Vec<String> = state.client.iter().map(|it| it.to_string()).collect();
    let client = state.client_info.as_str();
    let client = if client.len() > CLIENT_INFO_LENGTH_MAX { "null" } else { client };
    let mut fields = alloc::vec![
        (REVISION.to_string(), state.revision.as_str().to_string()),
        (CAPABILITIES.to_string(), names.join(" ")),
        (CLIENT.to_string(), client.to_string()),
        (PRINCIPAL.to_string(), digest_of(principal)),
        (LEVEL.to_string(), state.log_level.as_str().to_string()),
    ];
    if let Some(extensions) = &state.client_extensions
        && extensions.as_str().len() <= CLIENT_INFO_LENGTH_MAX
    {
        fields.push((EXTENSIONS.to_string(), extensions.as_str().to_string()));
    }
    if state.initialized {
        fields.push((INITIALIZED.to_string(), "1".to_string()));
    }
    fields.extend(state.subscribed.iter().map(|uri| (subscription(uri), "1".to_string())));
    fields
}

/// Returns the state in the fields of a session, and the digest of its principal.
fn state_of(fields: &[(String, String)]) -> Option<(SessionState, String)> {
    let field = |name: &str| {
        let found = fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    };
    let revision = Revision::parse(field(REVISION)?)?;
    let mut client = Capabilities::NONE;
    for name in field(CAPABILITIES)?.split(' ') {
        // A newer node may know more of them.
        let known = Capability::ALL.into_iter().find(|it| it.to_string() == name);
        client = known.map_or(client, |known| client.with(known, true));
    }
    let json = |text| RawJson::parse(text).ok().map(|it| Json::from(it.into_owned()));
    let subscribed = fields.iter().filter_map(|(name, _)| name.strip_prefix(SUBSCRIPTION));
    let state = SessionState {
        revision,
        client,
        client_info: json(field(CLIENT)?)?,
        client_extensions: field(EXTENSIONS).and_then(json),
        initialized: field(INITIALIZED).is_some(),
        log_level: field(LEVEL).and_then(level_of).unwrap_or(LoggingLevel::Info),
        subscribed: subscribed.map(Into::into).collect(),
    };
    Some((state, field(PRINCIPAL)?.into()))
}

pub(super) fn level_of(text: &str) -> Option<LoggingLevel> {
    let quoted = format!("\"{text}\"");
    RawJson::parse(&quoted).ok()?.decode().ok()
}

/// Returns the name of a session in messages, half of a hash: the id is a secret.
pub(super) fn session_name(session: &SessionId) -> String {
    let hash = Sha256::digest(session.as_str());
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a digest of a principal, whose text may be long and personal; empty if it is unknown.
// MCP 2025-11-25 security-best-practices#session-hijacking [SESS-014]
pub(super) fn digest_of(principal: Option<&Principal>) -> String {
    let Some(principal) = principal else { return String::new() };
    let hash = Sha256::new().chain_update(b"principal").chain_update(principal.as_str()).finalize();
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Caller;
    use crate::http::{HttpServerOptions, RequestHead, SharedOptions};
    use crate::peer::ServerOptions;
    use crate::protocol::Implementation;

    #[test]
    fn the_ids_of_requests_to_the_client_belong_to_their_replica_and_have_53_bits() {
        // Rule: [RPC-004].
        let last_of = |replica| first_call_of(replica + 1) - 2;
        for replica in [FIRST_REPLICA, 2, REPLICAS_MAX - 1] {
            for id in [first_call_of(replica), first_call_of(replica) + (1 << 32), last_of(replica)]
            {
                assert_eq!(replica_of_call(id), Some(replica), "{id}");
            }
        }
        assert!(last_of(REPLICAS_MAX - 1) < 1 << 53);
        assert_eq!(replica_of_call(-1), None);
    }

    #[test]
    fn no_message_gets_a_stream_of_the_next_replica() {
        let peer = ServerOptions::new(Implementation::new("s", "1"));
        let options = HttpServerOptions::new().shared(SharedOptions::new());
        let mut server = Server::new(peer, options, [0; 32], 0).unwrap();
        let post = |server: &mut Server, session: Option<&SessionId>, body: &str| {
            let mut head = RequestHead::new("POST", "/mcp");
            head.field("host", b"localhost");
            head.field("content-type", b"application/json");
            head.session_id = session.map(|session| session.as_str().as_bytes());
            server.handle_request(&head, body.as_bytes(), &Caller::ANONYMOUS, Instant::ZERO);
        };
        let opening = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":
            "2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
        post(&mut server, None, opening);
        let (key, connection) = server.connections.iter().next().unwrap();
        let id = connection.session_id().unwrap();
        let last = first_of(FIRST_REPLICA + 1) - 1;
        for malformed in [
            r#"{"jsonrpc":"2.0","id":2}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe"}"#,
        ] {
            server.connections.get_mut(key).unwrap().session.as_mut().unwrap().next_stream = last;
            post(&mut server, Some(&id), malformed);
            let session = server.connections.get(key).unwrap().session.as_ref().unwrap();
            assert_eq!(session.next_stream, last, "it waits for another replica");
        }
    }
}

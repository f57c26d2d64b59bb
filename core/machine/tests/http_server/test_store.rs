//! A minimal event store, and streams whose readers need it.

use std::collections::BTreeMap;

use mcp_sansio::http::{
    EventPosition, EventStore, HttpServerOptions, NotStored, ReadId, ServerLimits, SessionId,
    StoreAction, StoredEvent,
};
use mcp_sansio::peer::RequestHandle;
use mcp_sansio::{Principal, Revision};

use crate::fixtures::*;
use crate::test_server::{TestServer, Ticket};

/// Session, principal and stream of events.
pub(crate) type Owner = (String, Option<Principal>, u32);

/// A minimal event store.
#[derive(Default)]
pub(crate) struct TestStore {
    pub(crate) events: BTreeMap<Owner, BTreeMap<u64, Vec<u8>>>,
    /// Pending reads.
    pub(crate) reads: Vec<(ReadId, EventPosition, usize, usize)>,
    pub(crate) forgotten: Vec<(SessionId, Option<u32>, Option<Principal>)>,
    /// How many reads were requested.
    pub(crate) asked: usize,
}

pub(crate) fn owner(position: &EventPosition) -> Owner {
    (position.session.as_str().to_owned(), position.principal.clone(), position.stream)
}

impl TestStore {
    /// Performs all store actions except reads, which become pending.
    pub(crate) fn take_actions(&mut self, server: &mut TestServer) {
        while let Some(action) = server.server.poll_store() {
            server.server.assert_consistent();
            match action {
                StoreAction::Append { event: StoredEvent { position, message, .. } } => {
                    let stream = self.events.entry(owner(&position)).or_default();
                    let before = stream.last_key_value().map_or(0, |(last, _)| last + 1);
                    assert!(position.sequence >= before, "each event is stored once, and in order");
                    stream.insert(position.sequence, message);
                }
                StoreAction::Read { read, from, events_max, bytes_max } => {
                    self.asked += 1;
                    self.reads.push((read, from, events_max, bytes_max));
                }
                StoreAction::Forget { session, stream, principal } => {
                    self.events.retain(|(of, whose, number), _| {
                        of != session.as_str()
                            || *whose != principal
                            || stream.is_some_and(|stream| stream != *number)
                    });
                    self.forgotten.push((session, stream, principal));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn find(
        &self,
        from: &EventPosition,
        events_max: usize,
        bytes_max: usize,
    ) -> Vec<StoredEvent> {
        let mut bytes = 0;
        let stream = self.events.get(&owner(from)).into_iter().flatten();
        let found = stream.skip_while(|(sequence, _)| **sequence < from.sequence);
        found
            .take(events_max)
            .take_while(|(sequence, message)| {
                bytes += message.len();
                **sequence == from.sequence || bytes <= bytes_max
            })
            .map(|(sequence, message)| {
                let position = EventPosition { sequence: *sequence, ..from.clone() };
                StoredEvent::new(position, message.clone())
            })
            .collect()
    }

    /// Completes all pending reads, and those that follow.
    pub(crate) fn serve(&mut self, server: &mut TestServer) {
        self.take_actions(server);
        while !self.reads.is_empty() {
            let (read, from, events_max, bytes_max) = self.reads.remove(0);
            let found = self.find(&from, events_max, bytes_max);
            complete(server, read, Ok(found));
            self.take_actions(server);
        }
    }

    /// Removes and returns the only pending read.
    #[track_caller]
    pub(crate) fn read(&mut self, server: &mut TestServer) -> (ReadId, EventPosition) {
        self.take_actions(server);
        assert_eq!(self.reads.len(), 1);
        let (read, from, ..) = self.reads.remove(0);
        (read, from)
    }
}

pub(crate) fn complete(
    server: &mut TestServer,
    read: ReadId,
    events: Result<Vec<StoredEvent>, NotStored>,
) {
    server.server.handle_stored(read, events, server.now);
    server.pump();
}

pub(crate) fn options(change: impl FnOnce(&mut ServerLimits)) -> HttpServerOptions {
    limits(|limits| {
        limits.replay_events_max = 1;
        limits.store_page_events_max = 2;
        change(limits);
    })
    .event_store(EventStore::External)
}

pub(crate) fn stored_server() -> TestServer {
    server_with(options(|_| ()))
}

/// Makes a call with `count` progress notifications.
pub(crate) fn call_with(
    server: &mut TestServer,
    session: &Session,
    id: u32,
    count: u32,
) -> (Ticket, RequestHandle) {
    let reply = server.post(session, &call(id));
    let asked = server.asked();
    for progress in 1..=count {
        server.progress(asked.handle, f64::from(progress));
    }
    (reply, asked.handle)
}

/// Returns the id of the event with this index among those that have an id.
pub(crate) fn id_at(server: &TestServer, ticket: Ticket, at: usize) -> String {
    server.reply(ticket).events().into_iter().filter_map(|it| it.id).nth(at).expect("an id")
}

/// Opens a session with a call that has sent progress 1 to 6, of which the server has only the last
/// in memory, and resumes after 1: the response waits for the store.
pub(crate) fn behind(
    server: &mut TestServer,
    store: &mut TestStore,
) -> (Session, RequestHandle, Ticket) {
    let session = server.open(Revision::V2025_11_25, "{}");
    let (reply, handle) = call_with(server, &session, 1, 6);
    let seen = id_at(server, reply, 1);
    server.disconnect(reply);
    store.take_actions(server);
    let back = server.resume(&session, &seen);
    assert_eq!(server.reply(back).status, None, "the head waits for the store");
    (session, handle, back)
}

//! Several servers that share their clients and their limits.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Duration;

use mcp_sansio::catalog::Changes;
use mcp_sansio::http::{
    EventStore, HttpServerOptions, RequestHead, SessionId, Shards, ShardsWithStore, SharedOptions,
};
use mcp_sansio::protocol::Tool;
use mcp_sansio::{Caller, Principal, Revision};

use crate::fixtures::*;
use crate::test_server::{TestServer, Ticket};

fn count(shards: usize) -> NonZeroUsize {
    NonZeroUsize::new(shards).unwrap()
}

/// Returns the shards of a server, and their shared state.
fn sharded(shards: usize, options: HttpServerOptions) -> (Vec<TestServer>, Shards) {
    sharded_as(shards, options, false)
}

fn sharded_as(
    shards: usize,
    options: HttpServerOptions,
    recorded: bool,
) -> (Vec<TestServer>, Shards) {
    let options = options.shards(count(shards));
    let shards = Shards::new(&options, 0).unwrap();
    let shard =
        |index| TestServer::shard(full_server(), options.clone(), (&shards, index), recorded);
    ((0..shards.count()).map(shard).collect(), shards.clone())
}

fn head<'a>(method: &'a str, target: &'a str, fields: &[(&'a str, &'a str)]) -> RequestHead<'a> {
    let mut head = RequestHead::new(method, target);
    for (name, value) in fields {
        head.field(name, value.as_bytes());
    }
    head
}

fn as_user(servers: &mut [TestServer], name: &str) {
    servers.iter_mut().for_each(|server| server.principal = Some(Principal::new(name)));
}

fn open(server: &mut TestServer) -> Session {
    server.open(Revision::V2025_11_25, "{}")
}

fn try_to_open(server: &mut TestServer) -> u16 {
    let opened = server.request("POST", "/mcp", &POST, &initialize(Revision::V2025_11_25, "{}"));
    server.reply(opened).status()
}

fn ping(server: &mut TestServer, session: &Session) -> u16 {
    let reply = server.post(session, r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#);
    server.reply(reply).status()
}

/// Makes a call with one message on its stream, whose client then disconnects. Returns the event
/// id.
fn left_behind(server: &mut TestServer, session: &Session, id: u32) -> String {
    let reply = server.post(session, &call(id));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    server.disconnect(reply);
    server.answer_to(asked.handle);
    server.reply(reply).last_id().unwrap()
}

#[test]
fn the_id_of_a_session_names_its_shard_and_no_shard_repeats_an_id() {
    // Rule: [SESS-002] [SESS-013].
    let mut ids = BTreeSet::new();
    for shards in [1, 2, 3, 7, 255, 256, 1000] {
        let (mut servers, shared) = sharded(shards, HttpServerOptions::new());
        assert_eq!(shared.count(), shards.min(Shards::COUNT_MAX));
        for (index, server) in servers.iter_mut().enumerate() {
            for _ in 0..3 {
                let session = server.open_unconfirmed(Revision::V2025_11_25, "{}");
                let id = SessionId::parse(session.id.as_bytes()).unwrap();
                assert_eq!(shared.of_session(&id), index, "{session:?} of {shards} shards");
                let placed = shared.place(&head("GET", "/mcp", &session.fields()), &ANYONE);
                assert_eq!(placed, Some(index));
                // The shards have one secret, but the rest of their ids is not the same either.
                assert!(ids.insert((shards, session.id[..30].to_owned())), "{session:?}");
            }
        }
    }
}

const ANYONE: Caller = Caller::ANONYMOUS;

#[test]
fn any_shard_may_handle_a_request_outside_of_a_session() {
    // Rule: [SESS-016].
    let options = HttpServerOptions::new().legacy_sse("/sse", "/messages").shards(count(4));
    let shards = Shards::new(&options, 0).unwrap();
    let user = Caller::from(Some(Principal::new("ann")));
    let id = "0123456789abcdef0123456789abcd07";
    let in_session = ("Mcp-Session-Id", id);
    let modern = ("MCP-Protocol-Version", "2026-07-28");
    for caller in [&ANYONE, &user] {
        assert_eq!(shards.place(&head("POST", "/mcp", &[]), caller), None);
        assert_eq!(shards.place(&head("POST", "/mcp", &[modern]), caller), None);
        assert_eq!(shards.place(&head("POST", "/mcp", &[modern, in_session]), caller), None);
        assert_eq!(shards.place(&head("GET", "/sse", &[]), caller), None);
        assert_eq!(shards.place(&head("POST", "/mcp", &[in_session]), caller), Some(3));
        let target = format!("/messages?a=b&sessionId={id}");
        assert_eq!(shards.place(&head("POST", &target, &[]), caller), Some(3));
        // No session has these ids, so any shard may say so.
        for id in ["", "%", "0123"] {
            let unknown = head("POST", "/mcp", &[("Mcp-Session-Id", id)]);
            assert_eq!(shards.place(&unknown, caller), None, "{id}");
        }
    }
    // With state for each caller, its requests stay together.
    let shards = Shards::new(&options, 0).unwrap().by_principal();
    let placed = shards.place(&head("POST", "/mcp", &[]), &user);
    assert!(placed.is_some());
    assert_eq!(shards.place(&head("POST", "/mcp", &[modern]), &user), placed);
    assert_eq!(shards.place(&head("POST", "/mcp", &[modern, in_session]), &user), placed);
    assert_eq!(shards.place(&head("POST", "/mcp", &[in_session]), &user), Some(3));
    assert_eq!(shards.place(&head("POST", "/mcp", &[modern]), &ANYONE), Some(0));
    assert_eq!(shards.place(&head("POST", "/mcp", &[]), &ANYONE), None);
    let users = (0..64).map(|user| Caller::from(Some(Principal::new(user.to_string()))));
    let placed = users.map(|user| shards.place(&head("POST", "/mcp", &[modern]), &user));
    assert_eq!(placed.collect::<BTreeSet<_>>().len(), 4, "users are spread over all shards");
}

#[test]
fn shards_have_no_store() {
    for options in [
        HttpServerOptions::new().event_store(EventStore::External),
        HttpServerOptions::new().shared(SharedOptions::new()),
    ] {
        assert_eq!(Shards::new(&options.shards(count(2)), 0).err(), Some(ShardsWithStore));
    }
}

#[test]
fn a_session_lives_in_its_shard() {
    // Rule: [SESS-010] [RESUME-006].
    let (mut servers, shards) = sharded(3, HttpServerOptions::new());
    let sessions: Vec<_> = servers.iter_mut().map(open).collect();
    for (index, session) in sessions.iter().enumerate() {
        let server = &mut servers[index];
        let reply = server.post(session, &call(1));
        let asked = server.asked();
        server.progress(asked.handle, 1.0);
        server.disconnect(reply);
        let last = server.reply(reply).last_id().unwrap();
        server.progress(asked.handle, 2.0);
        server.answer_to(asked.handle);
        let resumed = server.resume(session, &last);
        assert_eq!(server.reply(resumed).messages().len(), 2);
        for (other, server) in servers.iter_mut().enumerate() {
            assert_eq!(ping(server, session), if other == index { 200 } else { 404 });
        }
    }
    for (index, session) in sessions.iter().enumerate() {
        let deleted = servers[index].delete(session);
        assert_eq!(servers[index].reply(deleted).status(), 204);
        assert_eq!(ping(&mut servers[index], session), 404);
    }
    let counts = [shards.session_count(), shards.exchange_count(), shards.stream_bytes()];
    assert_eq!(counts, [0; 3]);
    assert_eq!(shards.caller_count(), 0);
    servers.iter_mut().for_each(TestServer::expect_empty);
}

#[test]
fn the_sessions_of_all_shards_are_counted_together() {
    let options = limits(|limits| (limits.sessions_max, limits.sessions_per_caller_max) = (5, 3));
    let (mut servers, shards) = sharded(2, options);
    // Without a caller there is no session that could be ended.
    let sessions: Vec<_> = (0..5).map(|at| (at % 2, open(&mut servers[at % 2]))).collect();
    for server in &mut servers {
        assert_eq!(try_to_open(server), 503);
    }
    assert_eq!(shards.session_count(), 5);
    for (at, session) in &sessions {
        servers[*at].delete(session);
    }
    let counts = [shards.session_count(), shards.exchange_count(), shards.stream_bytes()];
    assert_eq!(counts, [0; 3]);
    assert_eq!(shards.caller_count(), 0);
    // A caller has its limit in all shards together.
    as_user(&mut servers, "ann");
    let own = [0, 1, 1].map(|at| (at, open(&mut servers[at])));
    for server in &mut servers {
        assert_eq!(try_to_open(server), 429);
    }
    as_user(&mut servers, "bob");
    assert_eq!(try_to_open(&mut servers[0]), 200);
    as_user(&mut servers, "ann");
    servers[own[0].0].delete(&own[0].1);
    assert_eq!([1, 0].map(|at| try_to_open(&mut servers[at])), [200, 429]);
}

#[test]
fn a_full_server_places_a_session_where_one_caller_has_the_most() {
    // Rule: [SESS-007].
    let (mut servers, shards) = sharded(3, limits(|limits| limits.sessions_max = 6));
    let new = || shards.place(&head("POST", "/mcp", &[]), &ANYONE);
    as_user(&mut servers, "modest");
    let modest = [0, 1].map(|at| open(&mut servers[at]));
    as_user(&mut servers, "greedy");
    let greedy = [0, 2, 2].map(|at| (at, open(&mut servers[at])));
    assert_eq!(new(), None, "there is room for another");
    let last = (0, open(&mut servers[0]));
    assert_eq!(new(), Some(0), "the first of those with two");
    let modern = head("POST", "/mcp", &[("MCP-Protocol-Version", "2026-07-28")]);
    assert_eq!(shards.place(&modern, &ANYONE), None, "it opens no session");
    as_user(&mut servers, "new");
    let first = open(&mut servers[0]);
    assert_eq!(shards.session_count(), 6, "for the session that has ended");
    assert_eq!(new(), Some(2), "only this shard has two sessions of one caller");
    let second = open(&mut servers[2]);
    as_user(&mut servers, "greedy");
    let left: Vec<_> =
        greedy.iter().chain([&last]).map(|(at, it)| ping(&mut servers[*at], it)).collect();
    assert_eq!(left, [404, 404, 200, 200], "the least recently used one of each");
    as_user(&mut servers, "modest");
    assert_eq!([0, 1].map(|at| ping(&mut servers[at], &modest[at])), [200, 200]);
    as_user(&mut servers, "new");
    assert_eq!([ping(&mut servers[0], &first), ping(&mut servers[2], &second)], [200, 200]);
}

#[test]
fn the_exchanges_of_all_shards_are_counted_together() {
    let options = limits(|limits| {
        (limits.exchanges_max, limits.exchanges_per_caller_max) = (4, 3);
    });
    let (mut servers, shards) = sharded(2, options);
    as_user(&mut servers, "ann");
    let status = |server: &mut TestServer| -> Option<u16> {
        let reply = server.modern(&modern_call(1));
        server.reply(reply).status
    };
    assert_eq!([0, 1, 1].map(|at| status(&mut servers[at])), [None; 3]);
    for server in &mut servers {
        assert_eq!(status(server), Some(429), "three of this caller are pending");
    }
    as_user(&mut servers, "bob");
    assert_eq!(status(&mut servers[0]), None);
    let counts = [shards.exchange_count(), shards.stream_bytes(), shards.caller_count()];
    assert_eq!(counts, [4, 0, 2]);
    as_user(&mut servers, "eve");
    for server in &mut servers {
        assert_eq!(status(server), Some(503), "four are pending");
    }
    // An answer in one shard makes room in the other.
    servers[1].answer();
    assert_eq!(status(&mut servers[0]), None);
    for server in &mut servers {
        while !server.events.is_empty() {
            server.answer();
        }
    }
    let counts = [shards.session_count(), shards.exchange_count(), shards.stream_bytes()];
    assert_eq!(counts, [0; 3]);
    assert_eq!(shards.caller_count(), 0);
}

#[test]
fn the_handlers_of_a_caller_are_counted_in_all_shards() {
    let options = limits(|limits| limits.handlers_per_caller_max = 2);
    let (mut servers, shards) = sharded(2, options);
    as_user(&mut servers, "ann");
    let begun = [0, 1].map(|at| {
        let server = &mut servers[at];
        server.modern(&modern_call(1));
        let request = server.asked().handle;
        assert!(server.server.check_handler_capacity(request).is_ok());
        (at, request, server.server.begin_handler(request).unwrap())
    });
    for (at, request, _) in begun {
        assert!(servers[at].server.check_handler_capacity(request).is_err());
    }
    servers[1].server.end_handler(begun[1].2);
    assert!(servers[0].server.check_handler_capacity(begun[0].1).is_ok());
    for (at, request, _) in begun {
        servers[at].answer_to(request);
    }
    assert_eq!(shards.caller_count(), 1, "a running handler keeps its caller");
    servers[0].server.end_handler(begun[0].2);
    let counts = [shards.session_count(), shards.exchange_count(), shards.stream_bytes()];
    assert_eq!(counts, [0; 3]);
    assert_eq!(shards.caller_count(), 0);
}

#[test]
fn the_bytes_of_all_shards_are_bounded_together() {
    const MOST: usize = 4000;
    let (mut servers, shards) = sharded(2, limits(|limits| limits.replay_bytes_total_max = MOST));
    let sessions: Vec<_> = servers.iter_mut().map(open).collect();
    let held = |servers: &[TestServer]| -> [usize; 2] {
        let held = [0, 1].map(|at| servers[at].server.retained().0);
        assert_eq!(shards.stream_bytes(), held.iter().sum::<usize>());
        assert!(shards.stream_bytes() <= MOST, "{held:?}");
        held
    };
    // One shard may take all the room.
    for id in 1..40 {
        left_behind(&mut servers[0], &sessions[0], id);
        held(&servers);
    }
    assert!(held(&servers)[0] > MOST * 3 / 4);
    // The other one has to drop its own events, until the first is used again and shrinks.
    let left = [1, 2, 3, 4, 5].map(|id| left_behind(&mut servers[1], &sessions[1], id));
    let lost = servers[1].resume(&sessions[1], &left[0]);
    assert_eq!(servers[1].reply(lost).status(), 410);
    assert!(held(&servers)[0] > MOST * 3 / 4);
    left_behind(&mut servers[0], &sessions[0], 100);
    assert!(held(&servers)[0] <= MOST / 2);
    let kept = left_behind(&mut servers[1], &sessions[1], 6);
    let kept = servers[1].resume(&sessions[1], &kept);
    assert_eq!(servers[1].reply(kept).messages().len(), 1);
    for (server, session) in servers.iter_mut().zip(&sessions) {
        server.delete(session);
    }
    let counts = [shards.session_count(), shards.exchange_count(), shards.stream_bytes()];
    assert_eq!(counts, [0; 3]);
    assert_eq!(shards.caller_count(), 0);
}

#[test]
fn shards_adopt_the_catalog_of_another() {
    let (mut servers, _) = sharded(2, HttpServerOptions::new());
    let sessions: Vec<_> = servers.iter_mut().map(open).collect();
    let streams: Vec<Ticket> =
        servers.iter_mut().zip(&sessions).map(|(server, session)| server.get(session)).collect();
    let tool = |name: &str| Tool::new(name, raw(r#"{"type":"object"}"#));
    let now = servers[0].now;
    let add = |server: &mut TestServer, name: &str| {
        let edit = |catalog: &mut mcp_sansio::catalog::Catalog| catalog.add_tool(tool(name));
        let (added, change) = server.server.edit_catalog_for_shards(edit, now);
        added.unwrap();
        server.pump();
        change
    };
    let mut change = add(&mut servers[0], "one");
    change.merge(&add(&mut servers[0], "two"));
    servers[1].server.adopt_catalog(&change, now);
    servers[1].pump();
    for (server, stream) in servers.iter().zip(&streams) {
        assert!(server.server.catalog().tool("one").is_some());
        assert!(server.server.catalog().tool("two").is_some());
        let told = server.reply(*stream).messages();
        assert_eq!(told[0]["method"], "notifications/tools/list_changed");
    }
    // Nothing is announced twice.
    let told = servers.iter().zip(&streams).map(|(it, stream)| it.reply(*stream).messages().len());
    assert_eq!(told.collect::<Vec<_>>(), [2, 1]);
    assert_eq!(
        servers[1].server.edit_catalog(|catalog| catalog.take_changes(), now),
        Changes::new()
    );
}

#[test]
fn a_recorded_shard_can_be_replayed() {
    // The replay happens when the servers are dropped.
    let (mut servers, _) = sharded_as(2, HttpServerOptions::new(), true);
    for server in &mut servers {
        let session = open(server);
        left_behind(server, &session, 1);
        server.modern(&modern_call(1));
        server.answer();
        server.advance(Duration::from_secs(7200));
        assert_eq!(server.server.session_count(), 0);
    }
}

#[test]
fn shards_that_open_sessions_at_the_same_time_stay_within_the_limit() {
    let options = limits(|limits| (limits.sessions_max, limits.sessions_per_caller_max) = (40, 10));
    for round in 0..20 {
        let (mut servers, shards) = sharded(4, options.clone());
        if round % 2 == 0 {
            as_user(&mut servers, "ann");
        }
        let most = if round % 2 == 0 { 10 } else { 40 };
        let opened: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = servers
                .iter_mut()
                .map(|server| {
                    scope.spawn(|| (0..most).filter(|_| try_to_open(server) == 200).count())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((opened, shards.session_count()), (most, most));
    }
}

#[test]
fn shards_that_take_requests_at_the_same_time_stay_within_the_limit() {
    let options = limits(|limits| {
        (limits.exchanges_max, limits.exchanges_per_caller_max) = (40, 10);
    });
    for round in 0..20 {
        let (mut servers, shards) = sharded(4, options.clone());
        if round % 2 == 0 {
            as_user(&mut servers, "ann");
        }
        let most = if round % 2 == 0 { 10 } else { 40 };
        let pending = |server: &mut TestServer| {
            let reply = server.modern(&modern_call(1));
            server.reply(reply).status.is_none()
        };
        let began: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = servers
                .iter_mut()
                .map(|server| scope.spawn(|| (0..most).filter(|_| pending(server)).count()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        // A refused request counts until its response is taken, so another may be refused for it.
        assert!(began <= most, "{began}");
        assert_eq!(shards.exchange_count(), began);
        while pending(&mut servers[0]) {}
        assert_eq!(shards.exchange_count(), most, "then the rest fits");
        for server in &mut servers {
            while !server.events.is_empty() {
                server.answer();
            }
        }
        let counts = [shards.session_count(), shards.exchange_count(), shards.stream_bytes()];
        assert_eq!(counts, [0; 3]);
        assert_eq!(shards.caller_count(), 0);
    }
}

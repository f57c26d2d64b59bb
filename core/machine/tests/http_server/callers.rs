//! Quotas: no caller can use all shared resources.

use std::net::IpAddr;
use std::time::Duration;

use mcp_sansio::{Principal, Revision};

use crate::fixtures::*;
use crate::reply::State;
use crate::test_server::{TestServer, Ticket};

/// Sends later requests as this principal.
fn as_user(server: &mut TestServer, name: &str) {
    server.principal = Some(Principal::new(name));
}

/// Sends later requests from this address, without a principal.
fn from(server: &mut TestServer, address: &str) {
    (server.principal, server.address) = (None, Some(address.parse().unwrap()));
}

fn open(server: &mut TestServer) -> Session {
    server.open(Revision::V2025_11_25, "{}")
}

fn try_to_open(server: &mut TestServer) -> Ticket {
    server.request("POST", "/mcp", &POST, &initialize(Revision::V2025_11_25, "{}"))
}

fn ping(server: &mut TestServer, session: &Session) -> u16 {
    let reply = server.post(session, r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#);
    server.reply(reply).status()
}

#[track_caller]
fn expect_too_many(server: &TestServer, reply: Ticket) {
    let reply = server.reply(reply);
    assert_eq!((reply.status(), reply.field("retry-after")), (429, Some("10")));
}

#[test]
fn the_caller_with_most_sessions_loses_its_least_recently_used_one() {
    // Rule: [SESS-007] [SESS-008].
    let mut server = server_with(limits(|limits| limits.sessions_max = 5));
    as_user(&mut server, "modest");
    let modest = open(&mut server);
    as_user(&mut server, "greedy");
    let greedy: Vec<_> = (0..4).map(|_| open(&mut server)).collect();
    for at in [2, 0, 3, 1] {
        server.advance(Duration::from_secs(1));
        assert_eq!(ping(&mut server, &greedy[at]), 200);
    }
    as_user(&mut server, "new");
    let new = open(&mut server);
    as_user(&mut server, "greedy");
    assert_eq!(ping(&mut server, &greedy[2]), 404, "the least recently used session");
    for at in [0, 1, 3] {
        assert_eq!(ping(&mut server, &greedy[at]), 200);
    }
    // The caller may open another session, which closes another of its own.
    open(&mut server);
    assert_eq!([0, 1, 3].map(|at| ping(&mut server, &greedy[at])), [404, 200, 200]);
    as_user(&mut server, "new");
    assert_eq!(ping(&mut server, &new), 200);
    as_user(&mut server, "modest");
    assert_eq!(ping(&mut server, &modest), 200);
    assert_eq!(server.server.session_count(), 5);
}

#[test]
fn a_session_with_a_pending_request_is_not_closed() {
    let mut server = server_with(limits(|limits| limits.sessions_max = 4));
    as_user(&mut server, "modest");
    open(&mut server);
    as_user(&mut server, "greedy");
    let greedy: Vec<_> = (0..3).map(|_| open(&mut server)).collect();
    let called = server.post(&greedy[0], &call(1));
    let asked = server.asked();
    let news = server.get(&greedy[1]);
    as_user(&mut server, "new");
    let new = open(&mut server);
    // The first session has a request, the second one a stream, and the third one nothing.
    as_user(&mut server, "greedy");
    assert_eq!(ping(&mut server, &greedy[2]), 404);
    assert!(!server.reply(news).is_over());
    // A session with only a stream is closed before new callers are refused.
    as_user(&mut server, "other");
    let other = open(&mut server);
    assert!(server.reply(news).is_over());
    server.answer_to(asked.handle);
    assert_eq!(server.reply(called).status(), 200);
    assert_eq!(ping(&mut server, &other), 200);
    as_user(&mut server, "new");
    assert_eq!(ping(&mut server, &new), 200);
}

#[test]
fn a_new_session_is_refused_if_all_sessions_have_requests() {
    let mut server = server_with(limits(|limits| limits.sessions_max = 2));
    let [one, _other] = ["one", "other"].map(|user| {
        as_user(&mut server, user);
        let session = open(&mut server);
        server.post(&session, &call(1));
        server.asked()
    });
    as_user(&mut server, "new");
    let refused = try_to_open(&mut server);
    assert_eq!(server.reply(refused).status(), 503);
    assert_eq!(server.reply(refused).error(), (-32603, "0".into()));
    server.answer_to(one.handle);
    let opened = try_to_open(&mut server);
    assert_eq!(server.reply(opened).status(), 200);
}

#[test]
fn anonymous_callers_have_no_quota_and_do_not_count() {
    let mut server = server_with(limits(|limits| {
        (limits.sessions_max, limits.sessions_per_caller_max) = (3, 1);
        limits.exchanges_per_caller_max = 1;
    }));
    as_user(&mut server, "known");
    let known = open(&mut server);
    server.principal = None;
    let unknown = [open(&mut server), open(&mut server)];
    let calls = unknown.each_ref().map(|session| server.post(session, &call(1)));
    let refused = try_to_open(&mut server);
    assert_eq!(server.reply(refused).status(), 503);
    server.answer();
    server.answer();
    assert_eq!(calls.map(|reply| server.reply(reply).status()), [200, 200]);
    as_user(&mut server, "known");
    assert_eq!(ping(&mut server, &known), 200);
    assert_eq!(server.server.caller_count(), 1);
}

#[test]
fn sessions_of_one_caller_are_bounded() {
    let mut server = server_with(limits(|limits| limits.sessions_per_caller_max = 2));
    as_user(&mut server, "greedy");
    let sessions = [open(&mut server), open(&mut server)];
    for session in &sessions {
        server.get(session);
    }
    let refused = try_to_open(&mut server);
    expect_too_many(&server, refused);
    assert_eq!(server.reply(refused).error(), (-32600, "0".into()));
    as_user(&mut server, "modest");
    open(&mut server);
    as_user(&mut server, "greedy");
    server.delete(&sessions[0]);
    open(&mut server);
}

#[test]
fn sessions_that_a_caller_left_make_room_for_its_next() {
    // Rule: [SESS-007].
    let mut server = server_with(limits(|limits| limits.sessions_per_caller_max = 3));
    as_user(&mut server, "modest");
    let other = open(&mut server);
    as_user(&mut server, "greedy");
    let [left, listening, used] = [(); 3].map(|()| open(&mut server));
    let stream = server.get(&listening);
    let call = server.post(&used, &call(1));
    let asked = server.asked();
    for _ in 0..100 {
        open(&mut server);
        assert_eq!(ping(&mut server, &left), 404);
    }
    server.answer_to(asked.handle);
    assert_eq!(server.reply(call).status(), 200);
    assert_eq!(server.reply(stream).state, State::UnderWay);
    assert_eq!(ping(&mut server, &listening), 200);
    as_user(&mut server, "modest");
    assert_eq!(ping(&mut server, &other), 200);
}

#[test]
fn exchanges_per_caller_are_bounded_except_those_that_free_resources() {
    let mut server = server_with(limits(|limits| limits.exchanges_per_caller_max = 3));
    as_user(&mut server, "greedy");
    let session = open(&mut server);
    let stream = server.get(&session);
    let calls = [server.post(&session, &call(1)), server.modern(&modern_call(2))];
    for (refused, id) in [
        (server.post(&session, &call(3)), Some("3")),
        (server.modern(&modern_call(4)), Some("4")),
        (server.get(&session), None),
    ] {
        expect_too_many(&server, refused);
        if let Some(id) = id {
            assert_eq!(server.reply(refused).error(), (-32600, id.into()));
        }
    }
    // Another caller has its own quota.
    as_user(&mut server, "modest");
    let modest = server.modern(&modern_call(1));
    as_user(&mut server, "greedy");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let cancelled = server.post(&session, cancel);
    assert_eq!(server.reply(cancelled).status(), 202);
    assert!(server.reply(calls[0]).is_over());
    let again = server.post(&session, &call(5));
    let deleted = server.delete(&session);
    assert_eq!(server.reply(deleted).status(), 204);
    for over in [stream, again] {
        assert!(server.reply(over).is_over());
    }
    server.disconnect(calls[1]);
    server.disconnect(modest);
    assert_eq!(server.server.caller_count(), 0);
    server.expect_empty();
}

#[test]
fn anonymous_callers_are_identified_by_address() {
    let mut server = server_with(limits(|limits| limits.sessions_per_caller_max = 1));
    for (address, status) in [
        ("192.0.2.1", 200),
        ("192.0.2.1", 429),
        ("::ffff:192.0.2.1", 429),
        ("192.0.2.2", 200),
        ("2001:db8:0:1::1", 200),
        ("2001:db8:0:1:ffff::2", 429),
        ("2001:db8:0:2::1", 200),
    ] {
        from(&mut server, address);
        if status == 200 {
            let session = open(&mut server);
            server.get(&session);
        } else {
            let refused = try_to_open(&mut server);
            expect_too_many(&server, refused);
        }
    }
    // A principal has its own quota, whatever its address.
    as_user(&mut server, "192.0.2.1");
    let opened = try_to_open(&mut server);
    assert_eq!(server.reply(opened).status(), 200);
    from(&mut server, "192.0.2.1");
    let refused = try_to_open(&mut server);
    expect_too_many(&server, refused);
}

#[test]
fn a_session_can_change_its_address_and_counts_for_the_first() {
    let mut server = server_with(limits(|limits| limits.sessions_per_caller_max = 1));
    from(&mut server, "192.0.2.1");
    let session = open(&mut server);
    from(&mut server, "192.0.2.2");
    assert_eq!(ping(&mut server, &session), 200);
    server.get(&session);
    open(&mut server);
    from(&mut server, "192.0.2.1");
    let refused = try_to_open(&mut server);
    expect_too_many(&server, refused);
}

#[test]
fn callers_without_exchanges_or_sessions_are_forgotten() {
    let mut server = server();
    for number in 0..200_u32 {
        server.address = Some(IpAddr::from(number.to_be_bytes()));
        let session = open(&mut server);
        let reply = server.modern(&modern_call(number));
        assert_eq!(server.server.caller_count(), 1);
        server.answer();
        assert_eq!(server.reply(reply).status(), 200);
        server.delete(&session);
        assert_eq!(server.server.caller_count(), 0);
    }
    server.expect_empty();
}

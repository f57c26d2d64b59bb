//! No caller takes what there is for all.

use std::net::IpAddr;
use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::http::Principal;

use crate::site::{Site, Ticket};
use crate::words::*;

/// Sends requests as this principal from here on.
fn as_user(site: &mut Site, name: &str) {
    site.principal = Some(Principal::new(name));
}

/// Sends requests from this address from here on, as nobody in particular.
fn from(site: &mut Site, address: &str) {
    (site.principal, site.address) = (None, Some(address.parse().unwrap()));
}

fn open(site: &mut Site) -> Session {
    site.open(Revision::V2025_11_25, "{}")
}

fn try_to_open(site: &mut Site) -> Ticket {
    site.request("POST", "/mcp", &POST, &initialize(Revision::V2025_11_25, "{}"))
}

fn ping(site: &mut Site, session: &Session) -> u16 {
    let reply = site.post(session, r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#);
    site.reply(reply).status()
}

#[track_caller]
fn expect_too_many(site: &Site, reply: Ticket) {
    let reply = site.reply(reply);
    assert_eq!((reply.status(), reply.field("retry-after")), (429, Some("10")));
}

#[test]
fn the_greediest_caller_gives_up_the_session_that_it_has_not_used_for_longest() {
    // Rule: [SESS-007] [SESS-008].
    let mut site = site_with(limits(|limits| limits.sessions_max = 5));
    as_user(&mut site, "modest");
    let modest = open(&mut site);
    as_user(&mut site, "greedy");
    let greedy: Vec<_> = (0..4).map(|_| open(&mut site)).collect();
    for at in [2, 0, 3, 1] {
        site.advance(Duration::from_secs(1));
        assert_eq!(ping(&mut site, &greedy[at]), 200);
    }
    as_user(&mut site, "new");
    let new = open(&mut site);
    as_user(&mut site, "greedy");
    assert_eq!(ping(&mut site, &greedy[2]), 404, "the one that was used first");
    for at in [0, 1, 3] {
        assert_eq!(ping(&mut site, &greedy[at]), 200);
    }
    // It may come back: another one of its own goes.
    open(&mut site);
    assert_eq!([0, 1, 3].map(|at| ping(&mut site, &greedy[at])), [404, 200, 200]);
    as_user(&mut site, "new");
    assert_eq!(ping(&mut site, &new), 200);
    as_user(&mut site, "modest");
    assert_eq!(ping(&mut site, &modest), 200);
    assert_eq!(site.server.session_count(), 5);
}

#[test]
fn a_session_with_a_request_under_way_does_not_give_way() {
    let mut site = site_with(limits(|limits| limits.sessions_max = 3));
    as_user(&mut site, "greedy");
    let greedy: Vec<_> = (0..3).map(|_| open(&mut site)).collect();
    let called = site.post(&greedy[0], &call(1));
    let asked = site.asked();
    let news = site.get(&greedy[1]);
    as_user(&mut site, "new");
    let new = open(&mut site);
    // The oldest works, the next one listens, and the last one does nothing.
    as_user(&mut site, "greedy");
    assert_eq!(ping(&mut site, &greedy[2]), 404);
    assert!(!site.reply(news).is_over());
    // Who only listens goes before nobody can come in.
    as_user(&mut site, "other");
    let other = open(&mut site);
    assert!(site.reply(news).is_over());
    site.answer_to(asked.handle);
    assert_eq!(site.reply(called).status(), 200);
    assert_eq!(ping(&mut site, &other), 200);
    as_user(&mut site, "new");
    assert_eq!(ping(&mut site, &new), 200);
}

#[test]
fn where_all_sessions_are_at_work_one_more_is_refused() {
    let mut site = site_with(limits(|limits| limits.sessions_max = 2));
    as_user(&mut site, "greedy");
    let [one, _other] = [(), ()].map(|()| {
        let session = open(&mut site);
        site.post(&session, &call(1));
        site.asked()
    });
    as_user(&mut site, "new");
    let refused = try_to_open(&mut site);
    assert_eq!(site.reply(refused).status(), 503);
    assert_eq!(site.reply(refused).error(), (-32600, "0".into()));
    site.answer_to(one.handle);
    let opened = try_to_open(&mut site);
    assert_eq!(site.reply(opened).status(), 200);
}

#[test]
fn whoever_is_not_known_takes_nothing_from_others_and_has_no_share() {
    let mut site = site_with(limits(|limits| {
        (limits.sessions_max, limits.sessions_per_caller_max) = (3, 1);
        limits.exchanges_per_caller_max = 1;
    }));
    as_user(&mut site, "known");
    let known = open(&mut site);
    site.principal = None;
    let unknown = [open(&mut site), open(&mut site)];
    let calls = unknown.each_ref().map(|session| site.post(session, &call(1)));
    let refused = try_to_open(&mut site);
    assert_eq!(site.reply(refused).status(), 503);
    site.answer();
    site.answer();
    assert_eq!(calls.map(|reply| site.reply(reply).status()), [200, 200]);
    as_user(&mut site, "known");
    assert_eq!(ping(&mut site, &known), 200);
    assert_eq!(site.server.caller_count(), 1);
}

#[test]
fn sessions_of_one_caller_are_bounded() {
    let mut site = site_with(limits(|limits| limits.sessions_per_caller_max = 2));
    as_user(&mut site, "greedy");
    let sessions = [open(&mut site), open(&mut site)];
    let refused = try_to_open(&mut site);
    expect_too_many(&site, refused);
    assert_eq!(site.reply(refused).error(), (-32600, "0".into()));
    as_user(&mut site, "modest");
    open(&mut site);
    as_user(&mut site, "greedy");
    site.delete(&sessions[0]);
    open(&mut site);
}

#[test]
fn exchanges_of_one_caller_are_bounded_and_what_frees_them_is_not() {
    let mut site = site_with(limits(|limits| limits.exchanges_per_caller_max = 3));
    as_user(&mut site, "greedy");
    let session = open(&mut site);
    let stream = site.get(&session);
    let calls = [site.post(&session, &call(1)), site.modern(&modern_call(2))];
    for (refused, id) in [
        (site.post(&session, &call(3)), Some("3")),
        (site.modern(&modern_call(4)), Some("4")),
        (site.get(&session), None),
    ] {
        expect_too_many(&site, refused);
        if let Some(id) = id {
            assert_eq!(site.reply(refused).error(), (-32600, id.into()));
        }
    }
    // Another caller has its own.
    as_user(&mut site, "modest");
    let modest = site.modern(&modern_call(1));
    as_user(&mut site, "greedy");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let cancelled = site.post(&session, cancel);
    assert_eq!(site.reply(cancelled).status(), 202);
    assert!(site.reply(calls[0]).is_over());
    let again = site.post(&session, &call(5));
    let deleted = site.delete(&session);
    assert_eq!(site.reply(deleted).status(), 204);
    for over in [stream, again] {
        assert!(site.reply(over).is_over());
    }
    site.disconnect(calls[1]);
    site.disconnect(modest);
    assert_eq!(site.server.caller_count(), 0);
    site.expect_empty();
}

#[test]
fn an_address_is_a_caller_where_nobody_is_known_by_name() {
    let mut site = site_with(limits(|limits| limits.sessions_per_caller_max = 1));
    for (address, status) in [
        ("192.0.2.1", 200),
        ("192.0.2.1", 429),
        ("::ffff:192.0.2.1", 429),
        ("192.0.2.2", 200),
        ("2001:db8:0:1::1", 200),
        ("2001:db8:0:1:ffff::2", 429),
        ("2001:db8:0:2::1", 200),
    ] {
        from(&mut site, address);
        let opened = try_to_open(&mut site);
        assert_eq!(site.reply(opened).status(), status, "{address}");
    }
    // Whoever is known by name has a share of its own, wherever it is.
    as_user(&mut site, "192.0.2.1");
    let opened = try_to_open(&mut site);
    assert_eq!(site.reply(opened).status(), 200);
    from(&mut site, "192.0.2.1");
    let refused = try_to_open(&mut site);
    expect_too_many(&site, refused);
}

#[test]
fn a_session_may_go_on_from_another_address_and_belongs_to_the_first() {
    let mut site = site_with(limits(|limits| limits.sessions_per_caller_max = 1));
    from(&mut site, "192.0.2.1");
    let session = open(&mut site);
    from(&mut site, "192.0.2.2");
    assert_eq!(ping(&mut site, &session), 200);
    open(&mut site);
    from(&mut site, "192.0.2.1");
    let refused = try_to_open(&mut site);
    expect_too_many(&site, refused);
}

#[test]
fn callers_that_come_and_go_leave_nothing_behind() {
    let mut site = site();
    for number in 0..200_u32 {
        site.address = Some(IpAddr::from(number.to_be_bytes()));
        let session = open(&mut site);
        let reply = site.modern(&modern_call(number));
        assert_eq!(site.server.caller_count(), 1);
        site.answer();
        assert_eq!(site.reply(reply).status(), 200);
        site.delete(&session);
        assert_eq!(site.server.caller_count(), 0);
    }
    site.expect_empty();
}

use mcp_sansio::peer::ClientMachine;
use std::time::Duration;

use mcp_sansio::http::LostSession;
use mcp_sansio::protocol::SubscriptionFilter;
use mcp_sansio::{LoggingLevel, Method, Revision, Revisions};

use crate::net::{
    EVENTS, JSON, Net, RESUMING, error, event, event_with_id, http_options, peer_options, result,
};

const LATEST: Revision = Revision::V2025_11_25;

#[test]
fn a_lost_session_is_replaced_by_exactly_one_new_one() {
    // Rule: [SESS-004] [SESS-008] [SESS-009].
    for revision in RESUMING {
        let mut net = Net::legacy(revision);
        for _ in 0..3 {
            net.call_echo();
        }
        net.sent();
        // All three calls are refused; the other two refusals are received during the handshake and
        // after it.
        net.answer(4, 404, &[], "");
        let version = net.field(4, "mcp-protocol-version");
        assert_eq!(net.sent(), "#3 abort\n#7 POST initialize\n", "{revision}");
        assert_eq!(net.field(7, "mcp-session-id"), None);
        assert_eq!(net.field(7, "mcp-protocol-version"), None);
        net.answer(5, 404, &[], "");
        assert_eq!(net.sent(), "");
        net.initialize(7, 5, revision, Some("s2"));
        assert_eq!(net.told(), format!("opened at {revision}\n"));
        net.answer(6, 404, JSON, "");
        assert!(net.sent().starts_with("#8 POST notifications/initialized"));
        net.answer(8, 202, &[], "");
        assert!(net.sent().starts_with("#9 GET"));
        net.answer_head(9, 200, EVENTS);
        assert_eq!(net.sent().lines().filter(|line| line.contains("session=s2")).count(), 3);
        for (exchange, id) in [(10, 4), (11, 3), (12, 2)] {
            assert!(
                net.full(exchange).contains(&format!(r#""id":{id}"#)),
                "{}",
                net.full(exchange)
            );
            assert_eq!(net.field(exchange, "mcp-protocol-version"), version);
            net.json(exchange, &result(id, "{}"));
        }
        assert_eq!(net.told(), "call 3: {}\ncall 2: {}\ncall 1: {}\n");
        net.expect_silence();
    }
}

#[test]
fn a_call_of_the_previous_session_is_not_cancelled_in_the_next_one() {
    // Rule: [CANC-001].
    let mut net = Net::legacy(LATEST);
    net.call_echo();
    net.call_echo();
    net.sent();
    net.answer(4, 404, &[], "");
    assert_eq!(net.sent(), "#3 abort\n#6 POST initialize\n");
    net.initialize(6, 4, LATEST, Some("s2"));
    net.told();
    net.sent();
    net.answer(7, 202, &[], "");
    net.sent();
    net.answer_head(8, 200, EVENTS);
    assert!(net.sent().starts_with("#9 POST tools/call"));
    net.cancel(2);
    assert_eq!(net.told(), "call 2 failed: Cancelled\n");
    assert_eq!(net.sent(), "");
}

#[test]
fn pending_calls_end_with_the_session() {
    // Rule: [SESS-009].
    let mut net = Net::legacy(LATEST);
    net.call_echo();
    net.call_echo();
    net.call_echo();
    net.sent();
    net.answer_head(4, 200, EVENTS);
    net.answer_head(5, 200, EVENTS);
    net.body(5, &event_with_id("e", ""));
    net.broken(5);
    net.answer(6, 404, &[], "");
    assert_eq!(net.told(), "call 2 failed: SessionLost\ncall 1 failed: SessionLost\n");
    assert_eq!(net.sent(), "#3 abort\n#4 abort\n#7 POST initialize\n");
}

#[test]
fn pending_calls_are_repeated_if_configured() {
    // Rule: [SESS-009].
    let http = http_options().lost_session(LostSession::RepeatCalls);
    let mut net = Net::legacy_with(LATEST, peer_options(), http);
    net.call_echo();
    net.call_echo();
    net.sent();
    net.answer_head(4, 200, EVENTS);
    net.answer(5, 404, &[], "");
    assert_eq!(net.sent(), "#3 abort\n#4 abort\n#6 POST initialize\n");
    reopen(&mut net, 6, 4);
    assert!(net.sent().contains("tools/call version=2025-11-25 session=s2"));
    net.json(9, &result(3, "{}"));
    net.json(10, &result(2, "{}"));
    assert_eq!(net.told(), "call 2: {}\ncall 1: {}\n");
}

/// Completes the handshake of a new session `s2` on exchange `n`, with the id `id`. The opening
/// uses three exchanges, so the next call is on `n + 3`.
fn reopen(net: &mut Net, n: usize, id: i64) {
    net.initialize(n, id, LATEST, Some("s2"));
    assert!(net.told().contains("opened at 2025-11-25\n"));
    net.sent();
    net.answer(n + 1, 202, &[], "");
    net.sent();
    net.answer_head(n + 2, 200, EVENTS);
}

#[test]
fn a_call_is_moved_to_a_new_session_once() {
    // Rule: [SESS-009].
    let mut net = Net::legacy(LATEST);
    net.call_echo();
    net.sent();
    net.answer(4, 404, &[], "");
    net.sent();
    reopen(&mut net, 5, 3);
    assert_eq!(net.sent(), "#8 POST tools/call version=2025-11-25 session=s2\n");
    net.answer(8, 404, &[], "");
    assert_eq!(net.sent(), "#7 abort\n#9 POST initialize\n");
    assert_eq!(net.told(), "call 1 failed: SessionLost\n");
}

#[test]
fn an_empty_session_id_is_none_and_a_repeated_one_is_one() {
    // Rule: [SESS-001] [SESS-003].
    for (written, session) in [("", ""), ("s1, s1", " session=s1"), (" ", "")] {
        let revisions = Revisions::only(LATEST);
        let mut net = Net::new(peer_options().revisions(revisions), http_options());
        net.sent();
        net.initialize(1, 1, LATEST, Some(written));
        assert_eq!(net.told(), "opened at 2025-11-25\n", "{written:?}");
        let expected = format!("#2 POST notifications/initialized version=2025-11-25{session}\n");
        assert_eq!(net.sent(), expected);
    }
}

#[test]
fn a_call_that_two_sessions_answer_with_404_ends_with_the_error_of_its_id() {
    // Rule: [SESS-009].
    for (id, expected) in [("2", "refused, -32602"), ("null", "SessionLost")] {
        let mut net = Net::legacy(LATEST);
        net.call_echo();
        net.sent();
        net.answer(4, 404, JSON, &error(id, -32602, ""));
        assert_eq!(net.sent(), "#3 abort\n#5 POST initialize\n");
        reopen(&mut net, 5, 3);
        assert_eq!(net.sent(), "#8 POST tools/call version=2025-11-25 session=s2\n");
        net.answer(8, 404, JSON, &error(id, -32602, ""));
        assert_eq!(net.sent(), "#7 abort\n#9 POST initialize\n");
        assert_eq!(net.told(), format!("call 1 failed: {expected}\n"));
    }
}

#[test]
fn a_session_that_the_server_no_longer_knows_may_be_refused_with_400_or_401() {
    // Rule: [SESS-009].
    let told = |id: &str, text: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"{text}"}}}}"#)
    };
    // Messages of the SDKs and of servers that are made like their examples.
    for text in [
        "Bad Request: No valid session ID provided",
        "Bad Request: Server not initialized",
        "Unknown Mcp-Session-Id header",
    ] {
        let bodies =
            [told("null", text), told("null", text).replace(r#""id":null,"#, ""), text.into()];
        for body in bodies {
            let mut net = Net::legacy(LATEST);
            net.call_echo();
            net.sent();
            net.answer(4, 400, JSON, &body);
            assert_eq!(net.sent(), "#3 abort\n#5 POST initialize\n", "{body}");
            reopen(&mut net, 5, 3);
            assert_eq!(net.sent(), "#8 POST tools/call version=2025-11-25 session=s2\n");
            // The same words in the new session concern the call.
            net.answer(8, 400, JSON, &body);
            assert_eq!(net.sent(), "", "{body}");
            assert!(net.told().starts_with("call 1 failed: "), "{body}");
        }
    }
    for body in [
        told("2", "No valid session ID provided"),
        told("null", "no such tool"),
        "<html>session</html>".into(),
        String::new(),
    ] {
        let mut net = Net::legacy(LATEST);
        net.call_echo();
        net.sent();
        net.answer(4, 400, JSON, &body);
        assert_eq!(net.sent(), "", "{body}");
        assert!(net.told().starts_with("call 1 failed: "), "{body}");
    }
    // rmcp answered with 401, and no challenge.
    for (fields, renews) in [(&[][..], true), (&[("www-authenticate", "Bearer")][..], false)] {
        let mut net = Net::legacy(LATEST);
        net.call_echo();
        net.sent();
        net.answer(4, 401, fields, "Unauthorized: Session not found");
        assert_eq!(net.sent().contains("POST initialize"), renews, "{fields:?}");
        assert_eq!(net.told().is_empty(), renews, "{fields:?}");
    }
    // Without a session, none was lost.
    let mut net = Net::new(peer_options().revisions(Revisions::only(LATEST)), http_options());
    net.sent();
    net.initialize(1, 1, LATEST, None);
    net.sent();
    net.answer(2, 202, &[], "");
    net.sent();
    net.answer(3, 405, &[], "");
    net.told();
    net.call_echo();
    net.sent();
    net.answer(4, 400, JSON, &told("null", "No valid session ID provided"));
    assert_eq!(
        (net.sent(), net.told()),
        (String::new(), "call 1 failed: refused, -32000\n".into())
    );
}

#[test]
fn a_404_whose_body_does_not_end_starts_a_new_session() {
    // Rule: [SESS-009].
    let mut net = Net::legacy(LATEST);
    net.call_echo();
    net.sent();
    net.answer_head(4, 404, &[]);
    net.body(4, "Session");
    net.expect_silence();
    net.advance(Duration::from_secs(2));
    assert!(net.sent().contains(" POST initialize\n"));
}

#[test]
fn the_number_of_unusable_sessions_is_bounded() {
    // Rule: [SESS-009].
    let mut net = Net::legacy(LATEST);
    let mut handshakes = 0;
    net.call_echo();
    for _ in 0..10 {
        net.sent();
        net.answer(net.last(), 404, &[], "not here");
        if net.client.is_closed() {
            break;
        }
        net.sent();
        handshakes += 1;
        let handshake = net.last();
        let id = net.id_of(handshake);
        reopen(&mut net, handshake, id);
        // The first call was moved once; later ones need another session.
        if handshakes > 1 {
            net.call_echo();
        }
    }
    assert_eq!(handshakes, 3);
    assert!(net.client.is_closed());
    let told = net.told();
    assert!(told.contains("it does not know the sessions that it opens"), "{told}");
    assert!(told.contains("HTTP status 404: not here") && told.contains("several nodes"), "{told}");
    net.sent();
    assert!(net.client.is_drained());
}

#[test]
fn a_session_that_was_used_resets_the_count() {
    let mut net = Net::legacy(LATEST);
    for _ in 0..10 {
        net.call_echo();
        net.sent();
        let n = net.last();
        net.answer(n, 404, &[], "");
        net.sent();
        let handshake = net.last();
        let id = net.id_of(handshake);
        reopen(&mut net, handshake, id);
        net.sent();
        let call = net.last();
        let id = net.id_of(call);
        net.json(call, &result(id, "{}"));
        assert!(net.told().ends_with(": {}\n"));
    }
}

#[test]
fn without_a_session_404_is_a_refusal() {
    // Rule: [SESS-009].
    let mut net =
        Net::new(peer_options().revisions(Revisions::only(LATEST)), http_options().listen(false));
    net.sent();
    net.initialize(1, 1, LATEST, None);
    net.sent();
    net.answer(2, 202, &[], "");
    net.call_echo();
    assert_eq!(net.sent(), "#3 POST tools/call version=2025-11-25\n");
    net.answer(3, 404, &[], "");
    assert!(net.told().ends_with("call 1 failed: status 404\n"));
    net.expect_silence();
}

#[test]
fn session_state_is_restored_after_reconnection() {
    // Rule: [SESS-009].
    let mut net = Net::legacy(LATEST);
    net.client.set_log_level(LoggingLevel::Warning, net.now).unwrap();
    let mut filter = SubscriptionFilter::new();
    filter.resource_subscriptions = Some(vec!["file:///a".into(), "file:///b".into()]);
    let subscription = net.client.subscribe(&filter, net.now).unwrap();
    net.adopt(subscription);
    net.sent();
    net.json(4, &result(2, "{}"));
    net.json(5, &result(4, "{}"));
    net.answer(6, 500, &[], "");
    assert_eq!(net.told(), "subscribed: call 1\n");
    net.call_echo();
    net.sent();
    net.answer(7, 404, &[], "");
    net.sent();
    let handshake = net.last();
    let id = net.id_of(handshake);
    reopen(&mut net, handshake, id);
    let sent = net.sent();
    assert_eq!(sent.matches("logging/setLevel").count(), 1, "{sent}");
    assert_eq!(sent.matches("resources/subscribe").count(), 1, "{sent}");
    assert_eq!(sent.matches("tools/call").count(), 1, "{sent}");
}

#[test]
fn subscriptions_lost_with_a_session_are_reported() {
    // Rule: [SESS-009] [SUBS-005].
    for (status, told) in [(200, ""), (500, "subscribed: call 1\n")] {
        let mut net = Net::legacy(LATEST);
        let mut filter = SubscriptionFilter::new();
        filter.resource_subscriptions = Some(vec!["file:///a".into()]);
        let subscription = net.client.subscribe(&filter, net.now).unwrap();
        net.adopt(subscription);
        net.sent();
        net.json(4, &result(net.id_of(4), "{}"));
        assert_eq!(net.told(), "subscribed: call 1\n");
        net.call_echo();
        net.sent();
        net.answer(5, 404, &[], "");
        net.sent();
        let handshake = net.last();
        let id = net.id_of(handshake);
        reopen(&mut net, handshake, id);
        net.told();
        let sent = net.sent();
        let again = sent.lines().find(|line| line.contains("resources/subscribe")).unwrap();
        let again = again[1..].split(' ').next().unwrap().parse().unwrap();
        let answer = result(net.id_of(again), "{}");
        match status {
            200 => net.json(again, &answer),
            _ => net.answer(again, status, &[], ""),
        }
        assert_eq!(net.told(), told, "{status}");
    }
}

#[test]
fn input_requests_of_a_lost_session_are_withdrawn() {
    // Rule: [SESS-009].
    let capabilities = crate::net::with_roots();
    let peer = peer_options().capabilities(capabilities);
    let mut net = Net::legacy_with(LATEST, peer, http_options());
    net.body(3, &event(r#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#));
    assert_eq!(net.told(), "asked: roots/list {}\n");
    net.call(Method::ToolsList, "{}");
    net.sent();
    net.answer(4, 404, &[], "");
    assert_eq!(net.told(), "withdrawn\n");
    let input = net.inputs[0].handle;
    let roots = mcp_sansio::jsonrpc::RawJson::parse(r#"{"roots":[]}"#).unwrap();
    assert!(net.client.answer_input_with(input, &roots, net.now).is_err());
    assert_eq!(net.sent(), "#3 abort\n#5 POST initialize\n");
}

#[test]
fn late_requests_of_a_lost_session_are_not_answered() {
    // Rule: [SESS-009].
    let peer = peer_options().capabilities(crate::net::with_roots());
    let mut net = Net::legacy_with(LATEST, peer, http_options());
    net.call_echo();
    net.call(Method::ToolsList, "{}");
    net.sent();
    net.answer(5, 404, &[], "");
    net.sent();
    let handshake = net.last();
    let id = net.id_of(handshake);
    reopen(&mut net, handshake, id);
    net.told();
    net.sent();
    // The call of the old session runs on the old server, which sends a request before its
    // response.
    net.answer_head(4, 200, EVENTS);
    net.body(4, &event(r#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#));
    assert_eq!((net.told(), net.sent()), (String::new(), String::new()));
    net.body(4, &event(&result(2, r#"{"content":[]}"#)));
    assert_eq!(net.told(), "call 1: {\"content\":[]}\n");
}

#[test]
fn calls_made_during_a_reconnection_wait_for_the_new_session() {
    // Rule: [SESS-009].
    let mut net = Net::legacy(LATEST);
    net.call_echo();
    net.sent();
    net.answer(4, 404, &[], "");
    net.sent();
    net.call_echo();
    net.advance(Duration::from_secs(1));
    net.expect_silence();
    reopen(&mut net, 5, 3);
    assert_eq!(net.sent().matches("session=s2").count(), 2);
}

#[test]
fn a_session_id_that_is_not_a_valid_header_value_is_refused() {
    // Rule: [SESS-003].
    let long = "x".repeat(4097);
    for id in ["a b", "a\tb", "\u{e9}", "s1, s2", &long] {
        let mut net = Net::new(peer_options().revisions(Revisions::only(LATEST)), http_options());
        net.sent();
        net.initialize(1, 1, LATEST, Some(id));
        let told = net.told();
        assert!(told.contains("closed: could not open") && told.contains("session id"), "{told}");
        assert_eq!(net.sent(), "#1 abort\n");
    }
}

#[test]
fn the_session_id_is_found_with_any_spelling_of_its_header() {
    // Rule: [SESS-001] [SESS-015] [HDR-031].
    for name in ["Mcp-Session-Id", "MCP-Session-Id", "mcp-session-id"] {
        let only = Revisions::only(LATEST);
        let mut net = Net::new(peer_options().revisions(only), http_options());
        net.sent();
        let fields = [("CONTENT-TYPE", " application/json"), (name, " s1\t")];
        net.answer(1, 200, &fields, &result(1, &crate::net::initialized(LATEST)));
        assert!(net.sent().ends_with(" session=s1\n"), "{name}");
    }
}

#[test]
fn the_session_id_does_not_appear_in_debug_output() {
    // Rule: [SESS-005].
    let mut net = Net::new(peer_options().revisions(Revisions::only(LATEST)), http_options());
    net.sent();
    net.initialize(1, 1, LATEST, Some("very-secret"));
    assert!(!format!("{:?}", net.client).contains("very-secret"));
    net.sent();
    assert_eq!(net.field(2, "mcp-session-id").as_deref(), Some("very-secret"));
    assert!(!format!("{:?}", net.request(2)).contains("very-secret"));
    let mut head = mcp_sansio::http::IncomingResponse::new(mcp_sansio::peer::Status::OK);
    head.field("Mcp-Session-Id", b"very-secret");
    assert!(!format!("{head:?}").contains("very-secret") && !format!("{head:?}").contains("118"));
}

#[test]
fn a_handshake_whose_stream_is_lost_with_its_session_is_repeated_once() {
    // Rule: [SESS-009] [LIFE-003].
    let mut net = Net::new(peer_options().revisions(Revisions::only(LATEST)), http_options());
    assert_eq!(net.sent(), "#1 POST initialize\n");
    net.answer_head(1, 200, &[EVENTS[0], ("mcp-session-id", "s1")]);
    net.body(1, "id: 0-0\ndata:\n\n");
    net.broken(1);
    let (_, sent) = net.wait_for_request();
    assert!(sent.starts_with("#2 GET"), "{sent}");
    net.answer(2, 404, &[], "");
    assert_eq!(net.sent(), "#3 POST initialize\n");
    net.expect_silence();
}

#[test]
fn a_session_that_ends_during_its_handshake_is_replaced_by_exactly_one_new_one() {
    // Rule: [SESS-009].
    let mut net = Net::new(peer_options().revisions(Revisions::only(LATEST)), http_options());
    assert_eq!(net.sent(), "#1 POST initialize\n");
    net.answer_head(1, 200, &[EVENTS[0], ("mcp-session-id", "s1")]);
    // The answer to the ping names the session, which has already ended.
    net.body(1, &event(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#));
    assert!(net.sent().starts_with("#2 POST"));
    net.answer(2, 404, &[], "");
    assert_eq!(net.sent(), "#1 abort\n#3 POST initialize\n");
    net.initialize(3, 1, LATEST, Some("s2"));
    assert!(net.told().contains(&format!("opened at {LATEST}\n")));
    assert!(net.sent().starts_with("#4 POST notifications/initialized"));
    net.client.assert_consistent();
}

#[test]
fn a_ping_of_a_lost_session_is_the_only_one_in_the_next_session() {
    // Rule: [PING-002] [SESS-009].
    let minute = Duration::from_secs(60);
    let mut timeouts = mcp_sansio::peer::Timeouts::default();
    timeouts.keep_alive = Some(minute);
    let mut net = Net::legacy_with(LATEST, peer_options().timeouts(timeouts), http_options());
    net.advance(minute);
    assert!(net.sent().starts_with("#4 POST ping"));
    net.answer(4, 404, &[], "");
    assert_eq!(net.sent(), "#3 abort\n#5 POST initialize\n");
    net.initialize(5, 3, LATEST, Some("s2"));
    net.sent();
    net.answer(6, 202, &[], "");
    net.sent();
    net.answer_head(7, 200, EVENTS);
    assert!(net.sent().starts_with("#8 POST ping"));
    net.json(8, &result(2, "{}"));
    net.client.assert_consistent();
    net.advance(minute);
    assert_eq!(net.sent().lines().count(), 1);
}

#[test]
fn a_session_whose_stream_was_used_resets_the_count() {
    // Rule: [SESS-009].
    for silent in [false, true] {
        let mut net = Net::legacy(LATEST);
        let mut stream = 3;
        for _ in 0..10 {
            if silent {
                net.advance(Duration::from_secs(30));
            } else {
                net.body(stream, &event(&crate::net::notification("info")));
            }
            net.broken(stream);
            net.wait_for_request();
            net.answer(net.last(), 404, &[], "");
            assert!(net.sent().ends_with("POST initialize\n"), "{silent}");
            let handshake = net.last();
            let id = net.id_of(handshake);
            reopen(&mut net, handshake, id);
            net.sent();
            stream = net.last();
        }
        assert!(!net.client.is_closed());
    }
    // A stream that breaks at once does not show that the session is known.
    let mut net = Net::legacy(LATEST);
    let mut stream = 3;
    for _ in 0..3 {
        net.broken(stream);
        net.wait_for_request();
        net.answer(net.last(), 404, &[], "");
        net.sent();
        let handshake = net.last();
        let id = net.id_of(handshake);
        reopen(&mut net, handshake, id);
        net.sent();
        stream = net.last();
    }
    net.broken(stream);
    net.wait_for_request();
    net.answer(net.last(), 404, &[], "");
    assert!(net.client.is_closed());
}

#[test]
fn a_call_that_is_redirected_after_its_session_is_lost_is_sent_in_the_next_one() {
    // Rule: [SESS-004] [SESS-009] [LIFE-003].
    for opened in [false, true] {
        let mut net = Net::legacy(LATEST);
        net.call_echo();
        net.call_echo();
        net.sent();
        net.answer(4, 404, &[], "");
        assert_eq!(net.sent(), "#3 abort\n#6 POST initialize\n");
        let redirect = |net: &mut Net| net.answer(5, 307, &[("location", "/other")], "");
        if !opened {
            redirect(&mut net);
            assert_eq!(net.sent(), "");
        }
        net.initialize(6, 4, LATEST, Some("s2"));
        assert!(net.sent().starts_with("#7 POST notifications/initialized"));
        if opened {
            redirect(&mut net);
            assert_eq!(net.sent(), "");
        }
        net.answer(7, 202, &[], "");
        net.sent();
        net.answer_head(8, 200, EVENTS);
        let call = |n: usize| format!("#{n} POST tools/call version=2025-11-25 session=s2\n");
        assert_eq!(net.sent(), call(9) + &call(10));
        net.json(9, &result(net.id_of(9), "{}"));
        net.json(10, &result(net.id_of(10), "{}"));
        let told = net.told();
        assert!(told.contains("call 1: {}\n") && told.contains("call 2: {}\n"), "{told}");
    }
}

use std::time::Duration;

use mcp_sansio::http::ExchangeFailure;
use mcp_sansio::peer::{CallOptions, ClientMachine, Ended, Event};
use mcp_sansio::protocol::SubscriptionFilter;
use mcp_sansio::{Era, Method, Revision};

use crate::net::{EVENTS, JSON, Net, OK, error, event, http_options, peer_options, result};

#[test]
fn a_response_is_a_body_or_a_stream() {
    // Rule: [HCLI-003] [SSE-012] [SSE-013] [SSE-015].
    let mut net = Net::modern();
    net.call_echo();
    net.call_with(Method::ToolsCall, r#"{"name":"slow"}"#, &CallOptions::default().progress());
    assert_eq!(net.sent(), "#2 POST tools/call\n#3 POST tools/call\n");
    net.answer_head(3, 200, EVENTS);
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}"#;
    net.body(3, &format!("\u{feff}:keep alive\r\n\r\nevent: message\rdata: {progress}\r\r"));
    net.json(2, &result(2, OK));
    net.body(3, &event(&result(3, OK)));
    net.end(3);
    assert_eq!(net.told(), format!("progress of call 2: 1\ncall 1: {OK}\ncall 2: {OK}\n"));
    net.expect_silence();
}

#[test]
fn an_error_can_have_any_status() {
    // Rule: [HCLI-003].
    for (status, code) in
        [(200, -32602), (400, -32602), (404, -32601), (400, -32021), (500, -32603)]
    {
        for id in ["2", "null"] {
            let mut net = Net::modern();
            net.call_echo();
            net.sent();
            net.answer(2, status, JSON, &error(id, code, ""));
            assert_eq!(net.told(), format!("call 1 failed: refused, {code}\n"), "{status} {id}");
            net.expect_silence();
        }
    }
    for (status, body) in [(404, ""), (400, "<html>"), (500, "{}"), (418, &*error("9", -1, ""))] {
        let mut net = Net::modern();
        net.call_echo();
        net.sent();
        net.answer(2, status, JSON, body);
        assert_eq!(net.told(), format!("call 1 failed: status {status}\n"));
    }
}

#[test]
fn a_refused_authorization_fails_the_call_with_the_challenge() {
    let mut net = Net::modern();
    net.call_echo();
    net.sent();
    net.answer(2, 401, &[("WWW-Authenticate", "Bearer scope=\"a\"")], "");
    let told = net.told();
    assert!(told.contains("Unauthorized { status: 401, challenge: Some(\"Bearer scope"), "{told}");
}

#[test]
fn cancelling_closes_the_exchange() {
    // Rule: [CANC-017] [HCLI-014].
    let mut net = Net::modern();
    net.call_echo();
    net.sent();
    net.answer_head(2, 200, EVENTS);
    net.cancel(1);
    assert_eq!(net.sent(), "#2 abort\n");
    assert_eq!(net.told(), "call 1 failed: Cancelled\n");
    // Late input from the driver is ignored.
    net.body(2, &event(&result(2, OK)));
    net.end(2);
    net.expect_silence();
    // A call that was not sent needs no abort.
    net.call_echo();
    net.cancel(2);
    assert_eq!(net.sent(), "");
}

#[test]
fn a_timeout_closes_the_exchange() {
    // Rule: [CANC-017] [TIME-003].
    let mut net = Net::modern();
    net.call_echo();
    net.sent();
    net.advance(Duration::from_secs(60));
    assert_eq!(net.sent(), "#2 abort\n");
    assert_eq!(net.told(), "call 1 failed: TimedOut { hard: false }\n");
}

#[test]
fn a_lost_stream_ends_its_call() {
    // Rule: [HCLI-012] [RESUME-008].
    for (end, expected) in [(true, "StreamEnded"), (false, "Broken")] {
        let mut net = Net::modern();
        net.call_echo();
        net.sent();
        net.answer_head(2, 200, EVENTS);
        net.body(2, "id: 7\nretry: 10\ndata:\n\n");
        if end {
            net.end(2)
        } else {
            net.broken(2)
        }
        assert_eq!(net.told(), format!("call 1 failed: {expected}\n"));
        net.advance(Duration::from_secs(120));
        net.expect_silence();
    }
    let mut net = Net::modern();
    net.call_echo();
    net.sent();
    net.failed(2, ExchangeFailure::Broken);
    assert_eq!(net.told(), "call 1 failed: Broken\n");
    net.expect_silence();
}

/// Lets exchange `n` end without its request being executed.
fn postpone(net: &mut Net, n: usize, how: usize) {
    let own = format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32603,"message":"busy"}}}}"#,
        net.id_of(n)
    );
    match how {
        0 => net.failed(n, ExchangeFailure::NotSent),
        1 => net.answer(n, 503, &[JSON[0], ("retry-after", "1")], &own),
        _ => net.answer(n, 429, &[("retry-after", "1")], ""),
    }
}

#[test]
fn a_call_that_was_not_executed_is_sent_again_within_its_time() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for how in 0..3 {
            let mut net = match revision.era() {
                Era::Modern => Net::modern(),
                _ => Net::legacy(revision),
            };
            net.call_echo();
            let first = net.sent();
            assert!(first.contains(" POST tools/call"), "{first}");
            let mut n = net.last();
            let body = net.full(n);
            for _ in 0..2 {
                postpone(&mut net, n, how);
                net.expect_silence();
                let (waited, sent) = net.wait_for_request();
                n = net.last();
                assert!(sent.contains(" POST tools/call"), "{sent}");
                assert!(waited >= Duration::from_millis(500) && waited <= Duration::from_secs(4));
                assert_eq!(net.full(n), body, "the same request");
            }
            let id = net.id_of(n);
            net.json(n, &result(id, OK));
            assert!(net.told().starts_with("call 1: "), "{revision} {how}");
        }
    }
}

#[test]
fn a_call_that_is_never_executed_fails_as_not_executed() {
    for how in 0..3 {
        let mut net = Net::modern();
        net.call_echo();
        net.sent();
        for _ in 0..3 {
            let n = net.last();
            postpone(&mut net, n, how);
            net.wait_for_request();
        }
        let n = net.last();
        postpone(&mut net, n, how);
        let event = net.client.poll_event();
        let Some(Event::Ended(Ended { outcome: Err(failure), .. })) = event else {
            panic!("{event:?}")
        };
        assert_eq!(failure.executed(), Some(false), "{failure}");
        let expected = (how > 0).then(|| Duration::from_secs(1));
        assert_eq!(failure.retry_after(), expected, "{failure}");
    }
    // No attempt is made after the time of the call, nor one that may do something twice.
    for (status, expected) in [(503, Some(false)), (502, None), (500, None)] {
        let mut net = Net::modern();
        net.call_echo();
        net.sent();
        net.answer(2, status, &[("retry-after", "1000")], "");
        let event = net.client.poll_event();
        let Some(Event::Ended(Ended { outcome: Err(failure), .. })) = event else {
            panic!("{event:?}")
        };
        assert_eq!(failure.executed(), expected, "{failure}");
        assert_eq!(failure.retry_after(), Some(Duration::from_secs(1000)));
        net.expect_silence();
    }
}

#[test]
fn a_call_that_waits_to_be_sent_again_can_be_cancelled() {
    for mut net in [Net::modern(), Net::legacy(Revision::V2025_11_25)] {
        net.call_echo();
        net.sent();
        let n = net.last();
        postpone(&mut net, n, 0);
        net.cancel(1);
        net.told();
        net.advance(Duration::from_secs(60));
        net.expect_silence();
    }
}

#[test]
fn a_session_id_has_no_meaning() {
    // Rule: [SESS-016].
    let mut net = Net::modern();
    net.call_echo();
    net.sent();
    let fields = [JSON[0], ("mcp-session-id", "x")];
    net.answer(2, 200, &fields, &result(2, OK));
    net.call_echo();
    assert_eq!(net.sent(), "#3 POST tools/call\n");
    net.answer(3, 404, &[], "");
    net.told();
    net.client.close(net.now);
    assert_eq!(net.sent(), "");
    assert!(net.client.is_drained());
}

#[test]
fn requests_of_the_server_and_responses_to_other_calls_are_violations() {
    // Rule: [HCLI-006] [RPC-030].
    let mut net = Net::modern();
    net.call_echo();
    net.call_echo();
    net.sent();
    net.answer_head(2, 200, EVENTS);
    net.body(2, &event(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#));
    net.body(2, &event(&result(3, OK)));
    let told = net.told();
    assert_eq!(told.lines().filter(|line| line.starts_with("violation")).count(), 2, "{told}");
    net.body(2, &event(&result(2, OK)));
    assert_eq!(net.told(), format!("call 1: {OK}\n"));
    assert_eq!(net.sent(), "");
}

#[test]
fn an_input_round_is_a_separate_request() {
    // Rule: [MRTR-010] [MRTR-014] [HCLI-001].
    let capabilities = crate::net::with_roots();
    let mut net = Net::modern_with(peer_options().capabilities(capabilities), http_options());
    net.call_echo();
    net.sent();
    let asks = r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}},"requestState":"s"}"#;
    net.json(2, &result(2, asks));
    assert_eq!(net.told(), "asked: roots/list {}\n");
    let input = net.inputs[0].handle;
    let roots = mcp_sansio::jsonrpc::RawJson::parse(r#"{"roots":[]}"#).unwrap();
    net.client.answer_input_with(input, &roots, net.now).unwrap();
    assert_eq!(net.sent(), "#3 POST tools/call\n");
    let full = net.full(3);
    assert!(full.contains(r#""id":3"#) && full.contains(r#""requestState":"s""#), "{full}");
    assert_eq!(net.field(3, "mcp-name").as_deref(), Some("echo"));
    net.json(3, &result(3, OK));
    assert_eq!(net.told(), format!("call 1: {OK}\n"));
}

fn acknowledged(id: i64) -> String {
    event(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{{"toolsListChanged":true}}}}}}"#
    ))
}

fn subscribed() -> Net {
    let mut net = Net::modern();
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = Some(true);
    let handle = net.client.subscribe(&filter, net.now).unwrap();
    net.adopt(handle);
    assert_eq!(net.sent(), "#2 POST subscriptions/listen\n");
    net
}

#[test]
fn a_broken_listen_stream_is_reopened_with_a_new_id() {
    // Rule: [HCLI-012] [SUBS-003] [SUBS-008].
    let mut net = subscribed();
    net.answer_head(2, 200, EVENTS);
    net.body(2, &acknowledged(2));
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#;
    net.body(2, &event(changed));
    assert!(net.told().starts_with("subscribed: call 1\nnotifications/tools/list_changed"));
    net.broken(2);
    net.expect_silence();
    let (waited, sent) = net.wait_for_request();
    assert_eq!(sent, "#3 POST subscriptions/listen\n");
    assert!(waited >= Duration::from_millis(500) && waited <= Duration::from_secs(1));
    assert!(net.full(3).contains(r#""id":3"#));
    // The server is unavailable for a while.
    net.failed(3, ExchangeFailure::NotSent);
    assert_eq!(net.wait_for_request().1, "#4 POST subscriptions/listen\n");
    net.answer(4, 503, &[], "");
    assert_eq!(net.wait_for_request().1, "#5 POST subscriptions/listen\n");
    net.answer_head(5, 200, EVENTS);
    net.body(5, &acknowledged(5));
    assert_eq!(net.told(), "subscribed: call 1\n");
    // A graceful end is final.
    net.body(5, &event(&result(5, r#"{"resultType":"complete"}"#)));
    net.end(5);
    assert_eq!(net.told(), "call 1: {\"resultType\":\"complete\"}\n");
    net.advance(Duration::from_secs(3600));
    net.expect_silence();
}

#[test]
fn a_listen_stream_that_cannot_be_reopened_is_lost() {
    let mut net = subscribed();
    net.answer_head(2, 200, EVENTS);
    net.body(2, &acknowledged(2));
    net.told();
    net.end(2);
    for exchange in 3..11 {
        assert_eq!(net.wait_for_request().1, format!("#{exchange} POST subscriptions/listen\n"));
        if exchange % 2 == 0 {
            net.failed(exchange, ExchangeFailure::NotSent);
        } else {
            net.answer_head(exchange, 200, EVENTS);
            net.end(exchange);
        }
    }
    assert_eq!(net.told(), "call 1 failed: StreamLost { attempts: 8 }\n");
    net.advance(Duration::from_secs(3600));
    net.expect_silence();
    // A stream that was never acknowledged is not retried, and neither is one that is refused
    // permanently.
    let mut net = subscribed();
    net.answer_head(2, 200, EVENTS);
    net.end(2);
    assert_eq!(net.told(), "call 1 failed: StreamEnded\n");
    let mut net = subscribed();
    net.answer_head(2, 200, EVENTS);
    net.body(2, &acknowledged(2));
    net.end(2);
    net.told();
    net.wait_for_request();
    net.answer(3, 400, &[], "");
    assert_eq!(net.told(), "call 1 failed: status 400\n");
}

#[test]
fn a_listen_stream_that_ends_after_each_acknowledgement_is_reopened_ever_more_slowly() {
    let mut net = subscribed();
    let mut waits = Vec::new();
    for exchange in 2..20 {
        net.answer_head(exchange, 200, EVENTS);
        net.body(exchange, &acknowledged(exchange as i64));
        assert_eq!(net.told(), "subscribed: call 1\n");
        net.end(exchange);
        let (waited, sent) = net.wait_for_request();
        assert_eq!(sent, format!("#{} POST subscriptions/listen\n", exchange + 1));
        waits.push(waited);
    }
    assert!(waits[0] <= Duration::from_secs(1), "{waits:?}");
    assert!(waits[6..].iter().all(|it| *it >= Duration::from_secs(15)), "{waits:?}");
    // One that stood for a while has succeeded.
    net.answer_head(20, 200, EVENTS);
    net.body(20, &acknowledged(20));
    net.told();
    net.advance(Duration::from_secs(30));
    net.broken(20);
    assert!(net.wait_for_request().0 <= Duration::from_secs(1));
}

#[test]
fn what_arrives_on_a_listen_stream_belongs_to_its_subscription_whatever_id_it_has() {
    for meta in ["", r#""_meta":{},"#, r#""_meta":{"io.modelcontextprotocol/subscriptionId":"x"},"#]
    {
        let mut net = subscribed();
        net.answer_head(2, 200, EVENTS);
        let notification = |method: &str, members: &str| {
            let params = format!("{meta}{members}");
            event(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{{}}}}}"#,
                params.trim_end_matches(',')
            ))
        };
        let filter = r#""notifications":{"toolsListChanged":true}"#;
        net.body(2, &notification("subscriptions/acknowledged", filter));
        assert_eq!(net.told(), "subscribed: call 1\n", "{meta}");
        net.body(2, &notification("tools/list_changed", ""));
        let Some(Event::Notification(changed)) = net.client.poll_event() else { panic!("{meta}") };
        assert_eq!(changed.subscriptions.len(), 1, "{meta}");
        // An acknowledgement that cannot be used is reported.
        net.body(2, &notification("subscriptions/acknowledged", ""));
        assert!(net.told().contains("the filter is missing"), "{meta}");
    }
}

#[test]
fn a_subscription_that_is_cancelled_while_it_waits_is_not_reopened() {
    // Rule: [SUBS-010].
    let mut net = subscribed();
    net.answer_head(2, 200, EVENTS);
    net.body(2, &acknowledged(2));
    net.told();
    net.broken(2);
    net.cancel(1);
    assert_eq!(net.told(), "call 1 failed: Cancelled\n");
    net.advance(Duration::from_secs(60));
    net.expect_silence();
}

#[test]
fn a_listen_stream_is_reopened_when_the_server_wants() {
    let mut net = subscribed();
    net.answer_head(2, 200, EVENTS);
    net.body(2, &acknowledged(2));
    net.told();
    net.broken(2);
    net.wait_for_request();
    net.answer(3, 503, &[("retry-after", "20")], "");
    let (waited, sent) = net.wait_for_request();
    assert_eq!(sent, "#4 POST subscriptions/listen\n");
    assert!(waited >= Duration::from_secs(20), "{waited:?}");
}

fn unsupported(id: &str, supported: &str) -> String {
    error(id, -32022, &format!(r#","data":{{"supported":{supported},"requested":"2026-07-28"}}"#))
}

#[test]
fn a_request_refused_for_its_revision_is_sent_once_more_if_the_server_lists_that_revision() {
    // Rule: [VER-013].
    let refusal = |id| unsupported(id, r#"["2026-07-28","2025-11-25"]"#);
    for (status, id) in [(400, "2"), (400, "null"), (200, "2")] {
        let mut net = Net::modern();
        net.call_echo();
        assert_eq!(net.sent(), "#2 POST tools/call\n");
        net.answer(2, status, JSON, &refusal(id));
        assert_eq!(net.sent(), "#3 POST tools/call\n", "{status} {id}");
        net.json(3, &result(2, OK));
        assert_eq!(net.told(), format!("call 1: {OK}\n"));
        net.call_echo();
        net.sent();
        for (n, id) in [(4, "3"), (5, "3")] {
            assert_eq!(net.told(), "");
            net.answer(n, 400, JSON, &refusal(id));
            net.sent();
        }
        assert_eq!(net.told(), "call 1 failed: refused, -32022\n".replace('1', "2"));
        net.expect_silence();
    }
    let mut net = Net::modern();
    net.call_echo();
    net.sent();
    net.answer_head(2, 200, EVENTS);
    net.body(2, &event(&refusal("2")));
    assert!(net.sent().contains("#3 POST tools/call\n"));
}

#[test]
fn a_connection_closes_when_its_server_supports_only_revisions_with_sessions_any_longer() {
    // Rule: [VER-013].
    for (id, status) in [("2", 400), ("null", 400), ("2", 200)] {
        let mut net = Net::plain();
        net.sent();
        net.json(1, &result(1, crate::net::DISCOVERED));
        net.told();
        net.call_echo();
        net.sent();
        net.answer(2, status, JSON, &unsupported(id, r#"["2025-06-18","2025-11-25","x"]"#));
        let told = net.told();
        assert!(told.starts_with("call 1 failed: refused, -32022\nclosed: "), "{told}");
        assert!(told.contains("no longer supports revision 2026-07-28"), "{told}");
        assert!(told.contains("connect again for revision 2025-11-25"), "{told}");
    }
}

#[test]
fn a_call_ends_with_the_refusal_of_a_server_without_a_common_revision() {
    // Rule: [VER-013].
    for supported in [r#"["2025-11-25"]"#, r#"["2099-01-01"]"#, "[]", "7"] {
        let mut net = Net::modern();
        net.call_echo();
        net.sent();
        net.answer(2, 400, JSON, &unsupported("2", supported));
        assert_eq!(net.told(), "call 1 failed: refused, -32022\n", "{supported}");
        net.expect_silence();
    }
}

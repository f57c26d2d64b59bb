use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::http::ExchangeFailure;
use mcp_sansio::http::{Client, ClientTransmit, IncomingResponse};
use mcp_sansio::jsonrpc::{ErrorObject, RequestId};
use mcp_sansio::peer::Status;
use mcp_sansio::peer::{ClientMachine, Event, MessageMiddleware, MiddlewareMessage, RequestAction};
use mcp_sansio::protocol::SubscriptionFilter;
use mcp_sansio::{Revision, Revisions};

use crate::net::{
    EVENTS, JSON, Net, RESUMING, event, event_with_id, http_options, notification, peer_options,
};

const LATEST: Revision = Revision::V2025_11_25;

/// Returns a legacy client whose standalone stream, exchange 3, is requested and not answered.
fn asking() -> Net {
    let mut net = Net::new(peer_options().revisions(Revisions::only(LATEST)), http_options());
    net.sent();
    net.initialize(1, 1, LATEST, Some("s1"));
    net.sent();
    net.answer(2, 202, &[], "");
    assert_eq!(net.sent(), "#3 GET version=2025-11-25 session=s1\n");
    net.told();
    net
}

#[test]
fn the_stream_is_not_requested_again_from_a_server_without_it() {
    // Rule: [HCLI-009].
    for status in [400, 404, 405, 501, 200] {
        let mut net = asking();
        net.call_echo();
        assert_eq!(net.sent(), "");
        if status == 501 {
            // The class of the status is a temporary failure: the stream is retried, and calls
            // continue.
            net.answer(3, status, &[], "");
            assert!(net.sent().starts_with("#4 POST tools/call"));
            continue;
        }
        net.answer(3, status, &[("content-type", "text/html")], "");
        // The application learns that no notifications will arrive.
        let reason = match status {
            200 => "the server's response is not valid: it is not an event stream".into(),
            status => format!("the server refused with HTTP status {status}"),
        };
        assert_eq!(net.told(), format!("event stream lost: {reason}\n"));
        assert!(net.sent().starts_with("#4 POST tools/call"));
        // The next session does not request it either, unless the old session may have been the
        // reason.
        net.answer(4, 404, &[], "");
        assert_eq!(net.sent(), "#5 POST initialize\n");
        net.initialize(5, 3, LATEST, Some("s2"));
        net.sent();
        net.answer(6, 202, &[], "");
        let next = if status == 404 { "GET" } else { "POST tools/call" };
        assert_eq!(net.sent(), format!("#7 {next} version=2025-11-25 session=s2\n"));
    }
}

#[test]
fn a_session_lost_before_its_stream_opens_does_not_end_the_next_stream() {
    // Rule: [SESS-009] [HCLI-007].
    let mut net = asking();
    net.answer(3, 404, &[], "");
    net.call_echo();
    assert!(net.sent().starts_with("#4 POST tools/call"));
    net.answer(4, 404, &[], "");
    assert_eq!(net.sent(), "#5 POST initialize\n");
    net.initialize(5, 3, LATEST, Some("s2"));
    net.sent();
    net.answer(6, 202, &[], "");
    assert_eq!(net.sent(), "#7 GET version=2025-11-25 session=s2\n");
    net.answer_head(7, 200, EVENTS);
    assert!(net.sent().starts_with("#8 POST tools/call"));
    net.body(7, &event(&notification("error")));
    assert!(net.told().ends_with("notifications/message {\"level\":\"error\",\"data\":1}\n"));
}

#[test]
fn calls_wait_for_the_stream_only_for_a_short_time() {
    let mut net = asking();
    net.call_echo();
    net.advance(Duration::from_millis(499));
    assert_eq!(net.sent(), "");
    net.advance(Duration::from_millis(1));
    assert!(net.sent().starts_with("#4 POST tools/call"));
}

#[test]
fn a_client_that_is_configured_not_to_listen_opens_no_stream() {
    // Rule: [HCLI-007].
    let http = http_options().listen(false);
    let mut net = Net::new(peer_options().revisions(Revisions::only(LATEST)), http);
    net.sent();
    net.initialize(1, 1, LATEST, Some("s1"));
    net.sent();
    net.answer(2, 202, &[], "");
    net.call_echo();
    assert_eq!(net.sent(), "#3 POST tools/call version=2025-11-25 session=s1\n");
}

#[test]
fn unsolicited_messages_are_reported_and_answered() {
    // Rule: [HCLI-011] [HCLI-015].
    for revision in RESUMING {
        let mut net = Net::legacy(revision);
        net.body(3, &event(&notification("info")));
        assert!(net.told().starts_with("notifications/message"));
        net.body(3, &event(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#));
        assert!(net.sent().starts_with("#4 POST result {}"));
    }
}

#[test]
fn the_stream_is_reopened_after_its_last_event() {
    // Rule: [RESUME-004] [SSE-007] [SSE-008] [HCLI-010].
    for broken in [true, false] {
        let mut net = Net::legacy(LATEST);
        net.body(3, &event_with_id("l1", &notification("info")));
        net.body(3, "retry: 2000\n\n");
        net.told();
        if broken {
            net.broken(3)
        } else {
            net.end(3)
        }
        let (waited, sent) = net.wait_for_request();
        assert!(waited >= Duration::from_secs(2));
        assert_eq!(sent, "#4 GET version=2025-11-25 session=s1 after=l1\n");
        net.answer_head(4, 200, EVENTS);
        net.body(4, &event_with_id("l1", &notification("info")));
        net.body(4, &event_with_id("l2", &notification("debug")));
        assert_eq!(net.told().lines().count(), 1);
    }
    // Without event ids a new stream is opened.
    let mut net = Net::legacy(LATEST);
    net.end(3);
    assert_eq!(net.wait_for_request().1, "#4 GET version=2025-11-25 session=s1\n");
}

#[test]
fn polling_continues_as_long_as_the_server_requests_it() {
    // Rule: [SSE-008] [SSE-009].
    let mut net = Net::legacy(LATEST);
    for exchange in 4..=30 {
        net.body(exchange - 1, "retry: 1000\n\n");
        net.end(exchange - 1);
        let (waited, sent) = net.wait_for_request();
        assert!(sent.starts_with(&format!("#{exchange} GET")), "{sent}");
        let (least, most) = (Duration::from_secs(1), Duration::from_millis(1500));
        assert!(waited >= least && waited <= most, "{waited:?}");
        net.answer_head(exchange, 200, EVENTS);
    }
    assert_eq!(net.told(), "");
}

#[test]
fn a_permanently_lost_stream_is_reported() {
    let mut net = Net::legacy(LATEST);
    net.broken(3);
    for exchange in 4..12 {
        net.wait_for_request();
        net.failed(exchange, ExchangeFailure::NotSent);
    }
    assert!(net.told().starts_with("event stream lost: "));
    net.advance(Duration::from_secs(3600));
    net.expect_silence();
    net.call_echo();
    assert!(net.sent().starts_with("#12 POST tools/call"));
    // Refused although it existed before.
    let mut net = Net::legacy(LATEST);
    net.broken(3);
    net.wait_for_request();
    net.answer(4, 405, &[], "");
    assert!(net.told().starts_with("event stream lost: "));
}

#[test]
fn a_stream_that_the_server_still_holds_is_requested_again() {
    // Rule: [SSE-009] [HCLI-009].
    for status in [400, 409] {
        let mut net = Net::legacy(LATEST);
        net.broken(3);
        for exchange in 4..6 {
            assert!(net.wait_for_request().1.ends_with("GET version=2025-11-25 session=s1\n"));
            net.answer(exchange, status, &[], "Only one stream is allowed per session");
            assert_eq!(net.told(), "", "{status}");
        }
        assert!(net.wait_for_request().1.starts_with("#6 GET"));
        net.answer_head(6, 200, EVENTS);
        net.body(6, &event(&notification("info")));
        assert!(net.told().starts_with("notifications/message"));
    }
}

#[test]
fn an_idle_stream_can_be_closed_any_number_of_times() {
    let mut net = Net::legacy(LATEST);
    for exchange in 3..30 {
        net.advance(Duration::from_secs(40));
        net.end(exchange);
        net.wait_for_request();
        net.answer_head(exchange + 1, 200, EVENTS);
    }
    assert_eq!(net.told(), "");
}

#[test]
fn a_stream_whose_session_is_gone_starts_another_session() {
    // Rule: [SESS-009].
    let mut net = Net::legacy(LATEST);
    net.broken(3);
    net.wait_for_request();
    net.answer(4, 404, &[], "");
    assert_eq!(net.sent(), "#4 abort\n#5 POST initialize\n");
}

#[test]
fn a_first_stream_that_has_lost_events_is_reported() {
    // Rule: [HCLI-009].
    let mut net = asking();
    net.answer(3, 410, &[], "");
    let told = net.told();
    assert!(told.starts_with("event stream lost: "), "{told}");
    net.call_echo();
    assert!(net.sent().starts_with("#4 POST tools/call"));
}

#[test]
fn the_outcome_of_a_request_for_the_stream_is_that_of_the_last_one() {
    // Rule: [HCLI-009] [SESS-009].
    let last = |net: &mut Net, number, status: u16| {
        let fields: &[(&str, &str)] = if status == 200 { EVENTS } else { &[] };
        net.answer_head(number, status, fields);
        let sent = net.sent();
        (net.told(), sent, net.client.poll_timeout().is_some())
    };
    for first in [408, 429, 500, 502, 503, 504] {
        for second in [200, 400, 401, 403, 404, 405, 410, 501] {
            let mut once = asking();
            let expected = last(&mut once, 3, second);
            let mut twice = asking();
            twice.answer(3, first, &[], "");
            let (_, again) = twice.wait_for_request();
            assert!(again.starts_with("#4 GET"), "{first}: {again}");
            assert_eq!(last(&mut twice, 4, second), expected, "{first}, then {second}");
        }
    }
}

/// Middleware that lets only the second request of a client open a listen stream.
#[derive(Debug)]
struct OnlySecond;

impl MessageMiddleware for OnlySecond {
    fn request(&self, message: &MiddlewareMessage<'_>) -> RequestAction {
        let is_second = message.id() == Some(&RequestId::Number(2));
        if message.method() == "subscriptions/listen" && !is_second {
            return RequestAction::Refuse(ErrorObject::internal("no"));
        }
        RequestAction::Forward
    }
}

// Not recorded, because a replay has no middleware.
#[test]
fn a_listen_stream_that_middleware_does_not_let_reopen_ends() {
    // Rule: [HCLI-012].
    let options = peer_options().message_middleware(std::sync::Arc::new(OnlySecond));
    let mut now = Instant::ZERO;
    let mut client = Client::new(options, http_options(), 7, now);
    let next = |client: &mut Client| match client.poll_transmit() {
        Some(ClientTransmit::Send(request)) => request.exchange,
        other => panic!("{other:?}"),
    };
    let head = |(name, value): (&'static str, &'static str)| {
        let mut head = IncomingResponse::new(Status::OK);
        head.field(name, value.as_bytes());
        head
    };
    let exchange = next(&mut client);
    client.handle_response(exchange, &head(JSON[0]), now);
    let found = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}}"#;
    client.handle_body(exchange, found.as_bytes(), now);
    client.handle_body_end(exchange, now);
    assert!(matches!(client.poll_event(), Some(Event::Opened(_))));
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let subscription = client.subscribe(&filter, now).unwrap();
    let exchange = next(&mut client);
    client.handle_response(exchange, &head(EVENTS[0]), now);
    let acknowledged = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#;
    client.handle_body(exchange, event(acknowledged).as_bytes(), now);
    assert!(matches!(client.poll_event(), Some(Event::Subscribed(_))));
    client.handle_exchange_failed(exchange, ExchangeFailure::Broken, now);
    while let Some(due) = client.poll_timeout() {
        now = due;
        client.handle_timeout(now);
    }
    let Some(Event::Ended(ended)) = client.poll_event() else { panic!("it ends") };
    assert_eq!((ended.call, ended.outcome.is_err()), (subscription, true));
}

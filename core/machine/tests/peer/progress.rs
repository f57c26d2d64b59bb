//! Progress of calls, in both directions.

use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::peer::{CallOptions, ClientMachine, Event, Request, ServerMachine};
use mcp_sansio::{Instant, Method};

use crate::fixtures::*;
use crate::pair::Pair;

fn call(pair: &mut Pair, options: &CallOptions<'_>) -> Request<'static> {
    pair.client.call(Method::ToolsCall, &echo(), options, pair.now).unwrap();
    pair.drive();
    pair.request()
}

#[test]
fn progress_arrives_in_order_and_stops_with_the_response() {
    // Rule: [PROG-001] [PROG-002] [PROG-004] [PROG-005] [PROG-006] [PROG-009].
    for revision in Revision::ALL {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        let request = call(&mut pair, &CallOptions::default().progress());
        assert!(request.wants_progress);
        let server = &mut pair.server;
        server.progress(request.handle, 0.5, Some(2.0), Some("half\nway"), pair.now);
        server.progress(request.handle, 0.5, None, None, pair.now);
        server.progress(request.handle, f64::NAN, None, None, pair.now);
        server.progress(request.handle, 1.0, Some(f64::INFINITY), None, pair.now);
        server.respond_with(request.handle, &raw("{}"), Instant::ZERO).unwrap();
        server.progress(request.handle, 2.0, None, None, pair.now);
        pair.drive();
        let told: Vec<_> = pair
            .client_events
            .iter()
            .map(|event| match event {
                Event::Progress(p) => (p.progress, p.total, p.message.as_deref().map(String::from)),
                Event::Ended(_) => (-1.0, None, None),
                other => panic!("{other:?}"),
            })
            .collect();
        let message = (revision > Revision::V2024_11_05).then(|| String::from("half\nway"));
        assert_eq!(told, [(0.5, Some(2.0), message), (1.0, None, None), (-1.0, None, None)]);
    }
}

#[test]
fn progress_is_sent_only_if_requested() {
    // Rule: [PROG-005].
    for revision in Revision::ALL {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        let request = call(&mut pair, &CallOptions::default());
        assert!(!request.wants_progress);
        pair.take_transcript();
        pair.server.progress(request.handle, 1.0, None, None, pair.now);
        pair.drive();
        assert_eq!(pair.take_transcript(), "");
    }
}

#[test]
fn a_token_keeps_its_json_type() {
    // Rule: [PROG-001] [PROG-002].
    for token in ["7", r#""7""#] {
        let mut wire = crate::wire::server(full_server());
        let meta = format!(r#""progressToken":{token}"#);
        wire.send(&modern_with("1", "tools/call", r#""name":"t""#, "{}", &meta));
        let Event::Request(request) = wire.event() else { panic!("a request") };
        wire.machine.progress(request.handle, 1.0, None, None, wire.now);
        assert_eq!(wire.message()["params"]["progressToken"].to_string(), token);
    }
    for odd in ["1.5", "true", "{}"] {
        let mut wire = crate::wire::server(full_server());
        let meta = format!(r#""progressToken":{odd}"#);
        wire.send(&modern_with("1", "tools/call", r#""name":"t""#, "{}", &meta));
        wire.expect_error("1", -32602);
    }
}

#[test]
fn a_client_reads_its_token_as_a_string_too() {
    // Rule: [PROG-001]. Some servers return each number as a string.
    for revision in Revision::ALL {
        let mut wire = client_at(revision, plain_client());
        let options = CallOptions::default().progress();
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        let token = wire.message()["params"]["_meta"]["progressToken"].to_string();
        for (token, progress) in [(format!("\"{token}\""), 1), (token, 2)] {
            let params = format!(r#"{{"progressToken":{token},"progress":{progress}}}"#);
            wire.send(&notification("notifications/progress", &params));
            let Event::Progress(read) = wire.event() else { panic!("no progress") };
            assert_eq!(read.progress, f64::from(progress));
        }
    }
}

#[test]
fn progress_over_the_rate_limit_is_dropped() {
    // Rule: [PROG-008].
    let mut limits = mcp_sansio::peer::Limits::DEFAULT;
    limits.progress_per_second_max = 3;
    let server = full_server().limits(limits);
    let mut pair = Pair::open_at(Revision::V2025_11_25, plain_client(), server);
    let request = call(&mut pair, &CallOptions::default().progress());
    for step in 0..10 {
        pair.server.progress(request.handle, f64::from(step), None, None, pair.now);
    }
    pair.drive();
    assert_eq!(pair.client_events.len(), 3);
    pair.advance(Duration::from_secs(1));
    pair.server.progress(request.handle, 10.0, None, None, pair.now);
    pair.drive();
    assert_eq!(pair.client_events.len(), 4);
}

#[test]
fn decreasing_progress_is_reported_and_unknown_progress_ignored() {
    // Rule: [PROG-003] [PROG-005] [PROG-006] [PROG-007].
    for revision in Revision::ALL {
        let mut wire = client_at(revision, plain_client());
        let options = CallOptions::default().progress();
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        wire.line();
        let progress = |params: &str| notification("notifications/progress", params);
        wire.send(&progress(r#"{"progressToken":2,"progress":1}"#));
        assert!(wire.told().starts_with("progress 1"));
        wire.send(&progress(r#"{"progressToken":2,"progress":1}"#));
        assert!(wire.told().starts_with("violation"));
        for stray in ["3", r#""3""#, r#""02""#, "-1"] {
            wire.send(&progress(&format!(r#"{{"progressToken":{stray},"progress":9}}"#)));
            wire.expect_silence();
        }
        wire.send(&progress(r#"{"progressToken":2}"#));
        assert!(wire.told().starts_with("violation"));
        wire.send(&result("2", "{}"));
        assert!(wire.told().starts_with("ended"));
        wire.send(&progress(r#"{"progressToken":2,"progress":5}"#));
        wire.expect_silence();
    }
}

#[test]
fn progress_that_does_not_increase_is_a_sign_of_life() {
    // Rule: [PROG-003]. Some servers repeat their progress while they work.
    for revision in Revision::ALL {
        let mut wire = client_at(revision, plain_client());
        let options = CallOptions::default().progress().timeout(Duration::from_secs(10));
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        for round in 0..4 {
            wire.now = wire.now + Duration::from_secs(8);
            let params = r#"{"progressToken":2,"progress":0,"message":"working"}"#;
            wire.send(&notification("notifications/progress", params));
            let told = wire.told();
            assert!(
                told.starts_with(if round == 0 { "progress 0" } else { "violation" }),
                "{told}"
            );
            wire.machine.handle_timeout(wire.now);
        }
        wire.send(&result("2", "{}"));
        assert!(wire.told().starts_with("ended"));
    }
}

#[test]
fn a_legacy_client_sends_no_progress_and_a_server_receives_it_for_its_calls() {
    // Rule: [PROG-001] [PROG-004].
    let mut wire = server_at(Revision::V2025_11_25, r#"{"sampling":{}}"#, full_server());
    let options = CallOptions::default().progress();
    wire.machine
        .call(
            Method::SamplingCreateMessage,
            &raw("{\"messages\":[],\"maxTokens\":1}"),
            &options,
            wire.now,
        )
        .unwrap();
    assert_eq!(wire.message()["params"]["_meta"]["progressToken"], 1);
    wire.send(&notification("notifications/progress", r#"{"progressToken":1,"progress":1}"#));
    assert!(wire.told().starts_with("progress 1"));
}

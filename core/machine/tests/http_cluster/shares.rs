//! Limits on the memory that clients can occupy in nodes and their store.

use std::time::Duration;

use mcp_sansio::http::SharedOptions;
use serde_json::json;

use crate::cluster::{Cluster, Outgoing};
use crate::scenarios::SOON;
use crate::schedules::setting;

const KIB: usize = 1024;

#[test]
fn messages_of_the_greatest_size_take_bounded_room_in_the_store() {
    let mut options = SharedOptions::new();
    options.mailbox_bytes_max = 256 * KIB;
    options.mailbox_bytes_per_caller_max = 64 * KIB;
    let mut cluster = Cluster::with(3, 1, options);
    let (first, second) = (cluster.open(0, 1), cluster.open(0, 1));
    let question = cluster.call(1, &first, 1, "ask-0");
    let question = cluster.replies[question].messages()[0].clone();
    let long = "x".repeat(48 * KIB);
    let answer = |id: &serde_json::Value| {
        json!({"jsonrpc": "2.0", "id": id,
        "result": {"roots": [], "_meta": {"long": long}}})
    };
    let bodies = [
        json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": question["id"], "progress": 1, "message": long}}),
        json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": 5, "progress": 1, "message": long}}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 77, "reason": long}}),
        answer(&json!(9 << 18)),
        answer(&question["id"]),
    ];
    // The receiver does nothing.
    cluster.nodes[1].paused_until = cluster.now + Duration::from_secs(10);
    let mut statuses = Vec::new();
    for body in &bodies {
        for session in [&first, &second] {
            let replies = [(); 20].map(|()| {
                let (method, body) = ("POST", body.to_string());
                let session = Some(session.clone());
                let request = Outgoing { method, session, body, ..Outgoing::default() };
                let reply = cluster.request(0, 0, request);
                cluster.advance(Duration::from_millis(5));
                reply
            });
            cluster.advance(Duration::from_millis(20));
            statuses.push(replies.map(|reply| cluster.replies[reply].status));
        }
    }
    let last = statuses.concat();
    // All answers that were not refused are in the store.
    assert!(last.iter().all(|status| matches!(status, Some(202 | 503))), "{last:?}");
    assert_eq!(statuses[8].iter().filter(|status| **status == Some(202)).count(), 1);
    assert!(last.contains(&Some(503)), "the share of a caller holds one of these answers");
    // One node has both sessions besides the one that sends.
    let peak = cluster.store.mailbox_peak;
    assert!(peak > 48 * KIB && peak <= 64 * KIB + 2 * KIB, "{peak}");
    // Whether the receiver lives does not matter in the end.
    cluster.advance(Duration::from_secs(20));
    let before = cluster.store.byte_length();
    cluster.advance(Duration::from_secs(1));
    assert_eq!(cluster.store.byte_length(), before);
    assert!(before < 4 * KIB, "{before} bytes are left");
}

#[test]
fn a_cancellation_goes_to_the_nodes_of_its_session_only() {
    let mut cluster = Cluster::new(3, 1);
    let session = cluster.open(0, 0);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 77}});
    let sent = cluster.store.executed.get("send").copied();
    cluster.post(0, &session, &cancel);
    assert_eq!(cluster.store.executed.get("send").copied(), sent, "no other node has the session");
    cluster.call(2, &session, 1, "plain");
    let sent = cluster.store.executed.get("send").copied().unwrap_or_default();
    cluster.post(0, &session, &cancel);
    assert_eq!(cluster.store.executed["send"], sent + 1);
}

/// Returns how often a request is repeated. `.ci/simulation` repeats it ten times as often.
fn repetitions() -> usize {
    setting("MCP_SIM_REPETITIONS", 1000) as usize
}

#[test]
fn a_request_that_asks_for_nothing_leaves_nothing_however_often_it_is_repeated() {
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 0);
    let stream = cluster.call(0, &session, 1, "stream-3");
    let known = cluster.replies[stream].last_id().to_owned();
    let unknown = "0".repeat(32);
    let post = |body: serde_json::Value| ("POST", None, body.to_string());
    let get = |last: &str| ("GET", Some(last.to_owned()), String::new());
    let requests = [
        (0, &session, None, get(&format!("{}-1", 9 << 18))),
        (0, &session, None, get("7-1")),
        (0, &session, None, get("no event id")),
        (0, &session, None, get(&known)),
        // Another principal, at a node without the session.
        (1, &session, Some("eve"), get(&known)),
        (1, &session, Some("eve"), post(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))),
        (0, &session, None, post(json!({"jsonrpc": "2.0", "id": 9 << 18, "result": {}}))),
        (0, &session, None, post(json!({"jsonrpc": "2.0", "id": "a", "result": {}}))),
        (0, &session, None, post(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))),
        (
            0,
            &session,
            None,
            post(json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 77}})),
        ),
        (
            0,
            &session,
            None,
            post(json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": 9 << 18, "progress": 1}})),
        ),
        (1, &unknown, None, get(&known)),
        (1, &unknown, None, ("DELETE", None, String::new())),
    ];
    for (at, session, principal, (method, last_event, body)) in requests {
        let mut repeat = |count| {
            let moved = cluster.store.moved;
            for _ in 0..count {
                let request = Outgoing {
                    method,
                    session: Some(session.clone()),
                    last_event: last_event.clone(),
                    body: body.clone(),
                    principal,
                    address: Some(1),
                    ..Outgoing::default()
                };
                let reply = cluster.request(at, 0, request);
                cluster.advance(Duration::from_millis(6));
                cluster.disconnect(reply);
                cluster.replies.truncate(reply);
            }
            cluster.advance(SOON);
            let moved = cluster.store.moved - moved;
            (cluster.store.byte_length(), moved)
        };
        let (once, _) = repeat(1);
        let (bytes, moved) = repeat(repetitions());
        let named = format!("{method} {last_event:?} {body} for {principal:?}");
        // Less, if a finished stream has expired meanwhile.
        assert!(bytes <= once, "{bytes} bytes instead of {once} for {named}");
        assert!(moved <= repetitions() * KIB, "{moved} bytes for {named}");
    }
}

#[test]
fn a_quiet_caller_is_served_while_another_fills_the_queue_of_the_store() {
    let mut cluster = Cluster::new(2, 1);
    let known = cluster.open(1, 1);
    // 2,000 actions in a second, of which 64 are in flight.
    cluster.throughput = Some((64, Duration::from_micros(500)));
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"}}});
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let request = |address, session: Option<String>| Outgoing {
        method: "POST",
        body: if session.is_some() { &ping } else { &initialize }.to_string(),
        session,
        address: Some(address),
        ..Outgoing::default()
    };
    let (mut flood, mut quiet) = (Vec::new(), Vec::new());
    for tick in 0_u32..1000 {
        for number in 0..60 {
            // Sessions, of which there may be a limited number, and questions for others.
            let session = (number % 6 > 0).then(|| format!("{tick:016}{number:016}"));
            flood.push(cluster.request(0, 0, request(1, session)));
        }
        if tick % 20 == 0 {
            quiet.push((cluster.now, cluster.request(0, 0, request(2, None))));
            let asked = request(2, Some(known.clone()));
            quiet.push((cluster.now, cluster.request(0, 0, asked)));
        }
        cluster.advance(Duration::from_millis(10));
        let now = cluster.now;
        quiet.retain(|(since, reply)| {
            let received = &cluster.replies[*reply];
            assert!(received.complete || now < *since + Duration::from_secs(1), "no answer");
            assert!(!received.complete || received.status == Some(200), "{received:?}");
            !received.complete
        });
    }
    let refused =
        flood.iter().filter(|reply| matches!(cluster.replies[**reply].status, Some(429 | 503)));
    assert!(refused.count() > 1000, "the store was too slow for the flood");
    assert!(cluster.server(0).is_store_available());
}

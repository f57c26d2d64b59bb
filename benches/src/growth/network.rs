//! Floods over HTTP, to a server or to a client.

use std::hint::black_box;

use mcp_sansio::http::{
    Client, ClientTransmit as Sent, HttpClientOptions, IncomingResponse, Location,
};
use mcp_sansio::peer;
use mcp_sansio::peer::Status;
use mcp_sansio::protocol::Implementation;
use mcp_sansio::{Instant, Revision, Revisions};

use super::Input;
use crate::http_harness::{HttpHarness, INITIALIZE, in_session};

const NOW: Instant = Instant::ZERO;
const UNIT: usize = 64;

const MODERN: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

fn call(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#)
}

pub(super) fn sessions(step: usize) -> Input {
    let mut harness = HttpHarness::new();
    Input::new(step * UNIT * INITIALIZE.len(), move || {
        for _ in 0..step * UNIT {
            harness.send("POST", &[], INITIALIZE);
        }
    })
}

pub(super) fn session_requests(step: usize) -> Input {
    let mut harness = HttpHarness::new();
    let session = harness.session();
    let calls: Vec<String> = (0..step * UNIT).map(|id| call(id + 10_000)).collect();
    Input::new(calls.iter().map(String::len).sum(), move || {
        for call in &calls {
            harness.send("POST", &in_session(&session), call);
        }
    })
}

pub(super) fn session_end(step: usize) -> Input {
    let mut harness = HttpHarness::new();
    let session = harness.session();
    for id in 0..step * UNIT {
        harness.send("POST", &in_session(&session), &call(id));
    }
    Input::new(step * UNIT, move || {
        harness.send("DELETE", &in_session(&session), "");
    })
}

pub(super) fn reconnects(step: usize) -> Input {
    let mut harness = HttpHarness::new();
    let session = harness.session();
    Input::new(step * UNIT * 100, move || {
        for _ in 0..step * UNIT {
            harness.send("GET", &in_session(&session), "");
            if let Some(exchange) = harness.open.pop() {
                harness.server.handle_disconnect(exchange, NOW);
            }
            harness.transmit(&mut |_| {});
        }
    })
}

pub(super) fn modern_requests(step: usize) -> Input {
    let mut harness = HttpHarness::new();
    let fields = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    Input::new(step * UNIT * MODERN.len(), move || {
        for _ in 0..step * UNIT {
            harness.send("POST", &fields, MODERN);
        }
    })
}

/// A server that keeps asking questions on one stream, and accepts no answer.
pub(super) fn questions(step: usize) -> Input {
    let revisions = Revisions::only(Revision::V2025_11_25);
    let peer = peer::ClientOptions::new(Implementation::new("c", "1")).revisions(revisions);
    let options = HttpClientOptions::new(Location::parse("http://localhost/mcp").expect("a URL"));
    let mut client = Client::new(peer, options, 1, NOW);
    let opening = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    let mut listening = None;
    while let Some(sent) = client.poll_transmit() {
        let Sent::Send(request) = sent else { continue };
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let mut head = IncomingResponse::new(Status(200));
        if body.contains("\"initialize\"") {
            head.field("content-type", b"application/json");
            client.handle_response(request.exchange, &head, NOW);
            client.handle_body(request.exchange, opening.as_bytes(), NOW);
            client.handle_body_end(request.exchange, NOW);
        } else if request.method == "GET" {
            head.field("content-type", b"text/event-stream");
            client.handle_response(request.exchange, &head, NOW);
            listening = Some(request.exchange);
        } else {
            client.handle_response(request.exchange, &IncomingResponse::new(Status(202)), NOW);
            client.handle_body_end(request.exchange, NOW);
        }
    }
    let listening = listening.expect("a legacy client listens");
    let event = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n";
    let events = event.repeat(step * UNIT);
    Input::new(events.len(), move || {
        for piece in events.as_bytes().chunks(1500) {
            client.handle_body(listening, piece, NOW);
            while let Some(sent) = client.poll_transmit() {
                black_box(sent);
            }
            while let Some(event) = client.poll_event() {
                black_box(event);
            }
        }
    })
}

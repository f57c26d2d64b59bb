//! Malicious clients and a server on HTTP.

use std::net::IpAddr;
use std::time::Duration;

use mcp_sansio::http::{
    ExchangeId, HttpServerOptions, RequestHead, Response, Server, ServerLimits, ServerTransmit,
};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{self, Event, Limits, RequestHandle, ServerMachine};
use mcp_sansio::protocol::{Implementation, ServerCapabilities, ToolsCapability};
use mcp_sansio::{Instant, Principal};

use crate::allocator::{begin, held, measured};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const MANY: usize = 2000;

struct TestServer {
    server: Server,
    now: Instant,
    open: Vec<ExchangeId>,
    due: Vec<RequestHandle>,
    /// Principal of the requests.
    principal: Option<Principal>,
    address: Option<IpAddr>,
}

impl TestServer {
    fn new() -> Self {
        let offers = ServerCapabilities::new().tools(ToolsCapability::new());
        let peer = peer::ServerOptions::new(Implementation::new("s", "1"))
            .capabilities(offers)
            .limits(Limits::SMALL);
        let mut limits = ServerLimits::DEFAULT;
        (limits.sessions_max, limits.exchanges_max, limits.finished_streams_max) = (4, 16, 2);
        (limits.replay_bytes_max, limits.replay_bytes_total_max) = (2048, 8192);
        limits.unread_bytes_max = 4096;
        let options = HttpServerOptions::new().limits(limits);
        begin();
        Self {
            server: measured(|| Server::new(peer, options, [1; 32], 1).unwrap()),
            now: Instant::ZERO,
            open: Vec::new(),
            due: Vec::with_capacity(64),
            principal: None,
            address: None,
        }
    }

    /// Sends a request. Returns its response if that is complete at once.
    fn send(&mut self, method: &str, fields: &[(&str, &str)], body: &str) -> Option<Response> {
        let mut head = RequestHead::new(method, "/mcp");
        head.field("host", b"localhost");
        head.field("content-type", b"application/json");
        head.field("accept", b"application/json, text/event-stream");
        for (name, value) in fields {
            head.field(name, value.as_bytes());
        }
        if let Some(address) = self.address {
            head.remote_address(address);
        }
        let Self { server, now, due, open, principal, .. } = self;
        if let Err(refused) = server.admit(&head) {
            return Some(refused);
        }
        let exchange = measured(|| {
            let (exchange, event) =
                server.handle_request(&head, body.as_bytes(), &principal.clone().into(), *now);
            if let Some(Event::Request(request)) = event {
                due.push(request.handle);
            }
            while server.poll_event().is_some() {}
            while let Some(ready) = server.poll_ready() {
                while ready != exchange && server.poll_transmit(ready, *now).is_some() {}
            }
            exchange
        });
        let response = measured(|| match server.poll_transmit(exchange, *now) {
            Some(ServerTransmit::Respond(response)) => Some(response.clone()),
            _ => None,
        });
        if response.is_none() {
            open.push(exchange);
        }
        let copy = response.clone();
        measured(|| drop(response));
        copy
    }

    fn hang_up(&mut self) {
        for exchange in core::mem::take(&mut self.open) {
            measured(|| {
                self.server.handle_disconnect(exchange, self.now);
                while self.server.poll_event().is_some() {}
            });
        }
    }

    fn session(&mut self) -> String {
        let response = self.send("POST", &[], INITIALIZE).unwrap();
        let id = response.head.fields().find(|(name, _)| *name == "mcp-session-id").unwrap();
        id.1.into_owned()
    }

    fn in_session(&mut self, id: &str, method: &str, body: &str) -> Option<Response> {
        let fields = [("mcp-session-id", id), ("mcp-protocol-version", "2025-11-25")];
        self.send(method, &fields, body)
    }

    /// Asserts that a well-behaved client is still served.
    fn serves(&mut self) {
        self.hang_up();
        self.due.clear();
        self.now = self.now + Duration::from_secs(3600);
        measured(|| {
            self.server.handle_timeout(self.now);
            while self.server.poll_event().is_some() {}
        });
        let session = self.session();
        let confirmed = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(self.in_session(&session, "POST", confirmed).unwrap().head.status.0, 202);
        assert!(self.in_session(&session, "POST", &call(1)).is_none());
        let (handle, exchange) = (self.due.pop().unwrap(), self.open.pop().unwrap());
        measured(|| {
            self.server.respond_with(handle, &RawJson::EMPTY_OBJECT, self.now).unwrap();
            let sent = self.server.poll_transmit(exchange, self.now);
            assert!(matches!(sent, Some(ServerTransmit::Respond(_))));
        });
    }
}

fn call(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#)
}

/// Repeats an attack, and asserts that its memory stops growing.
fn levels_off(server: &mut TestServer, mut harm: impl FnMut(&mut TestServer, usize)) {
    for number in 0..MANY {
        harm(server, number);
    }
    let before = held();
    for number in MANY..2 * MANY {
        harm(server, number);
    }
    // The capacity of a table may have doubled once.
    assert!(held() <= before + before / 2, "{before} bytes grew to {}", held());
    server.serves();
}

#[test]
fn sessions_over_the_limit_are_refused_until_others_end() {
    let mut server = TestServer::new();
    levels_off(&mut server, |server, number| {
        let response = server.send("POST", &[], INITIALIZE).unwrap();
        assert_eq!(response.head.status.0, if number < 4 { 200 } else { 503 });
    });
}

/// Opens sessions in a loop, pings all of them, and asserts that another caller can open and use a
/// session at any time.
fn takes_and_holds(
    server: &mut TestServer,
    greedy: &dyn Fn(&mut TestServer),
    modest: &dyn Fn(&mut TestServer),
) {
    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mut held = Vec::with_capacity(64);
    levels_off(server, |server, number| {
        greedy(server);
        if let Some(opened) = server.send("POST", &[], INITIALIZE)
            && opened.head.status.0 == 200
        {
            let id = opened.head.fields().find(|(name, _)| *name == "mcp-session-id").unwrap();
            held.push(id.1.into_owned());
        }
        held.retain(|id| server.in_session(id, "POST", PING).unwrap().head.status.0 == 200);
        if number % 16 == 0 {
            modest(server);
            let session = server.session();
            greedy(server);
            held.retain(|id| server.in_session(id, "POST", PING).unwrap().head.status.0 == 200);
            assert!(held.len() < 4, "the sessions of the greedy caller are closed");
            modest(server);
            assert_eq!(server.in_session(&session, "POST", PING).unwrap().head.status.0, 200);
            assert_eq!(server.in_session(&session, "DELETE", "").unwrap().head.status.0, 204);
        }
        (server.principal, server.address) = (None, None);
    });
}

#[test]
fn one_principal_cannot_exhaust_the_sessions() {
    let mut server = TestServer::new();
    // The greedy caller keeps many sessions: closing one frees memory of its own only.
    let (greedy, modest) = (Principal::new("greedy"), Principal::new("modest"));
    takes_and_holds(&mut server, &|server| server.principal = Some(greedy.clone()), &|server| {
        server.principal = Some(modest.clone())
    });
}

#[test]
fn one_address_cannot_exhaust_the_sessions() {
    let mut server = TestServer::new();
    takes_and_holds(
        &mut server,
        &|server| server.address = Some("2001:db8::1".parse().unwrap()),
        &|server| server.address = Some("192.0.2.1".parse().unwrap()),
    );
}

#[test]
fn former_callers_are_forgotten_with_their_state() {
    let mut server = TestServer::new();
    levels_off(&mut server, |server, number| {
        server.principal = Some(Principal::new(format!("caller {number}")));
        let session = server.session();
        server.in_session(&session, "POST", &call(1));
        server.hang_up();
        server.due.clear();
        assert_eq!(server.in_session(&session, "DELETE", "").unwrap().head.status.0, 204);
        assert_eq!(server.server.caller_count(), 0);
        server.principal = None;
    });
}

#[test]
fn sessions_that_have_ended_leave_no_state() {
    let mut server = TestServer::new();
    levels_off(&mut server, |server, _| {
        let session = server.session();
        assert_eq!(server.in_session(&session, "DELETE", "").unwrap().head.status.0, 204);
    });
}

#[test]
fn the_number_of_abandoned_requests_is_bounded() {
    let mut server = TestServer::new();
    let session = server.session();
    levels_off(&mut server, |server, number| {
        server.in_session(&session, "POST", &call(number));
        server.hang_up();
        server.due.clear();
    });
}

#[test]
fn a_stream_that_is_reopened_in_a_loop_remains_one_stream() {
    // Rule: [HSRV-017].
    let mut server = TestServer::new();
    let session = server.session();
    levels_off(&mut server, |server, number| {
        server.in_session(&session, "GET", "");
        if number % 2 == 0 {
            server.hang_up();
        } else {
            server.open.clear();
        }
    });
}

#[test]
fn unknown_ids_of_events_and_sessions_are_refused() {
    // Rule: [SESS-008].
    let mut server = TestServer::new();
    let session = server.session();
    levels_off(&mut server, |server, number| {
        let never = format!("{number:0>32}");
        assert_eq!(server.in_session(&never, "POST", &call(1)).unwrap().head.status.0, 404);
        let last = format!("{number}-{number}");
        let fields = [("mcp-session-id", &*session), ("last-event-id", &*last)];
        let status = server.send("GET", &fields, "").map(|response| response.head.status.0);
        assert!(matches!(status, Some(400 | 410) | None), "{status:?}");
        server.hang_up();
    });
}

#[test]
fn requests_that_repeat_members_are_each_refused() {
    let mut server = TestServer::new();
    let session = server.session();
    let modern = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call")];
    let body = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{params}}}}}"#)
    };
    let twice = body(r#""name":"t","name":"u","_meta":{}"#);
    let meta = body(r#""name":"t","_meta":{},"_m\u0065ta":{}"#);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestId":1}}"#;
    levels_off(&mut server, |server, _| {
        for (body, member) in [(&*twice, "`name`"), (&*meta, "`_meta`"), (note, "`requestId`")] {
            for (response, status) in [
                (server.send("POST", &modern, body), 400),
                (server.in_session(&session, "POST", body), if body == note { 400 } else { 200 }),
            ] {
                let response = response.expect("a whole response");
                assert_eq!(response.head.status.0, status, "{body}");
                let text = String::from_utf8(response.body).unwrap();
                assert!(text.contains(member), "{body}: {text}");
            }
        }
        assert!(server.due.is_empty());
    });
}

#[test]
fn invalid_bodies_are_each_refused() {
    let mut server = TestServer::new();
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let batch = format!("[{}1]", "1,".repeat(500));
    levels_off(&mut server, |server, _| {
        for body in ["", "{", "7", "[]", &*deep, &*batch, "{\"jsonrpc\":\"2.0\"}"] {
            let status = server.send("POST", &[], body).unwrap().head.status.0;
            assert_eq!(status, 400, "{body}");
        }
    });
}

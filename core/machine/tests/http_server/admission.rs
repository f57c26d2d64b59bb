//! Checks of the request head.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_sansio::catalog::{Catalog, CompiledSchema, Validator};
use mcp_sansio::http::{
    AllowedHosts, HttpServerOptions, ReadRequest, RequestHead, Server, ServerTransmit,
};
use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::peer::{Event, ServerMachine};
use mcp_sansio::protocol::Tool;
use mcp_sansio::{Caller, Instant, Revision, Revisions};

use crate::fixtures::*;

#[test]
fn a_foreign_host_or_origin_is_always_forbidden() {
    // Rule: [HSRV-003] [HSRV-004] [HSRV-005] [LSSE-005].
    for (method, target) in
        [("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/sse"), ("POST", "/post")]
    {
        for bad in [
            [("Host", "evil.example"), ACCEPT, JSON].to_vec(),
            [ACCEPT, JSON].to_vec(),
            join(&POST, &[("Origin", "http://evil.example")]),
            join(&POST, &[("Origin", "null")]),
            join(&POST, &[("origin", "http://localhost.evil.example")]),
        ] {
            let mut server = server_with(HttpServerOptions::new().legacy_sse("/sse", "/post"));
            let reply = server.request(method, target, &bad, &call(1));
            assert_eq!(server.reply(reply).status(), 403, "{method} {target} {bad:?}");
            assert_eq!(server.reply(reply).error(), (-32600, "none".into()));
            server.expect_empty();
        }
    }
    let mut server = server();
    let good = join(&POST, &[("Origin", "http://127.0.0.1:8080")]);
    let reply = server.request("POST", "/mcp", &good, &call(1));
    assert_eq!(server.reply(reply).status(), 400, "past the host check");
}

#[test]
fn allowed_hosts_are_accepted() {
    // Rule: [HSRV-003].
    let hosts = AllowedHosts::new().allow_host("mcp.example").unwrap();
    let mut server = server_with(HttpServerOptions::new().hosts(hosts));
    let ask = [("Host", "mcp.example"), ("Origin", "https://mcp.example"), ACCEPT, JSON];
    let reply = server.request("POST", "/mcp", &ask, &call(1));
    assert_eq!(server.reply(reply).status(), 400, "past the host check");
}

#[test]
fn other_paths_and_methods_are_refused() {
    // Rule: [HSRV-001] [HSRV-002].
    let mut server = server_with(HttpServerOptions::new().legacy_sse("/sse", "/post"));
    for target in ["/", "/mcp//", "/MCP", "/other", "http://localhost/", "*"] {
        let reply = server.request("POST", target, &POST, &call(1));
        assert_eq!(server.reply(reply).status(), 404, "{target}");
        assert!(server.reply(reply).json()["error"]["message"].to_string().contains("`/mcp`"));
    }
    for (method, target, allowed) in [
        ("PUT", "/mcp", "GET, POST, DELETE"),
        ("OPTIONS", "/mcp?x", "GET, POST, DELETE"),
        ("post", "/mcp", "GET, POST, DELETE"),
        ("POST", "/sse", "GET"),
        ("GET", "/post?sessionId=1", "POST"),
    ] {
        let reply = server.request(method, target, &POST, "");
        assert_eq!(server.reply(reply).status(), 405, "{method} {target}");
        assert_eq!(server.reply(reply).field("allow"), Some(allowed));
    }
    let reply = server.request("POST", "http://localhost:3000/mcp?a=b", &POST, &call(1));
    assert_eq!(server.reply(reply).status(), 400, "the absolute form is the same target");
    let reply = server.request("POST", "/mcp/", &POST, &call(1));
    assert_eq!(server.reply(reply).status(), 400, "hosts and proxies add a slash");
    server.expect_empty();

    let mut server = server_with(HttpServerOptions::new().any_path());
    let reply = server.request("POST", "/anything", &POST, &call(1));
    assert_eq!(server.reply(reply).status(), 400, "any path is the endpoint");
}

#[test]
fn get_and_delete_require_sessions() {
    // Rule: [HSRV-024] [SESS-016].
    let mut modern_only = server_of(Revisions::MODERN);
    let mut both = server();
    for method in ["GET", "DELETE"] {
        let reply = modern_only.request(method, "/mcp", &POST, "");
        assert_eq!(modern_only.reply(reply).status(), 405);
        assert_eq!(modern_only.reply(reply).field("allow"), Some("POST"));
        let named = join(&POST, &[("MCP-Protocol-Version", "2026-07-28")]);
        let reply = both.request(method, "/mcp", &named, "");
        assert_eq!(both.reply(reply).status(), 405, "that revision has no sessions");
        let reply = both.request(method, "/mcp", &POST, "");
        assert_eq!(both.reply(reply).status(), 400, "the others have");
    }
}

#[test]
fn a_client_accepts_json_or_event_streams() {
    let mut server = server();
    for accept in ["text/html", "application/json;q=0", ""] {
        let fields = [HOST, JSON, ("Accept", accept)];
        let reply = server.request("POST", "/mcp", &fields, &call(1));
        assert_eq!(server.reply(reply).status(), 406, "{accept}");
    }
    for fields in [
        vec![HOST, JSON],
        vec![HOST, JSON, ("Accept", "*/*")],
        vec![HOST, JSON, ("Accept", "application/json")],
        vec![HOST, JSON, ("Accept", "text/event-stream")],
        vec![HOST, JSON, ("accept", "text/event-stream"), ("accept", "application/json;q=0.5")],
    ] {
        let reply = server.request("POST", "/mcp", &fields, &call(1));
        assert_eq!(server.reply(reply).status(), 400, "{fields:?}");
    }
    for accept in ["application/json", ""] {
        let reply = server.request("GET", "/mcp", &[HOST, ("Accept", accept)], "");
        assert_eq!(server.reply(reply).status(), 406, "{accept}");
    }
    let reply = server.request("GET", "/mcp", &[HOST], "");
    assert_eq!(server.reply(reply).status(), 406);
}

#[test]
fn a_body_is_json() {
    // Web pages can send other media types without a preflight request.
    let mut server = server();
    for fields in [
        vec![HOST, ACCEPT],
        vec![HOST, ACCEPT, ("Content-Type", "text/plain")],
        vec![HOST, ACCEPT, ("Content-Type", "application/x-www-form-urlencoded")],
    ] {
        let reply = server.request("POST", "/mcp", &fields, &call(1));
        assert_eq!(server.reply(reply).status(), 415, "{fields:?}");
    }
    // A charset has no effect on JSON.
    let fields = [HOST, ACCEPT, ("Content-Type", "application/json; charset=ISO-8859-1")];
    let reply = server.request("POST", "/mcp", &fields, &call(1));
    assert_ne!(server.reply(reply).status(), 415);
}

#[test]
fn the_length_of_a_body_is_limited() {
    let mut server = server_with(limits(|limits| limits.body_bytes_max = 100));
    let long = format!("{:101}", "{}");
    let reply = server.request("POST", "/mcp", &POST, &long);
    assert_eq!(server.reply(reply).status(), 413);
    for length in ["101", "99999999999999999999999999"] {
        let fields = join(&POST, &[("Content-Length", length)]);
        let mut head = RequestHead::new("POST", "/mcp");
        for (name, value) in &fields {
            head.field(name, value.as_bytes());
        }
        let refused = server.server.admit(&head).expect_err("refused by the head alone");
        assert_eq!(refused, server.server.reader().body_too_long());
        let reply = server.request("POST", "/mcp", &fields, "");
        assert_eq!(server.reply(reply).status(), 413, "{length}");
    }
    let fields = join(&POST, &[("Content-Length", "100")]);
    let reply = server.request("POST", "/mcp", &fields, &long[..100]);
    assert_eq!(server.reply(reply).status(), 400, "within the limit");
    assert_eq!(server.server.reader().body_too_slow().head.status.0, 408);
}

/// Returns the head of a request for the event stream of 2024-11-05.
fn stream_head(host: &str) -> RequestHead<'_> {
    let mut head = RequestHead::new("GET", "/sse");
    head.field("host", host.as_bytes());
    head
}

/// Handles a request that was read, and returns the status of its response.
fn handle(server: &mut Server, request: &mut ReadRequest<'_>) -> u16 {
    let head = stream_head("localhost");
    let (exchange, _) = server.handle_read_request(&head, request, &|_| Ok(()), Instant::ZERO);
    match server.poll_transmit(exchange, Instant::ZERO) {
        Some(ServerTransmit::Respond(response)) => response.head.status.0,
        Some(ServerTransmit::Open(head)) => head.status.0,
        other => panic!("{other:?} instead of a response"),
    }
}

/// Returns a server with room for two exchanges.
fn small_server() -> Server {
    let options = limits(|limits| limits.exchanges_max = 2).legacy_sse("/sse", "/post");
    Server::new(full_server(), options, [7; 32], 0).unwrap()
}

#[test]
fn what_has_changed_since_a_request_was_read_is_checked_again() {
    let mut server = small_server();
    let reader = server.reader();
    let caller = Caller::ANONYMOUS;
    let mut read = [(); 3].map(|()| reader.read(&stream_head("localhost"), b"", &caller));
    let statuses = read.each_mut().map(|request| handle(&mut server, request));
    assert_eq!(statuses, [200, 200, 503], "each was read when there was room");

    let mut server = small_server();
    let mut request = server.reader().read(&stream_head("localhost"), b"", &caller);
    server.close(Instant::ZERO);
    assert_eq!(handle(&mut server, &mut request), 503);
}

#[test]
fn a_refused_request_that_is_handled_again_stays_refused() {
    // Rule: [HSRV-003].
    let mut server = small_server();
    let mut request = server.reader().read(&stream_head("evil.example"), b"", &Caller::ANONYMOUS);
    let statuses = [(), ()].map(|()| handle(&mut server, &mut request));
    assert_eq!(statuses, [403, 400]);
    assert_eq!(server.session_count(), 0);
}

#[test]
fn a_contradictory_field_is_refused() {
    let mut server = server();
    for (name, one, other) in [
        ("Host", "localhost", "127.0.0.1"),
        ("Mcp-Session-Id", "a", "b"),
        ("MCP-Protocol-Version", "2025-06-18", "2025-11-25"),
        ("Mcp-Method", "tools/call", "tools/list"),
        ("Last-Event-ID", "1-1", "1-2"),
    ] {
        let fields = join(&POST, &[(name, one), (name, other)]);
        let reply = server.request("POST", "/mcp", &fields, &call(1));
        assert_eq!(server.reply(reply).status(), 400, "{name}");
        assert!(server.reply(reply).text().contains("different values"), "{name}");
    }
}

#[test]
fn a_contradictory_standard_header_of_a_modern_request_is_a_mismatch_with_its_id() {
    // Rule: [HDR-025].
    let mut server = server();
    let standard = |other: &'static str, value: &'static str| {
        [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "echo"),
            (other, value),
        ]
    };
    for (name, value) in [
        ("MCP-Protocol-Version", "2025-11-25"),
        ("Mcp-Method", "tools/list"),
        ("Mcp-Name", "other"),
    ] {
        let body = modern(1, "tools/call", r#""name":"echo""#);
        let reply = server.request("POST", "/mcp", &join(&POST, &standard(name, value)), &body);
        assert_eq!(server.reply(reply).status(), 400, "{name}");
        let text = server.reply(reply).text();
        assert!(text.contains(r#""id":1"#) && text.contains("-32020"), "{text}");
        assert!(text.contains(name) && text.contains("different values"), "{text}");
    }
}

#[test]
fn a_contradictory_header_of_a_legacy_initialize_is_no_answer_of_a_modern_server() {
    // Rule: [VER-016].
    let mut server = server();
    let repeated = [("MCP-Protocol-Version", "2026-07-28"), ("MCP-Protocol-Version", "2025-11-25")];
    let body = initialize(Revision::V2025_11_25, "{}");
    let reply = server.request("POST", "/mcp", &join(&POST, &repeated), &body);
    assert_eq!(server.reply(reply).status(), 400);
    let text = server.reply(reply).text();
    assert!(text.contains("different values") && !text.contains("-32020"), "{text}");
}

#[test]
fn a_long_name_that_differs_at_its_end_is_not_said_to_differ_from_itself() {
    let mut server = server();
    let name = "a-name-that-is-longer-than-what-an-error-shows-of-a-header-field-";
    let body = modern(1, "tools/call", &format!(r#""name":"{name}b""#));
    let standard = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", &*format!("{name}a")),
    ];
    let reply = server.request("POST", "/mcp", &join(&POST, &standard), &body);
    let text = server.reply(reply).text();
    assert!(text.contains("the header field `Mcp-Name` differs from the body\""), "{text}");
}

#[test]
fn the_checks_are_host_then_path_then_media_type() {
    let mut server = server();
    let bad = [("Host", "evil.example"), ("Content-Type", "text/plain")];
    let reply = server.request("PUT", "/nowhere", &bad, "");
    assert_eq!(server.reply(reply).status(), 403);
    let reply = server.request("PUT", "/nowhere", &[HOST, bad[1]], "");
    assert_eq!(server.reply(reply).status(), 404);
    let reply = server.request("PUT", "/mcp", &[HOST, bad[1]], "");
    assert_eq!(server.reply(reply).status(), 405);
    let reply = server.request("POST", "/mcp", &[HOST, bad[1]], "");
    assert_eq!(server.reply(reply).status(), 415);
}

/// Requires nothing of arguments, and counts how often it is asked.
#[derive(Clone, Debug, Default)]
struct Counting(Arc<AtomicUsize>);

impl Validator for Counting {
    fn compile(&self, _: &Json) -> Result<Box<dyn CompiledSchema>, String> {
        Ok(Box::new(self.clone()))
    }
    fn clone_boxed(&self) -> Box<dyn Validator> {
        Box::new(self.clone())
    }
}

impl CompiledSchema for Counting {
    fn validate(&self, _: &RawJson<'_>) -> Result<(), String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn clone_boxed(&self) -> Box<dyn CompiledSchema> {
        Box::new(self.clone())
    }
}

#[test]
fn a_modern_request_finds_its_item_when_it_is_read_or_in_a_later_catalog() {
    // Rule: [TOOL-007] [TOOL-030].
    let tool = |name: &str| Tool::new(name, raw(r#"{"type":"object"}"#));
    let counting = Counting::default();
    let validated = || counting.0.load(Ordering::Relaxed);
    let mut catalog = Catalog::new();
    catalog.validator(counting.clone()).unwrap();
    catalog.add_tool(tool("t")).unwrap();
    let peer = full_server().catalog(catalog);
    let mut server = Server::new(peer, HttpServerOptions::new(), [7; 32], 0).unwrap();
    let body = modern_call(1);
    let header = header_of(&body);
    let mut head = RequestHead::new("POST", "/mcp");
    for (name, value) in header.fields() {
        head.field(name, value.as_bytes());
    }
    let read = |server: &Server| {
        let admission = server.admit(&head).unwrap();
        server.reader().read_admitted(admission, &head, body.as_bytes(), &Caller::ANONYMOUS)
    };
    let handle = |server: &mut Server, request: &mut ReadRequest<'_>| {
        let (_, event) = server.handle_read_request(&head, request, &|_| Ok(()), Instant::ZERO);
        server.assert_consistent();
        matches!(event, Some(Event::Request(_)))
    };
    let mut request = read(&server);
    assert_eq!(validated(), 1, "without the server");
    assert!(handle(&mut server, &mut request));
    assert_eq!(validated(), 1, "not again");
    let mut before = read(&server);
    server.edit_catalog(|catalog| catalog.remove_tool("t"), Instant::ZERO);
    assert!(!handle(&mut server, &mut before), "it was removed");
    let mut before = read(&server);
    server.edit_catalog(|catalog| catalog.add_tool(tool("t")), Instant::ZERO).unwrap();
    assert!(handle(&mut server, &mut before), "it was added");
    assert_eq!(validated(), 3);
}

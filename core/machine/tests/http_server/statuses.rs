//! The status, error code and id for each kind of message, in both eras.

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::ServerMachine;
use mcp_sansio::{ErrorCode, Revision, Revisions};

use crate::fixtures::*;

const CALL_T: &str = r#""name":"t""#;

#[test]
fn an_invalid_message_is_a_bad_request_in_every_era() {
    // Rule: [HSRV-010] [HSRV-011].
    for revision in RESUMING {
        let mut server = server();
        let session = server.open(revision, "{}");
        for (body, code, id) in [
            ("{", -32700, "none"),
            ("", -32700, "none"),
            ("\"x\"", -32600, "none"),
            (r#"{"jsonrpc":"2.0","id":7,"method":5}"#, -32600, "7"),
            (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, -32600, "\"a\""),
            (r#"{"jsonrpc":"2.0","method":"notifications/x","params":[1]}"#, -32600, "none"),
            (r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{}}"#, -32600, "none"),
        ] {
            for reply in [
                server.post(&session, body),
                server.request("POST", "/mcp", &POST, body),
                server.request(
                    "POST",
                    "/mcp",
                    &join(
                        &POST,
                        &[("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Session-Id", "x")],
                    ),
                    body,
                ),
            ] {
                let reply = server.reply(reply);
                assert_eq!(reply.status(), 400, "{body} at {revision}");
                let (found, of) = reply.error();
                let of = if of == "null" { "none".into() } else { of };
                assert_eq!((found, of.as_str()), (code, id), "{body} at {revision}");
            }
        }
        assert_eq!(server.server.exchange_count(), 0, "no exchange waits for a response");
    }
}

#[test]
fn an_unknown_method_is_200_in_a_session_and_404_without() {
    // Rule: [HSRV-021].
    let mut server = server();
    for revision in RESUMING {
        let session = server.open(revision, "{}");
        for method in ["no/such", "server/discover"] {
            let reply = server.post(&session, &request(4, method, "{}"));
            assert_eq!(server.reply(reply).status(), 200, "{method} at {revision}");
            assert_eq!(server.reply(reply).error(), (-32601, "4".into()));
        }
    }
    server.events.clear();
    for method in ["no/such", "ping", "initialize", "logging/setLevel", "resources/subscribe"] {
        let reply = server.modern(&modern(4, method, ""));
        assert_eq!(server.reply(reply).status(), 404, "{method}");
        assert_eq!(server.reply(reply).error(), (-32601, "4".into()), "{method}");
    }
}

#[test]
fn bad_parameters_are_left_to_the_handler_but_bad_metadata_is_refused() {
    // Rule: [HSRV-023].
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let bad_meta = request(5, "tools/call", r#"{"name":"t","_meta":[1]}"#);
    let reply = server.post(&session, &bad_meta);
    assert_eq!(server.reply(reply).status(), 200);
    assert_eq!(server.reply(reply).error(), (-32602, "5".into()));
    server.events.clear();
    let header = header_of(&modern_call(5));
    for params in [
        r#"{"name":"t"}"#,
        r#"{"name":"t","_meta":{}}"#,
        r#"{"name":"t","_meta":[1]}"#,
        r#"{"name":"t","_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}"#,
        r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
        r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":20260728,"io.modelcontextprotocol/clientCapabilities":{}}}"#,
        r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[1]}}"#,
        r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"loud"}}"#,
        r#"{"name":"t","inputResponses":[5],"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#,
    ] {
        let body = request(5, "tools/call", params);
        let reply = server.request("POST", "/mcp", &header.fields(), &body);
        assert_eq!(server.reply(reply).status(), 400, "{params}");
        assert_eq!(server.reply(reply).error(), (-32602, "5".into()), "{params}");
    }
}

#[test]
fn the_first_failed_check_determines_the_error() {
    // Rule: [HSRV-023] [HSRV-022] [HDR-004].
    let mut server = server();
    // Everything is wrong at first, and is corrected step by step.
    let cases = [
        (modern_with(1, "no/such", "", "2099-01-01", "{}"), Some("2026-07-28"), None, -32020, 400),
        (modern_with(1, "no/such", "", "2099-01-01", "{}"), Some("2099-01-01"), None, -32022, 400),
        (modern(1, "no/such", ""), Some("2026-07-28"), None, -32020, 400),
        (modern(1, "no/such", ""), Some("2026-07-28"), Some("no/such"), -32601, 404),
        (modern(1, "tools/call", ""), Some("2026-07-28"), Some("no/such"), -32020, 400),
    ];
    for (body, version, method, code, status) in cases {
        let header =
            header_of(&body).with("MCP-Protocol-Version", version).with("Mcp-Method", method);
        let reply = server.request("POST", "/mcp", &header.fields(), &body);
        assert_eq!(server.reply(reply).error(), (code, "1".into()), "{body}");
        assert_eq!(server.reply(reply).status(), status, "{body}");
    }
}

#[test]
fn an_unsupported_version_error_lists_the_supported_versions() {
    // Rule: [HSRV-022] [VER-012].
    let mut server = server();
    for version in ["2099-01-01", "2025-11-25", "x"] {
        let body = modern_with(3, "tools/call", CALL_T, version, "{}");
        let reply = server.modern(&body);
        assert_eq!(server.reply(reply).status(), 400, "{version}");
        assert_eq!(server.reply(reply).error(), (-32022, "3".into()));
        let data = &server.reply(reply).json()["error"]["data"];
        assert_eq!(data["requested"], version);
        assert_eq!(data["supported"][0], "2026-07-28");
    }
}

#[test]
fn a_missing_capability_is_always_400() {
    // Rule: [HSRV-023] [CAP-022].
    let mut server = server();
    let reply = server.modern(&modern_call(6));
    let asked = server.asked();
    let error = ErrorObject::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, "roots, please")
        .with_data(raw(r#"{"requiredCapabilities":{"roots":{}}}"#).into_owned());
    server.reject(asked.handle, error);
    assert_eq!(server.reply(reply).status(), 400);
    assert_eq!(server.reply(reply).error(), (-32021, "6".into()));

    let reply = server.modern(&modern_call(7));
    let asked = server.asked();
    let required = crate::answers::ask_for_roots();
    server
        .server
        .require_input(&asked, &required, server.now)
        .expect_err("the client has no roots");
    server.pump();
    assert_eq!(server.reply(reply).status(), 400);
    assert_eq!(server.reply(reply).error(), (-32021, "7".into()));
}

#[test]
fn a_strict_server_closes_the_session_with_a_reason() {
    let mut policy = mcp_sansio::peer::Policy::default();
    policy.malformed = mcp_sansio::peer::Reaction::Close;
    policy.duplicate_id = mcp_sansio::peer::Reaction::Close;
    let options = mcp_sansio::http::HttpServerOptions::new();
    let mut server = crate::test_server::TestServer::new(full_server().policy(policy), options);
    for second in ["{".to_owned(), call(1), r#"{"jsonrpc":"2.0","method":"x","params":1}"#.into()] {
        let session = server.open(Revision::V2025_11_25, "{}");
        let waiting = server.post(&session, &call(1));
        let asked = server.asked();
        let reply = server.post(&session, &second);
        assert_eq!(server.reply(reply).status(), 400, "{second}");
        assert_eq!(server.reply(waiting).status(), 404, "the session is closed");
        assert_eq!(server.server.session_count(), 0);
        let told: Vec<_> = server.events.drain(..).collect();
        let violations =
            told.iter().filter(|it| matches!(it, mcp_sansio::peer::Event::Violation(_))).count();
        assert_eq!((told.len(), violations), (2, 1), "{told:?}");
        server.server.respond_with(asked.handle, &raw("{}"), server.now).expect_err("cancelled");
    }
    server.expect_empty();
}

#[test]
fn an_error_of_a_handler_has_http_status_200() {
    let mut server = server();
    let session = server.open(Revision::V2025_06_18, "{}");
    for code in [-32602, -32603, -32601, -32600, -32700, 7] {
        let legacy = server.post(&session, &call(8));
        let asked = server.asked();
        server.reject(asked.handle, ErrorObject::new(ErrorCode(code), "no"));
        assert_eq!(server.reply(legacy).status(), 200, "{code}");
        let modern = server.modern(&modern_call(8));
        let asked = server.asked();
        server.reject(asked.handle, ErrorObject::new(ErrorCode(code), "no"));
        let status = if code == -32601 { 404 } else { 200 };
        assert_eq!(server.reply(modern).status(), status, "{code}");
    }
}

#[test]
fn notifications_and_responses_are_accepted_without_a_body() {
    // Rule: [HSRV-008] [HSRV-009].
    let mut server = server();
    for revision in RESUMING {
        let session = server.open(revision, "{}");
        for body in [
            notification("notifications/roots/list_changed", "{}"),
            notification("notifications/no/such", "{}"),
            cancel(77),
            r#"{"jsonrpc":"2.0","id":99,"result":{}}"#.into(),
            r#"{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"no"}}"#.into(),
        ] {
            let reply = server.post(&session, &body);
            let reply = server.reply(reply);
            // Rule: [HSRV-010]: undeclared notifications are refused.
            let declared = !body.contains("roots");
            assert_eq!(reply.status(), if declared { 202 } else { 400 }, "{body} at {revision}");
            assert_eq!(reply.body.is_empty(), declared, "{body}");
            assert_eq!(reply.field("content-type").is_none(), declared);
        }
    }
    let fields = join(&POST, &[("MCP-Protocol-Version", "2026-07-28")]);
    let reply = server.request("POST", "/mcp", &fields, &cancel(1));
    assert_eq!(server.reply(reply).transcript(), "202\n");
    let named = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    let reply = server.request("POST", "/mcp", &POST, &notification("notifications/x", named));
    assert_eq!(server.reply(reply).transcript(), "202\n");
}

#[test]
fn modern_responses_and_batches_are_refused() {
    // Rule: [HSRV-010] [BATCH-010].
    let mut server = server();
    let mut modern_only = server_of(Revisions::MODERN);
    let fields = join(&POST, &[("MCP-Protocol-Version", "2026-07-28")]);
    for body in [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, &format!("[{}]", modern_call(1))] {
        for reply in [
            server.request("POST", "/mcp", &fields, body),
            server.request("POST", "/mcp", &join(&fields, &[("Mcp-Session-Id", "x")]), body),
        ] {
            assert_eq!(server.reply(reply).status(), 400);
            assert_eq!(server.reply(reply).error(), (-32600, "none".into()));
        }
        let reply = modern_only.request("POST", "/mcp", &POST, body);
        assert_eq!(modern_only.reply(reply).status(), 400);
    }
}

#[test]
fn a_bad_version_header_is_a_bad_request() {
    // Rule: [HSRV-029].
    let mut server = server_of(Revisions::only(Revision::V2025_06_18));
    let session = server.open(Revision::V2025_06_18, "{}");
    let id = ("Mcp-Session-Id", session.id.as_str());
    for version in ["2099-01-01", "", "latest", "2026-07-28", "2025-11-25"] {
        let fields = join(&POST, &[id, ("MCP-Protocol-Version", version)]);
        for method in ["POST", "GET", "DELETE"] {
            let reply = server.request(method, "/mcp", &fields, &call(9));
            assert_eq!(server.reply(reply).status(), 400, "{method} {version}");
            let of = if method == "POST" { "9" } else { "none" };
            assert_eq!(server.reply(reply).error(), (-32600, of.into()));
        }
    }
    // Rule: [HSRV-030]: without the header, the revision of the session is used.
    let reply = server.request("POST", "/mcp", &join(&POST, &[id]), &call(9));
    assert_eq!(server.asked().revision, Revision::V2025_06_18);
    assert_eq!(server.reply(reply).status, None);
}

#[test]
fn the_version_header_of_a_handshake_does_not_matter() {
    // Rule: [HSRV-029]: it is for the requests that follow the negotiation.
    for version in ["2099-01-01", "", "latest", "2025-11-25", "2024-11-05"] {
        let mut server = server_of(Revisions::only(Revision::V2025_06_18));
        let fields = join(&POST, &[("MCP-Protocol-Version", version)]);
        for asked in [Revision::V2025_06_18, Revision::V2025_11_25] {
            let reply = server.request("POST", "/mcp", &fields, &initialize(asked, "{}"));
            assert_eq!(server.reply(reply).status(), 200, "{version}");
            let result = &server.reply(reply).json()["result"];
            assert_eq!(result["protocolVersion"], "2025-06-18", "{version}");
        }
    }
}

#[test]
fn a_request_without_a_session_gets_400() {
    // Rule: [SESS-006].
    let mut server = server();
    let reply = server.request("POST", "/mcp", &POST, &call(3));
    assert_eq!(server.reply(reply).status(), 400);
    assert_eq!(server.reply(reply).error(), (-32600, "3".into()));
    let reply = server.request("POST", "/mcp", &POST, INITIALIZED);
    assert_eq!(server.reply(reply).error(), (-32600, "none".into()));
    server.expect_no_event();
    server.expect_empty();
}

#[test]
fn a_request_id_in_use_is_refused() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let first = server.post(&session, &call(1));
    let second = server.post(&session, &call(1));
    assert_eq!(server.reply(second).status(), 400);
    assert_eq!(server.reply(second).error(), (-32600, "1".into()));
    server.answer();
    assert_eq!(server.reply(first).json()["result"]["content"].to_string(), "[]");
    // Other sessions and modern requests have their own ids.
    server.events.clear();
    let other = server.open(Revision::V2025_11_25, "{}");
    for reply in [
        server.post(&other, &call(1)),
        server.modern(&modern_call(1)),
        server.modern(&modern_call(1)),
    ] {
        server.answer();
        assert_eq!(server.reply(reply).status(), 200);
    }
}

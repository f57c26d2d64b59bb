//! Both eras at one endpoint, and servers of one era.

use mcp_sansio::{Revision, Revisions};

use crate::fixtures::*;

#[test]
fn both_eras_are_served_at_once() {
    // Rule: [VER-016] [HSRV-025].
    let mut server = server();
    let old = server.open(Revision::V2025_03_26, "{}");
    let new = server.open(Revision::V2025_11_25, "{}");
    let replies = [
        server.post(&old, &call(1)),
        server.modern(&modern_call(1)),
        server.post(&new, &call(1)),
        // A modern client that also has a session.
        server.request(
            "POST",
            "/mcp",
            &join(&header_of(&modern_call(2)).fields(), &[("Mcp-Session-Id", &new.id)]),
            &modern_call(2),
        ),
    ];
    for revision in ["2025-03-26", "2026-07-28", "2025-11-25", "2026-07-28"] {
        let asked = server.asked();
        assert_eq!(asked.revision.as_str(), revision);
        server.answer_to(asked.handle);
    }
    for (reply, modern) in replies.into_iter().zip([false, true, false, true]) {
        let body = server.reply(reply).json();
        assert_eq!(body["result"].get("resultType").is_some(), modern, "{body}");
        assert_eq!(server.reply(reply).field("mcp-session-id"), None, "no session is opened");
    }
    assert_eq!(server.server.session_count(), 2);
}

#[test]
fn an_initialize_opens_a_session_whatever_revision_its_header_names() {
    // Rule: [VER-016]. Clients that fall back, and gateways, keep the header of the modern request.
    let mut server = server();
    for named in ["2026-07-28", "2025-11-25"] {
        let fields = join(&POST, &[("MCP-Protocol-Version", named), ("Mcp-Method", "initialize")]);
        let body = initialize(Revision::V2025_11_25, "{}");
        let reply = server.request("POST", "/mcp", &fields, &body);
        assert_eq!(server.reply(reply).status(), 200, "{named}");
        assert!(server.reply(reply).field("mcp-session-id").is_some());
    }
}

#[test]
fn a_modern_request_ignores_session_and_event_headers() {
    // Rule: [HSRV-025] [HSRV-026] [RESUME-008] [SESS-016].
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    for id in [session.id.as_str(), "no-such-session", "\u{1}"] {
        let more = [("Mcp-Session-Id", id), ("Last-Event-ID", "1-1")];
        let body = modern_call(1);
        let reply = server.request("POST", "/mcp", &join(&header_of(&body).fields(), &more), &body);
        server.answer();
        assert_eq!(server.reply(reply).status(), 200, "{id}");
        assert_eq!(server.reply(reply).field("mcp-session-id"), None);
    }
    assert_eq!(server.server.session_count(), 1);
}

#[test]
fn a_legacy_server_does_not_know_modern_requests() {
    let mut server = server_of(Revisions::LEGACY);
    let reply = server.modern(&modern(1, "server/discover", ""));
    assert_eq!(server.reply(reply).status(), 400, "the client falls back");
    assert_eq!(server.reply(reply).error().0, -32600, "not a modern error");
    let session = server.open(Revision::V2025_11_25, "{}");
    let reply = server.post(&session, &modern_call(2));
    assert_eq!(server.asked().revision, Revision::V2025_11_25, "the metadata has no meaning");
    assert_eq!(server.reply(reply).status, None);
}

#[test]
fn a_modern_server_responds_to_initialize_with_its_versions() {
    // Rule: [VER-017] [LIFE-020].
    let mut server = server_of(Revisions::MODERN);
    let body = initialize(Revision::V2025_11_25, "{}");
    let reply = server.request("POST", "/mcp", &POST, &body);
    assert_eq!(server.reply(reply).status(), 400);
    let error = &server.reply(reply).json()["error"];
    assert_eq!(error["data"]["supported"].to_string(), r#"["2026-07-28"]"#);
    assert!(error["message"].to_string().contains("2026-07-28"));
    // With modern headers and metadata it is an unknown method.
    let reply = server.modern(&modern(1, "initialize", r#""protocolVersion":"2026-07-28""#));
    assert_eq!(server.reply(reply).status(), 404);
    assert_eq!(server.reply(reply).error(), (-32601, "1".into()));
    // Rule: [HSRV-025]: a session id has no meaning.
    let fields = join(&POST, &[("Mcp-Session-Id", "x")]);
    let reply = server.request("POST", "/mcp", &fields, &call(1));
    assert_eq!(server.reply(reply).error(), (-32602, "1".into()));
    assert_eq!(server.server.session_count(), 0);
}

#[test]
fn the_modern_revision_has_no_sessions() {
    // Rule: [LIFE-020] [SESS-016].
    let mut server = server();
    let reply = server.modern(&modern(1, "initialize", r#""protocolVersion":"2026-07-28""#));
    assert_eq!(server.reply(reply).error(), (-32601, "1".into()));
    assert_eq!(server.server.session_count(), 0);
    // The handshake cannot negotiate the modern revision: it selects the newest legacy one.
    let body = initialize(Revision::V2026_07_28, "{}");
    let reply = server.request("POST", "/mcp", &POST, &body);
    assert_eq!(server.reply(reply).json()["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn discovery_does_not_require_a_session() {
    let mut server = server();
    let reply = server.modern(&modern(1, "server/discover", ""));
    let body = server.reply(reply).json();
    assert_eq!(body["result"]["supportedVersions"][0], "2026-07-28");
    server.expect_no_event();
    server.expect_empty();
}

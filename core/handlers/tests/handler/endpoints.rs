//! Access control: every endpoint of a protected server.

use std::sync::atomic::Ordering;

use mcp_sansio::Principal;
use mcp_sansio::http::HttpServerOptions;
use mcp_sansio_handlers::{Call, NoArguments, Server};

use crate::protected_server::{ProtectedServer, legacy_call};

fn protected_server() -> ProtectedServer {
    let server = Server::new("s", "1").tool("who", "", |call: Call<NoArguments>| {
        call.principal().map_or("nobody", Principal::as_str).to_owned()
    });
    ProtectedServer::with(server, HttpServerOptions::new().legacy_sse("/sse", "/messages"))
}

/// Returns the value of `Authorization` for a token.
fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[test]
fn the_older_transport_has_the_same_access_control() {
    // Rule: [AUTHS-012] [SEC-011] [SESS-014].
    let mut fixture = protected_server();
    for token in [None, Some("ann/use/forged")] {
        let field = token.map(bearer);
        let fields: Vec<_> = field.iter().map(|it| ("authorization", it.as_str())).collect();
        assert_eq!(fixture.send("GET", "/sse", &fields, "").status, 401);
        let answer = fixture.send("POST", "/messages?sessionId=x", &fields, &legacy_call(1, "who"));
        assert_eq!(answer.status, 401);
    }
    let ann = bearer("ann/use");
    let opened = fixture.send("GET", "/sse", &[("authorization", &ann)], "");
    let endpoint = opened.text.lines().find_map(|line| line.strip_prefix("data: "));
    let endpoint = endpoint.expect("an endpoint").to_owned();
    for (token, status) in [("bob/use", 404), ("ann/other", 403), ("ann/use", 202)] {
        let token = bearer(token);
        let fields = [("authorization", token.as_str())];
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert_eq!(fixture.send("POST", &endpoint, &fields, body).status, status, "{token}");
    }
}

#[test]
fn a_stream_is_resumed_only_by_its_owner() {
    // Rule: [SESS-014] [SEC-011].
    let mut fixture = protected_server();
    let session = fixture.open("ann/use");
    for (token, status) in [(None, 401), (Some("bob/use"), 404), (Some("ann/other"), 403)] {
        let token = token.map(bearer);
        let mut fields = vec![("mcp-session-id", session.as_str()), ("last-event-id", "0-0")];
        fields.extend(token.iter().map(|it| ("authorization", it.as_str())));
        for method in ["GET", "DELETE"] {
            assert_eq!(fixture.send(method, "/mcp", &fields, "").status, status, "{token:?}");
        }
    }
    assert_eq!(fixture.server.machine().session_count(), 1);
}

#[test]
fn a_path_with_an_extra_character_is_refused() {
    let mut fixture = protected_server();
    let well_known = "/.well-known/oauth-protected-resource";
    for target in [
        format!("{well_known}/mcp/"),
        format!("{well_known}//mcp"),
        format!("/{well_known}/mcp"),
        format!("{well_known}/./mcp"),
        format!("{well_known}/x/../mcp"),
        format!("{well_known}/%6dcp"),
        format!("{well_known}/mcp%3F"),
        format!("{well_known}/MCP"),
        well_known.to_owned(),
        "//mcp".to_owned(),
        "/mcp//".to_owned(),
        "/%6dcp".to_owned(),
        "/mcp%2f".to_owned(),
        "/mcp;x".to_owned(),
        "/x/../mcp".to_owned(),
        "*".to_owned(),
        String::new(),
    ] {
        for method in ["GET", "POST", "OPTIONS"] {
            assert_eq!(fixture.send(method, &target, &[], "").status, 404, "{method} {target}");
        }
    }
    assert_eq!(fixture.checks.load(Ordering::SeqCst), 0);
}

#[test]
fn a_method_that_does_nothing_says_nothing() {
    let mut fixture = protected_server();
    let token = bearer("ann/use");
    for method in ["HEAD", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "post", ""] {
        for fields in [&[][..], &[("authorization", token.as_str())]] {
            for target in ["/mcp", "/sse", "/messages"] {
                let answer = fixture.send(method, target, fields, "");
                assert_eq!(answer.status, 405, "{method} {target}");
                assert_eq!(answer.field("access-control-allow-origin"), None);
            }
        }
    }
    assert_eq!(fixture.checks.load(Ordering::SeqCst), 0);
}

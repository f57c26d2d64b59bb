//! Header fields of modern requests, which repeat parts of the body.

use mcp_sansio::Capability;
use mcp_sansio::catalog::{Catalog, CatalogError};
use mcp_sansio::http::{HttpServerOptions, Server};
use mcp_sansio::protocol::{Prompt, Resource, Tool};

use crate::fixtures::*;
use crate::test_server::TestServer;

const SQL: &str = r#"{"type":"object","properties":{
    "region":{"type":"string","x-mcp-header":"Region"},
    "limit":{"type":"integer","x-mcp-header":"Limit"},
    "where":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry"}}},
    "query":{"type":"string"}}}"#;

fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    catalog.add_tool(Tool::new("sql", raw(SQL))).unwrap();
    catalog.add_tool(Tool::new("t", raw(r#"{"type":"object"}"#))).unwrap();
    catalog.add_prompt(Prompt::new("p")).unwrap();
    catalog.add_prompt(Prompt::new("pä")).unwrap();
    catalog.add_resource(Resource::new("file:///x", "r")).unwrap();
    catalog
}

fn server_with_tools() -> TestServer {
    TestServer::new(full_server().catalog(catalog()), HttpServerOptions::new())
}

#[track_caller]
fn expect_mismatch(server: &mut TestServer, fields: &[(&str, &str)], body: &str) {
    let reply = server.request("POST", "/mcp", fields, body);
    assert_eq!(server.reply(reply).status(), 400, "{fields:?}");
    assert_eq!(server.reply(reply).error(), (-32020, "1".into()), "{fields:?}");
    server.expect_no_event();
}

#[track_caller]
fn expect_match(server: &mut TestServer, fields: &[(&str, &str)], body: &str) {
    let reply = server.request("POST", "/mcp", fields, body);
    assert_eq!(server.reply(reply).status, None, "{:?}", server.reply(reply));
    server.answer();
    assert_eq!(server.reply(reply).status(), 200);
}

#[test]
fn a_missing_or_different_header_is_refused() {
    // Rule: [HDR-004] [HDR-025] [HDR-026] [VER-031].
    let mut server = server_with_tools();
    for (method, members) in [
        ("tools/call", r#""name":"t""#),
        ("prompts/get", r#""name":"p""#),
        ("resources/read", r#""uri":"file:///x""#),
    ] {
        let body = modern(1, method, members);
        for name in ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"] {
            for value in [None, Some(""), Some("other"), Some("T"), Some("Tools/Call")] {
                let header = header_of(&body).with(name, value);
                expect_mismatch(&mut server, &header.fields(), &body);
            }
        }
    }
    // A method without a name does not require one.
    let body = modern(1, "tools/list", "");
    let reply = server.modern(&body);
    assert_eq!(server.reply(reply).status(), 200);
    let header = header_of(&body).with("Mcp-Name", Some("whatever"));
    let reply = server.request("POST", "/mcp", &header.fields(), &body);
    assert_eq!(server.reply(reply).status(), 200);
}

#[test]
fn field_names_are_case_insensitive_and_values_are_not() {
    // Rule: [HDR-031] [SESS-015].
    let mut server = server_with_tools();
    let body = modern(1, "tools/call", r#""name":"t""#);
    let fields = [
        ("HOST", "localhost"),
        ("ACCEPT", "application/json, text/event-stream"),
        ("CONTENT-TYPE", "application/json"),
        ("mcp-protocol-VERSION", " 2026-07-28\t"),
        ("MCP-METHOD", "tools/call"),
        ("mcp-name", "  t "),
    ];
    expect_match(&mut server, &fields, &body);
    let header = header_of(&body).with("Mcp-Method", Some("TOOLS/CALL"));
    expect_mismatch(&mut server, &header.fields(), &body);
}

#[test]
fn an_encoded_name_is_decoded_before_the_comparison() {
    // Rule: [HDR-023] [HDR-024] [HDR-027].
    let mut server = server_with_tools();
    let body = modern(1, "prompts/get", r#""name":"pä""#);
    let with = |value| header_of(&body).with("Mcp-Name", Some(value));
    expect_match(&mut server, &with("=?base64?cMOk?=").fields(), &body);
    for bad in ["=?base64?cMM=?=", "=?base64?!!?=", "=?BASE64?cMOk?=", "=?base64?dA==?="] {
        expect_mismatch(&mut server, &with(bad).fields(), &body);
    }
}

#[test]
fn the_name_is_the_member_of_the_method() {
    // A member that belongs to another method must not be used.
    let mut server = server_with_tools();
    let body = modern(1, "tools/call", r#""name":"t","uri":"sql""#);
    let fields = header_of(&body).with("Mcp-Name", Some("sql"));
    expect_mismatch(&mut server, &fields.fields(), &body);
    expect_match(&mut server, &header_of(&body).fields(), &body);
}

#[test]
fn annotated_arguments_are_repeated_in_the_header() {
    // Rule: [HDR-009] [HDR-025] [HDR-028] [HDR-029] [HDR-030].
    let mut server = server_with_tools();
    let body = modern(
        1,
        "tools/call",
        r#""name":"sql","arguments":{"region":"us","limit":42,"where":{"dry":true},"query":"x"}"#,
    );
    let header = || {
        let good = header_of(&body).with("Mcp-Param-Region", Some("us"));
        good.with("Mcp-Param-Limit", Some("42")).with("mcp-param-dry", Some("true"))
    };
    expect_match(&mut server, &header().fields(), &body);
    expect_match(&mut server, &header().with("Mcp-Param-Limit", Some("42.0")).fields(), &body);
    let encoded = header().with("Mcp-Param-Region", Some("=?base64?dXM=?="));
    expect_match(&mut server, &encoded.fields(), &body);
    // Rule: [HDR-033]: other parameter fields are ignored.
    expect_match(&mut server, &header().with("Mcp-Param-Other", Some("x")).fields(), &body);
    for (name, value) in [
        ("Mcp-Param-Region", None),
        ("Mcp-Param-Region", Some("eu")),
        ("Mcp-Param-Region", Some("=?base64?!?=")),
        ("Mcp-Param-Limit", Some("43")),
        ("mcp-param-dry", Some("True")),
        ("mcp-param-dry", None),
    ] {
        expect_mismatch(&mut server, &header().with(name, value).fields(), &body);
    }
    let absent = modern(1, "tools/call", r#""name":"sql","arguments":{"region":null}"#);
    expect_match(&mut server, &header_of(&absent).fields(), &absent);
    let none = modern(1, "tools/call", r#""name":"sql""#);
    expect_match(&mut server, &header_of(&none).fields(), &none);
}

#[test]
fn a_session_does_not_require_these_headers() {
    let mut server = server_with_tools();
    let session = server.open(mcp_sansio::Revision::V2025_11_25, "{}");
    let body = request(1, "tools/call", r#"{"name":"sql","arguments":{"region":"us"}}"#);
    let reply = server.post(&session, &body);
    server.answer();
    assert_eq!(server.reply(reply).status(), 200);
}

#[test]
fn a_tool_with_invalid_annotations_cannot_be_added() {
    // Rule: [HDR-010] [HDR-011] [HDR-012] [HDR-013] [HDR-015].
    for (property, more) in [
        (r#"{"type":"string","x-mcp-header":""}"#, ""),
        (r#"{"type":"string","x-mcp-header":"a b"}"#, ""),
        (r#"{"type":"number","x-mcp-header":"A"}"#, ""),
        (r#"{"type":"string","x-mcp-header":"A"}"#, r#","b":{"type":"string","x-mcp-header":"a"}"#),
        (r#"{"type":"array","items":{"type":"string","x-mcp-header":"A"}}"#, ""),
    ] {
        let schema = format!(r#"{{"type":"object","properties":{{"a":{property}{more}}}}}"#);
        let mut catalog = Catalog::new();
        catalog.add_tool(Tool::new("bad", raw(&schema))).unwrap();
        let peer = full_server().catalog(catalog);
        let refused = Server::new(peer, HttpServerOptions::new(), [0; 32], 0).expect_err(&schema);
        let of_tool = matches!(&refused, CatalogError::InvalidSchema { tool, .. } if tool == "bad");
        assert!(of_tool, "{refused}");
    }
}

#[test]
fn validation_follows_catalog_edits() {
    let mut server = server_with_tools();
    let body = modern(1, "tools/call", r#""name":"late","arguments":{"region":"us"}"#);
    let now = server.now;
    server
        .server
        .edit_catalog(|catalog| catalog.add_tool(Tool::new("late", raw(SQL))), now)
        .unwrap();
    server.pump();
    expect_mismatch(&mut server, &header_of(&body).fields(), &body);
    let good = header_of(&body).with("Mcp-Param-Region", Some("us"));
    expect_match(&mut server, &good.fields(), &body);
}

/// Returns a call whose `_meta` has the members of every request, and then `own`.
fn call_with(own: &str, capabilities: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}{own}}},"name":"t"}}}}"#
    )
}

#[test]
fn repeated_declarations_are_served_from_the_cache() {
    // Rule: [HDR-004] [HDR-025] [META-009].
    let mut server = server_with_tools();
    let first = call_with("", "{}");
    expect_match(&mut server, &header_of(&first).fields(), &first);
    for own in ["", r#","progressToken":7"#, r#","io.modelcontextprotocol/logLevel":"info""#] {
        let body = call_with(own, "{}");
        expect_match(&mut server, &header_of(&body).fields(), &body);
        for name in ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"] {
            let header = header_of(&body).with(name, Some("2025-11-25"));
            expect_mismatch(&mut server, &header.fields(), &body);
        }
    }
    // Repeated or invalid members are found after the cached ones.
    for own in [
        r#","io.modelcontextprotocol/protocolVersion":"2026-07-28""#,
        r#","io.modelcontextprotocol/clientCapabilities":{"sampling":{}}"#,
        r#","progressToken":7,"progressToken":7"#,
        r#","progressToken":[]"#,
        r#","io.modelcontextprotocol/logLevel":"none""#,
    ] {
        let body = call_with(own, "{}");
        let reply = server.request("POST", "/mcp", &header_of(&first).fields(), &body);
        assert_eq!(server.reply(reply).error(), (-32602, "1".into()), "{own}");
        server.expect_no_event();
    }
}

#[test]
fn alternating_clients_keep_their_own_declarations() {
    // Rule: [CAP-020].
    let mut server = server_with_tools();
    for _ in 0..3 {
        for (capabilities, samples) in [("{}", false), (r#"{"sampling":{}}"#, true)] {
            let body = call_with("", capabilities);
            let reply = server.request("POST", "/mcp", &header_of(&body).fields(), &body);
            let asked = server.asked();
            assert_eq!(asked.capabilities.contains(Capability::Sampling), samples);
            server.answer_to(asked.handle);
            assert_eq!(server.reply(reply).status(), 200);
        }
    }
}

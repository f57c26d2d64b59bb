//! Discovery of metadata.

use mcp_sansio::Revision;
use mcp_sansio::http::ExchangeFailure;

use crate::answers::{Answer, Reply, issuer, ok, resource, status, token};
use crate::network::{AS, ASM, MCP, PRM, TOKEN, TestNetwork, code};

/// Returns the requests for documents and the failures.
fn looked_for(network: &mut TestNetwork) -> String {
    let text = network.run();
    let wanted = |line: &&str| line.starts_with("GET") || line.starts_with("no token");
    text.lines().filter(wanted).map(|line| format!("{line}\n")).collect()
}

#[test]
fn scopes_of_the_challenge_take_precedence() {
    // Rule: [AUTHC-016] [AUTHC-017].
    let mut network = TestNetwork::new(code());
    network.challenge = r#"resource_metadata="https://mcp.example/custom""#.into();
    network.get("https://mcp.example/custom", resource(""));
    insta::assert_snapshot!(looked_for(&mut network), @"
    GET https://mcp.example/custom
    GET https://as.example/.well-known/oauth-authorization-server
    ");
}

#[test]
fn a_bearer_challenge_is_found_after_one_of_another_scheme() {
    // Rule: [AUTHC-015].
    let mut network = TestNetwork::new(code());
    network.mcp = Box::new(|request| {
        request.field("authorization").is_none().then(|| {
            let other = Reply::new(401, "").field("www-authenticate", "Basic realm=x");
            let named = r#"Bearer resource_metadata="https://mcp.example/custom""#;
            other.field("WWW-Authenticate", named).into()
        })
    });
    network.get("https://mcp.example/custom", resource(""));
    assert!(network.run().contains("GET https://mcp.example/custom\n"));
}

#[test]
fn metadata_at_the_root_is_requested_after_that_at_the_path() {
    // Rule: [AUTHC-018].
    let mut network = TestNetwork::new(code());
    network.get(PRM, status(404));
    let root = format!(r#"{{"resource":"https://mcp.example","authorization_servers":["{AS}"]}}"#);
    network.get("https://mcp.example/.well-known/oauth-protected-resource", ok(&root));
    insta::assert_snapshot!(looked_for(&mut network), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://mcp.example/.well-known/oauth-protected-resource
    GET https://as.example/.well-known/oauth-authorization-server
    ");
    assert_eq!(network.authorizations[0]["resource"], "https://mcp.example");
    let resource = network.last_to(TOKEN).form("resource");
    assert_eq!(resource.as_deref(), Some("https://mcp.example"));
}

#[test]
fn an_issuer_with_a_path_is_requested_at_three_urls() {
    // Rule: [AUTHC-022] [AUTHC-023].
    let mut network = TestNetwork::new(code());
    let tenant = "https://as.example/t";
    network
        .get(PRM, ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":["{tenant}"]}}"#)));
    network.get("https://as.example/t/.well-known/openid-configuration", issuer(tenant, ""));
    network.post("https://as.example/t/token", token("t1", ""));
    network.user = crate::network::User::SignsIn(String::new());
    insta::assert_snapshot!(looked_for(&mut network), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server/t
    GET https://as.example/.well-known/openid-configuration/t
    GET https://as.example/t/.well-known/openid-configuration
    ");
    assert_eq!(network.sent_to("https://as.example/t/token").len(), 1);
}

#[test]
fn a_page_of_html_is_not_accepted_as_metadata() {
    let mut network = TestNetwork::new(code());
    network.get(ASM, ok("<!DOCTYPE html>"));
    let openid = "https://as.example/.well-known/openid-configuration";
    network.get(openid, issuer(AS, ""));
    // Rule: [AUTHC-024].
    insta::assert_snapshot!(looked_for(&mut network), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    GET https://as.example/.well-known/openid-configuration
    ");
    assert_eq!(network.sent_to(TOKEN).len(), 1);
}

#[test]
fn metadata_of_another_resource_fails_the_authorization() {
    // Rule: [AUTHC-020].
    let mut network = TestNetwork::new(code());
    let other =
        r#"{"resource":"https://evil.example/mcp","authorization_servers":["https://as.example"]}"#;
    network.get(PRM, ok(other));
    insta::assert_snapshot!(looked_for(&mut network), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    no token: https://mcp.example/.well-known/oauth-protected-resource/mcp: the metadata describes another server: `resource` has another origin than the server
    ");
    assert!(network.authorizations.is_empty());
}

#[test]
fn metadata_of_another_issuer_fails_the_authorization() {
    // Rule: [AUTHC-025].
    let mut network = TestNetwork::new(code());
    network.get(ASM, issuer("https://evil.example", ""));
    insta::assert_snapshot!(looked_for(&mut network), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    no token: https://as.example/.well-known/oauth-authorization-server: the metadata describes another issuer than the requested one
    ");
    assert!(network.authorizations.is_empty());
}

#[test]
fn a_server_of_2025_03_26_is_its_own_authorization_server() {
    // Rule: [AUTHC-006] [AUTHC-007] [HDR-037].
    let mut network = TestNetwork::new(code());
    network.get(PRM, status(404));
    let base = "https://mcp.example";
    let metadata = "https://mcp.example/.well-known/oauth-authorization-server";
    network.get(metadata, issuer(base, ""));
    network.post("https://mcp.example/token", token("t1", ""));
    network.user = crate::network::User::SignsIn(String::new());
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://mcp.example/.well-known/oauth-protected-resource
    GET https://mcp.example/.well-known/oauth-authorization-server
    sign in at https://mcp.example/authorize
    POST https://mcp.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://mcp.example
    resumed
    server/discover [Bearer t1]
    ");
    let version = |place| network.last_to(place).field("mcp-protocol-version").map(String::from);
    assert_eq!(version(metadata).as_deref(), Some("2025-03-26"));
    assert_eq!(version(PRM), None);
}

#[test]
fn a_legacy_server_without_metadata_has_default_endpoints() {
    // Rule: [AUTHC-008] [AUTHC-012].
    let mut network = TestNetwork::new(code().revision(Revision::V2025_03_26));
    network.post("https://mcp.example/token", token("t1", ""));
    network.user = crate::network::User::SignsIn(String::new());
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-authorization-server
    sign in at https://mcp.example/authorize
    POST https://mcp.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://mcp.example
    resumed
    server/discover [Bearer t1]
    ");
    assert_eq!(network.authorizations[0]["code_challenge_method"], "S256");
}

#[test]
fn a_failing_server_is_reported_by_its_url_without_the_query() {
    for (answer, words) in [
        (status(503), "https://mcp.example/x answers with status 503"),
        (Answer::Fails(ExchangeFailure::NotSent), "https://mcp.example/x cannot be reached"),
    ] {
        let mut network = TestNetwork::new(code());
        network.challenge = r#"resource_metadata="https://mcp.example/x?secret""#.into();
        network.get("https://mcp.example/x", answer);
        let text = network.run();
        assert!(text.contains(&format!("no token: {words}\nrefused: {words}\n")), "{text}");
    }
}

#[test]
fn redirects_of_documents_are_followed_within_the_origin_and_up_to_a_limit() {
    // Rule: [AUTHC-067].
    let to = |target| Answer::from(Reply::new(302, "").field("location", target));
    let mut network = TestNetwork::new(code());
    network.get(PRM, to("/a"));
    network.get("https://mcp.example/a", resource(""));
    assert!(network.run().contains("authorized"));
    for target in ["https://evil.example/a", PRM, "javascript:x"] {
        let mut network = TestNetwork::new(code());
        network.get(PRM, to(target));
        network.get("https://evil.example/a", resource(""));
        let text = network.run();
        assert!(text.contains("which is not followed"), "{text}");
        assert_eq!(network.sent_to("https://evil.example/a").len(), 0);
        assert!(network.sent_to(PRM).len() <= 4);
    }
}

#[test]
fn redirects_of_form_posts_are_not_followed() {
    // Rule: [AUTHC-067].
    let mut network = TestNetwork::new(code());
    network.post(TOKEN, Reply::new(307, "").field("location", "/other"));
    let text = network.run();
    let words = "no token: https://as.example/token redirects to `https://as.example/other`";
    assert!(text.contains(words), "{text}");
    assert_eq!(network.sent_to("https://as.example/other").len(), 0);
}

#[test]
fn a_document_over_the_size_limit_is_refused() {
    let mut network = TestNetwork::new(code());
    network.get(PRM, ok(&format!("{{{}", " ".repeat(256 * 1024))));
    insta::assert_snapshot!(looked_for(&mut network), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    no token: the response from https://mcp.example/.well-known/oauth-protected-resource/mcp is too long
    ");
}

#[test]
fn a_server_over_plain_http_gets_no_token() {
    // Rule: [AUTHC-067].
    let mut network = TestNetwork::at("http://mcp.example/mcp", code());
    insta::assert_snapshot!(network.run(), @"
    server/discover
    waiting
    no token: the server is neither `https` nor on a loopback address; no token is sent to it
    refused: the server is neither `https` nor on a loopback address; no token is sent to it
    ");
}

#[test]
fn the_first_authorization_server_with_metadata_is_used() {
    // Rule: [AUTHC-019].
    let mut network = TestNetwork::new(code());
    let both = r#"["https://none.example","https://as.example"]"#;
    network.get(PRM, ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":{both}}}"#)));
    insta::assert_snapshot!(looked_for(&mut network), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://none.example/.well-known/oauth-authorization-server
    GET https://none.example/.well-known/openid-configuration
    GET https://as.example/.well-known/oauth-authorization-server
    ");
    assert_eq!(network.sent_to(TOKEN).len(), 1);
}

#[test]
fn a_public_server_cannot_name_a_loopback_address() {
    // Rule: [AUTHC-067].
    let here = "http://127.0.0.1:80/x";
    let metadata = |member: &str, rest: &str| {
        let endpoint = |name: &str| if name == member { here } else { "https://as.example/y" };
        ok(&format!(
            r#"{{"issuer":"{AS}","authorization_endpoint":"{}","token_endpoint":"{}","code_challenge_methods_supported":["S256"]{rest}}}"#,
            endpoint("authorization_endpoint"),
            endpoint("token_endpoint"),
        ))
    };
    let named = format!(r#"{{"resource":"{MCP}","authorization_servers":["http://localhost"]}}"#);
    for (prm, asm) in [
        (ok(&named), issuer(AS, "")),
        (resource(""), metadata("token_endpoint", "")),
        (resource(""), metadata("authorization_endpoint", "")),
    ] {
        let mut network = TestNetwork::new(code());
        network.get(PRM, prm);
        network.get(ASM, asm);
        let text = network.run();
        assert!(text.contains("refers the client to http://"), "{text}");
        assert!(network.bytes_to("http://127.0.0.1:80").is_empty());
        assert!(network.authorizations.is_empty());
    }
}

#[test]
fn a_server_on_loopback_can_name_a_loopback_address() {
    let mut network = TestNetwork::at("http://localhost:8080/mcp", code());
    let base = "http://localhost:9090";
    let named =
        format!(r#"{{"resource":"http://localhost:8080/mcp","authorization_servers":["{base}"]}}"#);
    network.get("http://localhost:8080/.well-known/oauth-protected-resource/mcp", ok(&named));
    network.get("http://localhost:9090/.well-known/oauth-authorization-server", issuer(base, ""));
    network.post("http://localhost:9090/token", token("t1", ""));
    network.user = crate::network::User::SignsIn(String::new());
    assert!(network.run().contains("authorized by http://localhost:9090\n"));
}

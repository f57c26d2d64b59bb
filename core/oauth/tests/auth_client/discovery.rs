//! Where metadata is looked for.

use mcp_sansio::Revision;
use mcp_sansio::http::ExchangeFailure;

use crate::answers::{Answer, Reply, issuer, ok, resource, status, token};
use crate::network::{AS, ASM, MCP, PRM, TOKEN, TestNetwork, code};

/// The requests for documents, and what came of them all.
fn looked_for(world: &mut TestNetwork) -> String {
    let text = world.run();
    let wanted = |line: &&str| line.starts_with("GET") || line.starts_with("no token");
    text.lines().filter(wanted).map(|line| format!("{line}\n")).collect()
}

#[test]
fn scopes_of_the_challenge_take_precedence() {
    // Rule: [AUTHC-016] [AUTHC-017].
    let mut world = TestNetwork::new(code());
    world.challenge = r#"resource_metadata="https://mcp.example/custom""#.into();
    world.get("https://mcp.example/custom", resource(""));
    insta::assert_snapshot!(looked_for(&mut world), @"
    GET https://mcp.example/custom
    GET https://as.example/.well-known/oauth-authorization-server
    ");
}

#[test]
fn a_challenge_after_one_of_another_scheme_counts() {
    // Rule: [AUTHC-015].
    let mut world = TestNetwork::new(code());
    world.mcp = Box::new(|request| {
        request.field("authorization").is_none().then(|| {
            let other = Reply::new(401, "").field("www-authenticate", "Basic realm=x");
            let named = r#"Bearer resource_metadata="https://mcp.example/custom""#;
            other.field("WWW-Authenticate", named).into()
        })
    });
    world.get("https://mcp.example/custom", resource(""));
    assert!(world.run().contains("GET https://mcp.example/custom\n"));
}

#[test]
fn metadata_at_the_root_is_found_after_that_at_the_path() {
    // Rule: [AUTHC-018].
    let mut world = TestNetwork::new(code());
    world.get(PRM, status(404));
    let root = format!(r#"{{"resource":"https://mcp.example","authorization_servers":["{AS}"]}}"#);
    world.get("https://mcp.example/.well-known/oauth-protected-resource", ok(&root));
    insta::assert_snapshot!(looked_for(&mut world), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://mcp.example/.well-known/oauth-protected-resource
    GET https://as.example/.well-known/oauth-authorization-server
    ");
    assert_eq!(world.authorizations[0]["resource"], "https://mcp.example");
    let resource = world.last_to(TOKEN).form("resource");
    assert_eq!(resource.as_deref(), Some("https://mcp.example"));
}

#[test]
fn an_issuer_with_a_path_is_looked_for_in_three_places() {
    // Rule: [AUTHC-022] [AUTHC-023].
    let mut world = TestNetwork::new(code());
    let tenant = "https://as.example/t";
    world.get(PRM, ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":["{tenant}"]}}"#)));
    world.get("https://as.example/t/.well-known/openid-configuration", issuer(tenant, ""));
    world.post("https://as.example/t/token", token("t1", ""));
    world.user = crate::network::User::SignsIn(String::new());
    insta::assert_snapshot!(looked_for(&mut world), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server/t
    GET https://as.example/.well-known/openid-configuration/t
    GET https://as.example/t/.well-known/openid-configuration
    ");
    assert_eq!(world.sent_to("https://as.example/t/token").len(), 1);
}

#[test]
fn a_page_for_people_is_no_metadata() {
    let mut world = TestNetwork::new(code());
    world.get(ASM, ok("<!DOCTYPE html>"));
    let openid = "https://as.example/.well-known/openid-configuration";
    world.get(openid, issuer(AS, ""));
    // Rule: [AUTHC-024].
    insta::assert_snapshot!(looked_for(&mut world), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    GET https://as.example/.well-known/openid-configuration
    ");
    assert_eq!(world.sent_to(TOKEN).len(), 1);
}

#[test]
fn metadata_of_another_resource_ends_it() {
    // Rule: [AUTHC-020].
    let mut world = TestNetwork::new(code());
    let other =
        r#"{"resource":"https://evil.example/mcp","authorization_servers":["https://as.example"]}"#;
    world.get(PRM, ok(other));
    insta::assert_snapshot!(looked_for(&mut world), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    no token: https://mcp.example/.well-known/oauth-protected-resource/mcp: the metadata is of another server: `resource` has another origin than the server
    ");
    assert!(world.authorizations.is_empty());
}

#[test]
fn metadata_of_another_issuer_ends_it() {
    // Rule: [AUTHC-025].
    let mut world = TestNetwork::new(code());
    world.get(ASM, issuer("https://evil.example", ""));
    insta::assert_snapshot!(looked_for(&mut world), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    no token: https://as.example/.well-known/oauth-authorization-server: the metadata is of another issuer than was asked for
    ");
    assert!(world.authorizations.is_empty());
}

#[test]
fn a_server_of_2025_03_26_is_its_own_authorization_server() {
    // Rule: [AUTHC-006] [AUTHC-007] [HDR-037].
    let mut world = TestNetwork::new(code());
    world.get(PRM, status(404));
    let base = "https://mcp.example";
    let metadata = "https://mcp.example/.well-known/oauth-authorization-server";
    world.get(metadata, issuer(base, ""));
    world.post("https://mcp.example/token", token("t1", ""));
    world.user = crate::network::User::SignsIn(String::new());
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    goes on
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://mcp.example/.well-known/oauth-protected-resource
    GET https://mcp.example/.well-known/oauth-authorization-server
    sign in at https://mcp.example/authorize
    POST https://mcp.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://mcp.example
    goes on
    server/discover [Bearer t1]
    ");
    let version = |place| world.last_to(place).field("mcp-protocol-version").map(String::from);
    assert_eq!(version(metadata).as_deref(), Some("2025-03-26"));
    assert_eq!(version(PRM), None);
}

#[test]
fn a_legacy_server_without_metadata_has_default_endpoints() {
    // Rule: [AUTHC-008] [AUTHC-012].
    let mut world = TestNetwork::new(code().revision(Revision::V2025_03_26));
    world.post("https://mcp.example/token", token("t1", ""));
    world.user = crate::network::User::SignsIn(String::new());
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    goes on
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-authorization-server
    sign in at https://mcp.example/authorize
    POST https://mcp.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://mcp.example
    goes on
    server/discover [Bearer t1]
    ");
    assert_eq!(world.authorizations[0]["code_challenge_method"], "S256");
}

#[test]
fn a_server_that_fails_is_told_by_its_url_without_the_query() {
    for (answer, words) in [
        (status(503), "https://mcp.example/x answers with status 503"),
        (Answer::Fails(ExchangeFailure::NotSent), "https://mcp.example/x is not reached"),
    ] {
        let mut world = TestNetwork::new(code());
        world.challenge = r#"resource_metadata="https://mcp.example/x?secret""#.into();
        world.get("https://mcp.example/x", answer);
        let text = world.run();
        assert!(text.contains(&format!("no token: {words}\nrefused: {words}\n")), "{text}");
    }
}

#[test]
fn redirects_of_documents_are_followed_within_the_origin_and_not_for_ever() {
    // Rule: [AUTHC-067].
    let to = |target| Answer::from(Reply::new(302, "").field("location", target));
    let mut world = TestNetwork::new(code());
    world.get(PRM, to("/a"));
    world.get("https://mcp.example/a", resource(""));
    assert!(world.run().contains("authorized"));
    for target in ["https://evil.example/a", PRM, "javascript:x"] {
        let mut world = TestNetwork::new(code());
        world.get(PRM, to(target));
        world.get("https://evil.example/a", resource(""));
        let text = world.run();
        assert!(text.contains("answers with status 302"), "{text}");
        assert_eq!(world.sent_to("https://evil.example/a").len(), 0);
        assert!(world.sent_to(PRM).len() <= 4);
    }
}

#[test]
fn a_form_is_never_redirected() {
    // Rule: [AUTHC-067].
    let mut world = TestNetwork::new(code());
    world.post(TOKEN, Reply::new(307, "").field("location", "/other"));
    let text = world.run();
    assert!(text.contains("no token: https://as.example/token answers with status 307"), "{text}");
    assert_eq!(world.sent_to("https://as.example/other").len(), 0);
}

#[test]
fn a_document_without_an_end_is_given_up() {
    let mut world = TestNetwork::new(code());
    world.get(PRM, ok(&format!("{{{}", " ".repeat(256 * 1024))));
    insta::assert_snapshot!(looked_for(&mut world), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    no token: the response from https://mcp.example/.well-known/oauth-protected-resource/mcp is too long
    ");
}

#[test]
fn a_server_that_can_be_overheard_gets_no_token() {
    // Rule: [AUTHC-067].
    let mut world = TestNetwork::at("http://mcp.example/mcp", code());
    insta::assert_snapshot!(world.run(), @"
    server/discover
    waiting
    no token: the server is neither `https` nor on a loopback address, so it gets no token
    refused: the server is neither `https` nor on a loopback address, so it gets no token
    ");
}

#[test]
fn among_several_authorization_servers_the_first_that_knows_the_client_counts() {
    // Rule: [AUTHC-019].
    let mut world = TestNetwork::new(code());
    let both = r#"["https://none.example","https://as.example"]"#;
    world.get(PRM, ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":{both}}}"#)));
    insta::assert_snapshot!(looked_for(&mut world), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://none.example/.well-known/oauth-authorization-server
    GET https://none.example/.well-known/openid-configuration
    GET https://as.example/.well-known/oauth-authorization-server
    ");
    assert_eq!(world.sent_to(TOKEN).len(), 1);
}

#[test]
fn a_server_elsewhere_does_not_lead_to_this_machine() {
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
        let mut world = TestNetwork::new(code());
        world.get(PRM, prm);
        world.get(ASM, asm);
        let text = world.run();
        assert!(text.contains("sends the client to http://"), "{text}");
        assert!(world.bytes_to("http://127.0.0.1:80").is_empty());
        assert!(world.authorizations.is_empty());
    }
}

#[test]
fn a_server_on_this_machine_may() {
    let mut world = TestNetwork::at("http://localhost:8080/mcp", code());
    let base = "http://localhost:9090";
    let named =
        format!(r#"{{"resource":"http://localhost:8080/mcp","authorization_servers":["{base}"]}}"#);
    world.get("http://localhost:8080/.well-known/oauth-protected-resource/mcp", ok(&named));
    world.get("http://localhost:9090/.well-known/oauth-authorization-server", issuer(base, ""));
    world.post("http://localhost:9090/token", token("t1", ""));
    world.user = crate::network::User::SignsIn(String::new());
    assert!(world.run().contains("authorized by http://localhost:9090\n"));
}

//! Discovery of metadata.

use mcp_sansio::Revision;
use mcp_sansio::http::ExchangeFailure;
use mcp_sansio_oauth::client::DpopKey;

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
fn the_metadata_of_a_misspelled_challenge_is_found() {
    // Rule: [AUTHC-015].
    for text in [
        "resource_metadata=https://mcp.example/custom?a=b",
        "resource_metadata='https://mcp.example/custom'",
        r#"realm=https://mcp.example/, resource_metadata="https://mcp.example/custom""#,
        r#"realm="x" resource_metadata="https://mcp.example/custom""#,
    ] {
        let mut network = TestNetwork::new(code());
        network.challenge = text.into();
        network.get("https://mcp.example/custom", resource(""));
        assert!(network.run().contains("GET https://mcp.example/custom\n"), "{text}");
    }
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
fn a_relative_metadata_url_of_a_challenge_is_one_of_the_server() {
    // Rule: [AUTHC-016].
    let mut network = TestNetwork::new(code());
    network.challenge = r#"resource_metadata="/mcp/.well-known/oauth-protected-resource""#.into();
    let named = "https://mcp.example/mcp/.well-known/oauth-protected-resource";
    network.get(named, resource(""));
    network.get(PRM, status(404));
    assert!(looked_for(&mut network).starts_with(&format!("GET {named}\n")));
    assert_eq!(network.sent_to(TOKEN).len(), 1);
}

#[test]
fn metadata_of_2025_03_26_that_names_another_issuer_leads_to_that_issuer() {
    // Rule: [AUTHC-007] [AUTHC-025].
    let mut network = TestNetwork::new(code());
    network.get(PRM, status(404));
    let base = "https://mcp.example/.well-known/oauth-authorization-server";
    network.get(base, issuer(AS, ""));
    insta::assert_snapshot!(looked_for(&mut network), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://mcp.example/.well-known/oauth-protected-resource
    GET https://mcp.example/.well-known/oauth-authorization-server
    GET https://as.example/.well-known/oauth-authorization-server
    ");
    assert_eq!(network.sent_to(TOKEN).len(), 1);
    // The issuer must confirm it, with its own endpoints.
    let mut network = TestNetwork::new(code());
    network.get(PRM, status(404));
    network.get(base, issuer(AS, ""));
    network.get(ASM, issuer("https://mcp.example", ""));
    let text = looked_for(&mut network);
    assert!(text.contains("describes another issuer than the requested one"), "{text}");
    assert!(network.authorizations.is_empty());
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
fn endpoints_are_implied_only_where_the_revision_allows_it() {
    // Rule: [AUTHC-013].
    for (options, implied) in [
        (code(), true),
        (code().revision(Revision::V2025_03_26), true),
        (code().revision(Revision::V2025_11_25), false),
        (code().revision(Revision::LATEST), false),
    ] {
        let mut network = TestNetwork::new(options);
        network.get(PRM, status(404));
        network.post("https://mcp.example/token", token("t1", ""));
        network.user = crate::network::User::SignsIn(String::new());
        let text = network.run();
        assert_eq!(text.contains("sign in at https://mcp.example/authorize"), implied, "{text}");
    }
}

#[test]
fn a_failing_server_is_reported_by_its_url_without_the_query() {
    for (answer, words) in [
        (status(503), "https://mcp.example/x answers with status 503"),
        (status(429), "https://mcp.example/x answers with status 429"),
        (Answer::Fails(ExchangeFailure::NotSent), "https://mcp.example/x cannot be reached"),
    ] {
        let mut network = TestNetwork::new(code());
        network.challenge = r#"resource_metadata="https://mcp.example/x?secret""#.into();
        network.get("https://mcp.example/x", answer);
        network.get(PRM, status(404));
        let text = network.run();
        assert!(text.contains(&format!("no token: {words}\nrefused: {words}\n")), "{text}");
        // It is not taken for a server of 2025-03-26.
        assert!(network.sent.last().is_some_and(|it| it.url.ends_with("oauth-protected-resource")));
    }
}

/// Returns answers that are no metadata.
fn unusable() -> Vec<Answer> {
    let to = |target| Answer::from(Reply::new(302, "").field("location", target));
    vec![
        status(401),
        status(403),
        status(502),
        Answer::Fails(ExchangeFailure::Broken),
        to("https://login.example/?next=x"),
        to(""),
        status(304),
        ok(&" ".repeat(256 * 1024 + 1)),
        ok("<html>"),
        ok("{}"),
        ok(r#"{"detail":"Not Found"}"#),
        Reply::new(200, "?").field("content-encoding", "gzip").into(),
    ]
}

#[test]
fn a_url_without_metadata_is_passed_over() {
    // Rule: [AUTHC-018] [AUTHC-023].
    for answer in unusable() {
        // A URL in the challenge, then the path, then the root.
        let mut network = TestNetwork::new(code());
        network.challenge = r#"resource_metadata="https://mcp.example/x""#.into();
        for url in ["https://mcp.example/x", PRM] {
            network.get(url, answer.clone());
        }
        let root = "https://mcp.example/.well-known/oauth-protected-resource";
        network
            .get(root, ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":["{AS}"]}}"#)));
        network.get(ASM, answer.clone());
        network.get("https://as.example/.well-known/openid-configuration", issuer(AS, ""));
        network.user = crate::network::User::SignsIn(String::new());
        let text = network.run();
        assert!(text.contains("authorized by https://as.example\n"), "{answer:?} {text}");
    }
}

#[test]
fn an_authorization_server_that_cannot_be_used_is_passed_over() {
    // Rule: [AUTHC-019].
    let described = |name: &str, methods: &str| {
        ok(&format!(
            r#"{{"issuer":"{name}","authorization_endpoint":"https://a.example/a","token_endpoint":"https://a.example/t","code_challenge_methods_supported":{methods}}}"#
        ))
    };
    let first = "https://a.example/.well-known/oauth-authorization-server";
    let faults = [
        described("https://a.example", "null"),
        described("https://b.example", r#"["S256"]"#),
        ok(r#"{"issuer":1}"#),
        ok(r#"{"token_endpoint":"https://a.example/t"}"#),
    ];
    for answer in unusable().into_iter().chain(faults) {
        let mut network = TestNetwork::new(code());
        let both = r#"["https://a.example","https://as.example"]"#;
        network.get(PRM, ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":{both}}}"#)));
        network.get(first, answer.clone());
        let text = network.run();
        assert!(text.contains("authorized by https://as.example\n"), "{answer:?} {text}");
        // Without another one, the first failure is reported.
        let mut network = TestNetwork::new(code());
        let both = r#"["https://a.example","https://b.example"]"#;
        network.get(PRM, ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":{both}}}"#)));
        network.get(first, answer.clone());
        let text = network.run();
        assert!(text.contains("https://a.example"), "{answer:?} {text}");
        assert!(network.authorizations.is_empty());
    }
}

#[test]
fn a_refusal_of_metadata_is_reported_and_a_guess_is_called_one() {
    let mut network = TestNetwork::new(code());
    network.get(ASM, status(403));
    let text = network.run();
    assert!(text.contains(&format!("no token: {ASM} answers with status 403\n")), "{text}");
    for (answer, reason) in [
        (status(404), ""),
        (
            status(403),
            " (https://mcp.example/.well-known/oauth-protected-resource/mcp answers with status 403)",
        ),
        (
            ok("{}"),
            " (https://mcp.example/.well-known/oauth-protected-resource/mcp: the answer is not metadata)",
        ),
    ] {
        let mut network = TestNetwork::new(code());
        network.get(PRM, answer);
        network.user = crate::network::User::SignsIn(String::new());
        let text = network.run();
        let words = format!(
            "no token: the server names no authorization server{reason}; at its own endpoints, as 2025-03-26 has them: https://mcp.example/token answers with status 404\n"
        );
        assert!(text.contains(&words), "{text}");
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
        network.get("https://mcp.example/.well-known/oauth-authorization-server", to(target));
        let text = network.run();
        let words = format!("no token: {PRM} redirects to `{target}`, which is not followed\n");
        assert!(text.contains(&words), "{text}");
        assert_eq!(network.sent_to("https://evil.example/a").len(), 0);
        assert!(network.sent_to(PRM).len() <= 2 * 4);
    }
}

#[test]
fn a_form_is_sent_again_within_the_origin_if_the_redirect_keeps_it() {
    // Rule: [AUTHC-067].
    let other = "https://as.example/other";
    for status in [307, 308] {
        let mut network = TestNetwork::new(code());
        network.post(TOKEN, Reply::new(status, "").field("location", "/other"));
        network.post(other, token("t1", ""));
        assert!(network.run().contains("authorized by"));
        let (first, second) = (network.last_to(TOKEN), network.last_to(other));
        assert_eq!((&first.fields, &first.body), (&second.fields, &second.body));
    }
    for status in [300, 301, 302, 303, 304] {
        let mut network = TestNetwork::new(code());
        network.post(TOKEN, Reply::new(status, "").field("location", "/other?secret"));
        let text = network.run();
        let words = format!("no token: {TOKEN} redirects to `{other}`, which is not followed\n");
        assert!(text.contains(&words), "{text}");
        assert_eq!(network.sent_to(other).len(), 0);
    }
}

#[test]
fn a_form_with_a_proof_for_its_url_is_not_sent_to_another_one() {
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}"#;
    let key = DpopKey::new("ES256", jwk);
    let mut network = TestNetwork::new(code().dpop(&key).expect("a key"));
    network.post(TOKEN, Reply::new(307, "").field("location", "/other"));
    assert!(network.run().contains("which is not followed\n"));
    assert_eq!(network.sent_to("https://as.example/other").len(), 0);
}

#[test]
fn no_answer_is_compressed() {
    let gzip = |body| Reply::new(200, body).field("content-encoding", "gzip");
    let mut network = TestNetwork::new(code());
    network.post(TOKEN, gzip("?"));
    let words = "no token: the response from https://as.example/token is not valid: its content \
                 encoding is `gzip`, and only `identity` was asked for\n";
    let text = network.run();
    assert!(text.contains(words), "{text}");
    for place in [PRM, ASM, TOKEN] {
        assert_eq!(network.last_to(place).field("accept-encoding"), Some("identity"));
    }
    // The status says more than the encoding.
    network.post(TOKEN, Reply::new(400, "?").field("content-encoding", "br"));
    network.reconnect();
    assert!(network.run().contains("no token: https://as.example/token answers with status 400\n"));
}

#[test]
fn a_document_over_the_size_limit_is_refused() {
    let mut network = TestNetwork::new(code());
    network.get(PRM, ok(&format!("{{{}", " ".repeat(256 * 1024))));
    insta::assert_snapshot!(looked_for(&mut network), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://mcp.example/.well-known/oauth-protected-resource
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

#[test]
fn every_request_names_the_client_and_has_no_other_field_of_the_application() {
    // Rule: [AUTHC-045].
    let mut network = TestNetwork::new(code());
    network.run();
    let named = concat!("demo/1.0 mcp-sansio/", env!("CARGO_PKG_VERSION"));
    for place in [PRM, ASM, TOKEN, MCP] {
        assert_eq!(network.last_to(place).field("user-agent"), Some(named), "{place}");
    }
    // The application may choose another name.
    let mut network = TestNetwork::new(code());
    network.reconnect_with(|options| {
        let named = options.header("User-Agent", "mine/2 (x)").expect("a field");
        named.header("X-Key", "key-of-the-server").expect("a field")
    });
    network.run();
    for place in [PRM, ASM, TOKEN] {
        let sent = network.last_to(place);
        assert_eq!(sent.field("user-agent"), Some("mine/2 (x)"), "{place}");
        assert_eq!(sent.field("x-key"), None, "{place}");
    }
    assert_eq!(network.last_to(MCP).field("x-key"), Some("key-of-the-server"));
    // Without a request to the server there is no name yet.
    let mut network = TestNetwork::new(code());
    while network.http.poll_transmit().is_some() {}
    network.auth.authorize(network.now);
    network.run();
    let library = concat!("mcp-sansio-oauth/", env!("CARGO_PKG_VERSION"));
    assert_eq!(network.last_to(TOKEN).field("user-agent"), Some(library));
}

//! Metadata from a malicious server.

use std::time::Duration;

use mcp_sansio_oauth::client::{
    AuthorizationFailure, AuthorizationOptions, ClientSecret, WaitingFor,
};
use mcp_sansio_oauth::{MetadataFault, UrlFault};

use crate::answers::{Answer, Reply, issuer, ok, resource, token};
use crate::network::{
    AS, ASM, MCP, PRM, REGISTER, TOKEN, TestNetwork, User, client, code, code_bare, password,
};

const EVIL: &str = "https://evil.example";

/// Returns options of an application that has a password at `AS`.
fn secret() -> AuthorizationOptions {
    let app = client("app", Some(AS), password("password-of-the-app"));
    code_bare().registered(app).expect("a client")
}

/// Returns the failure of the first attempt, which must fail.
fn failure(network: &mut TestNetwork) -> AuthorizationFailure {
    let text = network.run();
    assert!(network.failures.len() == 2, "{text}");
    assert_eq!(network.failures[0], network.failures[1]);
    network.failures[0].clone()
}

fn issuers(names: &[&str]) -> Answer {
    let names = names.join(r#"",""#);
    ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":["{names}"]}}"#))
}

/// Returns metadata of `AS` with these authorization and token endpoints.
fn endpoints(users: &str, tokens: &str) -> Answer {
    ok(&format!(
        r#"{{"issuer":"{AS}","authorization_endpoint":"{users}","token_endpoint":"{tokens}","code_challenge_methods_supported":["S256"]}}"#
    ))
}

#[test]
fn an_issuer_must_match_except_for_a_final_slash() {
    // Rule: [AUTHC-025].
    for name in ["https://as.example//", "https://AS.example", "https://as.example:443", EVIL] {
        let mut network = TestNetwork::new(secret());
        network.get(ASM, issuer(name, ""));
        let fault = MetadataFault::Issuer;
        assert_eq!(
            failure(&mut network),
            AuthorizationFailure::Metadata { url: ASM.into(), fault }
        );
        assert!(network.authorizations.is_empty() && network.sent_to(TOKEN).is_empty(), "{name}");
    }
}

#[test]
fn metadata_of_another_resource_fails_the_authorization_at_every_url() {
    // Rule: [AUTHC-020].
    for (at, resource, reason) in [
        (PRM, "https://evil.example/mcp", UrlFault::Origin),
        (PRM, "https://mcp.example/mcp/admin", UrlFault::Path),
        (PRM, "https://mcp.example/m", UrlFault::Path),
        ("https://evil.example/prm", "https://evil.example/mcp", UrlFault::Origin),
    ] {
        let mut network = TestNetwork::new(secret());
        network.challenge = format!(r#"resource_metadata="{at}""#);
        let text = format!(r#"{{"resource":"{resource}","authorization_servers":["{AS}"]}}"#);
        network.get(at, ok(&text));
        let fault = MetadataFault::Resource(reason);
        let told = AuthorizationFailure::Metadata { url: at.into(), fault };
        assert_eq!(failure(&mut network), told, "{resource}");
        assert!(network.sent_to(ASM).is_empty(), "{resource}");
    }
}

#[test]
fn a_challenge_cannot_make_the_client_request_an_internal_address() {
    // Rule: [SEC-005] [SEC-006].
    for url in [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "gopher://evil.example/",
        "//evil.example/x",
        "http://evil.example/x",
        "https://user@evil.example/x",
        "http://169.254.169.254/latest/meta-data/",
        "http://localhost:6379/",
        "https://localhost/x",
        "https://a.localhost/x",
        "https://127.0.0.1/x",
        "https://[::ffff:10.0.0.1]/x",
        "https://192.168.0.1/x",
        "https://0x7f000001/x",
        "https://evil.example/\r\nx: y",
    ] {
        let mut network = TestNetwork::new(secret());
        network.challenge = format!(r#"resource_metadata="{url}""#);
        let text = network.run();
        // The metadata at the well-known URL is used instead.
        assert!(text.contains("authorized by https://as.example\n"), "{url}: {text}");
        let known = ["https://mcp.example/", "https://as.example/"];
        let elsewhere = |url: &String| !known.iter().any(|it| url.starts_with(it));
        assert!(!network.sent.iter().any(|it| elsewhere(&it.url)), "{url}: {text}");
    }
}

#[test]
fn an_issuer_cannot_be_at_an_internal_address() {
    // Rule: [SEC-005] [SEC-006].
    let of = AuthorizationFailure::Issuer;
    for (name, reason) in [
        ("http://evil.example", of(UrlFault::Insecure)),
        ("https://evil.example/#x", of(UrlFault::Fragment)),
        ("https://evil.example?x", of(UrlFault::Query)),
    ] {
        let mut network = TestNetwork::new(secret());
        network.get(PRM, issuers(&[name]));
        assert_eq!(failure(&mut network), reason, "{name}");
        let mut network = TestNetwork::new(secret());
        network.get(PRM, issuers(&[name, AS]));
        assert!(network.run().contains("authorized by"), "{name}");
    }
    for name in ["http://127.0.0.1:8080", "https://10.0.0.1", "https://[fd00::1]"] {
        let mut network = TestNetwork::new(secret());
        network.get(PRM, issuers(&[name]));
        let told = failure(&mut network);
        assert!(matches!(told, AuthorizationFailure::Internal { .. }), "{name}: {told}");
        assert_eq!(network.bytes_to(name), "");
        // The next issuer in the list is used.
        let mut network = TestNetwork::new(secret());
        network.get(PRM, issuers(&[name, AS]));
        assert!(network.run().contains("authorized by"), "{name}");
        // A client on an internal address, or with the option for them, sends the request.
        let mut network = TestNetwork::new(secret().internal_addresses(true));
        network.get(PRM, issuers(&[name]));
        network.run();
        assert_ne!(network.bytes_to(name), "", "{name}");
        let server = "http://127.0.0.1:9000/mcp";
        let mut network = TestNetwork::at(server, secret());
        network.get(
            "http://127.0.0.1:9000/.well-known/oauth-protected-resource/mcp",
            ok(&format!(r#"{{"resource":"{server}","authorization_servers":["{name}"]}}"#)),
        );
        network.run();
        assert_ne!(network.bytes_to(name), "", "{name}");
    }
}

#[test]
fn insecure_or_invalid_endpoints_are_refused() {
    // Rule: [AUTHC-067] [SEC-007].
    for url in [
        "http://as.example/x",
        "https://u:p@as.example/x",
        "https://as.example/x#y",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///x",
        "/x",
        "",
        "https://127.0.0.1/x",
        "http://localhost/x",
        "https://as.example/\\nx",
    ] {
        for (users, tokens) in [(url, TOKEN), ("https://as.example/authorize", url)] {
            let mut network = TestNetwork::new(secret());
            network.get(ASM, endpoints(users, tokens));
            let told = failure(&mut network);
            let (metadata, internal) = (
                matches!(told, AuthorizationFailure::Metadata { .. }),
                matches!(told, AuthorizationFailure::Internal { .. }),
            );
            assert!(metadata || internal, "{url}: {told}");
            assert!(network.authorizations.is_empty(), "{url}");
            assert!(!network.sent.iter().any(|it| it.form("grant_type").is_some()), "{url}");
        }
    }
}

#[test]
fn the_query_of_an_endpoint_is_sent_but_not_logged() {
    let mut network = TestNetwork::new(secret());
    network
        .get(ASM, endpoints("https://as.example/authorize", "https://as.example/token?key=hidden"));
    network.post(TOKEN, Reply::new(400, r#"{"error":"invalid_grant"}"#));
    let told = failure(&mut network);
    assert_eq!(network.last_to(TOKEN).url, "https://as.example/token?key=hidden");
    assert!(!format!("{told} {told:?}").contains("hidden"), "{told}");
}

#[test]
fn the_query_of_an_authorization_endpoint_cannot_override_parameters() {
    // Some endpoints have a `resource` or a `scope` of their own.
    let own = "redirect_uri=https://evil.example&st%61te=x&code_challenge=x&resource=x&prompt=y";
    let mut network = TestNetwork::new(secret());
    network.get(ASM, endpoints(&format!("https://as.example/authorize?{own}"), TOKEN));
    assert!(network.run().contains("authorized by https://as.example\n"));
    let sent = &network.authorizations[0];
    assert_eq!((&*sent["resource"], &*sent["prompt"]), (MCP, "y"));
    for name in ["redirect_uri", "state", "code_challenge"] {
        assert!(sent[name] != "x" && !sent[name].contains("evil"), "{name}");
    }
}

#[test]
fn pkce_requires_s256_in_the_metadata() {
    // Rule: [AUTHC-012] [AUTHC-013].
    for methods in ["[]", r#"["plain"]"#, r#"["s256","S2566"]"#, "null"] {
        let mut network = TestNetwork::new(secret());
        network.get(
            ASM,
            ok(&format!(
                r#"{{"issuer":"{AS}","authorization_endpoint":"{AS}/a","token_endpoint":"{TOKEN}","code_challenge_methods_supported":{methods}}}"#
            )),
        );
        let fault = MetadataFault::Pkce;
        assert_eq!(
            failure(&mut network),
            AuthorizationFailure::Metadata { url: ASM.into(), fault }
        );
    }
}

#[test]
fn an_issuer_that_names_the_endpoint_of_another_issuer_gets_no_code() {
    // The mix-up attack: the user signs in at the honest server, whose code the attacker wants. The
    // honest server names itself in `iss`, even unannounced, which reveals the attack (RFC 9207,
    // section 4).
    // Rule: [AUTHC-056] [AUTHC-057] [AUTHC-059].
    let mut network = TestNetwork::new(code());
    network.get(PRM, issuers(&[EVIL]));
    network.get(
        "https://evil.example/.well-known/oauth-authorization-server",
        ok(&format!(
            r#"{{"issuer":"{EVIL}","authorization_endpoint":"{AS}/authorize","token_endpoint":"{EVIL}/token","code_challenge_methods_supported":["S256"]}}"#
        )),
    );
    let told = failure(&mut network);
    assert_eq!(told.to_string(), "the response comes from another issuer than the requested one");
    assert!(network.sent_to("https://evil.example/token").is_empty());
}

#[test]
fn a_token_endpoint_on_another_origin_gets_only_its_issuers_credentials() {
    // RFC 8414 allows an issuer to place its endpoints on any origin, which then receives the
    // secrets of that issuer.
    let other = client("app", Some(EVIL), password("password-of-another"));
    let mut network = TestNetwork::new(secret().registered(other).expect("a client"));
    network.get(ASM, endpoints("https://as.example/authorize", "https://evil.example/token"));
    network.post("https://evil.example/token", token("t1", ""));
    let text = network.run();
    assert!(text.contains("authorized by https://as.example\n"), "{text}");
    let shown = network.last_to("https://evil.example/token").field("authorization");
    use base64::Engine;
    let expected = base64::engine::general_purpose::STANDARD.encode("app:password-of-the-app");
    assert_eq!(shown, Some(&*format!("Basic {expected}")));
}

#[test]
fn metadata_that_changes_during_the_authorization_has_no_effect() {
    let mut network = TestNetwork::new(secret());
    network.user = User::Stays;
    network.run();
    network.get(ASM, endpoints("https://as.example/authorize", "https://evil.example/token"));
    let (action, state) =
        (network.action.expect("a user"), network.authorizations[0]["state"].clone());
    let redirect = format!("/callback?code=the-code&state={state}&iss={AS}");
    assert!(network.auth.handle_redirect(action, Ok(&redirect), network.now));
    assert!(network.run().contains("authorized by"));
    assert_eq!(network.bytes_to(EVIL), "");
}

#[test]
fn the_number_of_authorization_servers_that_are_tried_is_bounded() {
    let names: Vec<_> = (0..10_000).map(|it| format!("https://a{it}.example")).collect();
    let names: Vec<_> = names.iter().map(|it| &**it).collect();
    let mut network = TestNetwork::new(secret());
    network.get(PRM, issuers(&names));
    let issuer = "https://a0.example".into();
    assert_eq!(failure(&mut network), AuthorizationFailure::NoMetadata { issuer });
    assert!(network.sent.len() < 12, "{}", network.sent.len());
}

#[test]
fn a_redirect_does_not_forward_secrets() {
    // Rule: [AUTHC-067].
    for status in [301, 302, 303, 307, 308] {
        for to in ["https://evil.example/token", "https://as.example:8443/", "https://127.0.0.1/"] {
            let mut network = TestNetwork::new(secret());
            network.post(TOKEN, Reply::new(status, "").field("location", to));
            let told = failure(&mut network);
            assert!(matches!(told, AuthorizationFailure::Redirected { .. }), "{told}");
            assert_eq!(network.bytes_to(EVIL), "");
            assert_eq!(network.sent.iter().filter(|it| it.form("grant_type").is_some()).count(), 1);
            for at in [PRM, ASM] {
                let mut network = TestNetwork::new(secret());
                network.get(at, Reply::new(status, "").field("location", to));
                network.run();
                assert_eq!(network.bytes_to(EVIL) + &network.bytes_to("https://127.0.0.1"), "");
            }
        }
    }
}

#[test]
fn redirects_in_a_circle_are_followed_up_to_a_limit() {
    for to in [ASM, "https://as.example/a", "?x", "#"] {
        let mut network = TestNetwork::new(secret());
        network.get(ASM, Reply::new(302, "").field("location", to));
        network.get("https://as.example/a", Reply::new(302, "").field("location", ASM));
        let told = failure(&mut network);
        assert!(matches!(told, AuthorizationFailure::Redirected { .. }), "{told}");
        // There are two URLs for the document.
        assert!(network.bytes_to(AS).matches("GET").count() <= 2 * 4);
    }
}

#[test]
fn a_document_that_is_sent_byte_by_byte_times_out() {
    for (place, post) in [(PRM, false), (ASM, false), (TOKEN, true)] {
        let mut network = TestNetwork::new(secret());
        match post {
            true => network.post(place, Answer::Silence),
            false => network.get(place, Answer::Silence),
        }
        network.run();
        network.drip(place, Some(&Reply::new(200, "")), b"{");
        for _ in 0..29 {
            network.advance(Duration::from_secs(1));
            network.drip(place, None, b" ");
        }
        assert!(network.failures.is_empty());
        let text = network.advance(Duration::from_secs(1));
        assert!(text.contains(&format!("abort {place}\n")), "{text}");
        let told = AuthorizationFailure::TimedOut(WaitingFor::Response(place.into()));
        assert_eq!(network.failures[0], told);
    }
}

#[test]
fn a_document_without_an_end_is_refused_at_the_size_limit() {
    for (place, post) in [(PRM, false), (ASM, false), (TOKEN, true)] {
        let mut network = TestNetwork::new(secret());
        match post {
            true => network.post(place, Answer::Silence),
            false => network.get(place, Answer::Silence),
        }
        network.run();
        network.drip(place, Some(&Reply::new(200, "")), b"{");
        let mut pieces = 0;
        while network.failures.is_empty() {
            network.drip(place, None, &[b' '; 4096]);
            network.run();
            pieces += 1;
        }
        assert_eq!(pieces, 64);
        assert_eq!(network.failures[0], AuthorizationFailure::TooLong { url: place.into() });
    }
}

#[test]
fn document_errors_are_short() {
    let long = "x".repeat(200_000);
    for (at, text) in [
        (PRM, format!(r#"{{"resource":["{long}"]}}"#)),
        (PRM, format!(r#"{{"resource":1,"{long}":1}}"#)),
        (ASM, format!(r#"{{"issuer":["{long}"]}}"#)),
        (ASM, format!(r#"{{"issuer":1,"{long}":1}}"#)),
        (ASM, format!(r#"{{"{long}":1}}"#)),
    ] {
        let mut network = TestNetwork::new(secret());
        network.get(at, ok(&text));
        let told = failure(&mut network).to_string();
        assert!(told.len() < 1500 && told.starts_with(at), "{}", told.len());
    }
    let mut network = TestNetwork::new(secret());
    network.get(PRM, ok("{\"resource\":1,\"\u{1b}[31m\":2}"));
    failure(&mut network);
}

#[test]
fn a_registration_endpoint_at_an_internal_address_is_not_used() {
    // Rule: [SEC-006].
    use mcp_sansio_oauth::client::{ApplicationType, ClientMetadata};
    let options = || code_bare().register_as(ClientMetadata::new("D", ApplicationType::Native));
    for url in ["https://192.168.1.1/register", "http://localhost/x"] {
        let mut network = TestNetwork::new(options());
        network.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{url}""#)));
        assert_eq!(failure(&mut network), AuthorizationFailure::Internal { url: url.into() });
    }
    let mut network = TestNetwork::new(options());
    network.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}""#)));
    network.post(REGISTER, Reply::new(307, "").field("location", "https://evil.example/r"));
    let target = "https://evil.example/r".into();
    let told = AuthorizationFailure::Redirected { url: REGISTER.into(), target };
    assert_eq!(failure(&mut network), told);
    assert_eq!(network.bytes_to(EVIL), "");
}

#[test]
fn a_public_client_has_no_password() {
    let url = "https://app.example/client.json";
    let refused = code_bare().metadata_document(url, password("password-of-the-app"));
    let refused = refused.expect_err("a password").to_string();
    assert!(!refused.is_empty() && !refused.contains("password-of"), "{refused}");
    assert!(code_bare().metadata_document(url, ClientSecret::None).is_ok());
    // Everything else is as before: the metadata of the resource is requested.
    let mut network = TestNetwork::new(code());
    network.get(PRM, resource(""));
    assert!(network.run().contains("authorized by"));
}

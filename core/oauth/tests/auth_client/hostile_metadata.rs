//! Metadata that was written to mislead.

use std::time::Duration;

use mcp_sansio_oauth::client::{AuthorizationFailure, ClientOptions, ClientSecret, WaitingFor};
use mcp_sansio_oauth::{InvalidEndpoint, InvalidIssuer, MetadataFault, ResourceMismatch};

use crate::answers::{Answer, Reply, issuer, ok, resource, token};
use crate::network::{
    AS, ASM, MCP, PRM, REGISTER, TOKEN, TestNetwork, User, client, code, code_bare, password,
};

const EVIL: &str = "https://evil.example";

/// The application has a password at `AS`.
fn secret() -> ClientOptions {
    let app = client("app", Some(AS), password("password-of-the-app"));
    code_bare().registered(app).expect("a client")
}

/// Why the first attempt came to nothing. It did.
fn failure(world: &mut TestNetwork) -> AuthorizationFailure {
    let text = world.run();
    assert!(world.failures.len() == 2, "{text}");
    assert_eq!(world.failures[0], world.failures[1]);
    world.failures[0].clone()
}

fn issuers(names: &[&str]) -> Answer {
    let names = names.join(r#"",""#);
    ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":["{names}"]}}"#))
}

/// Metadata of `AS` with these endpoints for users and for tokens.
fn endpoints(users: &str, tokens: &str) -> Answer {
    ok(&format!(
        r#"{{"issuer":"{AS}","authorization_endpoint":"{users}","token_endpoint":"{tokens}","code_challenge_methods_supported":["S256"]}}"#
    ))
}

#[test]
fn an_issuer_that_is_only_almost_the_same_is_another() {
    // Rule: [AUTHC-025].
    for name in ["https://as.example/", "https://AS.example", "https://as.example:443", EVIL, ""] {
        let mut world = TestNetwork::new(secret());
        world.get(ASM, issuer(name, ""));
        let fault = MetadataFault::Issuer;
        assert_eq!(failure(&mut world), AuthorizationFailure::Metadata { url: ASM.into(), fault });
        assert!(world.authorizations.is_empty() && world.sent_to(TOKEN).is_empty(), "{name}");
    }
}

#[test]
fn metadata_of_another_server_ends_it_wherever_it_is() {
    // Rule: [AUTHC-020].
    for (at, resource, reason) in [
        (PRM, "https://evil.example/mcp", ResourceMismatch::Origin),
        (PRM, "https://mcp.example/mcp/admin", ResourceMismatch::Path),
        (PRM, "https://mcp.example/m", ResourceMismatch::Path),
        ("https://evil.example/prm", "https://evil.example/mcp", ResourceMismatch::Origin),
    ] {
        let mut world = TestNetwork::new(secret());
        world.challenge = format!(r#"resource_metadata="{at}""#);
        let text = format!(r#"{{"resource":"{resource}","authorization_servers":["{AS}"]}}"#);
        world.get(at, ok(&text));
        let fault = MetadataFault::Resource(reason);
        let told = AuthorizationFailure::Metadata { url: at.into(), fault };
        assert_eq!(failure(&mut world), told, "{resource}");
        assert!(world.sent_to(ASM).is_empty(), "{resource}");
    }
}

#[test]
fn a_challenge_makes_the_client_ask_no_address_that_is_not_open_to_all() {
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
        let mut world = TestNetwork::new(secret());
        world.challenge = format!(r#"resource_metadata="{url}""#);
        let text = world.run();
        // What can be found elsewhere is.
        assert!(text.contains("authorized by https://as.example\n"), "{url}: {text}");
        let known = ["https://mcp.example/", "https://as.example/"];
        let elsewhere = |url: &String| !known.iter().any(|it| url.starts_with(it));
        assert!(!world.sent.iter().any(|it| elsewhere(&it.url)), "{url}: {text}");
    }
}

#[test]
fn an_issuer_is_at_no_address_that_is_not_open_to_all() {
    // Rule: [SEC-005] [SEC-006].
    let of = |fault| AuthorizationFailure::Issuer(InvalidIssuer::Url(fault));
    for (name, reason) in [
        ("http://evil.example", of(InvalidEndpoint::Insecure)),
        ("https://evil.example/#x", of(InvalidEndpoint::Fragment)),
        ("https://evil.example?x", AuthorizationFailure::Issuer(InvalidIssuer::Query)),
    ] {
        let mut world = TestNetwork::new(secret());
        world.get(PRM, issuers(&[name]));
        assert_eq!(failure(&mut world), reason, "{name}");
        let mut world = TestNetwork::new(secret());
        world.get(PRM, issuers(&[name, AS]));
        assert!(world.run().contains("authorized by"), "{name}");
    }
    for name in ["http://127.0.0.1:8080", "https://10.0.0.1", "https://[fd00::1]"] {
        let mut world = TestNetwork::new(secret());
        world.get(PRM, issuers(&[name]));
        let told = failure(&mut world);
        assert!(matches!(told, AuthorizationFailure::Internal { .. }), "{name}: {told}");
        assert_eq!(world.bytes_to(name), "");
        // Another one that is named beside it is tried.
        let mut world = TestNetwork::new(secret());
        world.get(PRM, issuers(&[name, AS]));
        assert!(world.run().contains("authorized by"), "{name}");
        // Who is on such an address, or is told to, asks there.
        let mut world = TestNetwork::new(secret().internal_addresses(true));
        world.get(PRM, issuers(&[name]));
        world.run();
        assert_ne!(world.bytes_to(name), "", "{name}");
        let server = "http://127.0.0.1:9000/mcp";
        let mut world = TestNetwork::at(server, secret());
        world.get(
            "http://127.0.0.1:9000/.well-known/oauth-protected-resource/mcp",
            ok(&format!(r#"{{"resource":"{server}","authorization_servers":["{name}"]}}"#)),
        );
        world.run();
        assert_ne!(world.bytes_to(name), "", "{name}");
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
            let mut world = TestNetwork::new(secret());
            world.get(ASM, endpoints(users, tokens));
            let told = failure(&mut world);
            let (metadata, internal) = (
                matches!(told, AuthorizationFailure::Metadata { .. }),
                matches!(told, AuthorizationFailure::Internal { .. }),
            );
            assert!(metadata || internal, "{url}: {told}");
            assert!(world.authorizations.is_empty(), "{url}");
            assert!(!world.sent.iter().any(|it| it.form("grant_type").is_some()), "{url}");
        }
    }
}

#[test]
fn the_query_of_an_endpoint_is_sent_but_not_shown() {
    let mut world = TestNetwork::new(secret());
    world
        .get(ASM, endpoints("https://as.example/authorize", "https://as.example/token?key=hidden"));
    world.post(TOKEN, Reply::new(400, r#"{"error":"invalid_grant"}"#));
    let told = failure(&mut world);
    assert_eq!(world.last_to(TOKEN).url, "https://as.example/token?key=hidden");
    assert!(!format!("{told} {told:?}").contains("hidden"), "{told}");
}

#[test]
fn an_authorization_endpoint_decides_over_no_parameter_of_the_client() {
    for parameter in ["redirect_uri=https://evil.example", "st%61te=x", "code_challenge=x"] {
        let mut world = TestNetwork::new(secret());
        world.get(ASM, endpoints(&format!("https://as.example/authorize?{parameter}"), TOKEN));
        let told = failure(&mut world);
        assert!(matches!(told, AuthorizationFailure::Endpoint { .. }), "{told}");
        assert!(world.authorizations.is_empty(), "{parameter}");
    }
}

#[test]
fn pkce_is_announced_in_one_way_only() {
    // Rule: [AUTHC-012] [AUTHC-013].
    for methods in ["[]", r#"["plain"]"#, r#"["s256","S2566"]"#, "null"] {
        let mut world = TestNetwork::new(secret());
        world.get(
            ASM,
            ok(&format!(
                r#"{{"issuer":"{AS}","authorization_endpoint":"{AS}/a","token_endpoint":"{TOKEN}","code_challenge_methods_supported":{methods}}}"#
            )),
        );
        let fault = MetadataFault::Pkce;
        assert_eq!(failure(&mut world), AuthorizationFailure::Metadata { url: ASM.into(), fault });
    }
}

#[test]
fn an_issuer_that_sends_users_to_another_one_gets_nothing_of_it() {
    // The mix-up: the user signs in at the honest server, whose code the attacker wants. That it says
    // who it is, unasked, is what gives the attacker away (RFC 9207, section 4).
    // Rule: [AUTHC-056] [AUTHC-057] [AUTHC-059].
    let mut world = TestNetwork::new(code());
    world.get(PRM, issuers(&[EVIL]));
    world.get(
        "https://evil.example/.well-known/oauth-authorization-server",
        ok(&format!(
            r#"{{"issuer":"{EVIL}","authorization_endpoint":"{AS}/authorize","token_endpoint":"{EVIL}/token","code_challenge_methods_supported":["S256"]}}"#
        )),
    );
    let told = failure(&mut world);
    assert_eq!(told.to_string(), "the response is of another issuer than the request was for");
    assert!(world.sent_to("https://evil.example/token").is_empty());
}

#[test]
fn a_token_endpoint_on_another_origin_gets_only_its_issuers_credentials() {
    // RFC 8414 lets an issuer have its endpoints anywhere; whose secrets go there is its own affair.
    let other = client("app", Some(EVIL), password("password-of-another"));
    let mut world = TestNetwork::new(secret().registered(other).expect("a client"));
    world.get(ASM, endpoints("https://as.example/authorize", "https://evil.example/token"));
    world.post("https://evil.example/token", token("t1", ""));
    let text = world.run();
    assert!(text.contains("authorized by https://as.example\n"), "{text}");
    let shown = world.last_to("https://evil.example/token").field("authorization");
    use base64::Engine;
    let expected = base64::engine::general_purpose::STANDARD.encode("app:password-of-the-app");
    assert_eq!(shown, Some(&*format!("Basic {expected}")));
}

#[test]
fn metadata_that_changes_meanwhile_changes_nothing() {
    let mut world = TestNetwork::new(secret());
    world.user = User::Stays;
    world.run();
    world.get(ASM, endpoints("https://as.example/authorize", "https://evil.example/token"));
    let (action, state) = (world.action.expect("a user"), world.authorizations[0]["state"].clone());
    let redirect = format!("/callback?code=the-code&state={state}&iss={AS}");
    assert!(world.auth.handle_redirect(action, Ok(&redirect), world.now));
    assert!(world.run().contains("authorized by"));
    assert_eq!(world.bytes_to(EVIL), "");
}

#[test]
fn only_a_few_of_many_authorization_servers_are_tried() {
    let names: Vec<_> = (0..10_000).map(|it| format!("https://a{it}.example")).collect();
    let names: Vec<_> = names.iter().map(|it| &**it).collect();
    let mut world = TestNetwork::new(secret());
    world.get(PRM, issuers(&names));
    let issuer = "https://a0.example".into();
    assert_eq!(failure(&mut world), AuthorizationFailure::NoMetadata { issuer });
    assert!(world.sent.len() < 12, "{}", world.sent.len());
}

#[test]
fn secrets_are_not_taken_elsewhere_by_a_redirect() {
    // Rule: [AUTHC-067].
    for status in [301, 302, 303, 307, 308] {
        for to in ["https://evil.example/token", "/elsewhere", "https://127.0.0.1/"] {
            let mut world = TestNetwork::new(secret());
            world.post(TOKEN, Reply::new(status, "").field("location", to));
            let told = AuthorizationFailure::Status { url: TOKEN.into(), status };
            assert_eq!(failure(&mut world), told);
            assert_eq!(world.bytes_to(EVIL), "");
            assert_eq!(world.sent.iter().filter(|it| it.form("grant_type").is_some()).count(), 1);
            for at in [PRM, ASM] {
                let mut world = TestNetwork::new(secret());
                world.get(at, Reply::new(status, "").field("location", to));
                world.run();
                assert_eq!(world.bytes_to(EVIL) + &world.bytes_to("https://127.0.0.1"), "");
            }
        }
    }
}

#[test]
fn documents_in_a_circle_come_to_an_end() {
    for to in [ASM, "https://as.example/a", "?x", ""] {
        let mut world = TestNetwork::new(secret());
        world.get(ASM, Reply::new(302, "").field("location", to));
        world.get("https://as.example/a", Reply::new(302, "").field("location", ASM));
        let told = failure(&mut world);
        assert!(matches!(told, AuthorizationFailure::Status { status: 302, .. }), "{told}");
        assert!(world.bytes_to(AS).matches("GET").count() <= 4);
    }
}

#[test]
fn a_document_that_comes_byte_by_byte_is_not_waited_for_for_ever() {
    for (place, post) in [(PRM, false), (ASM, false), (TOKEN, true)] {
        let mut world = TestNetwork::new(secret());
        match post {
            true => world.post(place, Answer::Silence),
            false => world.get(place, Answer::Silence),
        }
        world.run();
        world.drip(place, Some(&Reply::new(200, "")), b"{");
        for _ in 0..29 {
            world.advance(Duration::from_secs(1));
            world.drip(place, None, b" ");
        }
        assert!(world.failures.is_empty());
        let text = world.advance(Duration::from_secs(1));
        assert!(text.contains(&format!("abort {place}\n")), "{text}");
        let told = AuthorizationFailure::TimedOut(WaitingFor::Response(place.into()));
        assert_eq!(world.failures[0], told);
    }
}

#[test]
fn a_document_without_an_end_is_cut_off_at_the_limit() {
    for (place, post) in [(PRM, false), (ASM, false), (TOKEN, true)] {
        let mut world = TestNetwork::new(secret());
        match post {
            true => world.post(place, Answer::Silence),
            false => world.get(place, Answer::Silence),
        }
        world.run();
        world.drip(place, Some(&Reply::new(200, "")), b"{");
        let mut pieces = 0;
        while world.failures.is_empty() {
            world.drip(place, None, &[b' '; 4096]);
            world.run();
            pieces += 1;
        }
        assert_eq!(pieces, 64);
        assert_eq!(world.failures[0], AuthorizationFailure::TooLong { url: place.into() });
    }
}

#[test]
fn document_errors_are_short() {
    let long = "x".repeat(200_000);
    for text in [format!(r#"{{"resource":["{long}"]}}"#), format!(r#"{{"issuer":1,"{long}":1}}"#)] {
        for at in [PRM, ASM] {
            let mut world = TestNetwork::new(secret());
            world.get(at, ok(&text));
            let told = failure(&mut world).to_string();
            assert!(told.len() < 1500 && told.starts_with(at), "{}", told.len());
        }
    }
    let mut world = TestNetwork::new(secret());
    world.get(PRM, ok("{\"resource\":1,\"\u{1b}[31m\":2}"));
    failure(&mut world);
}

#[test]
fn a_registration_endpoint_that_is_not_open_to_all_is_not_asked() {
    // Rule: [SEC-006].
    use mcp_sansio_oauth::client::{ApplicationType, ClientMetadata};
    let options = || code_bare().register_as(ClientMetadata::new("D", ApplicationType::Native));
    for url in ["https://192.168.1.1/register", "http://localhost/x"] {
        let mut world = TestNetwork::new(options());
        world.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{url}""#)));
        assert_eq!(failure(&mut world), AuthorizationFailure::Internal { url: url.into() });
    }
    let mut world = TestNetwork::new(options());
    world.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}""#)));
    world.post(REGISTER, Reply::new(307, "").field("location", "https://evil.example/r"));
    let told = AuthorizationFailure::Status { url: REGISTER.into(), status: 307 };
    assert_eq!(failure(&mut world), told);
    assert_eq!(world.bytes_to(EVIL), "");
}

#[test]
fn a_public_client_has_no_password() {
    let url = "https://app.example/client.json";
    let refused = code_bare().metadata_document(url, password("password-of-the-app"));
    let refused = refused.expect_err("a password").to_string();
    assert!(!refused.is_empty() && !refused.contains("password-of"), "{refused}");
    assert!(code_bare().metadata_document(url, ClientSecret::None).is_ok());
    // Nothing else changes: the resource is asked for as ever.
    let mut world = TestNetwork::new(code());
    world.get(PRM, resource(""));
    assert!(world.run().contains("authorized by"));
}

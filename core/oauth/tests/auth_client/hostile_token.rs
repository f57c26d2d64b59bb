//! Tokens and registrations that are not what was asked for.

use std::time::Duration;

use mcp_sansio::http::ExchangeFailure;
use mcp_sansio_oauth::client::{
    ApplicationType, AuthorizationFailure, ClientMetadata, ClientOptions, ClientSecret, DpopKey,
};
use mcp_sansio_oauth::{InvalidResponse, RegistrationFault, TokenFault};

use crate::answers::{Answer, Reply, issuer, ok, token};
use crate::network::{
    AS, ASM, REGISTER, TOKEN, TestNetwork, User, client, code, code_bare, password,
};

fn secret() -> ClientOptions {
    let app = client("app", Some(AS), password("password-of-the-app"));
    code_bare().registered(app).expect("a client")
}

fn bound() -> ClientOptions {
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}"#;
    code().dpop(&DpopKey { algorithm: "ES256".into(), jwk: jwk.into() }).expect("a key")
}

/// A world whose first token is about to end and can be renewed.
fn renewable() -> TestNetwork {
    let mut world = TestNetwork::new(secret());
    let rest = r#","refresh_token":"refresh-token-one","expires_in":60"#;
    world.post(TOKEN, token("access-token-one", rest));
    world.accepted = vec!["Bearer access-token-one".into()];
    world.run();
    world
}

#[test]
fn an_unusable_token_response_is_refused() {
    for (body, fault) in [
        (r#"{"access_token":"long-access-token","token_type":"MAC"}"#, TokenFault::TokenType),
        (r#"{"access_token":"long-access-token","token_type":"N_A"}"#, TokenFault::TokenType),
        (r#"{"access_token":"long-access-token","token_type":"DPoP"}"#, TokenFault::TokenType),
        (r#"{"access_token":"long-access-token"}"#, TokenFault::TokenType),
        (r#"{"access_token":"","token_type":"Bearer"}"#, TokenFault::Token),
        (r#"{"access_token":"a\r\nx-evil: 1","token_type":"Bearer"}"#, TokenFault::Token),
        (r#"{"access_token":"a\u0000b","token_type":"Bearer"}"#, TokenFault::Token),
        (r#"{"access_token":"a b","token_type":"Bearer"}"#, TokenFault::Token),
        (r#"{"access_token":"\u00e9","token_type":"Bearer"}"#, TokenFault::Token),
        (r#"{"token_type":"Bearer"}"#, TokenFault::NoToken),
        (r#"{"access_token":null,"token_type":"Bearer"}"#, TokenFault::NoToken),
        ("{}", TokenFault::NoToken),
        ("", TokenFault::Answer(InvalidResponse::Malformed)),
        ("[]", TokenFault::Answer(InvalidResponse::Malformed)),
        ("<html>", TokenFault::Answer(InvalidResponse::Malformed)),
        (
            r#"{"access_token":"a","access_token":"b","token_type":"Bearer"}"#,
            TokenFault::Answer(InvalidResponse::Malformed),
        ),
        (
            r#"{"access_token":"a","token_type":"Bearer","expires_in":"soon"}"#,
            TokenFault::Answer(InvalidResponse::Malformed),
        ),
        (
            r#"{"access_token":"a","token_type":"Bearer","expires_in":[1]}"#,
            TokenFault::Answer(InvalidResponse::Malformed),
        ),
    ] {
        let mut world = TestNetwork::new(secret());
        world.post(TOKEN, ok(body));
        let text = world.run();
        let told = AuthorizationFailure::Token { url: TOKEN.into(), fault };
        assert_eq!(world.failures, [told.clone(), told], "{body}");
        assert!(!text.contains("[Bearer") && world.kept().is_empty(), "{text}");
    }
    let mut world = TestNetwork::new(secret());
    world.post(TOKEN, token(&"x".repeat(40_000), ""));
    world.run();
    let fault = TokenFault::Token;
    assert_eq!(world.failures[0], AuthorizationFailure::Token { url: TOKEN.into(), fault });
}

#[test]
fn however_long_a_token_says_that_it_lives_requests_leave_and_renewals_are_few() {
    for expiry in
        ["0", "-1", "-1e308", "1e308", "18446744073709551615", r#""0""#, r#""nan""#, "null"]
    {
        for rest in ["", r#","refresh_token":"refresh-token-one""#] {
            let mut world = TestNetwork::new(secret());
            world.post(TOKEN, token("t1", &format!(r#","expires_in":{expiry}{rest}"#)));
            world.run();
            for _ in 0..10 {
                world.call("a");
                let text = world.run();
                assert!(text.contains(" done\n"), "{expiry}: {text}");
            }
            // At most one for each request.
            assert!(world.sent_to(TOKEN).len() <= 12, "{expiry}");
            assert_eq!(world.authorizations.len(), 1, "{expiry}");
            // Nothing is done without a request.
            assert_eq!(world.advance(Duration::from_secs(4 * 365 * 24 * 3600)), "");
        }
    }
}

#[test]
fn secrets_echoed_by_the_token_endpoint_are_not_shown() {
    // Rule: [AUTHC-046] [AUTHC-062].
    let echo = |request: &crate::sent::Sent| {
        request.form("grant_type")?;
        use base64::Engine;
        let basic = request.field("authorization")?.strip_prefix("Basic ")?;
        let basic = base64::engine::general_purpose::STANDARD.decode(basic).ok()?;
        let basic = String::from_utf8(basic).ok()?;
        let names = ["code", "code_verifier", "refresh_token"];
        let said: Vec<_> = names.into_iter().filter_map(|it| request.form(it)).collect();
        let said = said.join(" and ");
        let body = format!(
            r#"{{"error":"x-{said}","error_description":"no: {said} of {basic}","error_uri":"https://as.example?{said}"}}"#
        );
        Some(Reply::new(400, &body).into())
    };
    let mut world = TestNetwork::new(secret());
    world.user = User::ComesBack(format!("/?code=authorization-code-one&state=STATE&iss={AS}"));
    world.network = Box::new(echo);
    world.run();
    let told = world.failures[0].to_string();
    assert!(told.ends_with("(no: .. and .. of app:..)"), "{told}");
    let mut world = renewable();
    world.network = Box::new(echo);
    world.accepted.clear();
    world.call("a");
    world.run();
    let told = world.failures[0].to_string();
    assert!(told.ends_with("(no: .. of app:..)"), "{told}");
}

#[test]
fn a_failed_renewal_is_reported_and_keeps_the_tokens() {
    for answer in [
        Reply::new(500, "oops").into(),
        Reply::new(200, "garbage").into(),
        Reply::new(400, r#"{"error":"temporarily_unavailable"}"#).into(),
        Reply::new(302, "").field("location", "https://evil.example/").into(),
        Answer::Fails(ExchangeFailure::Broken),
        Answer::Silence,
    ] {
        let mut world = renewable();
        world.post(TOKEN, answer);
        world.accepted.clear();
        world.call("a");
        world.advance(Duration::from_secs(60));
        assert!(!world.failures.is_empty() && world.waiting.is_empty());
        assert_eq!(world.authorizations.len(), 1, "no user is asked for it");
        assert!(world.kept().contains("refresh-token-one"));
        world.post(TOKEN, token("access-token-two", ""));
        world.accepted = vec!["Bearer access-token-two".into()];
        world.call("a");
        let text = world.run();
        assert!(text.ends_with("call 2 done\n"), "{text}");
        // Without another one the refresh token stays.
        assert!(world.kept().contains("refresh-token-one"));
    }
}

#[test]
fn scopes_that_a_token_has_are_scopes() {
    let many: Vec<_> = (0..300).map(|it| format!("s{it}")).collect();
    for (scope, shown) in [
        (r"a\r\nb \u001b[31m c", "authorized by https://as.example for c\n"),
        (r"\u202e", "authorized by https://as.example\n"),
        (&many.join(" "), "no token: more than 256 scopes\n"),
    ] {
        let mut world = TestNetwork::new(secret());
        world.post(TOKEN, token("t1", &format!(r#","scope":"{scope}""#)));
        let text = world.run();
        assert!(text.contains(shown), "{text}");
    }
}

#[test]
fn a_token_that_is_not_bound_is_taken_unless_only_bound_ones_are() {
    let mut world = TestNetwork::new(bound());
    assert!(world.run().contains("server/discover [Bearer t1]\n"));
    // What was kept of that time is not used either.
    let mut world = world.again(bound().dpop_bound_access_tokens(true));
    let text = world.run();
    assert!(!text.contains("[Bearer t1]"), "{text}");
    let fault = TokenFault::TokenType;
    assert_eq!(world.failures[0], AuthorizationFailure::Token { url: TOKEN.into(), fault });
    world.post(TOKEN, ok(r#"{"access_token":"t2","token_type":"dpop"}"#));
    world.accepted = vec!["DPoP t2".into()];
    world.reconnect();
    assert!(world.run().contains("server/discover [DPoP t2]\n"));
    // A bound token is never shown without its proof.
    assert!(!world.sent.iter().any(|it| it.field("authorization") == Some("Bearer t2")));
}

#[test]
fn a_pending_token_request_does_not_show_client_credentials() {
    // Rule: [AUTHC-046].
    let key = ClientSecret::PrivateKey { algorithm: "ES256".into(), key_id: None };
    let app = client("app", Some(AS), key);
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}"#;
    let proof = DpopKey { algorithm: "ES256".into(), jwk: jwk.into() };
    let options = code_bare().registered(app).and_then(|it| it.dpop(&proof));
    let mut world = TestNetwork::new(options.expect("a client"));
    world.signs = false;
    world.run();
    let action = world.action.expect("a signature");
    world.auth.handle_signature(action, Ok(b"signature"), world.now);
    // The proof is to be signed now.
    assert!(world.run().contains("sign a proof"));
    let shown = format!("{:?}", world.auth);
    assert!(!shown.contains("c2lnbmF0dXJl"), "{shown}");
    let action = world.action.expect("a signature");
    world.auth.handle_signature(action, Ok(b"signature"), world.now);
    world.run();
    assert!(world.last_to(TOKEN).body.contains("c2lnbmF0dXJl"));
}

// ------------------------------------------------------------------ registration

fn registering() -> TestNetwork {
    let metadata = ClientMetadata::new("Demo", ApplicationType::Native);
    let mut world = TestNetwork::new(code_bare().register_as(metadata));
    let endpoint = format!(r#","registration_endpoint":"{REGISTER}""#);
    world.get(ASM, issuer(AS, &endpoint));
    world
}

#[test]
fn an_invalid_client_is_refused() {
    for (body, fault) in [
        ("{}", RegistrationFault::Client),
        (r#"{"client_id":""}"#, RegistrationFault::Client),
        (r#"{"client_id":"a\r\nb"}"#, RegistrationFault::Client),
        (r#"{"client_id":"a\u0000"}"#, RegistrationFault::Client),
        (r#"{"client_id":"a","client_secret":"x\ny-long-secret"}"#, RegistrationFault::Client),
        (r#"{"client_id":["a"]}"#, RegistrationFault::Answer(InvalidResponse::Malformed)),
        ("null", RegistrationFault::Answer(InvalidResponse::Malformed)),
    ] {
        let mut world = registering();
        world.post(REGISTER, Reply::new(201, body));
        world.run();
        let url = REGISTER.into();
        assert_eq!(world.failures[0], AuthorizationFailure::Registration { url, fault }, "{body}");
        assert!(world.authorizations.is_empty() && world.kept().is_empty(), "{body}");
    }
}

#[test]
fn a_registration_decides_over_no_redirect() {
    let mut world = registering();
    let body = r#"{"client_id":"c","redirect_uris":["https://evil.example/"],"token_endpoint_auth_method":"none"}"#;
    world.post(REGISTER, Reply::new(201, body));
    world.run();
    assert_eq!(world.authorizations[0]["redirect_uri"], crate::network::REDIRECT);
    assert_eq!(
        world.last_to(TOKEN).form("redirect_uri").as_deref(),
        Some(crate::network::REDIRECT)
    );
}

#[test]
fn a_password_that_is_over_already_leads_to_one_registration_each_time() {
    let mut world = registering();
    let body = r#"{"client_id":"c","client_secret":"long-password","client_secret_expires_at":1}"#;
    world.post(REGISTER, Reply::new(201, body));
    world.run();
    assert_eq!(world.sent_to(REGISTER).len(), 1);
    for number in 2..4 {
        world.accepted.clear();
        world.call("a");
        world.run();
        assert_eq!(world.sent_to(REGISTER).len(), number);
    }
}

#[test]
fn an_always_rejected_client_registers_twice_at_most() {
    let mut world = registering();
    world.post(REGISTER, Reply::new(201, r#"{"client_id":"c"}"#));
    world.run();
    world.accepted.clear();
    world.post(TOKEN, Reply::new(401, r#"{"error":"invalid_client"}"#));
    world.call("a");
    world.run();
    assert_eq!(world.sent_to(REGISTER).len(), 2);
    assert!(world.waiting.is_empty());
}

//! Invalid token responses and registration responses.

use std::time::Duration;

use mcp_sansio::http::ExchangeFailure;
use mcp_sansio_oauth::AnswerFault;
use mcp_sansio_oauth::client::{
    ApplicationType, AuthorizationFailure, AuthorizationOptions, ClientMetadata, ClientSecret,
    DpopKey,
};

use crate::answers::{Answer, Reply, issuer, ok, token};
use crate::network::{
    AS, ASM, REGISTER, TOKEN, TestNetwork, User, client, code, code_bare, password,
};

fn secret() -> AuthorizationOptions {
    let app = client("app", Some(AS), password("password-of-the-app"));
    code_bare().registered(app).expect("a client")
}

fn bound() -> AuthorizationOptions {
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}"#;
    code().dpop(&DpopKey::new("ES256", jwk)).expect("a key")
}

/// Returns a network whose first token is about to expire and can be renewed.
fn renewable() -> TestNetwork {
    let mut network = TestNetwork::new(secret());
    let rest = r#","refresh_token":"refresh-token-one","expires_in":60"#;
    network.post(TOKEN, token("access-token-one", rest));
    network.accepted = vec!["Bearer access-token-one".into()];
    network.run();
    network
}

#[test]
fn an_unusable_token_response_is_refused() {
    for (body, fault) in [
        (r#"{"access_token":"long-access-token","token_type":"MAC"}"#, AnswerFault::TokenType),
        (r#"{"access_token":"long-access-token","token_type":"N_A"}"#, AnswerFault::TokenType),
        (r#"{"access_token":"long-access-token","token_type":"DPoP"}"#, AnswerFault::TokenType),
        (r#"{"access_token":"long-access-token"}"#, AnswerFault::TokenType),
        (r#"{"access_token":"","token_type":"Bearer"}"#, AnswerFault::Token),
        (r#"{"access_token":"a\r\nx-evil: 1","token_type":"Bearer"}"#, AnswerFault::Token),
        (r#"{"access_token":"a\u0000b","token_type":"Bearer"}"#, AnswerFault::Token),
        (r#"{"access_token":"a b","token_type":"Bearer"}"#, AnswerFault::Token),
        (r#"{"access_token":"\u00e9","token_type":"Bearer"}"#, AnswerFault::Token),
        (r#"{"token_type":"Bearer"}"#, AnswerFault::NoToken),
        (r#"{"access_token":null,"token_type":"Bearer"}"#, AnswerFault::NoToken),
        ("{}", AnswerFault::NoToken),
        ("", AnswerFault::Malformed),
        ("[]", AnswerFault::Malformed),
        ("<html>", AnswerFault::Malformed),
        (
            r#"{"access_token":"a","access_token":"b","token_type":"Bearer"}"#,
            AnswerFault::Malformed,
        ),
    ] {
        let mut network = TestNetwork::new(secret());
        network.post(TOKEN, ok(body));
        let text = network.run();
        let told = AuthorizationFailure::Token { url: TOKEN.into(), fault };
        assert_eq!(network.failures, [told.clone(), told], "{body}");
        assert!(!text.contains("[Bearer") && network.kept().is_empty(), "{text}");
    }
    let mut network = TestNetwork::new(secret());
    network.post(TOKEN, token(&"x".repeat(40_000), ""));
    network.run();
    let fault = AnswerFault::Token;
    assert_eq!(network.failures[0], AuthorizationFailure::Token { url: TOKEN.into(), fault });
}

#[test]
fn a_token_of_any_lifetime_is_used_and_rarely_renewed() {
    for expiry in
        ["0", "-1", "-1e308", "1e308", "18446744073709551615", r#""0""#, r#""nan""#, "null"]
    {
        for rest in ["", r#","refresh_token":"refresh-token-one""#] {
            let mut network = TestNetwork::new(secret());
            network.post(TOKEN, token("t1", &format!(r#","expires_in":{expiry}{rest}"#)));
            network.run();
            for _ in 0..10 {
                network.call("a");
                let text = network.run();
                assert!(text.contains(" done\n"), "{expiry}: {text}");
            }
            // At most one renewal for each request.
            assert!(network.sent_to(TOKEN).len() <= 12, "{expiry}");
            assert_eq!(network.authorizations.len(), 1, "{expiry}");
            // Without a request there is no renewal.
            assert_eq!(network.advance(Duration::from_secs(4 * 365 * 24 * 3600)), "");
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
    let mut network = TestNetwork::new(secret());
    network.user = User::ComesBack(format!("/?code=authorization-code-one&state=STATE&iss={AS}"));
    network.network = Box::new(echo);
    network.run();
    let told = network.failures[0].to_string();
    assert!(told.ends_with("(no: .. and .. of app:..)"), "{told}");
    let mut network = renewable();
    network.network = Box::new(echo);
    network.accepted.clear();
    network.call("a");
    network.run();
    // It is useless, so that the user is asked.
    let told = network.failures[0].to_string();
    assert!(told.ends_with("(no: .. and .. of app:..)"), "{told}");
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
        let mut network = renewable();
        network.post(TOKEN, answer);
        network.accepted.clear();
        network.call("a");
        network.advance(Duration::from_secs(60));
        assert!(!network.failures.is_empty() && network.waiting.is_empty());
        assert_eq!(network.authorizations.len(), 1, "no user is asked to sign in");
        assert!(network.kept().contains("refresh-token-one"));
        network.post(TOKEN, token("access-token-two", ""));
        network.accepted = vec!["Bearer access-token-two".into()];
        network.call("a");
        let text = network.run();
        assert!(text.ends_with("call 2 done\n"), "{text}");
        // Without a new refresh token the old one is kept.
        assert!(network.kept().contains("refresh-token-one"));
    }
}

#[test]
fn granted_scopes_are_validated() {
    let many: Vec<_> = (0..300).map(|it| format!("s{it}")).collect();
    for (scope, shown) in [
        (r"a\r\nb \u001b[31m c", "authorized by https://as.example for c\n"),
        (r"\u202e", "authorized by https://as.example\n"),
        (&many.join(" "), "no token: more than 256 scopes\n"),
    ] {
        let mut network = TestNetwork::new(secret());
        network.post(TOKEN, token("t1", &format!(r#","scope":"{scope}""#)));
        let text = network.run();
        assert!(text.contains(shown), "{text}");
    }
}

#[test]
fn an_unbound_token_is_accepted_unless_bound_tokens_are_required() {
    let mut network = TestNetwork::new(bound());
    assert!(network.run().contains("server/discover [Bearer t1]\n"));
    // A stored token without a binding is not used either.
    let mut network = network.again(bound().dpop_bound_access_tokens(true));
    let text = network.run();
    assert!(!text.contains("[Bearer t1]"), "{text}");
    let fault = AnswerFault::TokenType;
    assert_eq!(network.failures[0], AuthorizationFailure::Token { url: TOKEN.into(), fault });
    network.post(TOKEN, ok(r#"{"access_token":"t2","token_type":"dpop"}"#));
    network.accepted = vec!["DPoP t2".into()];
    network.reconnect();
    assert!(network.run().contains("server/discover [DPoP t2]\n"));
    // A bound token is never sent without its proof.
    assert!(!network.sent.iter().any(|it| it.field("authorization") == Some("Bearer t2")));
}

#[test]
fn a_pending_token_request_does_not_show_client_credentials() {
    // Rule: [AUTHC-046].
    let key = ClientSecret::PrivateKey { algorithm: "ES256".into(), key_id: None };
    let app = client("app", Some(AS), key);
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}"#;
    let proof = DpopKey::new("ES256", jwk);
    let options = code_bare().registered(app).and_then(|it| it.dpop(&proof));
    let mut network = TestNetwork::new(options.expect("a client"));
    network.signs = false;
    network.run();
    let action = network.action.expect("a signature");
    network.auth.handle_signature(action, Ok(b"signature"), network.now);
    // The client waits for the signature of the proof.
    assert!(network.run().contains("sign a proof"));
    let shown = format!("{:?}", network.auth);
    assert!(!shown.contains("c2lnbmF0dXJl"), "{shown}");
    let action = network.action.expect("a signature");
    network.auth.handle_signature(action, Ok(b"signature"), network.now);
    network.run();
    assert!(network.last_to(TOKEN).body.contains("c2lnbmF0dXJl"));
}

// ------------------------------------------------------------------ registration

fn registering() -> TestNetwork {
    let metadata = ClientMetadata::new("Demo", ApplicationType::Native);
    let mut network = TestNetwork::new(code_bare().register_as(metadata));
    let endpoint = format!(r#","registration_endpoint":"{REGISTER}""#);
    network.get(ASM, issuer(AS, &endpoint));
    network
}

#[test]
fn an_invalid_client_is_refused() {
    for (body, fault) in [
        ("{}", AnswerFault::Client),
        (r#"{"client_id":""}"#, AnswerFault::Client),
        (r#"{"client_id":"a\r\nb"}"#, AnswerFault::Client),
        (r#"{"client_id":"a\u0000"}"#, AnswerFault::Client),
        (r#"{"client_id":"a","client_secret":"x\ny-long-secret"}"#, AnswerFault::Client),
        (r#"{"client_id":["a"]}"#, AnswerFault::Malformed),
        ("null", AnswerFault::Malformed),
    ] {
        let mut network = registering();
        network.post(REGISTER, Reply::new(201, body));
        network.run();
        let url = REGISTER.into();
        assert_eq!(
            network.failures[0],
            AuthorizationFailure::Registration { url, fault },
            "{body}"
        );
        assert!(network.authorizations.is_empty() && network.kept().is_empty(), "{body}");
    }
}

#[test]
fn a_registration_response_cannot_change_the_redirect_uri() {
    let mut network = registering();
    let body = r#"{"client_id":"c","redirect_uris":["https://evil.example/"],"token_endpoint_auth_method":"none"}"#;
    network.post(REGISTER, Reply::new(201, body));
    network.run();
    assert_eq!(network.authorizations[0]["redirect_uri"], crate::network::REDIRECT);
    assert_eq!(
        network.last_to(TOKEN).form("redirect_uri").as_deref(),
        Some(crate::network::REDIRECT)
    );
}

#[test]
fn an_expired_password_causes_one_registration_per_attempt() {
    let mut network = registering();
    let body = r#"{"client_id":"c","client_secret":"long-password","client_secret_expires_at":1}"#;
    network.post(REGISTER, Reply::new(201, body));
    network.run();
    assert_eq!(network.sent_to(REGISTER).len(), 1);
    for number in 2..4 {
        network.accepted.clear();
        network.call("a");
        network.run();
        assert_eq!(network.sent_to(REGISTER).len(), number);
    }
}

#[test]
fn an_always_rejected_client_registers_twice_at_most() {
    let mut network = registering();
    network.post(REGISTER, Reply::new(201, r#"{"client_id":"c"}"#));
    network.run();
    network.accepted.clear();
    network.post(TOKEN, Reply::new(401, r#"{"error":"invalid_client"}"#));
    network.call("a");
    network.run();
    assert_eq!(network.sent_to(REGISTER).len(), 2);
    assert!(network.waiting.is_empty());
}

//! Authorization with a user who signs in.

use mcp_sansio::http::Location;
use mcp_sansio_oauth::client::{ActionFailure, AuthorizationClient, ClientSecret};

use crate::answers::{error, issuer};
use crate::network::{
    AS, ASM, MCP, REDIRECT, START, TOKEN, TestNetwork, User, client, code, code_bare, password,
};

#[test]
fn a_user_signs_in_when_the_server_asks_for_a_token() {
    // Rule: [AUTHC-002] [AUTHC-005] [AUTHC-014] [AUTHC-015].
    let mut network = TestNetwork::new(code());
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    server/discover [Bearer t1]
    ");
    // Rule: [AUTHC-043].
    network.call("echo");
    insta::assert_snapshot!(network.run(), @"
    tools/call echo [Bearer t1]
    call 1 done
    ");
}

#[test]
fn both_requests_name_the_client_the_scopes_and_the_resource() {
    // Rule: [AUTHC-040] [AUTHC-041].
    let mut network = TestNetwork::new(code());
    network.run();
    let asked = &network.authorizations[0];
    assert_eq!(asked["response_type"], "code");
    assert_eq!(asked["client_id"], "app");
    assert_eq!(asked["redirect_uri"], REDIRECT);
    assert_eq!(asked["resource"], MCP);
    // Rule: [AUTHC-011] [AUTHC-012].
    assert_eq!(asked["code_challenge_method"], "S256");
    let token = network.last_to(TOKEN);
    assert_eq!(token.field("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(token.field("accept"), Some("application/json"));
    assert_eq!(token.form("resource").as_deref(), Some(MCP));
    assert_eq!(token.form("redirect_uri").as_deref(), Some(REDIRECT));
    assert_eq!(token.form("code").as_deref(), Some("code1"));
    let verifier = token.form("code_verifier").expect("a verifier");
    assert_eq!(verifier.len(), 43);
    assert_ne!(verifier, asked["code_challenge"]);
    // Rule: [AUTHC-048].
    assert_ne!(verifier, asked["state"]);
}

#[test]
fn the_token_is_sent_to_the_server_only_and_never_in_a_url() {
    // Rule: [AUTHC-043] [AUTHC-044] [AUTHC-045].
    let mut network = TestNetwork::new(code());
    network.run();
    network.call("echo");
    network.run();
    let server = network.bytes_to("https://mcp.example");
    assert_eq!(server.matches("t1").count(), 2);
    assert_eq!(server.matches("authorization: Bearer t1").count(), 2);
    assert!(!network.bytes_to(AS).contains("t1"));
    assert!(!network.sent.iter().any(|it| it.url.contains("t1")));
}

#[test]
fn a_stored_token_is_used_without_authorization() {
    let mut network = TestNetwork::new(code());
    network.run();
    let mut network = network.again(code());
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: found
    waiting
    resumed
    server/discover [Bearer t1]
    ");
}

#[test]
fn a_redirect_that_answers_another_request_is_ignored() {
    // Rule: [AUTHC-048].
    let mut network = TestNetwork::new(code());
    network.user = User::Stays;
    network.run();
    let action = network.action.expect("a user is asked to sign in");
    for redirect in ["/callback", "/callback?code=c&state=x", "/callback?code=%", "/favicon.ico"] {
        assert!(!network.auth.handle_redirect(action, Ok(redirect), network.now), "{redirect}");
        assert_eq!(network.run(), "", "{redirect}");
    }
    let state = &network.authorizations[0]["state"];
    let redirect = format!("{REDIRECT}?state={state}&iss=https%3A%2F%2Fas.example&code=c1");
    assert!(network.auth.handle_redirect(action, Ok(&redirect), network.now));
    insta::assert_snapshot!(network.run(), @"
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    server/discover [Bearer t1]
    ");
    assert!(!network.auth.handle_redirect(action, Ok(&redirect), network.now));
}

#[test]
fn a_code_of_another_issuer_is_not_redeemed() {
    // Rule: [AUTHC-056] [AUTHC-057] [AUTHC-058] [AUTHC-060].
    for iss in ["", "&iss=https://evil.example", "&iss=https://as.example/"] {
        let mut network = TestNetwork::new(code());
        network.user = User::SignsIn(iss.into());
        let text = network.run();
        assert!(text.contains("no token: the response"), "{text}");
        assert_eq!(network.sent_to(TOKEN).len(), 0, "{iss}");
    }
}

#[test]
fn an_issuer_that_does_not_announce_iss_is_compared_if_iss_is_present() {
    // Rule: [AUTHC-059].
    for (iss, continues) in
        [("", true), ("&iss=https://as.example", true), ("&iss=https://b", false)]
    {
        let mut network = TestNetwork::new(code());
        network.get(ASM, issuer(AS, ""));
        network.user = User::SignsIn(iss.into());
        network.run();
        assert_eq!(network.sent_to(TOKEN).len() == 1, continues, "{iss}");
    }
}

#[test]
fn a_denied_authorization_fails_its_request_and_is_retried_for_the_next() {
    let mut network = TestNetwork::new(code());
    network.run();
    network.accepted.clear();
    network.user = User::Declines;
    network.call("echo");
    insta::assert_snapshot!(network.run(), @"
    tools/call echo [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    no token: the user declined
    refused: the user declined
    call 1 failed
    ");
    // The client does not retry without a new request.
    assert_eq!(network.run(), "");
    network.user =
        User::ComesBack("/?state=STATE&iss=https://as.example&error=access_denied&error_description=ask+your+administrat%FCr".into());
    network.call("echo");
    insta::assert_snapshot!(network.run(), @"
    tools/call echo [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    no token: the authorization server answered `access_denied` (ask your administratr)
    refused: the authorization server answered `access_denied` (ask your administratr)
    call 2 failed
    ");
}

#[test]
fn a_token_that_is_refused_at_once_is_not_replaced_repeatedly() {
    let mut network = TestNetwork::new(code());
    network.accepted.clear();
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    server/discover [Bearer t1]
    refused: the server does not accept the new token
    ");
}

#[test]
fn an_error_of_the_token_endpoint_is_reported_with_its_reason() {
    let mut network = TestNetwork::new(code());
    network.post(TOKEN, error(400, "invalid_grant"));
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    no token: https://as.example/token: the authorization server refused the request: invalid_grant
    refused: https://as.example/token: the authorization server refused the request: invalid_grant
    ");
}

#[test]
fn without_s256_no_user_is_asked_to_sign_in() {
    // Rule: [AUTHC-013].
    let mut network = TestNetwork::new(code());
    let metadata = format!(
        r#"{{"issuer":"{AS}","authorization_endpoint":"{AS}/authorize","token_endpoint":"{TOKEN}"}}"#
    );
    network.get(ASM, crate::answers::ok(&metadata));
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    no token: https://as.example/.well-known/oauth-authorization-server: the authorization server does not announce PKCE with S256
    refused: https://as.example/.well-known/oauth-authorization-server: the authorization server does not announce PKCE with S256
    ");
}

#[test]
fn a_password_is_sent_as_the_authorization_server_requires() {
    // Rule: [AUTHC-066].
    for (methods, secret, authorization, in_body) in [
        ("", password("s:e+c"), Some("Basic YXBwOnMlM0FlJTJCYw=="), None),
        (r#""client_secret_basic","none""#, password("p"), Some("Basic YXBwOnA="), None),
        (r#""client_secret_post""#, password("p"), None, Some("p")),
        (r#""none""#, password("p"), None, None),
        (r#""client_secret_basic""#, ClientSecret::None, None, None),
    ] {
        let options = code_bare().registered(client("app", Some(AS), secret)).expect("a client");
        let mut network = TestNetwork::new(options);
        let members = match methods {
            "" => String::new(),
            methods => format!(r#","token_endpoint_auth_methods_supported":[{methods}]"#),
        };
        network.get(ASM, issuer(AS, &members));
        network.run();
        let token = network.last_to(TOKEN);
        assert_eq!(token.field("authorization"), authorization, "{methods}");
        assert_eq!(token.form("client_secret").as_deref(), in_body, "{methods}");
        // Some servers look for it there, whatever the method.
        assert_eq!(token.form("client_id").as_deref(), Some("app"), "{methods}");
    }
}

#[test]
fn a_client_with_a_private_key_signs_an_assertion() {
    // Rule: [AUTHC-030].
    let key = ClientSecret::PrivateKey { algorithm: "ES256".into(), key_id: None };
    let options = code_bare().registered(client("app", Some(AS), key)).expect("a client");
    let mut network = TestNetwork::new(options);
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    sign as app with ES256
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    server/discover [Bearer t1]
    ");
    let token = network.last_to(TOKEN);
    let assertion = token.form("client_assertion").expect("an assertion");
    assert!(assertion.ends_with(".c2lnbmF0dXJl"), "{assertion}");
    let mut network = TestNetwork::new(
        code_bare()
            .registered(client(
                "app",
                Some(AS),
                ClientSecret::PrivateKey { algorithm: "ES256".into(), key_id: None },
            ))
            .expect("a client"),
    );
    network.signature = Some(ActionFailure::Failed("the key is gone".into()));
    let text = network.run();
    assert!(text.contains("no token: the key is gone\nrefused: the key is gone\n"), "{text}");
}

#[test]
fn an_application_can_ask_for_a_token_before_the_server_does() {
    let mut network = TestNetwork::new(code());
    network.auth.authorize(network.now);
    // A call that is made in the meantime waits, and is sent with the token.
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    server/discover [Bearer t1]
    ");
    network.auth.authorize(network.now);
    insta::assert_snapshot!(network.run(), @"
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    ");
}

#[test]
fn signing_out_removes_everything_from_the_store() {
    let mut network = TestNetwork::new(code());
    network.run();
    assert!(network.kept().contains("t1"));
    network.auth.forget(network.now);
    network.call("echo");
    insta::assert_snapshot!(network.run(), @"
    remove tokens for https://mcp.example/mcp
    tools/call echo
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    tools/call echo [Bearer t1]
    call 1 done
    ");
    let mut network = TestNetwork::new(code());
    network.run();
    network.auth.forget(network.now);
    network.run();
    assert_eq!(network.kept(), "");
}

#[test]
fn no_secret_is_in_debug_output() {
    // Rule: [AUTHC-046] [AUTHC-062].
    let options =
        code_bare().registered(client("app", Some(AS), password("hush"))).expect("a client");
    let mut network = TestNetwork::new(options);
    network.post(TOKEN, crate::answers::token("t1", r#","refresh_token":"r1""#));
    network.user = User::Stays;
    network.run();
    let action = network.action.expect("a user is asked to sign in");
    let before = format!("{:?}", network.auth);
    let state = network.authorizations[0]["state"].clone();
    let redirect = format!("/?code=secret-code&state={state}&iss={AS}");
    assert!(network.auth.handle_redirect(action, Ok(&redirect), network.now));
    let during = format!("{:?}", network.auth);
    network.run();
    let after = format!("{:?}", network.auth);
    let verifier = network.last_to(TOKEN).form("code_verifier").expect("a verifier");
    for text in [before, during, after] {
        for secret in ["hush", "secret-code", &*state, &*verifier, "\"t1\"", "Bearer t1", "r1\""] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

#[test]
fn requests_to_another_origin_carry_no_token() {
    // Rule: [AUTHC-045].
    let mut network = TestNetwork::new(code());
    network.run();
    let elsewhere = Location::parse("https://other.example/mcp").expect("a URL");
    network.auth = AuthorizationClient::new(code(), elsewhere, [8; 32], START, network.now);
    network.auth.authorize(network.now);
    network.call("a");
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://other.example/mcp: nothing
    tools/call a
    GET https://other.example/.well-known/oauth-protected-resource/mcp
    GET https://other.example/.well-known/oauth-protected-resource
    GET https://other.example/.well-known/oauth-authorization-server
    sign in at https://other.example/authorize
    no token: the response comes from another issuer than the requested one
    call 1 failed
    ");
}

#[test]
fn authorize_uses_a_stored_token_at_once() {
    let mut network = TestNetwork::new(code());
    network.run();
    let mut network = network.again(code());
    network.auth.authorize(network.now);
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: found
    waiting
    authorized by https://as.example
    resumed
    server/discover [Bearer t1]
    ");
}

//! Grants without a user.

use mcp_sansio::http::Location;
use mcp_sansio_oauth::UrlFault;
use mcp_sansio_oauth::client::{
    ActionFailure, AuthorizationOptions, ClientSecret, IdentityProvider, InvalidOption,
};

use crate::answers::{error, issuer, ok, token};
use crate::network::{AS, ASM, MCP, TOKEN, TestNetwork, client, password};

fn machine() -> AuthorizationOptions {
    let client = client("app", Some(AS), password("secret"));
    AuthorizationOptions::client_credentials().registered(client).expect("a client")
}

#[test]
fn client_credentials_give_a_token_without_a_user() {
    // Rule: [OACC-003] [OACC-006] [OACC-008].
    let mut network = TestNetwork::new(machine());
    network.challenge = r#"scope="a b""#.into();
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    POST https://as.example/token client_credentials [Basic YXBwOnNlY3JldA==]
    save tokens for https://mcp.example/mcp
    authorized by https://as.example for a b
    resumed
    server/discover [Bearer t1]
    ");
    let request = network.last_to(TOKEN);
    assert_eq!(request.form("scope").as_deref(), Some("a b"));
    // Rule: [AUTHC-040].
    assert_eq!(request.form("resource").as_deref(), Some(MCP));
}

#[test]
fn pkce_is_not_required_without_a_code() {
    let mut network = TestNetwork::new(machine());
    network.get(ASM, ok(&format!(r#"{{"issuer":"{AS}","token_endpoint":"{TOKEN}"}}"#)));
    assert!(network.run().contains("authorized"));
}

#[test]
fn a_client_authenticates_with_a_signed_assertion() {
    let key = ClientSecret::PrivateKey { algorithm: "ES256".into(), key_id: Some("k".into()) };
    let options = AuthorizationOptions::client_credentials();
    let mut network =
        TestNetwork::new(options.registered(client("app", Some(AS), key)).expect("a client"));
    network.get(ASM, issuer(AS, r#","token_endpoint_auth_methods_supported":["private_key_jwt"]"#));
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign as app with ES256
    POST https://as.example/token client_credentials
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    server/discover [Bearer t1]
    ");
}

#[test]
fn a_workload_presents_the_assertion_of_another_issuer() {
    // Rule: [WIF-002].
    let options = AuthorizationOptions::assertion();
    let app = client("app", Some(AS), ClientSecret::None);
    let mut network = TestNetwork::new(options.registered(app).expect("a client"));
    network.assertions.push_back(Ok("jwt".into()));
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    assert for https://as.example
    POST https://as.example/token jwt-bearer
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    server/discover [Bearer t1]
    ");
    let request = network.last_to(TOKEN);
    assert_eq!(request.form("assertion").as_deref(), Some("jwt"));
    assert_eq!(request.form("client_id").as_deref(), Some("app"));
}

#[test]
fn an_assertion_that_is_refused_is_not_retried() {
    let app = client("app", Some(AS), ClientSecret::None);
    let options = AuthorizationOptions::assertion().registered(app).expect("a client");
    let mut network = TestNetwork::new(options);
    network.assertions.push_back(Ok("jwt".into()));
    network.post(TOKEN, error(400, "invalid_grant"));
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    assert for https://as.example
    POST https://as.example/token jwt-bearer
    no token: https://as.example/token: the authorization server refused the request: invalid_grant
    refused: https://as.example/token: the authorization server refused the request: invalid_grant
    ");
    assert_eq!(network.sent_to(TOKEN).len(), 1);
}

fn enterprise() -> AuthorizationOptions {
    let token_endpoint = Location::parse("https://idp.example/token").expect("a URL");
    let secret = password("idp-secret");
    let provider =
        IdentityProvider::new("https://idp.example", token_endpoint, "app-at-idp", secret);
    let app = client("app", Some(AS), password("as-secret"));
    AuthorizationOptions::enterprise(provider).and_then(|it| it.registered(app)).expect("options")
}

#[test]
fn an_identity_provider_is_reached_over_tls() {
    // Rule: [EMA-022] [EMA-023].
    let token_endpoint = Location::parse("http://idp.example/token").expect("a URL");
    let secret = password("idp-secret");
    let provider = IdentityProvider::new("https://idp.example", token_endpoint, "app", secret);
    let refused = AuthorizationOptions::enterprise(provider).err();
    assert_eq!(refused, Some(InvalidOption::TokenEndpoint(UrlFault::Insecure)));
}

const JAG: &str = r#"{"access_token":"jag","token_type":"N_A","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag"}"#;

#[test]
fn an_assertion_of_the_identity_provider_is_exchanged_for_a_token() {
    // Rule: [EMA-004] [EMA-005] [EMA-007] [EMA-011].
    let mut network = TestNetwork::new(enterprise());
    network.assertions.push_back(Ok("id-token".into()));
    network.post("https://idp.example/token", ok(JAG));
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    assert for app-at-idp
    POST https://idp.example/token token-exchange [Basic YXBwLWF0LWlkcDppZHAtc2VjcmV0]
    POST https://as.example/token jwt-bearer [Basic YXBwOmFzLXNlY3JldA==]
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    server/discover [Bearer t1]
    ");
    let exchange = network.last_to("https://idp.example/token");
    assert_eq!(exchange.form("subject_token").as_deref(), Some("id-token"));
    assert_eq!(exchange.form("audience").as_deref(), Some(AS));
    assert_eq!(exchange.form("resource").as_deref(), Some(MCP));
    assert_eq!(network.last_to(TOKEN).form("assertion").as_deref(), Some("jag"));
    // Rule: [AUTHC-036] [AUTHC-039].
    assert!(!network.bytes_to(AS).contains("id-token"));
    assert!(!network.bytes_to("https://mcp.example").contains("jag"));
}

#[test]
fn a_client_of_an_enterprise_authenticates_at_both_servers() {
    // Rule: [EMA-008] [EMA-012].
    let mut network = TestNetwork::new(enterprise());
    network.assertions.push_back(Ok("id-token".into()));
    network.post("https://idp.example/token", ok(JAG));
    network.run();
    for (url, credential) in [
        ("https://idp.example/token", "Basic YXBwLWF0LWlkcDppZHAtc2VjcmV0"),
        (TOKEN, "Basic YXBwOmFzLXNlY3JldA=="),
    ] {
        assert_eq!(network.last_to(url).field("authorization"), Some(credential));
    }
}

#[test]
fn an_application_without_an_assertion_gets_no_token() {
    let mut network = TestNetwork::new(enterprise());
    network.assertions.push_back(Err(ActionFailure::Failed("not signed in at work".into())));
    let text = network.run();
    assert!(text.ends_with("no token: not signed in at work\nrefused: not signed in at work\n"));
}

#[test]
fn a_client_credentials_token_is_replaced_before_it_expires() {
    let mut network = TestNetwork::new(machine());
    network.posts(TOKEN, [token("t1", r#","expires_in":100"#), token("t2", "")]);
    network.accepted.push("Bearer t2".into());
    network.run();
    network.advance(core::time::Duration::from_secs(70));
    network.call("echo");
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: found
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    POST https://as.example/token client_credentials [Basic YXBwOnNlY3JldA==]
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    tools/call echo [Bearer t2]
    call 1 done
    ");
}

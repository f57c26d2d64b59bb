//! What the client is known as.

use mcp_sansio_oauth::client::{
    ApplicationType, ClientMetadata, ClientOptions, ClientSecret, CredentialKey, InvalidOption,
};

use crate::answers::{Reply, error, issuer, ok};
use crate::network::{
    AS, ASM, MCP, PRM, REDIRECT, REGISTER, TOKEN, TestNetwork, User, client, code_bare, password,
};

const DOCUMENT: &str = "https://app.example/client.json";

fn registering() -> ClientOptions {
    code_bare().register_as(ClientMetadata::new("Demo", ApplicationType::Native))
}

/// A world whose authorization server registers clients, as `c1`.
fn open_world(options: ClientOptions) -> TestNetwork {
    let mut world = TestNetwork::new(options);
    world.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}","token_endpoint_auth_methods_supported":["none"]"#)));
    world.post(REGISTER, Reply::new(201, r#"{"client_id":"c1"}"#));
    world
}

#[test]
fn a_client_registers_itself_and_stays_registered() {
    // Rule: [AUTHC-009] [AUTHC-010] [AUTHC-026] [AUTHC-036].
    let mut world = open_world(registering());
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    goes on
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    load client of https://as.example: nothing
    POST https://as.example/register
    save client of https://as.example
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    goes on
    server/discover [Bearer t1]
    ");
    // Rule: [AUTHC-033] [AUTHC-063].
    insta::assert_snapshot!(world.last_to(REGISTER).body, @r#"
    {"client_name":"Demo","application_type":"native","redirect_uris":["http://127.0.0.1:7777/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}
    "#);
    // The next time, and after the token was lost.
    let mut world = world.again(registering());
    world.accepted.clear();
    world.run();
    assert_eq!(world.sent_to(REGISTER).len(), 0);
    assert_eq!(world.authorizations[0]["client_id"], "c1");
}

#[test]
fn a_registration_with_another_redirect_uri_is_another_one() {
    let mut world = open_world(registering());
    world.run();
    let options = ClientOptions::code("http://127.0.0.1:1/callback").expect("a redirect URI");
    let metadata = ClientMetadata::new("Demo", ApplicationType::Native);
    let mut world = world.again(options.register_as(metadata));
    world.accepted.clear();
    world.run();
    assert_eq!(world.sent_to(REGISTER).len(), 1);
}

#[test]
fn a_password_that_came_with_the_registration_is_used() {
    // Rule: [AUTHC-066].
    let mut world = open_world(registering());
    let methods = r#""token_endpoint_auth_methods_supported":["client_secret_post"]"#;
    world.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}",{methods}"#)));
    let answer = r#"{"client_id":"c1","client_secret":"s1","client_secret_expires_at":0}"#;
    world.post(REGISTER, Reply::new(201, answer));
    world.run();
    assert_eq!(world.last_to(TOKEN).form("client_secret").as_deref(), Some("s1"));
}

#[test]
fn metadata_of_the_clients_own_comes_before_registration() {
    // Rule: [AUTHC-027] [AUTHC-028] [AUTHC-029] [AUTHC-031].
    let options = || registering().metadata_document(DOCUMENT, ClientSecret::None).expect("a URL");
    let mut world = open_world(options());
    let members = r#","client_id_metadata_document_supported":true"#;
    world.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}"{members}"#)));
    world.run();
    assert_eq!(world.authorizations[0]["client_id"], DOCUMENT);
    assert_eq!(world.last_to(TOKEN).form("client_id").as_deref(), Some(DOCUMENT));
    assert_eq!((world.sent_to(REGISTER).len(), world.sent_to(DOCUMENT).len()), (0, 0));
    // Where it is not supported, it is not used.
    let mut world = open_world(options());
    world.run();
    assert_eq!(world.authorizations[0]["client_id"], "c1");
}

#[test]
fn a_client_that_is_registered_beforehand_comes_before_all() {
    // Rule: [AUTHC-027] [AUTHC-032].
    let options = registering().metadata_document(DOCUMENT, ClientSecret::None).expect("a URL");
    let app = client("app", Some(AS), password("p"));
    let mut world = open_world(options.registered(app).expect("a client"));
    world.run();
    assert_eq!(world.sent_to(REGISTER).len(), 0);
    assert_eq!(world.authorizations[0]["client_id"], "app");
}

#[test]
fn a_client_of_another_authorization_server_is_not_used() {
    // Rule: [AUTHC-037] [AUTHC-038].
    let app = client("app", Some("https://old.example"), password("p"));
    let mut world = TestNetwork::new(code_bare().registered(app).expect("a client"));
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    goes on
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    no token: the client `app` is registered elsewhere, not at https://as.example
    refused: the client `app` is registered elsewhere, not at https://as.example
    ");
    assert_eq!(world.sent_to(TOKEN).len(), 0);
}

#[test]
fn an_unregistered_client_gets_a_helpful_error() {
    // Rule: [AUTHC-027].
    let mut world = TestNetwork::new(code_bare());
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    goes on
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    no token: the authorization server https://as.example does not know this client: configure a client id for it
    refused: the authorization server https://as.example does not know this client: configure a client id for it
    ");
}

#[test]
fn a_registration_that_is_refused_is_told_with_its_reason() {
    // Rule: [AUTHC-035].
    let mut world = open_world(registering());
    let refusal = r#"{"error":"invalid_redirect_uri","error_description":"no loopback here"}"#;
    world.post(REGISTER, Reply::new(400, refusal));
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    goes on
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    load client of https://as.example: nothing
    POST https://as.example/register
    no token: https://as.example/register: the authorization server takes no such redirect URI: invalid_redirect_uri (no loopback here)
    refused: https://as.example/register: the authorization server takes no such redirect URI: invalid_redirect_uri (no loopback here)
    ");
    world.post(REGISTER, Reply::new(403, "<html>"));
    world.reconnect();
    insta::assert_snapshot!(world.run(), @"
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    load client of https://as.example: nothing
    POST https://as.example/register
    no token: https://as.example/register answers with status 403
    refused: https://as.example/register answers with status 403
    ");
}

#[test]
fn a_registration_that_is_forgotten_is_made_again_once() {
    let mut world = open_world(registering());
    world.run();
    let mut world = world.again(registering());
    world.accepted.clear();
    world.post(REGISTER, Reply::new(201, r#"{"client_id":"c2"}"#));
    world.post(TOKEN, error(401, "invalid_client"));
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: found
    waiting
    goes on
    server/discover [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    load client of https://as.example: found
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    remove client of https://as.example
    load client of https://as.example: nothing
    POST https://as.example/register
    save client of https://as.example
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    no token: https://as.example/token: the token endpoint refuses: invalid_client
    refused: https://as.example/token: the token endpoint refuses: invalid_client
    ");
}

#[test]
fn a_registration_that_a_user_never_came_back_from_is_doubted() {
    let mut world = open_world(registering());
    world.run();
    let mut world = world.again(registering());
    world.accepted.clear();
    world.user = User::Stays;
    world.run();
    let text = world.advance(core::time::Duration::from_secs(300));
    insta::assert_snapshot!(text, @"
    withdraw the last action
    remove client of https://as.example
    no token: timed out waiting for the user
    refused: timed out waiting for the user
    ");
}

#[test]
fn a_redirect_uri_that_no_application_may_have_is_refused_at_once() {
    // Rule: [AUTHC-047].
    for uri in ["http://example.com/callback", "callback", "https://a/b#c"] {
        assert!(ClientOptions::code(uri).is_err(), "{uri}");
    }
    assert!(ClientOptions::code(REDIRECT).is_ok());
    let bare = || code_bare();
    for url in ["http://app.example/c.json", "https://app.example", "c.json"] {
        assert!(bare().metadata_document(url, ClientSecret::None).is_err(), "{url}");
    }
    assert!(bare().scopes(["a b"]).is_err());
    assert!(bare().registered(client("a", Some("b"), ClientSecret::None)).is_err());
}

#[test]
fn a_registration_at_another_authorization_server_is_not_used_whatever_it_is_kept_under() {
    // Rule: [AUTHC-036] [AUTHC-037].
    let mut world = open_world(registering());
    world.run();
    let old = CredentialKey::Client(AS.into());
    let credential = world.store.remove(&old).expect("a registration");
    let new = "https://new.example";
    let mut world = TestNetwork::new(registering());
    world.store.insert(CredentialKey::Client(new.into()), credential);
    let named = format!(r#"{{"resource":"{MCP}","authorization_servers":["{new}"]}}"#);
    world.get(PRM, ok(&named));
    let members = r#","registration_endpoint":"https://new.example/register","token_endpoint_auth_methods_supported":["none"]"#;
    let metadata = "https://new.example/.well-known/oauth-authorization-server";
    world.get(metadata, issuer(new, members));
    let refusal = r#"{"error":"access_denied"}"#;
    world.post("https://new.example/register", Reply::new(403, refusal));
    let text = world.run();
    assert!(text.contains("load client of https://new.example: found\nPOST"), "{text}");
    assert!(world.authorizations.is_empty());
}

#[test]
fn a_credential_without_an_issuer_is_refused_before_anything_is_sent() {
    // Rule: [AUTHC-036] [AUTHC-037].
    let key = || ClientSecret::PrivateKey { algorithm: "ES256".into(), key_id: None };
    let error = InvalidOption::NoIssuer { client_id: "app".into() };
    let refused = Some(error.clone());
    for secret in [password("p"), key()] {
        let client = || client("app", None, secret.clone());
        for options in [code_bare, ClientOptions::client_credentials, ClientOptions::assertion] {
            assert_eq!(options().registered(client()).err(), refused, "{secret:?}");
            assert!(options().registered_trusting_first_issuer(client()).is_ok());
        }
        assert!(code_bare().registered(self::client("app", Some(AS), secret.clone())).is_ok());
    }
    // An assertion is a credential, too.
    let public = || client("app", None, ClientSecret::None);
    assert_eq!(ClientOptions::assertion().registered(public()).err(), refused);
    assert!(code_bare().registered(public()).is_ok());
    let named = client("app", Some(AS), ClientSecret::None);
    assert!(ClientOptions::assertion().registered(named).is_ok());
    // What to do is said.
    let text = error.to_string();
    assert!(text.contains("`app`") && text.contains("`RegisteredClient::issuer`"), "{text}");
}

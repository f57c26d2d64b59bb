//! Client registration and identification.

use mcp_sansio_oauth::client::{
    ApplicationType, AuthorizationOptions, ClientMetadata, ClientSecret, CredentialKey,
    InvalidOption,
};

use crate::answers::{Reply, error, issuer, ok};
use crate::network::{
    AS, ASM, MCP, PRM, REDIRECT, REGISTER, TOKEN, TestNetwork, User, client, code_bare, password,
};

const DOCUMENT: &str = "https://app.example/client.json";

fn registering() -> AuthorizationOptions {
    code_bare().register_as(ClientMetadata::new("Demo", ApplicationType::Native))
}

/// Returns a network whose authorization server registers clients, as `c1`.
fn open_network(options: AuthorizationOptions) -> TestNetwork {
    let mut network = TestNetwork::new(options);
    network.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}","token_endpoint_auth_methods_supported":["none"]"#)));
    network.post(REGISTER, Reply::new(201, r#"{"client_id":"c1"}"#));
    network
}

#[test]
fn a_client_registers_and_stays_registered() {
    // Rule: [AUTHC-009] [AUTHC-010] [AUTHC-026] [AUTHC-036].
    let mut network = open_network(registering());
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
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
    resumed
    server/discover [Bearer t1]
    ");
    // Rule: [AUTHC-033] [AUTHC-063].
    insta::assert_snapshot!(network.last_to(REGISTER).body, @r#"
    {"client_name":"Demo","application_type":"native","redirect_uris":["http://127.0.0.1:7777/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}
    "#);
    // The registration is used in the next run, and after the token was lost.
    let mut network = network.again(registering());
    network.accepted.clear();
    network.run();
    assert_eq!(network.sent_to(REGISTER).len(), 0);
    assert_eq!(network.authorizations[0]["client_id"], "c1");
}

#[test]
fn a_client_without_a_user_never_registers() {
    // Rule: [OACC-005].
    for options in [AuthorizationOptions::client_credentials(), AuthorizationOptions::assertion()] {
        let metadata = ClientMetadata::new("Demo", ApplicationType::Native);
        let mut network = open_network(options.register_as(metadata));
        let text = network.run();
        assert!(text.contains("does not know this client"), "{text}");
        assert_eq!(network.sent_to(REGISTER).len(), 0);
    }
}

#[test]
fn a_registration_with_another_redirect_uri_is_not_reused() {
    let mut network = open_network(registering());
    network.run();
    let options =
        AuthorizationOptions::code("http://127.0.0.1:1/callback").expect("a valid redirect URI");
    let metadata = ClientMetadata::new("Demo", ApplicationType::Native);
    let mut network = network.again(options.register_as(metadata));
    network.accepted.clear();
    network.run();
    assert_eq!(network.sent_to(REGISTER).len(), 1);
}

#[test]
fn a_password_from_the_registration_is_used() {
    // Rule: [AUTHC-066].
    let mut network = open_network(registering());
    let methods = r#""token_endpoint_auth_methods_supported":["client_secret_post"]"#;
    network.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}",{methods}"#)));
    let answer = r#"{"client_id":"c1","client_secret":"s1","client_secret_expires_at":0}"#;
    network.post(REGISTER, Reply::new(201, answer));
    network.run();
    assert_eq!(network.last_to(TOKEN).form("client_secret").as_deref(), Some("s1"));
}

#[test]
fn a_password_without_a_method_is_used_as_the_metadata_says() {
    // Rule: [AUTHC-066].
    for (methods, in_body, in_field) in [
        (r#""none","client_secret_post""#, true, false),
        (r#""none","client_secret_basic""#, false, true),
        (r#""none""#, false, false),
    ] {
        let mut network = open_network(registering());
        let members = format!(r#","token_endpoint_auth_methods_supported":[{methods}]"#);
        network.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}"{members}"#)));
        network.post(REGISTER, Reply::new(201, r#"{"client_id":"c1","client_secret":"s1"}"#));
        network.run();
        assert!(network.last_to(REGISTER).body.contains(r#""none""#));
        let sent = network.last_to(TOKEN);
        assert_eq!(sent.form("client_secret").is_some(), in_body, "{methods}");
        assert_eq!(sent.field("authorization").is_some(), in_field, "{methods}");
    }
}

#[test]
fn a_client_registers_as_public_where_the_default_method_is_refused() {
    let mut network = open_network(registering());
    network.get(PRM, crate::answers::resource(r#","scopes_supported":["read"]"#));
    network.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}""#)));
    network.network = Box::new(|request| {
        let public = request.body.contains(r#""token_endpoint_auth_method":"none""#);
        let answer = match public {
            true => Reply::new(201, r#"{"client_id":"c1"}"#).into(),
            false => error(400, "invalid_client_metadata"),
        };
        (request.place() == REGISTER).then_some(answer)
    });
    let text = network.run();
    assert!(text.contains("authorized by https://as.example for read\n"), "{text}");
    let scoped = |body: &str| body.contains(r#""scope":"read""#);
    let bodies: Vec<_> = network.sent_to(REGISTER).iter().map(|it| scoped(&it.body)).collect();
    assert_eq!(bodies, [true, false, true]);
    // It fits the next run.
    let mut network = network.again(registering());
    network.accepted.clear();
    network.run();
    assert_eq!((network.sent_to(REGISTER).len(), network.authorizations.len()), (0, 1));
}

#[test]
fn a_client_registers_for_the_grants_that_the_authorization_server_lists_where_others_are_refused()
{
    // Rule: [AUTHC-063].
    let grants = |body: &str| body.contains(r#""grant_types":["authorization_code"]"#);
    for (listed, refusals) in
        [(r#"["authorization_code"]"#, 1), (r#"["authorization_code","refresh_token"]"#, 2)]
    {
        let mut network = open_network(registering());
        network.get(PRM, crate::answers::resource(r#","scopes_supported":["read"]"#));
        let members = r#""token_endpoint_auth_methods_supported":["none"],"grant_types_supported""#;
        let members = format!(r#","registration_endpoint":"{REGISTER}",{members}:{listed}"#);
        network.get(ASM, issuer(AS, &members));
        network.network = Box::new(move |request| {
            let answer = match grants(&request.body) {
                true => Reply::new(201, r#"{"client_id":"c1"}"#).into(),
                false => error(400, "invalid_client_metadata"),
            };
            (request.place() == REGISTER).then_some(answer)
        });
        let text = network.run();
        let sent: Vec<_> = network.sent_to(REGISTER).iter().map(|it| grants(&it.body)).collect();
        // The refresh token is asked for first: some lists are incomplete.
        assert_eq!(sent.iter().filter(|it| !**it).count(), refusals, "{text}");
        let lists_code_only = refusals == 1;
        assert_eq!(
            text.contains("authorized by https://as.example for read\n"),
            lists_code_only,
            "{text}"
        );
        if !lists_code_only {
            continue;
        }
        assert!(network.last_to(REGISTER).body.contains(r#""scope":"read""#));
        // It fits the next run.
        let mut network = network.again(registering());
        network.accepted.clear();
        network.run();
        assert_eq!((network.sent_to(REGISTER).len(), network.authorizations.len()), (0, 1));
    }
}

#[test]
fn a_redirect_uri_that_is_not_accepted_is_replaced_by_the_fallback() {
    // Rule: [AUTHC-035].
    const LOCALHOST: &str = "http://localhost:7777/callback";
    let options = || registering().fallback_redirect_uri(LOCALHOST).expect("a valid redirect URI");
    let mut network = open_network(options());
    network.network = Box::new(|request| {
        let localhost = request.body.contains(LOCALHOST);
        let answer = match localhost {
            true => Reply::new(201, r#"{"client_id":"c1"}"#).into(),
            false => error(400, "invalid_redirect_uri"),
        };
        (request.place() == REGISTER).then_some(answer)
    });
    let text = network.run();
    assert!(text.contains("authorized by"), "{text}");
    assert_eq!(network.sent_to(REGISTER).len(), 2);
    assert_eq!(network.authorizations[0]["redirect_uri"], LOCALHOST);
    assert_eq!(network.last_to(TOKEN).form("redirect_uri").as_deref(), Some(LOCALHOST));
    // The next run uses the stored registration.
    let mut network = network.again(options());
    network.accepted.clear();
    network.run();
    assert_eq!((network.sent_to(REGISTER).len(), network.authorizations.len()), (0, 1));
    assert_eq!(network.authorizations[0]["redirect_uri"], LOCALHOST);
    // Where neither is accepted, the reason is reported.
    let mut network = open_network(options());
    network.post(REGISTER, error(400, "invalid_redirect_uri"));
    let text = network.run();
    assert!(text.contains("does not accept the redirect URI"), "{text}");
    assert_eq!(network.sent_to(REGISTER).len(), 2);
    // Where the first is accepted, it is used.
    let mut network = open_network(options());
    network.run();
    assert_eq!(network.authorizations[0]["redirect_uri"], REDIRECT);
    assert!(registering().fallback_redirect_uri("http://a.example").is_err());
}

#[test]
fn a_metadata_document_takes_precedence_over_registration() {
    // Rule: [AUTHC-027] [AUTHC-028] [AUTHC-029] [AUTHC-031].
    let options = || registering().metadata_document(DOCUMENT, ClientSecret::None).expect("a URL");
    let mut network = open_network(options());
    let members = r#","client_id_metadata_document_supported":true"#;
    network.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}"{members}"#)));
    network.run();
    assert_eq!(network.authorizations[0]["client_id"], DOCUMENT);
    assert_eq!(network.last_to(TOKEN).form("client_id").as_deref(), Some(DOCUMENT));
    assert_eq!((network.sent_to(REGISTER).len(), network.sent_to(DOCUMENT).len()), (0, 0));
    // Without support of the server, the document is not used.
    let mut network = open_network(options());
    network.run();
    assert_eq!(network.authorizations[0]["client_id"], "c1");
}

#[test]
fn a_preregistered_client_takes_precedence() {
    // Rule: [AUTHC-027] [AUTHC-032].
    let options = registering().metadata_document(DOCUMENT, ClientSecret::None).expect("a URL");
    let app = client("app", Some(AS), password("p"));
    let mut network = open_network(options.registered(app).expect("a client"));
    network.run();
    assert_eq!(network.sent_to(REGISTER).len(), 0);
    assert_eq!(network.authorizations[0]["client_id"], "app");
}

#[test]
fn a_client_of_another_authorization_server_is_not_used() {
    // Rule: [AUTHC-037] [AUTHC-038].
    let app = client("app", Some("https://old.example"), password("p"));
    let mut network = TestNetwork::new(code_bare().registered(app).expect("a client"));
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    no token: the client `app` is registered elsewhere, not at https://as.example
    refused: the client `app` is registered elsewhere, not at https://as.example
    ");
    assert_eq!(network.sent_to(TOKEN).len(), 0);
}

#[test]
fn an_unregistered_client_gets_an_error_with_instructions() {
    // Rule: [AUTHC-027].
    let mut network = TestNetwork::new(code_bare());
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    no token: the authorization server https://as.example does not know this client: configure a client id for it
    refused: the authorization server https://as.example does not know this client: configure a client id for it
    ");
}

#[test]
fn a_refused_registration_is_reported_with_its_reason() {
    // Rule: [AUTHC-035].
    let mut network = open_network(registering());
    let refusal = r#"{"error":"invalid_redirect_uri","error_description":"no loopback here"}"#;
    network.post(REGISTER, Reply::new(400, refusal));
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    load client of https://as.example: nothing
    POST https://as.example/register
    no token: https://as.example/register: the authorization server does not accept the redirect URI: invalid_redirect_uri (no loopback here); if it does not register this client, configure a client id for it
    refused: https://as.example/register: the authorization server does not accept the redirect URI: invalid_redirect_uri (no loopback here); if it does not register this client, configure a client id for it
    ");
    network.post(REGISTER, Reply::new(403, "Forbidden"));
    network.reconnect();
    insta::assert_snapshot!(network.run(), @"
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    load client of https://as.example: nothing
    POST https://as.example/register
    no token: https://as.example/register answers with status 403: Forbidden
    refused: https://as.example/register answers with status 403: Forbidden
    ");
}

#[test]
fn a_registration_that_the_server_forgot_is_repeated_once() {
    let mut network = open_network(registering());
    network.run();
    let mut network = network.again(registering());
    network.accepted.clear();
    network.post(REGISTER, Reply::new(201, r#"{"client_id":"c2"}"#));
    network.post(TOKEN, error(401, "invalid_client"));
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: found
    waiting
    resumed
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
    no token: https://as.example/token: the authorization server refused the request: invalid_client
    refused: https://as.example/token: the authorization server refused the request: invalid_client
    ");
}

#[test]
fn a_registration_is_discarded_when_the_user_does_not_return() {
    let mut network = open_network(registering());
    network.run();
    let mut network = network.again(registering());
    network.accepted.clear();
    network.user = User::Stays;
    network.run();
    let text = network.advance(core::time::Duration::from_secs(900));
    insta::assert_snapshot!(text, @"
    withdraw the last action
    remove client of https://as.example
    no token: timed out waiting for the user
    refused: timed out waiting for the user
    ");
}

#[test]
fn an_invalid_redirect_uri_is_refused_at_once() {
    // Rule: [AUTHC-047].
    for uri in ["http://example.com/callback", "callback", "https://a/b#c"] {
        assert!(AuthorizationOptions::code(uri).is_err(), "{uri}");
    }
    assert!(AuthorizationOptions::code(REDIRECT).is_ok());
    let bare = || code_bare();
    for url in ["http://app.example/c.json", "https://app.example", "c.json"] {
        assert!(bare().metadata_document(url, ClientSecret::None).is_err(), "{url}");
    }
    assert!(bare().scopes(["a b"]).is_err());
    assert!(bare().registered(client("a", Some("b"), ClientSecret::None)).is_err());
}

#[test]
fn a_stored_registration_of_another_authorization_server_is_not_used() {
    // Rule: [AUTHC-036] [AUTHC-037].
    let mut network = open_network(registering());
    network.run();
    let old = CredentialKey::Client(AS.into());
    let credential = network.store.remove(&old).expect("a registration");
    let new = "https://new.example";
    let mut network = TestNetwork::new(registering());
    network.store.insert(CredentialKey::Client(new.into()), credential);
    let named = format!(r#"{{"resource":"{MCP}","authorization_servers":["{new}"]}}"#);
    network.get(PRM, ok(&named));
    let members = r#","registration_endpoint":"https://new.example/register","token_endpoint_auth_methods_supported":["none"]"#;
    let metadata = "https://new.example/.well-known/oauth-authorization-server";
    network.get(metadata, issuer(new, members));
    let refusal = r#"{"error":"access_denied"}"#;
    network.post("https://new.example/register", Reply::new(403, refusal));
    let text = network.run();
    assert!(text.contains("load client of https://new.example: found\nPOST"), "{text}");
    assert!(network.authorizations.is_empty());
}

#[test]
fn a_credential_without_an_issuer_is_refused_before_any_request() {
    // Rule: [AUTHC-036] [AUTHC-037].
    let key = || ClientSecret::PrivateKey { algorithm: "ES256".into(), key_id: None };
    let error = InvalidOption::NoIssuer { client_id: "app".into() };
    let refused = Some(error.clone());
    for secret in [password("p"), key()] {
        let client = || client("app", None, secret.clone());
        for options in
            [code_bare, AuthorizationOptions::client_credentials, AuthorizationOptions::assertion]
        {
            assert_eq!(options().registered(client()).err(), refused, "{secret:?}");
            assert!(options().registered_trusting_first_issuer(client()).is_ok());
        }
        assert!(code_bare().registered(self::client("app", Some(AS), secret.clone())).is_ok());
    }
    // An assertion is a credential, too.
    let public = || client("app", None, ClientSecret::None);
    assert_eq!(AuthorizationOptions::assertion().registered(public()).err(), refused);
    assert!(code_bare().registered(public()).is_ok());
    let named = client("app", Some(AS), ClientSecret::None);
    assert!(AuthorizationOptions::assertion().registered(named).is_ok());
    // The message says how to fix it.
    let text = error.to_string();
    assert!(text.contains("`app`") && text.contains("`RegisteredClient::issuer`"), "{text}");
}

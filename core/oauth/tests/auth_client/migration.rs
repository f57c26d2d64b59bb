//! A server that changes its authorization server.

use mcp_sansio_oauth::client::{
    ApplicationType, AuthorizationOptions, ClientMetadata, ClientSecret, Credential, CredentialKey,
};

use crate::answers::{Reply, issuer, ok, token};
use crate::network::{
    AS, ASM, MCP, PRM, REGISTER, TOKEN, TestNetwork, User, client, code, code_bare, password,
};

const NEW: &str = "https://new.example";

fn registering() -> AuthorizationOptions {
    code_bare().register_as(ClientMetadata::new("Demo", ApplicationType::Native))
}

fn move_to_new(network: &mut TestNetwork) {
    network.get(PRM, ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":["{NEW}"]}}"#)));
    let endpoint = format!(r#","registration_endpoint":"{NEW}/register""#);
    network
        .get("https://new.example/.well-known/oauth-authorization-server", issuer(NEW, &endpoint));
    network.post("https://new.example/register", Reply::new(201, r#"{"client_id":"second"}"#));
    network.post("https://new.example/token", token("t2", ""));
    network.accepted = vec!["Bearer t2".into()];
    network.user = User::SignsIn(String::new());
}

fn old_network() -> TestNetwork {
    let mut network = TestNetwork::new(registering());
    network.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}""#)));
    network.post(REGISTER, Reply::new(201, r#"{"client_id":"first"}"#));
    network.post(TOKEN, token("t1", r#","refresh_token":"r1""#));
    network.user = User::SignsIn(String::new());
    network.run();
    network
}

#[test]
fn the_client_registers_again_and_sends_no_earlier_secrets() {
    // Rule: [AUTHC-036] [AUTHC-037] [AUTHC-039].
    let mut network = old_network();
    move_to_new(&mut network);
    network.call("echo");
    insta::assert_snapshot!(network.run(), @"
    tools/call echo [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://new.example/.well-known/oauth-authorization-server
    load client of https://new.example: nothing
    POST https://new.example/register
    save client of https://new.example
    sign in at https://new.example/authorize
    POST https://new.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://new.example
    resumed
    tools/call echo [Bearer t2]
    call 1 done
    ");
    let shown = network.bytes_to(NEW);
    for secret in ["first", "r1", "t1"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    assert!(!network.kept().contains("r1"));
}

#[test]
fn a_registration_is_reused_in_the_next_run() {
    // Rule: [AUTHC-036] [AUTHC-037].
    let mut network = old_network().again(registering());
    move_to_new(&mut network);
    network.run();
    let shown = network.bytes_to(NEW);
    assert!(!shown.contains("first") && !shown.contains("r1"), "{shown}");
    assert!(network.sent_to("https://new.example/token").len() == 1);
}

#[test]
fn a_client_without_an_issuer_is_bound_to_the_first_issuer_that_it_was_used_with() {
    // Rule: [AUTHC-037] [AUTHC-038].
    let mut network = TestNetwork::new(code());
    network.run();
    move_to_new(&mut network);
    network.call("echo");
    insta::assert_snapshot!(network.run(), @"
    tools/call echo [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://new.example/.well-known/oauth-authorization-server
    no token: the client `app` is registered elsewhere, not at https://new.example
    refused: the client `app` is registered elsewhere, not at https://new.example
    call 1 failed
    ");
    // The binding is stored for later runs.
    let mut network = TestNetwork::new(code());
    network.run();
    for _ in 0..3 {
        network = network.again(code());
        move_to_new(&mut network);
        assert!(network.run().contains("refused: the client `app` is registered elsewhere"));
        assert!(!network.bytes_to(NEW).contains("POST"));
    }
}

#[test]
fn the_authorization_server_is_kept_while_the_metadata_lists_it() {
    let mut network = old_network();
    let both = format!(r#"["{NEW}","{AS}"]"#);
    network.get(PRM, ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":{both}}}"#)));
    network.accepted = vec!["Bearer t3".into()];
    network.post(TOKEN, token("t3", ""));
    network.call("echo");
    network.run();
    assert_eq!(network.bytes_to(NEW), "");
    assert_eq!(network.last_to(TOKEN).form("refresh_token").as_deref(), Some("r1"));
}

#[test]
fn a_token_of_the_previous_authorization_server_is_not_sent_again() {
    // Rule: [AUTHC-037] [AUTHC-045].
    let mut network = old_network();
    move_to_new(&mut network);
    network.user = User::Declines;
    network.call("a");
    assert!(network.run().ends_with("refused: the user declined\ncall 1 failed\n"));
    network.call("b");
    assert!(network.run().starts_with("tools/call b\n"));
}

/// Returns options with client credentials for an issuer that is not known in advance.
fn trusting() -> AuthorizationOptions {
    let app = client("app", None, password("password-of-the-app"));
    AuthorizationOptions::client_credentials()
        .registered_trusting_first_issuer(app)
        .expect("a client")
}

const REFUSED: &str = "the client `app` is registered elsewhere, not at https://new.example";

#[test]
fn a_password_is_bound_to_the_first_issuer_that_it_was_used_with() {
    // Rule: [AUTHC-036] [AUTHC-037] [AUTHC-038].
    let mut network = TestNetwork::new(trusting());
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    load issuer of app: nothing
    save issuer of app
    POST https://as.example/token client_credentials [Basic YXBwOnBhc3N3b3JkLW9mLXRoZS1hcHA=]
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    server/discover [Bearer t1]
    ");
    // The binding holds in the same run and in later ones, with or without tokens.
    move_to_new(&mut network);
    network.call("echo");
    assert!(network.run().contains(REFUSED));
    for forgets in [false, true] {
        if forgets {
            network.auth.forget(network.now);
            network.run();
        }
        network = network.again(trusting());
        move_to_new(&mut network);
        let text = network.run();
        assert!(text.contains("load issuer of app: found") && text.contains(REFUSED), "{text}");
        assert!(!network.bytes_to(NEW).contains("POST"));
    }
}

#[test]
fn a_rejected_password_stays_bound_to_its_issuer() {
    // Rule: [AUTHC-036] [AUTHC-037].
    let mut network = TestNetwork::new(trusting());
    network.post(TOKEN, crate::answers::error(401, "invalid_client"));
    network.run();
    let mut network = network.again(trusting());
    move_to_new(&mut network);
    assert!(network.run().contains(REFUSED));
    assert!(!network.bytes_to(NEW).contains("POST"));
}

#[test]
fn an_assertion_is_bound_to_the_first_issuer_that_it_was_used_with() {
    // Rule: [AUTHC-037].
    let options = || {
        let app = client("app", None, ClientSecret::None);
        AuthorizationOptions::assertion().registered_trusting_first_issuer(app).expect("a client")
    };
    let mut network = TestNetwork::new(options());
    network.assertions.push_back(Ok("jwt".into()));
    network.run();
    assert_eq!(network.sent_to(TOKEN).len(), 1);
    network.auth.forget(network.now);
    network.run();
    let mut network = network.again(options());
    move_to_new(&mut network);
    network.assertions.push_back(Ok("jwt".into()));
    assert!(network.run().contains(REFUSED));
    assert!(!network.bytes_to(NEW).contains("POST"));
}

#[test]
fn a_password_is_not_sent_before_its_issuer_is_known() {
    // Rule: [AUTHC-036].
    let kept = || CredentialKey::Issuer("app".into());
    // The store fails.
    let mut network = TestNetwork::new(trusting());
    network.store_fails = true;
    assert!(network.run().contains("no token: the disk is full"));
    assert_eq!(network.sent_to(TOKEN).len(), 0);
    // The store does not answer.
    let mut network = TestNetwork::new(trusting());
    network.loads = false;
    let text = network.advance(std::time::Duration::from_secs(3600));
    assert!(text.contains("no token: timed out waiting for the application"), "{text}");
    assert_eq!(network.sent_to(TOKEN).len(), 0);
    // The store has an invalid entry.
    let mut network = TestNetwork::new(trusting());
    network.store.insert(kept(), Credential::new("https://as.example"));
    assert!(network.run().contains("the client `app` is registered elsewhere"));
    assert_eq!(network.sent_to(TOKEN).len(), 0);
}

#[test]
fn a_token_of_another_client_with_the_same_id_is_not_renewed_with_the_password() {
    // Rule: [AUTHC-037].
    // A server at NEW registers the client under an id that another client has elsewhere.
    let mut network = TestNetwork::new(registering());
    move_to_new(&mut network);
    network.post("https://new.example/register", Reply::new(201, r#"{"client_id":"app"}"#));
    network
        .post("https://new.example/token", token("t2", r#","expires_in":0,"refresh_token":"r""#));
    network.run();
    let mut network = network.again(
        code_bare()
            .registered_trusting_first_issuer(client("app", None, password("hush")))
            .expect("a client"),
    );
    network.get(PRM, crate::answers::resource(""));
    let text = network.run();
    assert!(text.contains("load issuer of app: nothing"), "{text}");
    assert!(!network.bytes_to(NEW).contains("POST"), "{text}");
}

#[test]
fn a_password_renews_tokens_of_its_issuer_in_the_next_run() {
    // Rule: [AUTHC-036].
    let options = || {
        let app = client("app", None, password("hush"));
        code_bare().registered_trusting_first_issuer(app).expect("a client")
    };
    let mut network = TestNetwork::new(options());
    let ended = r#","expires_in":0,"refresh_token":"r1""#;
    network.posts(TOKEN, [token("t1", ended), token("t2", "")]);
    network.run();
    let mut network = network.again(options());
    network.accepted = vec!["Bearer t2".into()];
    let text = network.run();
    assert!(
        text.contains("load issuer of app: found\nwaiting\nPOST https://as.example/token ref"),
        "{text}"
    );
    assert!(text.ends_with("server/discover [Bearer t2]\n"), "{text}");
}

//! The server names another authorization server than before.

use mcp_sansio_oauth::client::{
    ApplicationType, ClientMetadata, ClientOptions, ClientSecret, Credential, CredentialKey,
};

use crate::answers::{Reply, issuer, ok, token};
use crate::network::{
    AS, ASM, MCP, PRM, REGISTER, TOKEN, TestNetwork, User, client, code, code_bare, password,
};

const NEW: &str = "https://new.example";

fn registering() -> ClientOptions {
    code_bare().register_as(ClientMetadata::new("Demo", ApplicationType::Native))
}

fn move_to_new(world: &mut TestNetwork) {
    world.get(PRM, ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":["{NEW}"]}}"#)));
    let endpoint = format!(r#","registration_endpoint":"{NEW}/register""#);
    world.get("https://new.example/.well-known/oauth-authorization-server", issuer(NEW, &endpoint));
    world.post("https://new.example/register", Reply::new(201, r#"{"client_id":"second"}"#));
    world.post("https://new.example/token", token("t2", ""));
    world.accepted = vec!["Bearer t2".into()];
    world.user = User::SignsIn(String::new());
}

fn old_world() -> TestNetwork {
    let mut world = TestNetwork::new(registering());
    world.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}""#)));
    world.post(REGISTER, Reply::new(201, r#"{"client_id":"first"}"#));
    world.post(TOKEN, token("t1", r#","refresh_token":"r1""#));
    world.user = User::SignsIn(String::new());
    world.run();
    world
}

#[test]
fn the_client_registers_anew_and_shows_nothing_of_before() {
    // Rule: [AUTHC-036] [AUTHC-037] [AUTHC-039].
    let mut world = old_world();
    move_to_new(&mut world);
    world.call("echo");
    insta::assert_snapshot!(world.run(), @"
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
    goes on
    tools/call echo [Bearer t2]
    call 1 done
    ");
    let shown = world.bytes_to(NEW);
    for secret in ["first", "r1", "t1"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    assert!(!world.kept().contains("r1"));
}

#[test]
fn a_registration_is_reused_in_the_next_run() {
    // Rule: [AUTHC-036] [AUTHC-037].
    let mut world = old_world().again(registering());
    move_to_new(&mut world);
    world.run();
    let shown = world.bytes_to(NEW);
    assert!(!shown.contains("first") && !shown.contains("r1"), "{shown}");
    assert!(world.sent_to("https://new.example/token").len() == 1);
}

#[test]
fn a_client_without_an_issuer_belongs_to_the_first_that_it_was_used_with() {
    // Rule: [AUTHC-037] [AUTHC-038].
    let mut world = TestNetwork::new(code());
    world.run();
    move_to_new(&mut world);
    world.call("echo");
    insta::assert_snapshot!(world.run(), @"
    tools/call echo [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://new.example/.well-known/oauth-authorization-server
    no token: the client `app` is registered elsewhere, not at https://new.example
    refused: the client `app` is registered elsewhere, not at https://new.example
    call 1 failed
    ");
    // In other runs, too.
    let mut world = TestNetwork::new(code());
    world.run();
    for _ in 0..3 {
        world = world.again(code());
        move_to_new(&mut world);
        assert!(world.run().contains("refused: the client `app` is registered elsewhere"));
        assert!(!world.bytes_to(NEW).contains("POST"));
    }
}

#[test]
fn the_authorization_server_stays_as_long_as_it_is_named() {
    let mut world = old_world();
    let both = format!(r#"["{NEW}","{AS}"]"#);
    world.get(PRM, ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":{both}}}"#)));
    world.accepted = vec!["Bearer t3".into()];
    world.post(TOKEN, token("t3", ""));
    world.call("echo");
    world.run();
    assert_eq!(world.bytes_to(NEW), "");
    assert_eq!(world.last_to(TOKEN).form("refresh_token").as_deref(), Some("r1"));
}

#[test]
fn a_token_of_the_authorization_server_of_before_is_not_sent_again() {
    // Rule: [AUTHC-037] [AUTHC-045].
    let mut world = old_world();
    move_to_new(&mut world);
    world.user = User::Declines;
    world.call("a");
    assert!(world.run().ends_with("refused: the user declined\ncall 1 failed\n"));
    world.call("b");
    assert!(world.run().starts_with("tools/call b\n"));
}

/// A machine with a password whose issuer is not known beforehand.
fn trusting() -> ClientOptions {
    let app = client("app", None, password("password-of-the-app"));
    ClientOptions::client_credentials().registered_trusting_first_issuer(app).expect("a client")
}

const REFUSED: &str = "the client `app` is registered elsewhere, not at https://new.example";

#[test]
fn a_password_belongs_to_the_first_issuer_that_it_was_used_with() {
    // Rule: [AUTHC-036] [AUTHC-037] [AUTHC-038].
    let mut world = TestNetwork::new(trusting());
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    goes on
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    load issuer of app: nothing
    save issuer of app
    POST https://as.example/token client_credentials [Basic YXBwOnBhc3N3b3JkLW9mLXRoZS1hcHA=]
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    goes on
    server/discover [Bearer t1]
    ");
    // In the same run, and in others, whether or not there are tokens yet.
    move_to_new(&mut world);
    world.call("echo");
    assert!(world.run().contains(REFUSED));
    for forgets in [false, true] {
        if forgets {
            world.auth.forget(world.now);
            world.run();
        }
        world = world.again(trusting());
        move_to_new(&mut world);
        let text = world.run();
        assert!(text.contains("load issuer of app: found") && text.contains(REFUSED), "{text}");
        assert!(!world.bytes_to(NEW).contains("POST"));
    }
}

#[test]
fn a_rejected_password_stays_bound_to_its_issuer() {
    // Rule: [AUTHC-036] [AUTHC-037].
    let mut world = TestNetwork::new(trusting());
    world.post(TOKEN, crate::answers::error(401, "invalid_client"));
    world.run();
    let mut world = world.again(trusting());
    move_to_new(&mut world);
    assert!(world.run().contains(REFUSED));
    assert!(!world.bytes_to(NEW).contains("POST"));
}

#[test]
fn an_assertion_belongs_to_the_first_issuer_that_it_was_used_with() {
    // Rule: [AUTHC-037].
    let options = || {
        let app = client("app", None, ClientSecret::None);
        ClientOptions::assertion().registered_trusting_first_issuer(app).expect("a client")
    };
    let mut world = TestNetwork::new(options());
    world.assertions.push_back(Ok("jwt".into()));
    world.run();
    assert_eq!(world.sent_to(TOKEN).len(), 1);
    world.auth.forget(world.now);
    world.run();
    let mut world = world.again(options());
    move_to_new(&mut world);
    world.assertions.push_back(Ok("jwt".into()));
    assert!(world.run().contains(REFUSED));
    assert!(!world.bytes_to(NEW).contains("POST"));
}

#[test]
fn a_password_is_not_sent_before_its_issuer_is_known() {
    // Rule: [AUTHC-036].
    let kept = || CredentialKey::Issuer("app".into());
    // The store fails.
    let mut world = TestNetwork::new(trusting());
    world.store_fails = true;
    assert!(world.run().contains("no token: the disk is gone"));
    assert_eq!(world.sent_to(TOKEN).len(), 0);
    // It says nothing.
    let mut world = TestNetwork::new(trusting());
    world.loads = false;
    let text = world.advance(std::time::Duration::from_secs(3600));
    assert!(text.contains("no token: timed out waiting for the application"), "{text}");
    assert_eq!(world.sent_to(TOKEN).len(), 0);
    // Something else is kept there.
    let mut world = TestNetwork::new(trusting());
    world.store.insert(kept(), Credential::new("https://as.example"));
    assert!(world.run().contains("the client `app` is registered elsewhere"));
    assert_eq!(world.sent_to(TOKEN).len(), 0);
}

#[test]
fn a_token_of_another_client_with_the_same_id_is_not_renewed_with_the_password() {
    // Rule: [AUTHC-037].
    // A server at NEW registered a client of itself under the name that another one has elsewhere.
    let mut world = TestNetwork::new(registering());
    move_to_new(&mut world);
    world.post("https://new.example/register", Reply::new(201, r#"{"client_id":"app"}"#));
    world.post("https://new.example/token", token("t2", r#","expires_in":0,"refresh_token":"r""#));
    world.run();
    let mut world = world.again(
        code_bare()
            .registered_trusting_first_issuer(client("app", None, password("hush")))
            .expect("a client"),
    );
    world.get(PRM, crate::answers::resource(""));
    let text = world.run();
    assert!(text.contains("load issuer of app: nothing"), "{text}");
    assert!(!world.bytes_to(NEW).contains("POST"), "{text}");
}

#[test]
fn a_password_renews_tokens_of_its_issuer_in_the_next_run() {
    // Rule: [AUTHC-036].
    let options = || {
        let app = client("app", None, password("hush"));
        code_bare().registered_trusting_first_issuer(app).expect("a client")
    };
    let mut world = TestNetwork::new(options());
    let ended = r#","expires_in":0,"refresh_token":"r1""#;
    world.posts(TOKEN, [token("t1", ended), token("t2", "")]);
    world.run();
    let mut world = world.again(options());
    world.accepted = vec!["Bearer t2".into()];
    let text = world.run();
    assert!(
        text.contains("load issuer of app: found\nwaiting\nPOST https://as.example/token ref"),
        "{text}"
    );
    assert!(text.ends_with("server/discover [Bearer t2]\n"), "{text}");
}

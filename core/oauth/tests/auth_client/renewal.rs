//! Refresh tokens.

use core::time::Duration;

use mcp_sansio::http::ExchangeFailure;
use mcp_sansio_oauth::client::{ApplicationType, ClientMetadata, ClientSecret, CredentialKey};

use crate::answers::{Answer, Reply, error, issuer, ok, status, token};
use crate::network::{AS, ASM, MCP, REGISTER, TOKEN, TestNetwork, code, code_bare, password};

const SOON: &str = r#","expires_in":100,"refresh_token":"r1""#;

/// A world with a token that is to be renewed.
fn due(second: Answer) -> TestNetwork {
    let mut world = TestNetwork::new(code());
    world.posts(TOKEN, [token("t1", SOON), second]);
    world.accepted.push("Bearer t2".into());
    world.run();
    assert_eq!(world.advance(Duration::from_secs(69)), "");
    world.call("early");
    let early = world.run();
    assert!(early.starts_with("tools/call early [Bearer t1]"), "{early}");
    assert_eq!(world.advance(Duration::from_secs(1)), "");
    world
}

#[test]
fn a_token_is_renewed_once_for_all_waiting_requests() {
    let mut world = due(Answer::Silence);
    world.call("a");
    world.call("b");
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: found
    waiting
    waiting
    POST https://as.example/token refresh_token
    ");
    world.answer_late(TOKEN, token("t2", r#","refresh_token":"r2","expires_in":100"#));
    insta::assert_snapshot!(world.run(), @"
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    goes on
    goes on
    tools/call a [Bearer t2]
    tools/call b [Bearer t2]
    call 2 done
    call 3 done
    ");
    let request = world.last_to(TOKEN);
    assert_eq!(request.form("refresh_token").as_deref(), Some("r1"));
    // Rule: [AUTHC-040].
    assert_eq!(request.form("resource").as_deref(), Some(MCP));
    // The one that came takes the place of the one that went.
    assert!(world.kept().contains("r2") && !world.kept().contains("r1"));
}

#[test]
fn a_refresh_token_that_is_not_replaced_stays() {
    // Rule: [AUTHC-065].
    let mut world = due(token("t2", ""));
    world.call("a");
    world.run();
    assert!(world.kept().contains("r1") && world.kept().contains("t2"));
}

#[test]
fn a_renewal_that_fails_on_the_way_loses_nothing() {
    for answer in [Answer::Fails(ExchangeFailure::Broken), status(503)] {
        let mut world = due(answer);
        world.call("a");
        let text = world.run();
        assert!(text.contains("goes on\ntools/call a [Bearer t1]\n"), "{text}");
        assert!(world.kept().contains("r1"));
        // Not at every request.
        world.call("b");
        assert!(world.run().starts_with("tools/call b [Bearer t1]\n"));
        world.post(TOKEN, token("t2", ""));
        world.advance(Duration::from_secs(10));
        world.call("c");
        assert!(world.run().contains("tools/call c [Bearer t2]\n"));
    }
}

#[test]
fn a_renewal_that_is_refused_leads_to_an_authorization_when_the_server_wants_one() {
    let mut world = due(error(400, "invalid_grant"));
    world.call("a");
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: found
    waiting
    POST https://as.example/token refresh_token
    save tokens for https://mcp.example/mcp
    goes on
    tools/call a [Bearer t1]
    call 2 done
    ");
    assert!(!world.kept().contains("r1"));
    world.accepted.remove(0);
    world.post(TOKEN, token("t2", ""));
    world.call("b");
    insta::assert_snapshot!(world.run(), @"
    tools/call b [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    goes on
    tools/call b [Bearer t2]
    call 3 done
    ");
}

#[test]
fn a_token_that_the_server_refuses_is_renewed_then_replaced_then_given_up() {
    let mut world = TestNetwork::new(code());
    world.post(TOKEN, token("t1", r#","refresh_token":"r1""#));
    world.run();
    world.accepted.clear();
    world.call("a");
    insta::assert_snapshot!(world.run(), @"
    tools/call a [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    POST https://as.example/token refresh_token
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    goes on
    tools/call a [Bearer t1]
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    goes on
    tools/call a [Bearer t1]
    refused: the server does not take the new token
    call 1 failed
    ");
}

#[test]
fn a_token_that_the_server_refuses_is_renewed_without_the_user() {
    let mut world = TestNetwork::new(code());
    world.posts(TOKEN, [token("t1", r#","refresh_token":"r1""#), token("t2", "")]);
    world.run();
    world.accepted = vec!["Bearer t2".into()];
    world.call("a");
    insta::assert_snapshot!(world.run(), @"
    tools/call a [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    POST https://as.example/token refresh_token
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    goes on
    tools/call a [Bearer t2]
    call 1 done
    ");
    assert_eq!(world.authorizations.len(), 1);
}

#[test]
fn a_refresh_token_that_the_server_refuses_leads_to_the_user_at_once() {
    let mut world = TestNetwork::new(code());
    let answers = [token("t1", r#","refresh_token":"r1""#), error(400, "invalid_grant")];
    world.posts(TOKEN, answers.into_iter().chain([token("t2", "")]));
    world.run();
    world.accepted = vec!["Bearer t2".into()];
    world.call("a");
    let text = world.run();
    assert!(text.contains("refresh_token\nsave tokens"), "{text}");
    assert_eq!(world.authorizations.len(), 2);
    assert!(text.ends_with("tools/call a [Bearer t2]\ncall 1 done\n"), "{text}");
}

#[test]
fn a_kept_token_that_has_ended_is_renewed_in_the_next_run() {
    let secret = || {
        let app = crate::network::client("app", Some(AS), password("p"));
        code_bare().registered(app).expect("a client")
    };
    let mut world = TestNetwork::new(secret());
    let ended = r#","expires_in":0,"refresh_token":"r1""#;
    world.posts(TOKEN, [token("t1", ended), token("t2", "")]);
    world.run();
    let mut world = world.again(secret());
    world.accepted = vec!["Bearer t2".into()];
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: found
    load tokens for https://mcp.example/mcp: found
    waiting
    POST https://as.example/token refresh_token [Basic YXBwOnA=]
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    goes on
    server/discover [Bearer t2]
    ");
    assert!(world.last_to(TOKEN).field("authorization").is_some());
}

#[test]
fn a_computer_that_slept_renews_when_it_hears_the_time() {
    let mut world = TestNetwork::new(code());
    world.posts(TOKEN, [token("t1", SOON), token("t2", "")]);
    world.accepted.push("Bearer t2".into());
    world.run();
    world.auth.handle_unix_time(crate::network::START + 3600, world.now);
    world.call("a");
    assert!(world.run().contains("tools/call a [Bearer t2]"));
}

#[test]
fn a_client_that_registered_itself_renews_with_its_password() {
    let metadata = || ClientMetadata::new("Demo", ApplicationType::Native);
    let options = || code_bare().register_as(metadata());
    let mut world = TestNetwork::new(options());
    let methods = r#","token_endpoint_auth_methods_supported":["client_secret_post"]"#;
    let members = format!(r#","registration_endpoint":"{REGISTER}"{methods}"#);
    world.get(ASM, issuer(AS, &members));
    world.post(REGISTER, Reply::new(201, r#"{"client_id":"c1","client_secret":"s1"}"#));
    let ended = r#","expires_in":0,"refresh_token":"r1""#;
    world.posts(TOKEN, [token("t1", ended), token("t2", "")]);
    world.run();
    let mut world = world.again(options());
    world.accepted = vec!["Bearer t2".into()];
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: found
    load tokens for https://mcp.example/mcp: found
    load client of https://as.example: found
    waiting
    POST https://as.example/token refresh_token
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    goes on
    server/discover [Bearer t2]
    ");
    assert_eq!(world.last_to(TOKEN).form("client_secret").as_deref(), Some("s1"));
}

#[test]
fn a_client_whose_registration_is_lost_does_not_renew_as_another() {
    let metadata = || ClientMetadata::new("Demo", ApplicationType::Native);
    let options = || code_bare().register_as(metadata());
    let mut world = TestNetwork::new(options());
    let members = format!(r#","registration_endpoint":"{REGISTER}""#);
    world.get(ASM, issuer(AS, &members));
    world.post(REGISTER, Reply::new(201, r#"{"client_id":"c1","client_secret":"s1"}"#));
    let ended = r#","expires_in":0,"refresh_token":"r1""#;
    world.posts(TOKEN, [token("t1", ended), token("t2", "")]);
    world.run();
    world.store.retain(|key, _| matches!(key, CredentialKey::Tokens(_)));
    let mut world = world.again(options());
    let text = world.run();
    assert_eq!(world.sent_to(TOKEN).len(), 0, "{text}");
    assert!(!world.kept().contains("r1"));
}

#[test]
fn a_token_that_another_run_has_renewed_is_not_renewed_again() {
    let mut world = due(error(400, "invalid_grant"));
    // The other one has the same refresh token, and was first.
    let mut other = TestNetwork::new(code());
    other.posts(TOKEN, [token("t1", SOON), token("t2", r#","refresh_token":"r2""#)]);
    other.accepted.push("Bearer t2".into());
    other.run();
    other.advance(Duration::from_secs(70));
    other.call("a");
    other.run();
    world.store = other.store;
    world.call("a");
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: found
    waiting
    authorized by https://as.example
    goes on
    tools/call a [Bearer t2]
    call 2 done
    ");
    assert_eq!(world.sent_to(TOKEN).len(), 1);
    assert!(world.kept().contains("r2"));
}

#[test]
fn a_user_who_signed_in_to_another_run_is_not_asked_again() {
    let mut world = TestNetwork::new(code());
    world.run();
    let mut other = TestNetwork::new(code());
    other.post(TOKEN, token("t2", ""));
    other.accepted = vec!["Bearer t2".into()];
    other.run();
    world.store = other.store;
    world.accepted = vec!["Bearer t2".into()];
    world.call("a");
    insta::assert_snapshot!(world.run(), @"
    tools/call a [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    authorized by https://as.example
    goes on
    tools/call a [Bearer t2]
    call 1 done
    ");
    // What helps no more is not tried again.
    world.accepted.clear();
    world.call("b");
    let text = world.run();
    assert_eq!(text.matches("sign in at").count(), 1, "{text}");
}

#[test]
fn a_refresh_token_is_that_of_one_client() {
    // Rule: [AUTHC-036].
    let app = |id| code_bare().registered(crate::network::client(id, Some(AS), ClientSecret::None));
    let mut world = TestNetwork::new(app("first").expect("a client"));
    world.post(TOKEN, token("t1", r#","refresh_token":"r1""#));
    world.run();
    let mut world = world.again(app("second").expect("a client"));
    world.accepted.clear();
    let text = world.run();
    assert!(text.contains("sign in at"), "{text}");
    assert!(!world.bytes_to(AS).contains("r1"), "{text}");
}

#[test]
fn a_request_that_waited_for_a_renewal_may_need_another_one() {
    let mut world = due(token("t2", r#","refresh_token":"r2""#));
    world.posts(TOKEN, [token("t2", r#","refresh_token":"r2""#), token("t3", "")]);
    world.accepted = vec!["Bearer t3".into()];
    world.call("a");
    let text = world.run();
    assert!(text.ends_with("tools/call a [Bearer t3]\ncall 2 done\n"), "{text}");
    assert_eq!(world.authorizations.len(), 1);
}

#[test]
fn a_refused_token_is_not_used_again() {
    let mut world = TestNetwork::new(code());
    world.posts(TOKEN, [token("t1", SOON), Answer::Silence]);
    world.run();
    world.mcp =
        Box::new(|request| (request.field("mcp-name") == Some("slow")).then_some(Answer::Silence));
    world.call("slow");
    world.run();
    world.advance(Duration::from_secs(70));
    world.call("a");
    world.run();
    world.answer_late(MCP, status(401));
    world.run();
    world.answer_late(TOKEN, status(503));
    insta::assert_snapshot!(world.run(), @"
    no token: https://as.example/token answers with status 503
    goes on
    refused: https://as.example/token answers with status 503
    tools/call a [Bearer t1]
    call 1 failed
    call 2 done
    ");
}

#[test]
fn a_token_that_lives_shortly_is_not_renewed_at_every_request() {
    let mut world = TestNetwork::new(code());
    let short = |name| token(name, r#","expires_in":20,"refresh_token":"r""#);
    world.posts(TOKEN, [short("t1"), short("t2")]);
    world.accepted.push("Bearer t2".into());
    world.run();
    world.advance(Duration::from_secs(9));
    world.call("a");
    assert!(world.run().starts_with("tools/call a [Bearer t1]\n"));
    world.advance(Duration::from_secs(1));
    world.call("b");
    assert!(world.run().contains("tools/call b [Bearer t2]\n"));
}

#[test]
fn a_kept_token_for_another_server_is_not_used() {
    // Rule: [AUTHC-045].
    let mut other = TestNetwork::at("https://other.example/mcp", code());
    let named = r#"{"resource":"https://other.example/mcp","authorization_servers":["https://as.example"]}"#;
    other.get("https://other.example/.well-known/oauth-protected-resource/mcp", ok(named));
    other.run();
    let credential = other.store.into_values().next().expect("a token");
    let mut world = TestNetwork::new(code());
    world.store.insert(CredentialKey::Tokens(MCP.into()), credential);
    let text = world.run();
    assert!(text.contains("found\nwaiting\ngoes on\nserver/discover\n"), "{text}");
}

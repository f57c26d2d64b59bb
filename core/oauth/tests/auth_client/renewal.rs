//! Refresh tokens.

use core::time::Duration;

use mcp_sansio::http::ExchangeFailure;
use mcp_sansio_oauth::client::{
    ApplicationType, AuthorizationOptions, ClientMetadata, ClientSecret, Credential, CredentialKey,
};

use crate::answers::{Answer, Reply, error, issuer, ok, status, token};
use crate::network::{AS, ASM, MCP, REGISTER, TOKEN, TestNetwork, code, code_bare, password};

const SOON: &str = r#","expires_in":100,"refresh_token":"r1""#;

/// Returns a network with a token that must be renewed, and the response to the renewal.
fn due(second: Answer) -> TestNetwork {
    let mut network = TestNetwork::new(code());
    network.posts(TOKEN, [token("t1", SOON), second]);
    network.accepted.push("Bearer t2".into());
    network.run();
    assert_eq!(network.advance(Duration::from_secs(69)), "");
    network.call("early");
    let early = network.run();
    assert!(early.starts_with("tools/call early [Bearer t1]"), "{early}");
    assert_eq!(network.advance(Duration::from_secs(1)), "");
    network
}

#[test]
fn a_token_is_renewed_once_for_all_waiting_requests() {
    let mut network = due(Answer::Silence);
    network.call("a");
    network.call("b");
    insta::assert_snapshot!(network.run(), @"
    lock tokens for https://mcp.example/mcp: found
    waiting
    waiting
    POST https://as.example/token refresh_token
    ");
    network.answer_late(TOKEN, token("t2", r#","refresh_token":"r2","expires_in":100"#));
    insta::assert_snapshot!(network.run(), @"
    save tokens for https://mcp.example/mcp
    unlock
    authorized by https://as.example
    resumed
    resumed
    tools/call a [Bearer t2]
    tools/call b [Bearer t2]
    call 2 done
    call 3 done
    ");
    let request = network.last_to(TOKEN);
    assert_eq!(request.form("refresh_token").as_deref(), Some("r1"));
    // Rule: [AUTHC-040].
    assert_eq!(request.form("resource").as_deref(), Some(MCP));
    // The new refresh token replaces the old one.
    assert!(network.kept().contains("r2") && !network.kept().contains("r1"));
}

#[test]
fn a_refresh_token_that_is_not_replaced_is_kept() {
    // Rule: [AUTHC-065].
    let mut network = due(token("t2", ""));
    network.call("a");
    network.run();
    assert!(network.kept().contains("r1") && network.kept().contains("t2"));
}

#[test]
fn a_renewal_that_fails_in_transit_keeps_the_tokens() {
    for answer in [Answer::Fails(ExchangeFailure::Broken), status(503)] {
        let mut network = due(answer);
        network.call("a");
        let text = network.run();
        assert!(text.contains("resumed\ntools/call a [Bearer t1]\n"), "{text}");
        assert!(network.kept().contains("r1"));
        // Renewal is not retried for every request.
        network.call("b");
        assert!(network.run().starts_with("tools/call b [Bearer t1]\n"));
        network.post(TOKEN, token("t2", ""));
        network.advance(Duration::from_secs(10));
        network.call("c");
        assert!(network.run().contains("tools/call c [Bearer t2]\n"));
    }
}

#[test]
fn a_refused_renewal_leads_to_an_authorization_when_the_server_requires_one() {
    let mut network = due(error(400, "invalid_grant"));
    network.call("a");
    insta::assert_snapshot!(network.run(), @"
    lock tokens for https://mcp.example/mcp: found
    waiting
    POST https://as.example/token refresh_token
    save tokens for https://mcp.example/mcp
    unlock
    resumed
    tools/call a [Bearer t1]
    call 2 done
    ");
    assert!(!network.kept().contains("r1"));
    network.accepted.remove(0);
    network.post(TOKEN, token("t2", ""));
    network.call("b");
    insta::assert_snapshot!(network.run(), @"
    tools/call b [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    tools/call b [Bearer t2]
    call 3 done
    ");
}

#[test]
fn a_token_that_the_server_refuses_is_renewed_then_replaced_then_abandoned() {
    let mut network = TestNetwork::new(code());
    network.post(TOKEN, token("t1", r#","refresh_token":"r1""#));
    network.run();
    network.accepted.clear();
    network.call("a");
    insta::assert_snapshot!(network.run(), @"
    tools/call a [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    lock tokens for https://mcp.example/mcp: found
    POST https://as.example/token refresh_token
    save tokens for https://mcp.example/mcp
    unlock
    authorized by https://as.example
    resumed
    tools/call a [Bearer t1]
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    tools/call a [Bearer t1]
    refused: the server does not accept the new token
    call 1 failed
    ");
}

#[test]
fn a_token_that_the_server_refuses_is_renewed_without_the_user() {
    let mut network = TestNetwork::new(code());
    network.posts(TOKEN, [token("t1", r#","refresh_token":"r1""#), token("t2", "")]);
    network.run();
    network.accepted = vec!["Bearer t2".into()];
    network.call("a");
    insta::assert_snapshot!(network.run(), @"
    tools/call a [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    lock tokens for https://mcp.example/mcp: found
    POST https://as.example/token refresh_token
    save tokens for https://mcp.example/mcp
    unlock
    authorized by https://as.example
    resumed
    tools/call a [Bearer t2]
    call 1 done
    ");
    assert_eq!(network.authorizations.len(), 1);
}

#[test]
fn a_refused_refresh_token_leads_to_a_sign_in_at_once() {
    let mut network = TestNetwork::new(code());
    let answers = [token("t1", r#","refresh_token":"r1""#), error(400, "invalid_grant")];
    network.posts(TOKEN, answers.into_iter().chain([token("t2", "")]));
    network.run();
    network.accepted = vec!["Bearer t2".into()];
    network.call("a");
    let text = network.run();
    assert!(text.contains("refresh_token\nsave tokens"), "{text}");
    assert_eq!(network.authorizations.len(), 2);
    assert!(text.ends_with("tools/call a [Bearer t2]\ncall 1 done\n"), "{text}");
}

#[test]
fn an_expired_stored_token_is_renewed_in_the_next_run() {
    let secret = || {
        let app = crate::network::client("app", Some(AS), password("p"));
        code_bare().registered(app).expect("a client")
    };
    let mut network = TestNetwork::new(secret());
    let ended = r#","expires_in":0,"refresh_token":"r1""#;
    network.posts(TOKEN, [token("t1", ended), token("t2", "")]);
    network.run();
    let mut network = network.again(secret());
    network.accepted = vec!["Bearer t2".into()];
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: found
    lock tokens for https://mcp.example/mcp: found
    waiting
    POST https://as.example/token refresh_token [Basic YXBwOnA=]
    save tokens for https://mcp.example/mcp
    unlock
    authorized by https://as.example
    resumed
    server/discover [Bearer t2]
    ");
    assert!(network.last_to(TOKEN).field("authorization").is_some());
}

#[test]
fn a_suspended_client_renews_when_the_time_is_set() {
    let mut network = TestNetwork::new(code());
    network.posts(TOKEN, [token("t1", SOON), token("t2", "")]);
    network.accepted.push("Bearer t2".into());
    network.run();
    network.auth.handle_unix_time(crate::network::START + 3600, network.now);
    network.call("a");
    assert!(network.run().contains("tools/call a [Bearer t2]"));
}

#[test]
fn a_registered_client_renews_with_its_password() {
    let metadata = || ClientMetadata::new("Demo", ApplicationType::Native);
    let options = || code_bare().register_as(metadata());
    let mut network = TestNetwork::new(options());
    let methods = r#","token_endpoint_auth_methods_supported":["client_secret_post"]"#;
    let members = format!(r#","registration_endpoint":"{REGISTER}"{methods}"#);
    network.get(ASM, issuer(AS, &members));
    network.post(REGISTER, Reply::new(201, r#"{"client_id":"c1","client_secret":"s1"}"#));
    let ended = r#","expires_in":0,"refresh_token":"r1""#;
    network.posts(TOKEN, [token("t1", ended), token("t2", "")]);
    network.run();
    let mut network = network.again(options());
    network.accepted = vec!["Bearer t2".into()];
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: found
    lock tokens for https://mcp.example/mcp: found
    load client of https://as.example: found
    waiting
    POST https://as.example/token refresh_token
    save tokens for https://mcp.example/mcp
    unlock
    authorized by https://as.example
    resumed
    server/discover [Bearer t2]
    ");
    assert_eq!(network.last_to(TOKEN).form("client_secret").as_deref(), Some("s1"));
}

/// Returns options of a client that registers and listens on this port.
fn registering(port: u16) -> AuthorizationOptions {
    let options = AuthorizationOptions::code(format!("http://127.0.0.1:{port}/callback"));
    let metadata = ClientMetadata::new("Demo", ApplicationType::Native);
    options.expect("a redirect URI").register_as(metadata)
}

/// Returns a network whose authorization server registers a client with this answer.
fn registered(answer: &str, first: Answer) -> TestNetwork {
    let mut network = TestNetwork::new(registering(1));
    let members = r#","token_endpoint_auth_methods_supported":["client_secret_post","none"]"#;
    network.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}"{members}"#)));
    network.post(REGISTER, Reply::new(201, answer));
    network.post(TOKEN, first);
    network.run();
    network
}

#[test]
fn a_refused_token_is_renewed_by_its_client_though_the_registration_no_longer_fits() {
    // Rule: [AUTHC-036].
    for answer in [r#"{"client_id":"c1"}"#, r#"{"client_id":"c1","client_secret":"s1"}"#] {
        let network = registered(answer, token("t1", r#","refresh_token":"r1""#));
        // The next run listens on another port.
        let mut network = network.again(registering(2));
        network.post(TOKEN, token("t2", r#","refresh_token":"r2""#));
        network.accepted = vec!["Bearer t2".into()];
        let text = network.run();
        let first = text.split_once("oauth-authorization-server\n").map(|it| it.1);
        insta::allow_duplicates! {
            insta::assert_snapshot!(first.expect("metadata"), @"
            load client of https://as.example: found
            lock tokens for https://mcp.example/mcp: found
            POST https://as.example/token refresh_token
            save tokens for https://mcp.example/mcp
            unlock
            authorized by https://as.example
            resumed
            server/discover [Bearer t2]
            ");
        }
        assert_eq!(network.last_to(TOKEN).form("client_id").as_deref(), Some("c1"));
        // If it is useless, the client registers for the user.
        let mut network = network.again(registering(3));
        network.post(REGISTER, Reply::new(201, r#"{"client_id":"c2"}"#));
        network.posts(TOKEN, [error(400, "invalid_grant"), token("t3", "")]);
        network.accepted = vec!["Bearer t3".into()];
        let text = network.run();
        assert!(text.ends_with("server/discover [Bearer t3]\n"), "{text}");
        assert_eq!(network.last_to(TOKEN).form("client_id").as_deref(), Some("c2"));
        assert_eq!(network.sent_to(TOKEN).len(), 2);
    }
}

#[test]
fn a_password_of_a_registration_is_kept_as_long_as_the_tokens_that_need_it() {
    // Rule: [AUTHC-036].
    let answer = r#"{"client_id":"c1","client_secret":"s1"}"#;
    for expires in [0, 3600] {
        let rest = format!(r#","refresh_token":"r1","expires_in":{expires}"#);
        let mut network = registered(answer, token("t1", &rest));
        // Another connection, to another server, has registered at the same issuer since.
        let key = CredentialKey::Client(AS.into());
        let other = network.store[&key].as_str().replace("c1", "c2").replace("s1", "s2");
        network.store.insert(key, Credential::new(other));
        let mut network = network.again(registering(2));
        network.post(TOKEN, token("t2", r#","refresh_token":"r2""#));
        network.accepted = vec!["Bearer t2".into()];
        let text = network.run();
        assert!(text.ends_with("server/discover [Bearer t2]\n"), "{text}");
        let sent = network.last_to(TOKEN);
        let shown = [sent.form("client_id"), sent.form("client_secret")];
        assert_eq!(shown.map(Option::unwrap_or_default), ["c1", "s1"]);
        assert!(network.authorizations.is_empty() && network.sent_to(REGISTER).is_empty());
    }
}

#[test]
fn a_refresh_token_that_is_refused_in_any_words_leads_to_one_sign_in() {
    for answer in [
        error(400, "invalid_request"),
        error(200, "bad_refresh_token"),
        error(200, "invalid_refresh_token"),
        error(400, "interaction_required"),
        error(401, "invalid_token"),
        status(401),
        status(404),
        Reply::new(400, "<html>").into(),
        ok("{}"),
    ] {
        let mut network = TestNetwork::new(code());
        let first = token("t1", r#","refresh_token":"r1""#);
        network.posts(TOKEN, [first, answer.clone(), token("t2", "")]);
        network.run();
        network.accepted = vec!["Bearer t2".into()];
        network.call("a");
        let text = network.run();
        assert!(text.ends_with("tools/call a [Bearer t2]\ncall 1 done\n"), "{answer:?}: {text}");
        assert_eq!(network.authorizations.len(), 2, "{answer:?}");
    }
}

#[test]
fn a_renewal_that_may_succeed_later_keeps_the_refresh_token() {
    for answer in [
        status(408),
        status(429),
        error(429, "invalid_grant"),
        status(500),
        error(503, "invalid_client"),
        error(400, "temporarily_unavailable"),
        error(400, "server_error"),
        error(400, "slow_down"),
        error(401, "invalid_client"),
        error(400, "invalid_dpop_proof"),
    ] {
        let mut network = TestNetwork::new(code());
        network.posts(TOKEN, [token("t1", r#","refresh_token":"r1""#), answer.clone()]);
        network.run();
        network.accepted.clear();
        network.call("a");
        let text = network.run();
        assert!(text.ends_with("call 1 failed\n"), "{answer:?}: {text}");
        assert_eq!(network.authorizations.len(), 1, "{answer:?}");
        assert!(network.kept().contains("r1"), "{answer:?}");
    }
}

#[test]
fn an_unknown_client_does_not_renew_again_and_registers() {
    for expires in [0, 3600] {
        let rest = format!(r#","refresh_token":"r1","expires_in":{expires}"#);
        let network = registered(r#"{"client_id":"c1"}"#, token("t1", &rest));
        let mut network = network.again(registering(1));
        network.post(REGISTER, Reply::new(201, r#"{"client_id":"c2"}"#));
        network.posts(TOKEN, [error(401, "invalid_client"), token("t2", "")]);
        network.accepted = vec!["Bearer t2".into()];
        let text = network.run();
        assert!(text.ends_with("server/discover [Bearer t2]\n"), "{text}");
        assert_eq!(network.authorizations[0]["client_id"], "c2", "{text}");
        assert_eq!(network.sent_to(TOKEN).len(), 2, "{text}");
    }
}

#[test]
fn a_client_whose_registration_is_lost_does_not_renew_as_another() {
    let metadata = || ClientMetadata::new("Demo", ApplicationType::Native);
    let options = || code_bare().register_as(metadata());
    let mut network = TestNetwork::new(options());
    let members = format!(r#","registration_endpoint":"{REGISTER}""#);
    network.get(ASM, issuer(AS, &members));
    network.post(REGISTER, Reply::new(201, r#"{"client_id":"c1","client_secret":"s1"}"#));
    let ended = r#","expires_in":0,"refresh_token":"r1""#;
    network.posts(TOKEN, [token("t1", ended), token("t2", "")]);
    network.run();
    // Earlier versions did not keep the password with the tokens.
    network.store.retain(|key, _| matches!(key, CredentialKey::Tokens(_)));
    for credential in network.store.values_mut() {
        let text = credential.as_str().replace(r#","client_secret":"s1""#, "");
        assert_ne!(text, credential.as_str());
        *credential = Credential::new(text);
    }
    let mut network = network.again(options());
    let text = network.run();
    assert_eq!(network.sent_to(TOKEN).len(), 0, "{text}");
    assert!(!network.kept().contains("r1"));
}

#[test]
fn a_token_that_another_run_has_renewed_is_not_renewed_again() {
    let mut network = due(error(400, "invalid_grant"));
    // The other run has the same refresh token and uses it first.
    let mut other = TestNetwork::new(code());
    other.posts(TOKEN, [token("t1", SOON), token("t2", r#","refresh_token":"r2""#)]);
    other.accepted.push("Bearer t2".into());
    other.run();
    other.advance(Duration::from_secs(70));
    other.call("a");
    other.run();
    network.store = other.store;
    network.call("a");
    insta::assert_snapshot!(network.run(), @"
    lock tokens for https://mcp.example/mcp: found
    unlock
    waiting
    authorized by https://as.example
    resumed
    tools/call a [Bearer t2]
    call 2 done
    ");
    assert_eq!(network.sent_to(TOKEN).len(), 1);
    assert!(network.kept().contains("r2"));
}

#[test]
fn a_user_who_signed_in_to_another_run_is_not_asked_again() {
    let mut network = TestNetwork::new(code());
    network.run();
    let mut other = TestNetwork::new(code());
    other.post(TOKEN, token("t2", ""));
    other.accepted = vec!["Bearer t2".into()];
    other.run();
    network.store = other.store;
    network.accepted = vec!["Bearer t2".into()];
    network.call("a");
    insta::assert_snapshot!(network.run(), @"
    tools/call a [Bearer t1]
    load tokens for https://mcp.example/mcp: found
    waiting
    authorized by https://as.example
    resumed
    tools/call a [Bearer t2]
    call 1 done
    ");
    // A token that was refused is not retried.
    network.accepted.clear();
    network.call("b");
    let text = network.run();
    assert_eq!(text.matches("sign in at").count(), 1, "{text}");
}

#[test]
fn a_refresh_token_is_bound_to_one_client() {
    // Rule: [AUTHC-036].
    let app = |id| code_bare().registered(crate::network::client(id, Some(AS), ClientSecret::None));
    let mut network = TestNetwork::new(app("first").expect("a client"));
    network.post(TOKEN, token("t1", r#","refresh_token":"r1""#));
    network.run();
    let mut network = network.again(app("second").expect("a client"));
    network.accepted.clear();
    let text = network.run();
    assert!(text.contains("sign in at"), "{text}");
    assert!(!network.bytes_to(AS).contains("r1"), "{text}");
}

#[test]
fn a_request_that_waited_for_a_renewal_may_need_another_one() {
    let mut network = due(token("t2", r#","refresh_token":"r2""#));
    network.posts(TOKEN, [token("t2", r#","refresh_token":"r2""#), token("t3", "")]);
    network.accepted = vec!["Bearer t3".into()];
    network.call("a");
    let text = network.run();
    assert!(text.ends_with("tools/call a [Bearer t3]\ncall 2 done\n"), "{text}");
    assert_eq!(network.authorizations.len(), 1);
}

#[test]
fn a_refused_token_is_not_used_again() {
    let mut network = TestNetwork::new(code());
    network.posts(TOKEN, [token("t1", SOON), Answer::Silence]);
    network.run();
    network.mcp =
        Box::new(|request| (request.field("mcp-name") == Some("slow")).then_some(Answer::Silence));
    network.call("slow");
    network.run();
    network.advance(Duration::from_secs(70));
    network.call("a");
    network.run();
    network.answer_late(MCP, status(401));
    network.run();
    network.answer_late(TOKEN, status(503));
    insta::assert_snapshot!(network.run(), @"
    unlock
    no token: https://as.example/token answers with status 503
    resumed
    refused: https://as.example/token answers with status 503
    tools/call a [Bearer t1]
    call 1 failed
    call 2 done
    ");
}

#[test]
fn a_short_lived_token_is_not_renewed_for_every_request() {
    let mut network = TestNetwork::new(code());
    let short = |name| token(name, r#","expires_in":20,"refresh_token":"r""#);
    network.posts(TOKEN, [short("t1"), short("t2")]);
    network.accepted.push("Bearer t2".into());
    network.run();
    network.advance(Duration::from_secs(9));
    network.call("a");
    assert!(network.run().starts_with("tools/call a [Bearer t1]\n"));
    network.advance(Duration::from_secs(1));
    network.call("b");
    assert!(network.run().contains("tools/call b [Bearer t2]\n"));
}

#[test]
fn a_stored_token_for_another_server_is_not_used() {
    // Rule: [AUTHC-045].
    let mut other = TestNetwork::at("https://other.example/mcp", code());
    let named = r#"{"resource":"https://other.example/mcp","authorization_servers":["https://as.example"]}"#;
    other.get("https://other.example/.well-known/oauth-protected-resource/mcp", ok(named));
    other.run();
    let credential = other.store.into_values().next().expect("a token");
    let mut network = TestNetwork::new(code());
    network.store.insert(CredentialKey::Tokens(MCP.into()), credential);
    let text = network.run();
    assert!(text.contains("found\nwaiting\nresumed\nserver/discover\n"), "{text}");
}

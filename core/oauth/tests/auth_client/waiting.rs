//! Requests that wait for an authorization.

use core::time::Duration;

use mcp_sansio_oauth::client::AuthorizationLimits;

use crate::answers::{Answer, Reply, mcp_answer, token};
use crate::network::{MCP, PRM, TOKEN, TestNetwork, User, code};

/// Returns a network in which a call waits for the user.
fn waiting() -> TestNetwork {
    let mut network = TestNetwork::new(code());
    network.run();
    network.accepted = vec!["Bearer t2".into()];
    network.post(TOKEN, token("t2", ""));
    network.user = User::Stays;
    network.call("a");
    network.run();
    network
}

fn sign_in(network: &mut TestNetwork) {
    let action = network.action.expect("a user is asked to sign in");
    let state = &network.authorizations.last().expect("a request")["state"];
    let redirect = format!("/?code=c&iss=https://as.example&state={state}");
    assert!(network.auth.handle_redirect(action, Ok(&redirect), network.now));
}

#[test]
fn all_requests_wait_for_one_authorization() {
    let mut network = waiting();
    network.call("b");
    insta::assert_snapshot!(network.run(), @"waiting");
    sign_in(&mut network);
    insta::assert_snapshot!(network.run(), @"
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    resumed
    tools/call a [Bearer t2]
    tools/call b [Bearer t2]
    call 1 done
    call 2 done
    ");
    assert_eq!(network.authorizations.len(), 2);
}

#[test]
fn a_call_that_is_cancelled_while_it_waits_is_never_sent() {
    let mut network = waiting();
    network.cancel();
    insta::assert_snapshot!(network.run(), @"call 1 failed");
    sign_in(&mut network);
    insta::assert_snapshot!(network.run(), @"
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    ");
}

#[test]
fn a_call_that_is_cancelled_after_it_was_sent_is_aborted() {
    let mut network = TestNetwork::new(code());
    network.run();
    network.mcp = Box::new(|_| Some(Answer::Silence));
    network.call("a");
    network.run();
    network.cancel();
    insta::assert_snapshot!(network.run(), @"
    abort https://mcp.example/mcp
    call 1 failed
    ");
}

#[test]
fn a_user_who_does_not_return_is_timed_out() {
    let mut network = waiting();
    assert_eq!(network.advance(Duration::from_secs(899)), "");
    insta::assert_snapshot!(network.advance(Duration::from_secs(1)), @"
    withdraw the last action
    no token: timed out waiting for the user
    refused: timed out waiting for the user
    call 1 failed
    ");
    let action = network.action.expect("a user was asked to sign in");
    assert!(!network.auth.handle_redirect(action, Ok("/?code=c"), network.now));
}

#[test]
fn a_server_that_does_not_answer_is_timed_out() {
    let mut network = TestNetwork::new(code());
    network.get(PRM, Answer::Silence);
    network.run();
    insta::assert_snapshot!(network.advance(Duration::from_secs(30)), @"
    no token: timed out waiting for https://mcp.example/.well-known/oauth-protected-resource/mcp
    refused: timed out waiting for https://mcp.example/.well-known/oauth-protected-resource/mcp
    abort https://mcp.example/.well-known/oauth-protected-resource/mcp
    ");
}

#[test]
fn a_late_refusal_of_a_replaced_token_causes_no_other_authorization() {
    let mut network = TestNetwork::new(code());
    network.run();
    network.mcp = Box::new(|request| {
        let slow = request.field("mcp-name") == Some("slow");
        (slow && request.field("authorization") == Some("Bearer t1")).then_some(Answer::Silence)
    });
    network.call("slow");
    network.run();
    network.accepted = vec!["Bearer t2".into()];
    network.post(TOKEN, token("t2", ""));
    network.call("a");
    network.run();
    assert_eq!(network.authorizations.len(), 2);
    network.answer_late(MCP, Reply::new(401, ""));
    insta::assert_snapshot!(network.run(), @"
    tools/call slow [Bearer t2]
    call 1 done
    ");
}

#[test]
fn the_number_of_waiting_requests_is_bounded() {
    let mut limits = AuthorizationLimits::DEFAULT;
    limits.waiting_max = 1;
    let mut network = TestNetwork::new(code().limits(limits));
    network.run();
    network.accepted.clear();
    network.user = User::Stays;
    network.call("a");
    network.run();
    network.call("b");
    insta::assert_snapshot!(network.run(), @"
    refused: too many requests wait for a token
    call 2 failed
    ");
}

#[test]
fn closing_refuses_waiting_requests_and_withdraws_pending_actions() {
    let mut network = waiting();
    network.auth.close();
    insta::assert_snapshot!(network.run(), @"
    withdraw the last action
    no token: the authorization was cancelled
    refused: the authorization was cancelled
    call 1 failed
    ");
    // The authorization is closed: a refusal is passed to the caller.
    network.call("b");
    insta::assert_snapshot!(network.run(), @"
    tools/call b [Bearer t1]
    call 2 failed
    ");
    network.auth.authorize(network.now);
    assert_eq!(network.run(), "");
}

#[test]
fn signing_out_cancels_a_pending_authorization() {
    let mut network = waiting();
    network.auth.forget(network.now);
    insta::assert_snapshot!(network.run(), @"
    withdraw the last action
    remove tokens for https://mcp.example/mcp
    no token: the authorization was cancelled
    refused: the authorization was cancelled
    call 1 failed
    ");
}

#[test]
fn the_body_of_a_refusal_is_limited() {
    let mut network = TestNetwork::new(code());
    network.run();
    network.accepted.push("Bearer t2".into());
    network.post(TOKEN, token("t2", ""));
    let long = "x".repeat(65 * 1024);
    network.mcp = Box::new(move |request| match request.field("authorization") {
        Some("Bearer t1") => Some(Reply::new(401, &long).into()),
        _ => Some(mcp_answer(request)),
    });
    network.call("a");
    let text = network.run();
    assert!(text.contains("abort ?\n"), "{text}");
    assert!(text.ends_with("call 1 done\n"), "{text}");
}

#[test]
fn an_application_that_does_not_answer_a_load_is_timed_out() {
    let mut network = TestNetwork::new(code());
    network.loads = false;
    network.run();
    insta::assert_snapshot!(network.advance(Duration::from_secs(60)), @"
    withdraw the last action
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
}

#[test]
fn pending_refusals_are_bounded_in_number_and_time() {
    let mut limits = AuthorizationLimits::DEFAULT;
    limits.refusals_max = 1;
    let mut network = TestNetwork::new(code().limits(limits));
    network.run();
    network.accepted = vec!["Bearer t2".into()];
    network.post(TOKEN, token("t2", ""));
    network.mcp = Box::new(|request| {
        (request.field("authorization") == Some("Bearer t1")).then_some(Answer::Silence)
    });
    network.call("a");
    network.call("b");
    network.run();
    network.head_late(MCP, &Reply::new(401, ""));
    network.head_late(MCP, &Reply::new(401, ""));
    let text = network.run();
    assert_eq!(text.matches("abort").count(), 1, "{text}");
    assert!(text.ends_with("call 1 done\ncall 2 done\n"), "{text}");
    assert_eq!(network.advance(Duration::from_millis(1999)), "");
    assert_eq!(network.advance(Duration::from_millis(1)), "abort https://mcp.example/mcp\n");
}

//! Requests that wait, and do not wait any longer.

use core::time::Duration;

use mcp_sansio_oauth::client::ClientLimits;

use crate::answers::{Answer, Reply, mcp_answer, token};
use crate::network::{MCP, PRM, TOKEN, TestNetwork, User, code};

/// A world in which a call waits for the user.
fn waiting() -> TestNetwork {
    let mut world = TestNetwork::new(code());
    world.run();
    world.accepted = vec!["Bearer t2".into()];
    world.post(TOKEN, token("t2", ""));
    world.user = User::Stays;
    world.call("a");
    world.run();
    world
}

fn sign_in(world: &mut TestNetwork) {
    let action = world.action.expect("a user is asked");
    let state = &world.authorizations.last().expect("a request")["state"];
    let redirect = format!("/?code=c&iss=https://as.example&state={state}");
    assert!(world.auth.handle_redirect(action, Ok(&redirect), world.now));
}

#[test]
fn all_requests_wait_for_one_authorization() {
    let mut world = waiting();
    world.call("b");
    insta::assert_snapshot!(world.run(), @"waiting");
    sign_in(&mut world);
    insta::assert_snapshot!(world.run(), @"
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    goes on
    goes on
    tools/call a [Bearer t2]
    tools/call b [Bearer t2]
    call 1 done
    call 2 done
    ");
    assert_eq!(world.authorizations.len(), 2);
}

#[test]
fn a_call_that_is_given_up_while_it_waits_never_leaves() {
    let mut world = waiting();
    world.cancel();
    insta::assert_snapshot!(world.run(), @"call 1 failed");
    sign_in(&mut world);
    insta::assert_snapshot!(world.run(), @"
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    ");
}

#[test]
fn a_call_that_is_given_up_on_its_way_is_closed_there() {
    let mut world = TestNetwork::new(code());
    world.run();
    world.mcp = Box::new(|_| Some(Answer::Silence));
    world.call("a");
    world.run();
    world.cancel();
    insta::assert_snapshot!(world.run(), @"
    abort https://mcp.example/mcp
    call 1 failed
    ");
}

#[test]
fn a_user_who_does_not_come_back_is_not_waited_for_for_ever() {
    let mut world = waiting();
    assert_eq!(world.advance(Duration::from_secs(299)), "");
    insta::assert_snapshot!(world.advance(Duration::from_secs(1)), @"
    withdraw the last action
    no token: timed out waiting for the user
    refused: timed out waiting for the user
    call 1 failed
    ");
    let action = world.action.expect("a user was asked");
    assert!(!world.auth.handle_redirect(action, Ok("/?code=c"), world.now));
}

#[test]
fn a_server_that_does_not_answer_is_not_waited_for_for_ever() {
    let mut world = TestNetwork::new(code());
    world.get(PRM, Answer::Silence);
    world.run();
    insta::assert_snapshot!(world.advance(Duration::from_secs(30)), @"
    no token: timed out waiting for https://mcp.example/.well-known/oauth-protected-resource/mcp
    refused: timed out waiting for https://mcp.example/.well-known/oauth-protected-resource/mcp
    abort https://mcp.example/.well-known/oauth-protected-resource/mcp
    ");
}

#[test]
fn an_answer_that_comes_after_a_token_was_replaced_leads_to_no_other_authorization() {
    let mut world = TestNetwork::new(code());
    world.run();
    world.mcp = Box::new(|request| {
        let slow = request.field("mcp-name") == Some("slow");
        (slow && request.field("authorization") == Some("Bearer t1")).then_some(Answer::Silence)
    });
    world.call("slow");
    world.run();
    world.accepted = vec!["Bearer t2".into()];
    world.post(TOKEN, token("t2", ""));
    world.call("a");
    world.run();
    assert_eq!(world.authorizations.len(), 2);
    world.answer_late(MCP, Reply::new(401, ""));
    insta::assert_snapshot!(world.run(), @"
    tools/call slow [Bearer t2]
    call 1 done
    ");
}

#[test]
fn more_requests_than_may_wait_are_refused() {
    let mut limits = ClientLimits::DEFAULT;
    limits.waiting_max = 1;
    let mut world = TestNetwork::new(code().limits(limits));
    world.run();
    world.accepted.clear();
    world.user = User::Stays;
    world.call("a");
    world.run();
    world.call("b");
    insta::assert_snapshot!(world.run(), @"
    refused: too many requests wait for a token
    call 2 failed
    ");
}

#[test]
fn closing_refuses_what_waits_and_takes_back_what_was_asked() {
    let mut world = waiting();
    world.auth.close();
    insta::assert_snapshot!(world.run(), @"
    withdraw the last action
    no token: the authorization was given up
    refused: the authorization was given up
    call 1 failed
    ");
    // Nothing is authorized any more: what is refused is the caller's.
    world.call("b");
    insta::assert_snapshot!(world.run(), @"
    tools/call b [Bearer t1]
    call 2 failed
    ");
    world.auth.authorize(world.now);
    assert_eq!(world.run(), "");
}

#[test]
fn signing_out_gives_up_what_is_under_way() {
    let mut world = waiting();
    world.auth.forget(world.now);
    insta::assert_snapshot!(world.run(), @"
    withdraw the last action
    remove tokens for https://mcp.example/mcp
    no token: the authorization was given up
    refused: the authorization was given up
    call 1 failed
    ");
}

#[test]
fn a_refusal_that_does_not_end_is_cut_off() {
    let mut world = TestNetwork::new(code());
    world.run();
    world.accepted.push("Bearer t2".into());
    world.post(TOKEN, token("t2", ""));
    let long = "x".repeat(65 * 1024);
    world.mcp = Box::new(move |request| match request.field("authorization") {
        Some("Bearer t1") => Some(Reply::new(401, &long).into()),
        _ => Some(mcp_answer(request)),
    });
    world.call("a");
    let text = world.run();
    assert!(text.contains("abort ?\n"), "{text}");
    assert!(text.ends_with("call 1 done\n"), "{text}");
}

#[test]
fn an_application_that_does_not_say_what_was_kept_is_not_waited_for_for_ever() {
    let mut world = TestNetwork::new(code());
    world.loads = false;
    world.run();
    insta::assert_snapshot!(world.advance(Duration::from_secs(60)), @"
    withdraw the last action
    goes on
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    goes on
    server/discover [Bearer t1]
    ");
}

#[test]
fn refusals_that_go_on_are_cut_off_after_a_while_and_when_there_are_many() {
    let mut limits = ClientLimits::DEFAULT;
    limits.refusals_max = 1;
    let mut world = TestNetwork::new(code().limits(limits));
    world.run();
    world.accepted = vec!["Bearer t2".into()];
    world.post(TOKEN, token("t2", ""));
    world.mcp = Box::new(|request| {
        (request.field("authorization") == Some("Bearer t1")).then_some(Answer::Silence)
    });
    world.call("a");
    world.call("b");
    world.run();
    world.head_late(MCP, &Reply::new(401, ""));
    world.head_late(MCP, &Reply::new(401, ""));
    let text = world.run();
    assert_eq!(text.matches("abort").count(), 1, "{text}");
    assert!(text.ends_with("call 1 done\ncall 2 done\n"), "{text}");
    assert_eq!(world.advance(Duration::from_millis(1999)), "");
    assert_eq!(world.advance(Duration::from_millis(1)), "abort https://mcp.example/mcp\n");
}

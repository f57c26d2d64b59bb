//! Users who come back with what somebody else gave them.

use mcp_sansio_oauth::ResponseFault;
use mcp_sansio_oauth::client::AuthorizationFailure;

use crate::network::{AS, TOKEN, TestNetwork, User, code};

/// A user is at the authorization server; and the `state` of that request.
fn asked() -> (TestNetwork, String) {
    let mut world = TestNetwork::new(code());
    world.user = User::Stays;
    world.run();
    let state = world.authorizations[0]["state"].clone();
    (world, state)
}

fn comes_back(world: &mut TestNetwork, redirect: &str) -> bool {
    let action = world.action.expect("a user was asked");
    world.auth.handle_redirect(action, Ok(redirect), world.now)
}

#[test]
fn only_a_redirect_that_answers_the_request_is_accepted() {
    // Rule: [AUTHC-048].
    let (mut world, state) = asked();
    let upper = state.to_uppercase();
    for redirect in [
        "",
        "/",
        "/callback?code=injected-code",
        "/callback?code=injected-code&state=",
        "/callback?code=injected-code&state=somebody-elses",
        &format!("/callback?code=injected-code&state={upper}"),
        &format!("/callback?code=injected-code&state={state}x"),
        &format!("/callback?code=injected-code&state={}", &state[1..]),
        // Twice is never.
        &format!("/callback?code=injected-code&state={state}&state={state}"),
        &format!("/callback?code=injected-code&code=b&state={state}"),
        &format!("/callback?code=%zz&state={state}"),
        // Not in the query.
        &format!("/callback#code=injected-code&state={state}"),
        &format!("/callback?code={}&state={state}", "x".repeat(70_000)),
    ] {
        assert!(!comes_back(&mut world, redirect), "{redirect:.100}");
        assert_eq!(world.run(), "", "{redirect:.100}");
    }
    assert!(comes_back(&mut world, &format!("/callback?code=c&state={state}&iss={AS}")));
    assert!(world.run().contains("authorized by https://as.example\n"));
    assert!(!world.bytes_to(AS).contains("injected-code"));
}

#[test]
fn a_code_of_another_authorization_is_passed_over() {
    // Rule: [AUTHC-048].
    let (mut world, first) = asked();
    world.auth.forget(world.now);
    world.run();
    let old = world.action.expect("a user was asked");
    world.auth.authorize(world.now);
    world.run();
    let second = world.authorizations[1]["state"].clone();
    assert_ne!(first, second);
    let injected = format!("/callback?code=injected-code&state={first}&iss={AS}");
    assert!(!comes_back(&mut world, &injected));
    // An answer to a request that was taken back is none, even if it is right.
    let right = format!("/callback?code=the-right-code&state={second}&iss={AS}");
    assert!(!world.auth.handle_redirect(old, Ok(&right), world.now));
    assert_eq!(world.run(), "");
    assert!(comes_back(&mut world, &right));
    world.run();
    assert_eq!(world.last_to(TOKEN).form("code").as_deref(), Some("the-right-code"));
}

#[test]
fn a_response_of_another_issuer_is_not_followed_and_not_shown() {
    // Rule: [AUTHC-057] [AUTHC-058] [AUTHC-061].
    let error = "error=phishing&error_description=call-us-now&error_uri=https://evil.example";
    for (rest, fault) in [
        ("&iss=https://evil.example&code=injected-code", ResponseFault::Issuer),
        ("&code=injected-code", ResponseFault::NoIssuer),
        (&format!("&iss=https://evil.example&{error}"), ResponseFault::Issuer),
        (&format!("&{error}"), ResponseFault::NoIssuer),
        (&format!("&iss={AS}&code=injected-code&{error}"), ResponseFault::NoCode),
        (&format!("&iss={AS}&code="), ResponseFault::NoCode),
    ] {
        let (mut world, state) = asked();
        assert!(comes_back(&mut world, &format!("/callback?state={state}{rest}")));
        let text = world.run();
        let told = &world.failures[0];
        assert_eq!(*told, AuthorizationFailure::Response(fault), "{rest}");
        for part in ["phishing", "call-us-now", "evil.example", "injected-code"] {
            assert!(!format!("{text} {told:?}").contains(part), "{part} in {text}");
        }
        assert!(world.sent_to(TOKEN).is_empty());
    }
}

#[test]
fn the_words_of_the_issuer_control_no_terminal() {
    let (mut world, state) = asked();
    let long = "x".repeat(50_000);
    let redirect = format!(
        "/callback?state={state}&iss={AS}&error=%1b%5b31m%0d%0aroot%3a&error_description=%e2%80%ae{long}&error_uri=%00y"
    );
    assert!(comes_back(&mut world, &redirect));
    world.run();
    let told = world.failures[0].clone();
    assert_eq!(told.to_string(), "the authorization server answers `[31mroot:`");
    assert!(format!("{told:?}").len() < 1500);
}

#[test]
fn a_redirect_is_accepted_once() {
    let (mut world, state) = asked();
    let redirect = format!("/callback?code=c&state={state}&iss={AS}");
    assert!(comes_back(&mut world, &redirect));
    assert!(!comes_back(&mut world, &redirect));
    world.run();
    assert!(!comes_back(&mut world, &redirect));
    assert_eq!(world.run(), "");
    assert_eq!(world.sent_to(TOKEN).len(), 1);
}

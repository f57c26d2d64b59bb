//! Redirects that an attacker gave to the user.

use mcp_sansio_oauth::ResponseFault;
use mcp_sansio_oauth::client::AuthorizationFailure;

use crate::network::{AS, TOKEN, TestNetwork, User, code};

/// Returns a network in which a user is asked to sign in, and the `state` of that request.
fn asked() -> (TestNetwork, String) {
    let mut network = TestNetwork::new(code());
    network.user = User::Stays;
    network.run();
    let state = network.authorizations[0]["state"].clone();
    (network, state)
}

fn comes_back(network: &mut TestNetwork, redirect: &str) -> bool {
    let action = network.action.expect("a user was asked to sign in");
    network.auth.handle_redirect(action, Ok(redirect), network.now)
}

#[test]
fn only_a_redirect_that_answers_the_request_is_accepted() {
    // Rule: [AUTHC-048].
    let (mut network, state) = asked();
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
        // Parameters must not be repeated.
        &format!("/callback?code=injected-code&state={state}&state={state}"),
        // The parameters must be in the query.
        &format!("/callback#code=injected-code&state={state}"),
        &format!("/callback?code={}&state={state}", "x".repeat(70_000)),
    ] {
        assert!(!comes_back(&mut network, redirect), "{redirect:.100}");
        assert_eq!(network.run(), "", "{redirect:.100}");
    }
    assert!(comes_back(&mut network, &format!("/callback?code=c&state={state}&iss={AS}")));
    assert!(network.run().contains("authorized by https://as.example\n"));
    assert!(!network.bytes_to(AS).contains("injected-code"));
}

#[test]
fn a_code_of_another_authorization_is_ignored() {
    // Rule: [AUTHC-048].
    let (mut network, first) = asked();
    network.auth.forget(network.now);
    network.run();
    let old = network.action.expect("a user was asked to sign in");
    network.auth.authorize(network.now);
    network.run();
    let second = network.authorizations[1]["state"].clone();
    assert_ne!(first, second);
    let injected = format!("/callback?code=injected-code&state={first}&iss={AS}");
    assert!(!comes_back(&mut network, &injected));
    // A redirect that answers a withdrawn request is ignored, even with the right code.
    let right = format!("/callback?code=the-right-code&state={second}&iss={AS}");
    assert!(!network.auth.handle_redirect(old, Ok(&right), network.now));
    assert_eq!(network.run(), "");
    assert!(comes_back(&mut network, &right));
    network.run();
    assert_eq!(network.last_to(TOKEN).form("code").as_deref(), Some("the-right-code"));
}

#[test]
fn a_response_of_another_issuer_is_neither_used_nor_logged() {
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
        let (mut network, state) = asked();
        assert!(comes_back(&mut network, &format!("/callback?state={state}{rest}")));
        let text = network.run();
        let told = &network.failures[0];
        assert_eq!(*told, AuthorizationFailure::Response(fault), "{rest}");
        for part in ["phishing", "call-us-now", "evil.example", "injected-code"] {
            assert!(!format!("{text} {told:?}").contains(part), "{part} in {text}");
        }
        assert!(network.sent_to(TOKEN).is_empty());
    }
}

#[test]
fn control_characters_of_an_error_are_removed() {
    let (mut network, state) = asked();
    let long = "x".repeat(50_000);
    let redirect = format!(
        "/callback?state={state}&iss={AS}&error=%1b%5b31m%0d%0aroot%3a&error_description=%e2%80%ae{long}&error_uri=%00y"
    );
    assert!(comes_back(&mut network, &redirect));
    network.run();
    let told = network.failures[0].clone();
    let described = "x".repeat(1024);
    let text = format!("the authorization server answered `[31mroot:` ({described})");
    assert_eq!(told.to_string(), text);
    assert!(format!("{told:?}").len() < 1500);
}

#[test]
fn a_malformed_redirect_with_the_right_state_ends_the_wait_without_a_token() {
    for rest in ["code=injected-code&code=b", "code=%zz", "code=injected-code&error=%ff"] {
        let (mut network, state) = asked();
        assert!(comes_back(&mut network, &format!("/callback?{rest}&state={state}&iss={AS}")));
        network.run();
        let told = AuthorizationFailure::Response(ResponseFault::Malformed);
        assert_eq!(network.failures[0], told, "{rest}");
        assert!(network.sent_to(TOKEN).is_empty());
    }
}

#[test]
fn a_redirect_is_accepted_once() {
    let (mut network, state) = asked();
    let redirect = format!("/callback?code=c&state={state}&iss={AS}");
    assert!(comes_back(&mut network, &redirect));
    assert!(!comes_back(&mut network, &redirect));
    network.run();
    assert!(!comes_back(&mut network, &redirect));
    assert_eq!(network.run(), "");
    assert_eq!(network.sent_to(TOKEN).len(), 1);
}

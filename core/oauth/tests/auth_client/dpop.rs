//! Tokens that are bound to a key.

use std::cell::Cell;
use std::rc::Rc;

use mcp_sansio_oauth::client::{ActionFailure, AuthorizationOptions, ClientSecret, DpopKey};

use crate::answers::{Answer, Reply, ok};
use crate::network::{TOKEN, TestNetwork, client, code, code_bare};
use crate::sent::Sent;

fn bound() -> AuthorizationOptions {
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}"#;
    code().dpop(&DpopKey::new("ES256", jwk)).expect("a key")
}

fn dpop_token(name: &str) -> Answer {
    ok(&format!(r#"{{"access_token":"{name}","token_type":"DPoP"}}"#))
}

fn bound_network() -> TestNetwork {
    let mut network = TestNetwork::new(bound());
    network.post(TOKEN, dpop_token("t1"));
    network.accepted = vec!["DPoP t1".into()];
    network
}

/// Returns the claims of a request's proof.
fn claims(request: &Sent) -> String {
    use base64::Engine;
    let proof = request.field("dpop").expect("a proof");
    let claims = proof.split('.').nth(1).expect("claims");
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).expect("base64");
    String::from_utf8(bytes).expect("text")
}

#[test]
fn each_request_has_its_own_proof() {
    // Rule: [DPOP-004].
    let mut network = bound_network();
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    sign a proof with ES256
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    sign a proof with ES256
    authorized by https://as.example
    resumed
    server/discover [DPoP t1]
    ");
    network.call("a");
    network.call("b");
    insta::assert_snapshot!(network.run(), @"
    sign a proof with ES256
    sign a proof with ES256
    tools/call a [DPoP t1]
    tools/call b [DPoP t1]
    call 1 done
    call 2 done
    ");
    let proofs: std::collections::BTreeSet<_> =
        network.sent.iter().filter_map(|it| it.field("dpop")).collect();
    assert_eq!(proofs.len(), 4);
    let last = claims(network.sent.last().expect("a request"));
    assert!(last.contains(r#""htm":"POST","htu":"https://mcp.example/mcp""#), "{last}");
    assert!(last.contains("\"ath\""), "{last}");
    assert!(!claims(network.last_to(TOKEN)).contains("\"ath\""));
}

#[test]
fn a_nonce_from_the_server_is_used_in_the_next_proof() {
    let mut network = bound_network();
    let wants = Reply::new(400, r#"{"error":"use_dpop_nonce"}"#).field("DPoP-Nonce", "n1");
    network.posts(TOKEN, [wants.into(), dpop_token("t1")]);
    network.mcp = Box::new(|request| {
        request.field("dpop")?;
        (!claims(request).contains(r#""nonce":"m1""#)).then(|| {
            let challenge = r#"DPoP error="use_dpop_nonce""#;
            let reply = Reply::new(401, "").field("WWW-Authenticate", challenge);
            reply.field("DPoP-Nonce", "m1").into()
        })
    });
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    sign a proof with ES256
    POST https://as.example/token authorization_code
    sign a proof with ES256
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    sign a proof with ES256
    authorized by https://as.example
    resumed
    server/discover [DPoP t1]
    sign a proof with ES256
    server/discover [DPoP t1]
    ");
    assert!(claims(network.last_to(TOKEN)).contains(r#""nonce":"n1""#));
    // Later requests use the nonce at once.
    network.call("a");
    insta::assert_snapshot!(network.run(), @"
    sign a proof with ES256
    tools/call a [DPoP t1]
    call 1 done
    ");
}

#[test]
fn a_server_that_keeps_requesting_new_nonces_fails_the_request() {
    let mut network = bound_network();
    let count = Rc::new(Cell::new(0));
    let counted = Rc::clone(&count);
    network.mcp = Box::new(move |request| {
        request.field("dpop")?;
        counted.set(counted.get() + 1);
        let reply = Reply::new(401, "").field("WWW-Authenticate", r#"DPoP error="use_dpop_nonce""#);
        Some(reply.field("DPoP-Nonce", &format!("n{}", counted.get())).into())
    });
    let text = network.run();
    assert!(text.ends_with("refused: the server does not accept the new token\n"), "{text}");
    assert_eq!(count.get(), 4);
    let mut network = bound_network();
    network
        .post(TOKEN, Reply::new(400, r#"{"error":"use_dpop_nonce"}"#).field("dpop-nonce", "same"));
    let text = network.run();
    assert!(
        text.ends_with(
            "refused: https://as.example/token: the authorization server refused the request: use_dpop_nonce\n"
        ),
        "{text}"
    );
    assert_eq!(network.sent_to(TOKEN).len(), 2);
}

#[test]
fn a_server_without_dpop_gives_a_bearer_token() {
    let mut network = TestNetwork::new(bound());
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    sign a proof with ES256
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    resumed
    server/discover [Bearer t1]
    ");
}

#[test]
fn a_failed_signature_fails_only_its_request() {
    let mut network = bound_network();
    network.run();
    network.signature = Some(ActionFailure::Failed("no key".into()));
    network.call("a");
    insta::assert_snapshot!(network.run(), @"
    sign a proof with ES256
    refused: no key
    call 1 failed
    ");
    network.signature = None;
    network.signs = false;
    network.call("b");
    let text = network.run();
    assert_eq!(text, "sign a proof with ES256\n");
    let text = network.advance(core::time::Duration::from_secs(60));
    assert!(
        text.starts_with(
            "withdraw the last action\nrefused: timed out waiting for the application\n"
        ),
        "{text}"
    );
}

#[test]
fn a_token_of_another_key_is_not_used() {
    let mut network = bound_network();
    network.run();
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"eg","y":"eQ"}"#;
    let other = DpopKey::new("ES256", jwk);
    let mut network = network.again(code().dpop(&other).expect("a key"));
    let text = network.run();
    assert!(
        text.starts_with(
            "load tokens for https://mcp.example/mcp: found\nwaiting\nresumed\nserver/discover\n"
        ),
        "{text}"
    );
}

#[test]
fn a_request_whose_token_was_replaced_in_the_meantime_gets_another_proof() {
    let mut network = bound_network();
    network.run();
    network.signs = false;
    network.call("a");
    network.run();
    let action = network.action.expect("a signature");
    network.auth.forget(network.now);
    insta::assert_snapshot!(network.run(), @"
    remove tokens for https://mcp.example/mcp
    withdraw the last action
    tools/call a
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    sign a proof with ES256
    ");
    network.auth.handle_signature(action, Ok(b"late"), network.now);
    assert_eq!(network.run(), "");
}

#[test]
fn the_client_assertion_is_signed_again_for_each_nonce() {
    let key = ClientSecret::PrivateKey { algorithm: "ES256".into(), key_id: None };
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}"#;
    let dpop = DpopKey::new("ES256", jwk);
    let options =
        code_bare().registered(client("app", Some(crate::network::AS), key)).expect("a client");
    let mut network = TestNetwork::new(options.dpop(&dpop).expect("a key"));
    let wants = Reply::new(400, r#"{"error":"use_dpop_nonce"}"#).field("DPoP-Nonce", "n1");
    network.posts(TOKEN, [wants.into(), dpop_token("t1")]);
    network.accepted = vec!["DPoP t1".into()];
    let text = network.run();
    assert_eq!(text.matches("sign as app").count(), 2, "{text}");
    let sent = network.sent_to(TOKEN);
    assert_ne!(sent[0].form("client_assertion"), sent[1].form("client_assertion"));
    assert_eq!(sent[0].form("code"), sent[1].form("code"));
}

//! Tokens that are bound to a key.

use std::cell::Cell;
use std::rc::Rc;

use mcp_sansio_oauth::client::{ActionFailure, ClientOptions, ClientSecret, DpopKey};

use crate::answers::{Answer, Reply, ok};
use crate::network::{TOKEN, TestNetwork, client, code, code_bare};
use crate::sent::Sent;

fn bound() -> ClientOptions {
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}"#;
    code().dpop(&DpopKey { algorithm: "ES256".into(), jwk: jwk.into() }).expect("a key")
}

fn dpop_token(name: &str) -> Answer {
    ok(&format!(r#"{{"access_token":"{name}","token_type":"DPoP"}}"#))
}

fn bound_world() -> TestNetwork {
    let mut world = TestNetwork::new(bound());
    world.post(TOKEN, dpop_token("t1"));
    world.accepted = vec!["DPoP t1".into()];
    world
}

/// The claims of the proof of a request.
fn claims(request: &Sent) -> String {
    use base64::Engine;
    let proof = request.field("dpop").expect("a proof");
    let claims = proof.split('.').nth(1).expect("claims");
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).expect("base64");
    String::from_utf8(bytes).expect("text")
}

#[test]
fn each_request_has_a_proof_of_its_own() {
    let mut world = bound_world();
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    goes on
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
    goes on
    server/discover [DPoP t1]
    ");
    world.call("a");
    world.call("b");
    insta::assert_snapshot!(world.run(), @"
    sign a proof with ES256
    sign a proof with ES256
    tools/call a [DPoP t1]
    tools/call b [DPoP t1]
    call 1 done
    call 2 done
    ");
    let proofs: std::collections::BTreeSet<_> =
        world.sent.iter().filter_map(|it| it.field("dpop")).collect();
    assert_eq!(proofs.len(), 4);
    let last = claims(world.sent.last().expect("a request"));
    assert!(last.contains(r#""htm":"POST","htu":"https://mcp.example/mcp""#), "{last}");
    assert!(last.contains("\"ath\""), "{last}");
    assert!(!claims(world.last_to(TOKEN)).contains("\"ath\""));
}

#[test]
fn a_nonce_that_a_server_wants_is_in_the_next_proof() {
    let mut world = bound_world();
    let wants = Reply::new(400, r#"{"error":"use_dpop_nonce"}"#).field("DPoP-Nonce", "n1");
    world.posts(TOKEN, [wants.into(), dpop_token("t1")]);
    world.mcp = Box::new(|request| {
        request.field("dpop")?;
        (!claims(request).contains(r#""nonce":"m1""#)).then(|| {
            let challenge = r#"DPoP error="use_dpop_nonce""#;
            let reply = Reply::new(401, "").field("WWW-Authenticate", challenge);
            reply.field("DPoP-Nonce", "m1").into()
        })
    });
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    goes on
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
    goes on
    server/discover [DPoP t1]
    sign a proof with ES256
    server/discover [DPoP t1]
    ");
    assert!(claims(world.last_to(TOKEN)).contains(r#""nonce":"n1""#));
    // From then on it is there at once.
    world.call("a");
    insta::assert_snapshot!(world.run(), @"
    sign a proof with ES256
    tools/call a [DPoP t1]
    call 1 done
    ");
}

#[test]
fn a_server_that_wants_ever_new_nonces_is_given_up() {
    let mut world = bound_world();
    let count = Rc::new(Cell::new(0));
    let counted = Rc::clone(&count);
    world.mcp = Box::new(move |request| {
        request.field("dpop")?;
        counted.set(counted.get() + 1);
        let reply = Reply::new(401, "").field("WWW-Authenticate", r#"DPoP error="use_dpop_nonce""#);
        Some(reply.field("DPoP-Nonce", &format!("n{}", counted.get())).into())
    });
    let text = world.run();
    assert!(text.ends_with("refused: the server does not take the new token\n"), "{text}");
    assert_eq!(count.get(), 4);
    let mut world = bound_world();
    world.post(TOKEN, Reply::new(400, r#"{"error":"use_dpop_nonce"}"#).field("dpop-nonce", "same"));
    let text = world.run();
    assert!(
        text.ends_with(
            "refused: https://as.example/token: the token endpoint refuses: use_dpop_nonce\n"
        ),
        "{text}"
    );
    assert_eq!(world.sent_to(TOKEN).len(), 2);
}

#[test]
fn a_server_without_dpop_gives_a_bearer_token() {
    let mut world = TestNetwork::new(bound());
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    goes on
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    sign a proof with ES256
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example
    goes on
    server/discover [Bearer t1]
    ");
}

#[test]
fn a_key_that_does_not_sign_refuses_its_request_alone() {
    let mut world = bound_world();
    world.run();
    world.signature = Some(ActionFailure::Failed("no key".into()));
    world.call("a");
    insta::assert_snapshot!(world.run(), @"
    sign a proof with ES256
    refused: no key
    call 1 failed
    ");
    world.signature = None;
    world.signs = false;
    world.call("b");
    let text = world.run();
    assert_eq!(text, "sign a proof with ES256\n");
    let text = world.advance(core::time::Duration::from_secs(60));
    assert!(
        text.starts_with(
            "withdraw the last action\nrefused: timed out waiting for the application\n"
        ),
        "{text}"
    );
}

#[test]
fn a_token_of_another_key_is_not_used() {
    let mut world = bound_world();
    world.run();
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"eg","y":"eQ"}"#;
    let other = DpopKey { algorithm: "ES256".into(), jwk: jwk.into() };
    let mut world = world.again(code().dpop(&other).expect("a key"));
    let text = world.run();
    assert!(
        text.starts_with(
            "load tokens for https://mcp.example/mcp: found\nwaiting\ngoes on\nserver/discover\n"
        ),
        "{text}"
    );
}

#[test]
fn a_request_whose_token_was_replaced_meanwhile_gets_another_proof() {
    let mut world = bound_world();
    world.run();
    world.signs = false;
    world.call("a");
    world.run();
    let action = world.action.expect("a signature");
    world.auth.forget(world.now);
    insta::assert_snapshot!(world.run(), @"
    remove tokens for https://mcp.example/mcp
    withdraw the last action
    tools/call a
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    sign a proof with ES256
    ");
    world.auth.handle_signature(action, Ok(b"late"), world.now);
    assert_eq!(world.run(), "");
}

#[test]
fn the_client_assertion_is_signed_again_for_each_nonce() {
    let key = ClientSecret::PrivateKey { algorithm: "ES256".into(), key_id: None };
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"eA","y":"eQ"}"#;
    let dpop = DpopKey { algorithm: "ES256".into(), jwk: jwk.into() };
    let options =
        code_bare().registered(client("app", Some(crate::network::AS), key)).expect("a client");
    let mut world = TestNetwork::new(options.dpop(&dpop).expect("a key"));
    let wants = Reply::new(400, r#"{"error":"use_dpop_nonce"}"#).field("DPoP-Nonce", "n1");
    world.posts(TOKEN, [wants.into(), dpop_token("t1")]);
    world.accepted = vec!["DPoP t1".into()];
    let text = world.run();
    assert_eq!(text.matches("sign as app").count(), 2, "{text}");
    let sent = world.sent_to(TOKEN);
    assert_ne!(sent[0].form("client_assertion"), sent[1].form("client_assertion"));
    assert_eq!(sent[0].form("code"), sent[1].form("code"));
}

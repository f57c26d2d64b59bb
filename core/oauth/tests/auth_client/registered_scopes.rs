//! Authorization servers that grant a client only the scopes that it has registered.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use mcp_sansio_oauth::client::{
    ApplicationType, AuthorizationOptions, ClientMetadata, Credential, CredentialKey,
};
use serde_json::Value;

use crate::answers::{Answer, Reply, challenge, issuer, resource, token};
use crate::network::{AS, ASM, PRM, REGISTER, TOKEN, TestNetwork, User, code_bare};
use crate::sent::Sent;

fn registering() -> AuthorizationOptions {
    code_bare().register_as(ClientMetadata::new("Demo", ApplicationType::Native))
}

/// Returns the scopes of a registration request, in the order of the request.
fn scope(request: &Sent) -> Option<String> {
    let body: Value = serde_json::from_str(&request.body).expect("JSON");
    body.get("scope").map(|it| it.as_str().expect("a text").into())
}

/// Returns a network whose resource names the scopes `read` and `list`, and whose authorization
/// server puts the registered scopes into the id of the client.
fn open_network(options: AuthorizationOptions) -> TestNetwork {
    let mut network = TestNetwork::new(options);
    serve(&mut network);
    network
}

fn serve(network: &mut TestNetwork) {
    network.get(PRM, resource(r#","scopes_supported":["read","list"]"#));
    let members = r#","token_endpoint_auth_methods_supported":["none"]"#;
    network.get(ASM, issuer(AS, &format!(r#","registration_endpoint":"{REGISTER}"{members}"#)));
    network.network = Box::new(|request| {
        (request.place() == REGISTER).then(|| {
            let id = scope(request).unwrap_or_default().replace(' ', "+");
            Reply::new(201, &format!(r#"{{"client_id":"with:{id}"}}"#)).into()
        })
    });
    network.user = User::Follows(strict);
}

/// Redirects with a code if the client has registered the scopes of the request.
fn strict(query: &BTreeMap<String, String>) -> String {
    let known = query["client_id"].strip_prefix("with:").expect("a client");
    let mut wanted =
        query.get("scope").map_or("", |it| &**it).split(' ').filter(|it| !it.is_empty());
    let state = &query["state"];
    match wanted.all(|it| known.split('+').any(|known| known == it)) {
        true => format!("/callback?code=code1&state={state}&iss={AS}"),
        false => format!("/callback?error=invalid_scope&state={state}&iss={AS}"),
    }
}

#[test]
fn a_client_registers_the_scopes_that_it_will_request() {
    let mut network = open_network(registering());
    let text = network.run();
    assert!(text.contains("authorized by https://as.example for read list\n"), "{text}");
    assert_eq!(scope(network.last_to(REGISTER)).as_deref(), Some("read list"));
    assert_eq!(network.authorizations.len(), 1);
}

/// Lets the server require the scope `write` for each call.
fn require_write(network: &mut TestNetwork) {
    network.accepted = vec!["Bearer t1".into(), "Bearer t2".into()];
    network.post(TOKEN, token("t2", ""));
    network.mcp = Box::new(move |request| {
        let calls = request.field("mcp-method") == Some("tools/call");
        let refused = calls && request.field("authorization") == Some("Bearer t1");
        refused.then(|| challenge(403, r#"Bearer error="insufficient_scope", scope="write""#))
    });
}

#[test]
fn a_step_up_registers_again_when_the_authorization_server_refuses_the_scopes() {
    let mut network = open_network(registering());
    network.run();
    require_write(&mut network);
    network.call("a");
    insta::assert_snapshot!(network.run(), @"
    tools/call a [Bearer t1]
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/register
    save client of https://as.example
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example for read list write
    resumed
    tools/call a [Bearer t2]
    call 1 done
    ");
    assert_eq!(scope(network.last_to(REGISTER)).as_deref(), Some("read list write"));
    // The new registration is the one that is stored.
    let kept = network.store[&CredentialKey::Client(AS.into())].as_str();
    assert!(kept.contains("with:read+list+write"), "{kept}");
}

#[test]
fn a_step_up_keeps_a_registration_that_the_authorization_server_accepts() {
    let mut network = open_network(registering());
    network.run();
    require_write(&mut network);
    network.user = User::SignsIn(format!("&iss={AS}"));
    network.call("a");
    let text = network.run();
    assert!(text.ends_with("call 1 done\n"), "{text}");
    assert_eq!(network.sent_to(REGISTER).len(), 1);
}

#[test]
fn scopes_that_a_new_registration_does_not_bring_are_refused_once() {
    let mut network = open_network(registering());
    network.run();
    require_write(&mut network);
    network.user = User::Follows(|query| {
        format!("/callback?error=invalid_scope&state={}&iss={AS}", query["state"])
    });
    network.call("a");
    let text = network.run();
    assert!(text.contains("answered `invalid_scope`"), "{text}");
    assert_eq!((network.sent_to(REGISTER).len(), network.authorizations.len()), (2, 3), "{text}");
}

#[test]
fn a_registration_of_an_earlier_version_is_repeated_with_scopes() {
    let mut network = open_network(registering());
    network.run();
    let key = CredentialKey::Client(AS.into());
    let text = network.store[&key].as_str().replace(r#","scope":"read list""#, "");
    let text = text.replace("with:read+list", "with:");
    network.store = [(key, Credential::new(text))].into();
    let mut network = network.again(registering());
    serve(&mut network);
    let text = network.run();
    assert!(text.contains("authorized by https://as.example for read list\n"), "{text}");
    assert_eq!(network.sent_to(REGISTER).len(), 1);
}

#[test]
fn a_registration_that_is_refused_with_scopes_is_repeated_without_them() {
    let refusals = [
        (400, r#"{"error":"invalid_client_metadata"}"#),
        (403, r#"{"error":"insufficient_scope"}"#),
        (422, r#"{"detail":[]}"#),
        (403, "<html>"),
    ];
    for (status, refusal) in refusals {
        let mut network = open_network(registering());
        let bodies = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&bodies);
        network.network = Box::new(move |request| {
            let answer = |with: bool| -> Answer {
                match with {
                    true => Reply::new(status, refusal).into(),
                    false => Reply::new(201, r#"{"client_id":"c1"}"#).into(),
                }
            };
            (request.place() == REGISTER).then(|| {
                let scope = scope(request);
                let answer = answer(scope.is_some());
                seen.borrow_mut().push(scope);
                answer
            })
        });
        network.user = User::SignsIn(format!("&iss={AS}"));
        let text = network.run();
        assert!(text.contains("authorized by"), "{refusal}: {text}");
        assert_eq!(*bodies.borrow(), [Some("read list".into()), None], "{refusal}");
    }
}

//! Which scopes are asked for, and what happens when they do not suffice.

use crate::answers::{challenge, issuer, resource, token};
use crate::network::{AS, ASM, PRM, TOKEN, TestNetwork, code};

fn scope_of(world: &TestNetwork, at: usize) -> Option<&str> {
    world.authorizations[at].get("scope").map(|it| &**it)
}

#[test]
fn scopes_come_from_the_challenge_then_from_the_metadata_then_from_nowhere() {
    // Rule: [AUTHC-049] [AUTHC-050] [AUTHC-051].
    let supported = r#","scopes_supported":["x","y"]"#;
    for (challenge, metadata, scope) in
        [(r#"scope="a b""#, supported, Some("a b")), ("", supported, Some("x y")), ("", "", None)]
    {
        let mut world = TestNetwork::new(code());
        world.challenge = challenge.into();
        world.get(PRM, resource(metadata));
        world.run();
        assert_eq!(scope_of(&world, 0), scope);
    }
}

#[test]
fn offline_access_is_asked_for_where_it_is_wanted_and_there() {
    // Rule: [AUTHC-064].
    for (wanted, supported, scope) in [
        (true, r#","scopes_supported":["offline_access"]"#, Some("offline_access")),
        (true, "", None),
        (false, r#","scopes_supported":["offline_access"]"#, None),
    ] {
        let mut world = TestNetwork::new(code().offline_access(wanted));
        world.get(ASM, issuer(AS, supported));
        world.run();
        assert_eq!(scope_of(&world, 0), scope);
    }
}

/// A server that lets `tools/call` in with the second token only, and with no token at all if there
/// is none.
fn picky(accepted: &'static str) -> TestNetwork {
    let mut world = TestNetwork::new(code());
    world.challenge = r#"scope="basic""#.into();
    world.mcp = Box::new(move |request| {
        let calls = request.field("mcp-method") == Some("tools/call");
        let authorization = request.field("authorization")?;
        let text = r#"Bearer error="insufficient_scope", scope="write""#;
        (calls && authorization != accepted).then(|| challenge(403, text))
    });
    world.run();
    world
}

#[test]
fn scopes_that_do_not_suffice_are_asked_for_beside_those_before() {
    // Rule: [AUTHC-052] [AUTHC-055].
    let mut world = picky("Bearer t2");
    world.accepted.push("Bearer t2".into());
    world.post(TOKEN, token("t2", ""));
    world.call("pay");
    insta::assert_snapshot!(world.run(), @"
    tools/call pay [Bearer t1]
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example for basic write
    goes on
    tools/call pay [Bearer t2]
    call 1 done
    ");
    assert_eq!(scope_of(&world, 1), Some("basic write"));
}

#[test]
fn a_tool_that_is_always_refused_does_not_ask_the_user_again_and_again() {
    // Rule: [AUTHC-054].
    let mut world = picky("Bearer none");
    // The user leaves the scope out each time.
    world.post(TOKEN, token("t1", r#","scope":"basic""#));
    world.call("pay");
    insta::assert_snapshot!(world.run(), @"
    tools/call pay [Bearer t1]
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example for basic
    goes on
    tools/call pay [Bearer t1]
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example for basic
    goes on
    tools/call pay [Bearer t1]
    refused: the scopes of the token do not suffice: write
    call 1 failed
    ");
    world.call("pay");
    insta::assert_snapshot!(world.run(), @"
    tools/call pay [Bearer t1]
    refused: the scopes of the token do not suffice: write
    call 2 failed
    ");
    assert_eq!(world.authorizations.len(), 3);
    // Another one may.
    world.call("look");
    world.run();
    assert_eq!(world.authorizations.len(), 5);
}

#[test]
fn scopes_that_the_token_has_are_not_asked_for_again() {
    // Rule: [AUTHC-054].
    let mut world = picky("Bearer none");
    world.call("pay");
    world.run();
    assert_eq!(world.authorizations.len(), 2);
    world.call("look");
    insta::assert_snapshot!(world.run(), @"
    tools/call look [Bearer t1]
    refused: the scopes of the token do not suffice: write
    call 2 failed
    ");
}

#[test]
fn a_403_without_insufficient_scope_is_forwarded() {
    let mut world = TestNetwork::new(code());
    world.run();
    world.mcp = Box::new(|_| Some(challenge(403, r#"Bearer error="invalid_request""#)));
    world.call("echo");
    insta::assert_snapshot!(world.run(), @"
    tools/call echo [Bearer t1]
    call 1 failed
    ");
}

#[test]
fn a_step_up_never_uses_the_refresh_token() {
    let mut world = picky("Bearer t2");
    world.auth.forget(world.now);
    world.posts(TOKEN, [token("t1", r#","refresh_token":"r1""#), token("t2", "")]);
    world.accepted.push("Bearer t2".into());
    world.call("pay");
    let text = world.run();
    assert_eq!(text.matches("sign in").count(), 2, "{text}");
    assert!(!text.contains("refresh_token"), "{text}");
}

#[test]
fn a_machine_steps_up_by_itself() {
    // Rule: [AUTHC-053].
    let app = crate::network::client("app", Some(AS), crate::network::password("p"));
    let options = mcp_sansio_oauth::client::ClientOptions::client_credentials();
    let mut world = TestNetwork::new(options.registered(app).expect("a client"));
    let mut refused = false;
    world.mcp = Box::new(move |request| {
        let first = request.field("authorization").is_some() && !refused;
        refused |= first;
        let text = r#"Bearer error="insufficient_scope", scope="more""#;
        first.then(|| challenge(403, text))
    });
    world.run();
    assert_eq!(world.last_to(TOKEN).form("scope").as_deref(), Some("more"));
}

#[test]
fn more_scopes_than_there_can_be_are_an_error() {
    let mut limits = mcp_sansio_oauth::client::ClientLimits::DEFAULT;
    limits.scopes_max = 2;
    let mut world = TestNetwork::new(code().limits(limits));
    world.challenge = r#"scope="a b c""#.into();
    insta::assert_snapshot!(world.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    goes on
    server/discover
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    no token: more than 2 scopes
    refused: more than 2 scopes
    ");
}

#[test]
fn granted_scopes_are_reported_up_to_the_limit() {
    let mut world = TestNetwork::new(code());
    world.post(TOKEN, token("t1", r#","scope":"a  b\u0007 \"c""#));
    let text = world.run();
    assert!(text.contains("authorized by https://as.example for a\n"), "{text}");
    let many = (0..257).map(|it| it.to_string()).collect::<Vec<_>>().join(" ");
    let mut world = TestNetwork::new(code());
    world.post(TOKEN, token("t1", &format!(r#","scope":"{many}""#)));
    let text = world.run();
    assert!(text.contains("no token: more than 256 scopes\n"), "{text}");
}

#[test]
fn an_operation_that_succeeded_may_be_stepped_up_again() {
    // Rule: [AUTHC-054].
    let mut world = TestNetwork::new(code());
    world.run();
    world.post(TOKEN, token("t1", r#","scope":"none""#));
    // Every second request is refused.
    let mut count = 0;
    world.mcp = Box::new(move |_| {
        count += 1;
        let text = r#"Bearer error="insufficient_scope", scope="write""#;
        (count % 2 == 1).then(|| challenge(403, text))
    });
    for authorizations in 2..6 {
        world.call("pay");
        let text = world.run();
        assert!(text.ends_with(" done\n"), "{text}");
        assert_eq!(world.authorizations.len(), authorizations);
    }
}

//! Scopes of an authorization request, and step-up authorization.

use crate::answers::{challenge, issuer, resource, token};
use crate::network::{AS, ASM, PRM, TOKEN, TestNetwork, code};

fn scope_of(network: &TestNetwork, at: usize) -> Option<&str> {
    network.authorizations[at].get("scope").map(|it| &**it)
}

#[test]
fn scopes_are_taken_from_the_challenge_or_the_metadata() {
    // Rule: [AUTHC-049] [AUTHC-050] [AUTHC-051].
    let supported = r#","scopes_supported":["x","y"]"#;
    for (challenge, metadata, scope) in
        [(r#"scope="a b""#, supported, Some("a b")), ("", supported, Some("x y")), ("", "", None)]
    {
        let mut network = TestNetwork::new(code());
        network.challenge = challenge.into();
        network.get(PRM, resource(metadata));
        network.run();
        assert_eq!(scope_of(&network, 0), scope);
    }
}

#[test]
fn offline_access_is_requested_if_it_is_wanted_and_supported() {
    // Rule: [AUTHC-064].
    for (wanted, supported, scope) in [
        (true, r#","scopes_supported":["offline_access"]"#, Some("offline_access")),
        (true, "", None),
        (false, r#","scopes_supported":["offline_access"]"#, None),
    ] {
        let mut network = TestNetwork::new(code().offline_access(wanted));
        network.get(ASM, issuer(AS, supported));
        network.run();
        assert_eq!(scope_of(&network, 0), scope);
    }
}

/// Returns a network whose server refuses `tools/call` for insufficient scope unless the token is
/// `accepted`.
fn picky(accepted: &'static str) -> TestNetwork {
    picky_after(accepted, "")
}

/// The same; `rest` is added to the members of the first token response.
fn picky_after(accepted: &'static str, rest: &str) -> TestNetwork {
    let mut network = TestNetwork::new(code());
    network.post(TOKEN, token("t1", rest));
    network.challenge = r#"scope="basic""#.into();
    network.mcp = Box::new(move |request| {
        let calls = request.field("mcp-method") == Some("tools/call");
        let authorization = request.field("authorization")?;
        let text = r#"Bearer error="insufficient_scope", scope="write""#;
        (calls && authorization != accepted).then(|| challenge(403, text))
    });
    network.run();
    network
}

#[test]
fn missing_scopes_are_requested_in_addition_to_the_previous_ones() {
    // Rule: [AUTHC-052] [AUTHC-055].
    let mut network = picky("Bearer t2");
    network.accepted.push("Bearer t2".into());
    network.post(TOKEN, token("t2", ""));
    network.call("pay");
    insta::assert_snapshot!(network.run(), @"
    tools/call pay [Bearer t1]
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example for basic write
    resumed
    tools/call pay [Bearer t2]
    call 1 done
    ");
    assert_eq!(scope_of(&network, 1), Some("basic write"));
}

#[test]
fn granted_scopes_may_be_separated_by_commas_or_be_empty() {
    // Rule: [AUTHC-055]. GitHub and Slack write them so.
    for (granted, requested) in [
        ("basic extra", "basic extra write"),
        ("basic,extra", "basic extra write"),
        ("basic, extra", "basic extra write"),
        ("", "basic write"),
        (" ", "basic write"),
    ] {
        let mut network = picky_after("Bearer t2", &format!(r#","scope":"{granted}""#));
        network.accepted.push("Bearer t2".into());
        network.post(TOKEN, token("t2", r#","scope":"""#));
        network.call("pay");
        let text = network.run();
        assert!(text.contains("authorized by https://as.example for basic"), "{text}");
        assert_eq!(scope_of(&network, 1), Some(requested), "{granted}");
    }
}

#[test]
fn a_tool_that_is_always_refused_asks_the_user_a_bounded_number_of_times() {
    // Rule: [AUTHC-054].
    let mut network = picky("Bearer none");
    // The user never grants the scope.
    network.post(TOKEN, token("t1", r#","scope":"basic""#));
    network.call("pay");
    insta::assert_snapshot!(network.run(), @"
    tools/call pay [Bearer t1]
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example for basic
    resumed
    tools/call pay [Bearer t1]
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    sign in at https://as.example/authorize
    POST https://as.example/token authorization_code
    save tokens for https://mcp.example/mcp
    authorized by https://as.example for basic
    resumed
    tools/call pay [Bearer t1]
    refused: the scopes of the token do not suffice: write
    call 1 failed
    ");
    network.call("pay");
    insta::assert_snapshot!(network.run(), @"
    tools/call pay [Bearer t1]
    refused: the scopes of the token do not suffice: write
    call 2 failed
    ");
    assert_eq!(network.authorizations.len(), 3);
    // Another tool has its own limit.
    network.call("look");
    network.run();
    assert_eq!(network.authorizations.len(), 5);
}

#[test]
fn scopes_that_the_token_has_are_not_requested_again() {
    // Rule: [AUTHC-054].
    let mut network = picky("Bearer none");
    network.call("pay");
    network.run();
    assert_eq!(network.authorizations.len(), 2);
    network.call("look");
    insta::assert_snapshot!(network.run(), @"
    tools/call look [Bearer t1]
    refused: the scopes of the token do not suffice: write
    call 2 failed
    ");
}

#[test]
fn a_user_is_not_asked_for_the_same_scopes_again_if_the_server_names_none() {
    // Rule: [AUTHC-054].
    let mut network = TestNetwork::new(code());
    network.get(PRM, resource(r#","scopes_supported":["a"]"#));
    network.run();
    network.mcp = Box::new(|_| {
        let text = r#"Bearer error="insufficient_scope", error_description="Required: api.read""#;
        Some(challenge(403, text))
    });
    network.call("pay");
    insta::assert_snapshot!(network.run(), @"
    tools/call pay [Bearer t1]
    waiting
    GET https://mcp.example/.well-known/oauth-protected-resource/mcp
    GET https://as.example/.well-known/oauth-authorization-server
    no token: the scopes of the token do not suffice: Required: api.read
    refused: the scopes of the token do not suffice: Required: api.read
    call 1 failed
    ");
    // The metadata may name more scopes meanwhile.
    network.get(PRM, resource(r#","scopes_supported":["a","api.read"]"#));
    network.call("pay");
    network.run();
    assert_eq!(network.authorizations.len(), 2);
    assert_eq!(scope_of(&network, 1), Some("a api.read"));
}

#[test]
fn a_403_without_insufficient_scope_is_forwarded() {
    let mut network = TestNetwork::new(code());
    network.run();
    network.mcp = Box::new(|_| Some(challenge(403, r#"Bearer error="invalid_request""#)));
    network.call("echo");
    insta::assert_snapshot!(network.run(), @"
    tools/call echo [Bearer t1]
    call 1 failed
    ");
}

#[test]
fn a_step_up_never_uses_the_refresh_token() {
    let mut network = picky("Bearer t2");
    network.auth.forget(network.now);
    network.posts(TOKEN, [token("t1", r#","refresh_token":"r1""#), token("t2", "")]);
    network.accepted.push("Bearer t2".into());
    network.call("pay");
    let text = network.run();
    assert_eq!(text.matches("sign in").count(), 2, "{text}");
    assert!(!text.contains("refresh_token"), "{text}");
}

#[test]
fn a_client_without_a_user_steps_up_automatically() {
    // Rule: [AUTHC-053].
    let app = crate::network::client("app", Some(AS), crate::network::password("p"));
    let options = mcp_sansio_oauth::client::AuthorizationOptions::client_credentials();
    let mut network = TestNetwork::new(options.registered(app).expect("a client"));
    let mut refused = false;
    network.mcp = Box::new(move |request| {
        let first = request.field("authorization").is_some() && !refused;
        refused |= first;
        let text = r#"Bearer error="insufficient_scope", scope="more""#;
        first.then(|| challenge(403, text))
    });
    network.run();
    assert_eq!(network.last_to(TOKEN).form("scope").as_deref(), Some("more"));
}

#[test]
fn too_many_scopes_are_an_error() {
    let mut limits = mcp_sansio_oauth::client::AuthorizationLimits::DEFAULT;
    limits.scopes_max = 2;
    let mut network = TestNetwork::new(code().limits(limits));
    network.challenge = r#"scope="a b c""#.into();
    insta::assert_snapshot!(network.run(), @"
    load tokens for https://mcp.example/mcp: nothing
    waiting
    resumed
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
    let mut network = TestNetwork::new(code());
    network.post(TOKEN, token("t1", r#","scope":"a  b\u0007 \"c""#));
    let text = network.run();
    assert!(text.contains("authorized by https://as.example for a\n"), "{text}");
    let many = (0..257).map(|it| it.to_string()).collect::<Vec<_>>().join(" ");
    let mut network = TestNetwork::new(code());
    network.post(TOKEN, token("t1", &format!(r#","scope":"{many}""#)));
    let text = network.run();
    assert!(text.contains("no token: more than 256 scopes\n"), "{text}");
}

#[test]
fn an_operation_that_succeeded_may_be_stepped_up_again() {
    // Rule: [AUTHC-054].
    let mut network = TestNetwork::new(code());
    network.run();
    network.post(TOKEN, token("t1", r#","scope":"none""#));
    // Every second request is refused.
    let mut count = 0;
    network.mcp = Box::new(move |_| {
        count += 1;
        let text = r#"Bearer error="insufficient_scope", scope="write""#;
        (count % 2 == 1).then(|| challenge(403, text))
    });
    for authorizations in 2..6 {
        network.call("pay");
        let text = network.run();
        assert!(text.ends_with(" done\n"), "{text}");
        assert_eq!(network.authorizations.len(), authorizations);
    }
}

#[test]
fn a_list_that_no_caller_requested_asks_no_user_for_more_scopes() {
    let mut network = TestNetwork::new(code());
    network.reconnect_with(|options| options.limits(mcp_sansio::http::ClientLimits::DEFAULT));
    network.mcp = Box::new(|request| {
        let lists = request.asks() == "tools/list";
        lists.then(|| challenge(403, r#"Bearer error="insufficient_scope", scope="list""#))
    });
    network.run();
    network.call("echo");
    insta::assert_snapshot!(network.run(), @"
    tools/list [Bearer t1]
    tools/call echo [Bearer t1]
    call 1 done
    ");
    assert_eq!(network.authorizations.len(), 1);
}

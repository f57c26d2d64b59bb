//! Sessions of legacy revisions.

use core::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::peer::ClientMachine;

use crate::answers::{Answer, Reply, challenge, mcp_answer, status, token};
use crate::network::{PRM, TOKEN, TestNetwork, User, code};

fn session() -> TestNetwork {
    let mut network = TestNetwork::new(code());
    network.run();
    network.reconnect_at(Revision::V2025_11_25);
    network
}

#[test]
fn every_request_of_a_session_has_the_token() {
    // Rule: [AUTHC-043].
    let mut network = session();
    insta::assert_snapshot!(network.run(), @"
    initialize [Bearer t1]
    notifications/initialized [Bearer t1]
    GET https://mcp.example/mcp [Bearer t1]
    ");
    network.http.close(network.now);
    insta::assert_snapshot!(network.run(), @"DELETE https://mcp.example/mcp [Bearer t1]");
}

#[test]
fn ending_a_session_does_not_wait_for_a_user() {
    let mut network = session();
    network.run();
    network.accepted.clear();
    network.user = User::Stays;
    network.call("a");
    network.run();
    network.http.close(network.now);
    // The 401 is ignored.
    insta::assert_snapshot!(network.run(), @"
    DELETE https://mcp.example/mcp [Bearer t1]
    call 1 failed
    ");
}

#[test]
fn operations_are_distinguished_by_their_body() {
    // Rule: [AUTHC-054].
    let mut network = session();
    network.run();
    network.post(TOKEN, token("t1", r#","scope":"none""#));
    network.mcp = Box::new(|request| {
        let text = r#"Bearer error="insufficient_scope", scope="write""#;
        (request.asks() == "tools/call").then(|| challenge(403, text))
    });
    for (tool, authorizations) in [("a", 3), ("a", 3), ("b", 5), ("a", 5)] {
        network.call(tool);
        let text = network.run();
        assert!(
            text.contains("refused: the scopes of the token do not suffice: write\n"),
            "{text}"
        );
        assert_eq!(network.authorizations.len(), authorizations, "{tool}");
    }
}

fn events() -> (String, String) {
    ("content-type".into(), "text/event-stream".into())
}

#[test]
fn a_stream_that_is_refused_waits_for_another_token_and_asks_no_user() {
    let mut network = session();
    network.mcp = Box::new(|request| {
        let stream = || Answer::from(Reply { fields: vec![events()], ..Reply::new(200, "") });
        let known = request.field("authorization") == Some("Bearer t2");
        (request.method == "GET").then(|| if known { stream() } else { status(401) })
    });
    insta::assert_snapshot!(network.run(), @"
    initialize [Bearer t1]
    notifications/initialized [Bearer t1]
    GET https://mcp.example/mcp [Bearer t1]
    ");
    network.call("a");
    assert_eq!(network.advance(Duration::from_secs(60)), "tools/call [Bearer t1]\ncall 1 done\n");
    network.post(TOKEN, token("t2", ""));
    network.accepted = vec!["Bearer t2".into()];
    network.call("b");
    let text = network.run();
    assert!(
        text.contains("tools/call [Bearer t2]\nGET https://mcp.example/mcp [Bearer t2]\n"),
        "{text}"
    );
    // The server has accepted the stream, so that its next refusal matters.
    network.http.close(network.now);
    network.run();
    network.reconnect_at(Revision::V2025_11_25);
    network.mcp = Box::new(|request| (request.method == "GET").then(|| status(401)));
    network.user = User::Stays;
    assert!(network.run().ends_with("sign in at https://as.example/authorize\n"));
}

#[test]
fn a_stream_of_an_open_server_asks_no_user_before_a_call_needs_a_token() {
    let mut network = TestNetwork::new(code());
    network.reconnect_at(Revision::V2025_11_25);
    network.mcp = Box::new(|request| {
        let open = request.method == "POST" && request.field("mcp-name") != Some("b");
        open.then(|| mcp_answer(request))
    });
    network.run();
    network.call("a");
    let text = network.advance(Duration::from_secs(60));
    assert!(text.ends_with("call 1 done\n"), "{text}");
    assert!(network.authorizations.is_empty() && network.failures.is_empty());
    network.auth.close();
    assert_eq!(network.run(), "refused: the authorization was cancelled\n");
}

#[test]
fn a_refusal_with_403_of_a_request_without_a_token_is_one_with_401() {
    let mut network = TestNetwork::new(code());
    network.mcp = Box::new(|request| {
        let text = format!(r#"Bearer resource_metadata="{PRM}""#);
        request.field("authorization").is_none().then(|| challenge(403, &text))
    });
    assert!(network.run().ends_with("resumed\nserver/discover [Bearer t1]\n"));
    // With a token it is a refusal.
    network.mcp =
        Box::new(|_| Some(challenge(403, &format!(r#"Bearer resource_metadata="{PRM}""#))));
    network.call("a");
    assert_eq!(network.run(), "tools/call a [Bearer t1]\ncall 1 failed\n");
}

#[test]
fn a_stream_without_the_scopes_for_it_asks_no_user() {
    let mut network = session();
    network.mcp = Box::new(|request| {
        let text = r#"Bearer error="insufficient_scope", scope="stream""#;
        (request.method == "GET").then(|| challenge(403, text))
    });
    insta::assert_snapshot!(network.run(), @"
    initialize [Bearer t1]
    notifications/initialized [Bearer t1]
    GET https://mcp.example/mcp [Bearer t1]
    ");
    network.call("a");
    assert_eq!(network.advance(Duration::from_secs(60)), "tools/call [Bearer t1]\ncall 1 done\n");
}

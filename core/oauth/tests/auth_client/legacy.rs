//! Sessions of legacy revisions.

use mcp_sansio::Revision;
use mcp_sansio::peer::ClientMachine;

use crate::answers::{challenge, status, token};
use crate::network::{TOKEN, TestNetwork, User, code};

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

#[test]
fn a_stream_waits_for_its_token() {
    let mut network = session();
    network.mcp = Box::new(|request| {
        let bare = request.method == "GET" && request.field("authorization") == Some("Bearer t1");
        bare.then(|| status(401))
    });
    network.post(TOKEN, token("t2", ""));
    network.accepted.push("Bearer t2".into());
    let text = network.run();
    assert!(text.contains("GET https://mcp.example/mcp [Bearer t1]\nload tokens"), "{text}");
    assert!(text.contains("resumed\nGET https://mcp.example/mcp [Bearer t2]\n"), "{text}");
}

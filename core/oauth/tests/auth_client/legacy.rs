//! Sessions of older revisions.

use mcp_sansio::Revision;

use crate::answers::{challenge, status, token};
use crate::network::{TOKEN, TestNetwork, User, code};

fn session() -> TestNetwork {
    let mut world = TestNetwork::new(code());
    world.run();
    world.reconnect_at(Revision::V2025_11_25);
    world
}

#[test]
fn every_request_of_a_session_has_the_token() {
    // Rule: [AUTHC-043].
    let mut world = session();
    insta::assert_snapshot!(world.run(), @"
    initialize [Bearer t1]
    notifications/initialized [Bearer t1]
    GET https://mcp.example/mcp [Bearer t1]
    ");
    world.http.close(world.now);
    insta::assert_snapshot!(world.run(), @"DELETE https://mcp.example/mcp [Bearer t1]");
}

#[test]
fn the_end_of_a_session_waits_for_no_user() {
    let mut world = session();
    world.run();
    world.accepted.clear();
    world.user = User::Stays;
    world.call("a");
    world.run();
    world.http.close(world.now);
    // Its 401 is nobody's concern any more.
    insta::assert_snapshot!(world.run(), @"
    DELETE https://mcp.example/mcp [Bearer t1]
    call 1 failed
    ");
}

#[test]
fn operations_are_told_apart_by_what_the_body_says() {
    // Rule: [AUTHC-054].
    let mut world = session();
    world.run();
    world.post(TOKEN, token("t1", r#","scope":"none""#));
    world.mcp = Box::new(|request| {
        let text = r#"Bearer error="insufficient_scope", scope="write""#;
        (request.asks() == "tools/call").then(|| challenge(403, text))
    });
    for (tool, authorizations) in [("a", 3), ("a", 3), ("b", 5), ("a", 5)] {
        world.call(tool);
        let text = world.run();
        assert!(
            text.contains("refused: the scopes of the token do not suffice: write\n"),
            "{text}"
        );
        assert_eq!(world.authorizations.len(), authorizations, "{tool}");
    }
}

#[test]
fn a_stream_that_needs_a_token_waits_for_it() {
    let mut world = session();
    world.mcp = Box::new(|request| {
        let bare = request.method == "GET" && request.field("authorization") == Some("Bearer t1");
        bare.then(|| status(401))
    });
    world.post(TOKEN, token("t2", ""));
    world.accepted.push("Bearer t2".into());
    let text = world.run();
    assert!(text.contains("GET https://mcp.example/mcp [Bearer t1]\nload tokens"), "{text}");
    assert!(text.contains("goes on\nGET https://mcp.example/mcp [Bearer t2]\n"), "{text}");
}

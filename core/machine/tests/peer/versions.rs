//! The compatibility matrix: every kind of client with every kind of server.

use mcp_sansio::peer::{CloseReason, Event, OpeningFailure, ServerMachine};
use mcp_sansio::{Era, Revision, Revisions};

use crate::fixtures::*;
use crate::pair::Pair;
use crate::wire::{client, server};

/// The outcome that the rules require for two sets of revisions.
#[derive(Debug, PartialEq)]
enum Outcome {
    Opens(Revision),
    /// The server has no `initialize` and lists its revisions.
    RefusedByModern,
    /// The client has no `initialize`, which the server requires.
    NeedsHandshake,
    /// The server offers a revision that the client does not support.
    CounterOffer(Revision),
}

// MCP 2026-07-28 basic/versioning#compatibility-matrix
fn by_the_rules(client: Revisions, server: Revisions) -> Outcome {
    let modern = Revisions::MODERN;
    let newest = |set: Revisions, era| set.iter().rev().find(|revision| revision.era() == era);
    let both = client.intersection(server);
    if let Some(revision) = newest(both, Era::Modern) {
        return Outcome::Opens(revision);
    }
    let client_is_modern = !client.intersection(modern).is_empty();
    let server_is_modern = !server.intersection(modern).is_empty();
    assert!(!(client_is_modern && server_is_modern), "there is one modern revision");
    let Some(asked) = newest(client, Era::Legacy) else { return Outcome::NeedsHandshake };
    let Some(fallback) = newest(server, Era::Legacy) else { return Outcome::RefusedByModern };
    // [VER-003] [VER-004] [VER-005]: the same version, or the latest of the server.
    let answered = if server.contains(asked) { asked } else { fallback };
    if client.contains(answered) {
        Outcome::Opens(answered)
    } else {
        Outcome::CounterOffer(answered)
    }
}

fn observed(client: Revisions, server: Revisions) -> Outcome {
    let mut pair = Pair::new(plain_client().revisions(client), full_server().revisions(server));
    pair.drive();
    while pair.client.session().is_none() && pair.next_deadline().is_some() {
        let wait = pair.next_deadline().unwrap().saturating_since(pair.now);
        pair.advance(wait);
    }
    if let Some(session) = pair.client.session() {
        let opened = pair.client_events.iter().any(|event| matches!(event, Event::Opened(_)));
        assert!(opened, "told so");
        return Outcome::Opens(session.revision());
    }
    let Some(Event::Closed(CloseReason::OpeningFailed(failure))) = pair.client_events.back() else {
        panic!("neither open nor closed:\n{}", pair.take_transcript());
    };
    match failure {
        OpeningFailure::LegacyServer => Outcome::NeedsHandshake,
        OpeningFailure::UnknownRevision(version) => {
            Outcome::CounterOffer(Revision::parse(&version.decode::<String>().unwrap()).unwrap())
        }
        // [VER-017]: the error names the versions.
        OpeningFailure::NoCommonRevision(listed) => {
            assert_eq!(listed.as_str(), r#"["2026-07-28"]"#);
            Outcome::RefusedByModern
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_pair_of_revision_sets_has_the_outcome_of_the_matrix() {
    // Rule: [VER-002] [VER-003] [VER-004] [VER-005] [VER-006] [VER-008].
    let sets = || {
        (1_u32..32).map(|bits| {
            Revision::ALL
                .into_iter()
                .zip(0..)
                .filter(|(_, bit)| bits & (1 << bit) != 0)
                .fold(Revisions::NONE, |set, (r, _)| set.union(Revisions::only(r)))
        })
    };
    let mut opened = 0;
    for client in sets() {
        for server in sets() {
            let outcome = observed(client, server);
            assert_eq!(outcome, by_the_rules(client, server), "{client:?} to {server:?}");
            opened += usize::from(matches!(outcome, Outcome::Opens(_)));
        }
    }
    assert!(opened > 31 * 31 / 2, "{opened}");
}

#[test]
fn a_client_offers_a_version_that_it_supports() {
    // Rule: [VER-001].
    for first in LEGACY {
        for last in LEGACY.into_iter().filter(|last| *last >= first) {
            let revisions = Revisions::range(first, last);
            let mut wire = client(plain_client().revisions(revisions));
            let offer = wire.message()["params"]["protocolVersion"].clone();
            let offer = Revision::parse(offer.as_str().unwrap()).unwrap();
            assert!(revisions.contains(offer), "{offer} of {revisions:?}");
        }
    }
}

#[test]
fn a_server_responds_to_an_unknown_version_with_its_latest() {
    // Rule: [VER-004] [VER-005] [VER-010].
    for asked in ["1999-01-01", "2026-07-28", "latest"] {
        let mut wire = server(bare_server());
        wire.send(&initialize(asked, "{}"));
        assert_eq!(wire.message()["result"]["protocolVersion"], "2025-11-25", "{asked}");
    }
}

#[test]
fn an_unsupported_version_error_lists_the_supported_ones() {
    // Rule: [VER-012] [VER-010] [DISC-004].
    for asked in ["2025-11-25", "2099-01-01", "x\\\"y"] {
        let mut wire = server(bare_server());
        let line = modern("1", "tools/list", "").replace("2026-07-28", asked);
        wire.send(&line);
        let refused = wire.expect_error("1", -32022);
        let supported: Vec<_> = Revision::ALL.iter().rev().map(|r| r.as_str()).collect();
        assert_eq!(refused["error"]["data"]["supported"], serde_json::json!(supported));
        assert_eq!(refused["error"]["data"]["requested"], asked.replace('\\', ""));
    }
}

#[test]
fn a_modern_only_server_lists_its_versions_on_initialize() {
    // Rule: [VER-017] [LIFE-020].
    let mut wire = server(bare_server().revisions(Revisions::MODERN));
    wire.send(&initialize("2025-11-25", "{}"));
    let refused = wire.expect_error("1", -32601);
    assert_eq!(refused["error"]["data"]["supported"], serde_json::json!(["2026-07-28"]));
    assert!(refused["error"]["message"].as_str().unwrap().contains("2026-07-28"));
}

#[test]
fn both_eras_can_share_one_stream() {
    // Rule: [VER-015] [VER-016] [LIFE-009] [CAP-020].
    let mut wire = server_at(Revision::V2025_06_18, r#"{"roots":{}}"#, full_server());
    wire.send(&modern("2", "tools/call", r#""name":"t""#));
    wire.send(&request("3", "tools/call", r#"{"name":"t"}"#));
    let mut seen = Vec::new();
    for _ in 0..2 {
        let Event::Request(request) = wire.event() else { panic!("a request") };
        let roots = request.capabilities.contains(mcp_sansio::Capability::Roots);
        seen.push((request.revision, roots));
        wire.machine.respond_with(request.handle, &raw(r#"{"content":[]}"#), wire.now).unwrap();
    }
    assert_eq!(seen, [(Revision::V2026_07_28, false), (Revision::V2025_06_18, true)]);
    assert_eq!(wire.message()["result"]["resultType"], "complete");
    assert!(wire.message()["result"].get("resultType").is_none());
}

#[test]
fn a_client_disconnects_from_a_version_that_it_does_not_support() {
    // Rule: [VER-006] [VER-010] [LIFE-008].
    let unsupported = "this client does not support";
    for (version, why) in [
        (r#""2099-01-01""#, unsupported),
        ("20", unsupported),
        (r#""2026-07-28""#, "has no `initialize`"),
    ] {
        let mut wire = client(plain_client().revisions(Revisions::LEGACY));
        wire.line();
        wire.send(&result("1", &format!(r#"{{"protocolVersion":{version},"capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}"#)));
        assert_eq!(
            wire.told(),
            format!(
                "closed: could not open the connection: the server chose {version}, which {why}"
            )
        );
        assert!(wire.try_send(&request("1", "ping", "{}")).is_err());
        wire.expect_silence();
    }
}

#[test]
fn a_counter_offer_that_the_client_supports_is_accepted() {
    // Rule: [VER-004] [VER-007].
    let mut wire = client(plain_client().revisions(Revisions::LEGACY));
    assert!(wire.line().contains(r#""protocolVersion":"2025-11-25""#));
    wire.send(&result("1", r#"{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#));
    wire.expect(INITIALIZED);
    assert_eq!(wire.told(), "opened at 2024-11-05");
}

#[test]
fn a_legacy_only_server_ignores_modern_metadata() {
    // Rule: [VER-022] [META-001] [META-002] [RPC-026].
    let legacy = || full_server().revisions(Revisions::LEGACY);
    let mut wire = server(legacy());
    wire.checker.legacy_only = true;
    wire.send(&modern("1", "server/discover", ""));
    wire.expect_error("1", -32601);
    let mut wire = server_at(Revision::V2025_11_25, "{}", legacy());
    wire.checker.legacy_only = true;
    wire.send(&modern("2", "ping", ""));
    wire.expect(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    let odd = r#""name":"t","requestState":5,"inputResponses":[]"#;
    wire.send(&modern("3", "tools/call", odd));
    let Event::Request(request) = wire.event() else { panic!("a request") };
    assert_eq!(request.revision, Revision::V2025_11_25);
    assert!(request.inputs.is_empty());
}

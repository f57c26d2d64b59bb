//! Log messages: a level per session in the legacy era, per request in the modern one.

use mcp_sansio::Revision;
use mcp_sansio::peer::{CallOptions, ClientMachine, CommandError, Event, ServerMachine};
use mcp_sansio::{Instant, LoggingLevel, Method};

use crate::fixtures::*;
use crate::pair::Pair;
use crate::wire::server;

#[test]
fn a_log_level_has_the_same_effect_in_both_eras() {
    // Rule: [LOG-001] [LOG-002] [LOG-003] [LOG-004] [LOG-008].
    for revision in Revision::ALL {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        pair.client.set_log_level(LoggingLevel::Warning, pair.now).unwrap();
        let options = CallOptions::default();
        pair.client.call(Method::ToolsCall, &echo(), &options, pair.now).unwrap();
        pair.drive();
        let request = pair.request();
        for level in [LoggingLevel::Notice, LoggingLevel::Warning, LoggingLevel::Emergency] {
            let server = &mut pair.server;
            server
                .log(Some(request.handle), level, Some("l"), level.as_str(), Instant::ZERO)
                .unwrap();
        }
        pair.server.respond_with(request.handle, &raw("{}"), pair.now).unwrap();
        // Rule: [LOG-009]: nothing after the request has ended.
        pair.server.log(Some(request.handle), LoggingLevel::Alert, None, &1, pair.now).unwrap();
        pair.drive();
        let told: Vec<_> = pair
            .client_events
            .iter()
            .map(|event| match event {
                Event::Notification(message) => message.params.as_str().to_owned(),
                Event::Ended(_) => "ended".into(),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [
            r#"{"level":"warning","logger":"l","data":"warning"}"#,
            r#"{"level":"emergency","logger":"l","data":"emergency"}"#,
            "ended",
        ];
        assert_eq!(told, expected, "{revision}");
    }
}

#[test]
fn a_modern_request_without_a_level_gets_no_messages() {
    // Rule: [LOG-007] [LOG-009].
    let mut wire = server(full_server());
    wire.send(&modern("1", "tools/call", r#""name":"t""#));
    let Event::Request(request) = wire.event() else { panic!("a request") };
    wire.machine.log(Some(request.handle), LoggingLevel::Emergency, None, &1, wire.now).unwrap();
    wire.machine.log(None, LoggingLevel::Emergency, None, &1, wire.now).unwrap();
    wire.expect_silence();
    let level = |id: &str, level: &str| {
        let meta = format!(r#""io.modelcontextprotocol/logLevel":{level}"#);
        modern_with(id, "tools/call", r#""name":"t""#, "{}", &meta)
    };
    wire.send(&level("2", r#""error""#));
    assert!(wire.told().starts_with("request"));
    // Rule: [LOG-005].
    for odd in [r#""loud""#, "7"] {
        wire.send(&level("3", odd));
        wire.expect_error("3", -32602);
        assert!(wire.told().starts_with("violation"));
    }
}

#[test]
fn an_unknown_log_level_is_refused() {
    // Rule: [LOG-005] [LOG-003].
    for revision in LEGACY {
        let mut wire = server_at(revision, "{}", full_server());
        for params in [r#"{"level":"loud"}"#, "{}", r#"{"level":3}"#] {
            wire.send(&request("2", "logging/setLevel", params));
            wire.expect_error("2", -32602);
        }
        wire.send(&request("3", "logging/setLevel", r#"{"level":"debug"}"#));
        wire.expect(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
        wire.machine.log(None, LoggingLevel::Debug, None, &1, wire.now).unwrap();
        assert_eq!(wire.message()["params"]["data"], 1);
        wire.expect_silence();
    }
}

#[test]
fn a_server_without_the_logging_capability_sends_no_messages() {
    // Rule: [CAP-004] [CAP-018].
    for revision in LEGACY {
        let mut wire = server_at(revision, "{}", bare_server());
        wire.machine.log(None, LoggingLevel::Emergency, None, &1, wire.now).unwrap();
        wire.expect_silence();
        let mut pair = Pair::open_at(revision, plain_client(), bare_server());
        let refused = pair.client.set_log_level(LoggingLevel::Debug, pair.now);
        assert!(matches!(refused, Err(CommandError::Forbidden(_))));
    }
    let mut wire = server(
        bare_server().capabilities(
            mcp_sansio::protocol::ServerCapabilities::new()
                .tools(mcp_sansio::protocol::ToolsCapability::new()),
        ),
    );
    let meta = r#""io.modelcontextprotocol/logLevel":"debug""#;
    wire.send(&modern_with("1", "tools/call", r#""name":"t""#, "{}", meta));
    let Event::Request(request) = wire.event() else { panic!("a request") };
    wire.machine.log(Some(request.handle), LoggingLevel::Emergency, None, &1, wire.now).unwrap();
    wire.expect_silence();
}

#[test]
fn data_that_cannot_be_serialized_is_an_error_of_the_caller() {
    let mut wire = server_at(Revision::V2025_11_25, "{}", full_server());
    let odd = std::collections::BTreeMap::from([((1, 2), 3)]);
    assert!(wire.machine.log(None, LoggingLevel::Emergency, None, &odd, wire.now).is_err());
    wire.expect_silence();
}

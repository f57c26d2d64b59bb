//! The requests and notifications that may be sent or received, by revision, direction and declared
//! capability.

use mcp_sansio::gate::{GateError, MethodKind, TABLE};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{CallOptions, ClientMachine, CommandError, Event, ServerMachine};
use mcp_sansio::{Capabilities, Era, Method, Revision, Side};
use serde_json::json;

use crate::fixtures::*;
use crate::pair::Pair;
use crate::wire::server;

/// Methods that a machine sends without a command of its application.
const OWN: [Method; 6] = [
    Method::Initialize,
    Method::Initialized,
    Method::Cancelled,
    Method::Progress,
    Method::SubscriptionsListen,
    Method::SubscriptionsAcknowledged,
];

/// A request that a side may send, the capability that the peer must have declared (`{}`: none),
/// and the first and the last revision. The values are taken from the specification, not from the
/// table of the machines.
type Gated = (Side, Method, &'static str, Revision, Revision);

const GATED: [Gated; 16] = {
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};
    use Side::{Client, Server};
    [
        // Rule: [ROOT-001].
        (Server, Method::RootsList, r#"{"roots":{}}"#, V2024_11_05, V2025_11_25),
        // Rule: [SAMP-001].
        (Server, Method::SamplingCreateMessage, r#"{"sampling":{}}"#, V2024_11_05, V2025_11_25),
        // Rule: [ELIC-001].
        (Server, Method::ElicitationCreate, r#"{"elicitation":{}}"#, V2025_06_18, V2025_11_25),
        (Server, Method::Ping, "{}", V2024_11_05, V2025_11_25),
        // Rule: [PING-005].
        (Client, Method::Ping, "{}", V2024_11_05, V2025_11_25),
        // Rule: [LOG-006].
        (Client, Method::LoggingSetLevel, r#"{"logging":{}}"#, V2024_11_05, V2025_11_25),
        // Rule: [LIFE-006] [LIFE-007].
        (Client, Method::ToolsList, r#"{"tools":{}}"#, V2024_11_05, V2026_07_28),
        (Client, Method::ToolsCall, r#"{"tools":{}}"#, V2024_11_05, V2026_07_28),
        (Client, Method::PromptsList, r#"{"prompts":{}}"#, V2024_11_05, V2026_07_28),
        (Client, Method::PromptsGet, r#"{"prompts":{}}"#, V2024_11_05, V2026_07_28),
        (Client, Method::ResourcesList, r#"{"resources":{}}"#, V2024_11_05, V2026_07_28),
        (Client, Method::ResourcesTemplatesList, r#"{"resources":{}}"#, V2024_11_05, V2026_07_28),
        (Client, Method::ResourcesRead, r#"{"resources":{}}"#, V2024_11_05, V2026_07_28),
        // Rule: [RSRC-004] [RSRC-007].
        (
            Client,
            Method::ResourcesSubscribe,
            r#"{"resources":{"subscribe":true}}"#,
            V2024_11_05,
            V2025_11_25,
        ),
        // Rule: [CAP-006]: before there was a capability for it.
        (Client, Method::CompletionComplete, "{}", V2024_11_05, V2024_11_05),
        (Client, Method::CompletionComplete, r#"{"completions":{}}"#, V2025_03_26, V2026_07_28),
    ]
};

/// Returns whether a side may send a request to a peer with these capabilities.
fn may_send(side: Side, method: Method, revision: Revision, declared: &str) -> bool {
    GATED.iter().any(|(sender, sent, needed, first, last)| {
        (*sender, *sent) == (side, method)
            && (*first..=*last).contains(&revision)
            && (*needed == "{}" || *needed == declared)
    })
}

#[test]
fn a_request_is_sent_only_where_the_specification_allows_it() {
    let mut wrong = Vec::new();
    for (side, method, needed, ..) in GATED {
        for revision in Revision::ALL {
            if side == Side::Server && revision.era() == Era::Modern {
                continue;
            }
            for declared in ["{}", needed] {
                let (options, params) = (CallOptions::default(), RawJson::EMPTY_OBJECT);
                let sent = if side == Side::Client {
                    let mut wire = client_offered(revision, plain_client(), declared);
                    let called = wire.machine.call(method, &params, &options, wire.now);
                    assert_eq!(called.is_ok(), wire.machine.poll_transmit().is_some());
                    called.is_ok()
                } else {
                    let mut wire = server_at(revision, declared, full_server());
                    let called = wire.machine.call(method, &params, &options, wire.now);
                    assert_eq!(called.is_ok(), wire.machine.poll_transmit().is_some());
                    called.is_ok()
                };
                if sent != may_send(side, method, revision, declared) {
                    wrong.push(format!("{method} at {revision} with {declared}: sent {sent}"));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn undeclared_or_removed_methods_are_not_found() {
    // Rule: [CAP-026] [PING-005] [LOG-006] [RSRC-007].
    for (side, method, needed, ..) in GATED {
        for revision in Revision::ALL {
            if side == Side::Server || may_send(side, method, revision, "{}") {
                continue;
            }
            // If a declaration allows the method, without it; otherwise with all declarations.
            let gated = may_send(side, method, revision, needed);
            let options = if gated { bare_server() } else { full_server() };
            let (legacy, method) = (revision.era() == Era::Legacy, method.as_str());
            let mut wire =
                if legacy { server_at(revision, "{}", options) } else { server(options) };
            wire.send(&if legacy { request("7", method, "{}") } else { modern("7", method, "") });
            wire.expect_error("7", -32601);
        }
    }
}

#[test]
fn a_client_sends_only_methods_that_the_table_allows() {
    // Rule: [CAP-027].
    for revision in Revision::ALL {
        for (options, offers) in [(bare_server(), "{}"), (full_server(), OFFERS)] {
            let mut pair = Pair::open_at(revision, plain_client(), options);
            let declared = Capabilities::from_server_json(offers, revision).unwrap();
            for row in TABLE.iter().filter(|row| !OWN.contains(&row.method)) {
                let open = row.check(Side::Client, revision, Capabilities::NONE, declared);
                let call = CallOptions::default();
                let params = RawJson::EMPTY_OBJECT;
                let tried = match row.kind {
                    MethodKind::Request => {
                        pair.client.call(row.method, &params, &call, pair.now).map(|_| ())
                    }
                    MethodKind::Notification => pair.client.notify(row.method, &params, pair.now),
                };
                match (tried, open) {
                    (Ok(()), Ok(())) => {
                        assert!(pair.client.poll_transmit().is_some(), "{}", row.method);
                    }
                    (Err(CommandError::Forbidden(told)), Err(refusal)) => {
                        assert_eq!(told, refusal);
                        assert_eq!(pair.client.poll_transmit(), None, "{}", row.method);
                    }
                    other => panic!("{} at {revision}: {other:?}", row.method),
                }
            }
        }
    }
}

#[test]
fn a_server_sends_only_methods_that_the_table_allows() {
    // Rule: [CAP-018] [CAP-027] [RPC-030].
    for revision in LEGACY {
        for declared in ["{}", r#"{"roots":{},"sampling":{},"elicitation":{}}"#] {
            let mut wire = server_at(revision, declared, full_server());
            let client = Capabilities::from_client_json(declared, revision).unwrap();
            let offers = Capabilities::from_server_json(OFFERS, revision).unwrap();
            for row in TABLE.iter().filter(|row| row.kind == MethodKind::Request) {
                if OWN.contains(&row.method) {
                    continue;
                }
                let open = row.check(Side::Server, revision, client, offers);
                let params = RawJson::EMPTY_OBJECT;
                let call = CallOptions::default();
                let tried = wire.machine.call(row.method, &params, &call, wire.now);
                assert_eq!(tried.is_ok(), open.is_ok(), "{} at {revision}", row.method);
                assert_eq!(wire.machine.poll_transmit().is_some(), open.is_ok());
            }
        }
    }
}

#[test]
fn a_modern_server_sends_no_requests() {
    // Rule: [LIFE-017] [STDIO-012] [ELIC-027] [SAMP-019] [ROOT-005] [ELIC-021].
    let mut wire = server(full_server());
    let asking = json!({ "elicitation": { "url": {} }, "sampling": {}, "roots": {} }).to_string();
    wire.send(&modern_with("1", "server/discover", "", &asking, ""));
    wire.line();
    for row in TABLE {
        let params = RawJson::EMPTY_OBJECT;
        let tried = match row.kind {
            MethodKind::Request => {
                let options = CallOptions::default();
                wire.machine.call(row.method, &params, &options, wire.now).map(|_| ())
            }
            MethodKind::Notification => wire.machine.notify(row.method, &params, wire.now),
        };
        assert!(tried.is_err(), "{}", row.method);
        assert_eq!(wire.machine.poll_transmit(), None, "{}", row.method);
    }
}

#[test]
fn client_info_has_no_effect() {
    // Rule: [SEC-013].
    let said_to = |name: &str| {
        let mut wire = server(full_server());
        wire.send(&initialize("2025-11-25", "{}").replace(r#""name":"c""#, name));
        wire.line()
    };
    assert_eq!(said_to(r#""name":"c""#), said_to(r#""name":"root","title":"Administrator""#));
}

#[test]
fn a_client_request_without_its_capability_is_not_found() {
    // Rule: [CAP-027] [RPC-018].
    for revision in Revision::ALL {
        let legacy = revision.era() == Era::Legacy;
        let mut wire =
            if legacy { server_at(revision, "{}", bare_server()) } else { server(bare_server()) };
        let mut refused = 0;
        for (row, id) in TABLE.iter().zip(10..) {
            let open = row.check(Side::Client, revision, Capabilities::NONE, Capabilities::NONE);
            if row.kind == MethodKind::Notification || open.is_ok() {
                continue;
            }
            let (id, method) = (id.to_string(), row.method.as_str());
            wire.send(&if legacy { request(&id, method, "{}") } else { modern(&id, method, "") });
            wire.expect_error(&id, -32601);
            assert!(wire.told().starts_with("violation"));
            refused += 1;
        }
        assert!(refused > 10, "{refused} at {revision}");
    }
}

#[test]
fn a_notification_that_is_not_allowed_is_reported_and_never_answered() {
    // Rule: [RPC-013] [CAP-018].
    let mut wire = server_at(Revision::V2025_11_25, "{}", full_server());
    for method in [
        "notifications/roots/list_changed",
        "notifications/tools/list_changed",
        "notifications/message",
        "notifications/tasks",
    ] {
        wire.send(&notification(method, "{}"));
        assert!(wire.told().starts_with("violation"), "{method}");
        wire.expect_silence();
    }
    wire.send(&notification("notifications/unheard_of", "{}"));
    wire.expect_silence();
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    wire.send(&notification("notifications/elicitation/complete", "{}"));
    assert!(wire.told().starts_with("violation"));
    wire.expect_nothing();
}

#[test]
fn requests_and_notifications_are_not_mixed_up() {
    // Rule: [RPC-002] [RPC-012] [RPC-013] [RPC-018].
    let notifications =
        || TABLE.iter().filter(|row| row.kind == MethodKind::Notification).zip(10..);
    for revision in Revision::ALL {
        let legacy = revision.era() == Era::Legacy;
        let mut wire = if legacy {
            server_at(revision, r#"{"roots":{"listChanged":true}}"#, full_server())
        } else {
            server(full_server())
        };
        for (row, id) in notifications() {
            let (method, id) = (row.method.as_str(), id.to_string());
            wire.send(&if legacy { request(&id, method, "{}") } else { modern(&id, method, "") });
            wire.expect_error(&id, -32601);
            assert_eq!(wire.told(), "violation: a notification with an id");
        }
        for method in ["tools/call", "initialize", "ping"] {
            wire.send(&notification(method, r#"{"name":"t"}"#));
            assert_eq!(wire.told(), "violation: a request without an id");
            wire.expect_nothing();
        }
    }
    let mut wire = client_at(Revision::V2025_11_25, host());
    for (row, id) in notifications() {
        let id = id.to_string();
        wire.send(&request(&id, row.method.as_str(), "{}"));
        wire.expect_error(&id, -32601);
        assert_eq!(wire.told(), "violation: a notification with an id");
    }
    wire.send(&notification("roots/list", "{}"));
    assert_eq!(wire.told(), "violation: a request without an id");
    wire.expect_silence();
}

#[test]
fn a_confirmation_with_an_id_is_refused_and_opens_no_session() {
    // Rule: [RPC-002] [RPC-018].
    let mut wire = server(full_server());
    wire.send(&initialize("2025-11-25", "{}"));
    wire.line();
    wire.send(&request("5", "notifications/initialized", "{}"));
    wire.expect_error("5", -32601);
    assert_eq!(wire.told(), "violation: a notification with an id");
    wire.expect_silence();
    wire.send(INITIALIZED);
    assert_eq!(wire.told(), "opened at 2025-11-25");
    wire.expect_silence();
}

#[test]
fn an_unsupported_input_request_is_rejected_per_revision() {
    // Rule: [CAP-027] [ROOT-004] [ELIC-006] [SAMP-007].
    for revision in LEGACY {
        let mut wire = client_at(revision, plain_client());
        for (method, id) in
            ["roots/list", "sampling/createMessage", "elicitation/create", "tools/list"]
                .iter()
                .zip(1..)
        {
            wire.send(&request(&id.to_string(), method, "{}"));
            wire.expect_error(&id.to_string(), -32601);
            assert!(wire.told().starts_with("violation"), "{method} at {revision}");
        }
    }
    let mut wire = client_at(Revision::V2025_11_25, host());
    for (params, id) in
        [r#"{"mode":"url","url":"a:b","message":"m","elicitationId":"e"}"#, r#"{"mode":"odd"}"#]
            .iter()
            .zip(1..)
    {
        wire.send(&request(&id.to_string(), "elicitation/create", params));
        wire.expect_error(&id.to_string(), -32602);
        assert!(wire.told().starts_with("violation"));
    }
    wire.send(&request(
        "3",
        "sampling/createMessage",
        r#"{"messages":[],"maxTokens":1,"tools":[]}"#,
    ));
    wire.expect_error("3", -32602);
    // Before there were modes, the parameter has no meaning.
    let mut wire = client_at(Revision::V2025_06_18, host());
    wire.send(&request("1", "elicitation/create", r#"{"mode":"url","message":"m"}"#));
    assert!(wire.told().starts_with("input elicitation/create"));
}

#[test]
fn the_error_names_the_missing_client_capability() {
    // Rule: [CAP-021] [CAP-022] [CAP-025].
    let extension = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let capabilities: mcp_sansio::protocol::ServerCapabilities =
        serde_json::from_str(extension).unwrap();
    let mut wire = server(bare_server().capabilities(capabilities));
    wire.send(&modern("1", "tasks/get", r#""taskId":"t""#));
    let refused = wire.expect_error("1", -32021);
    assert_eq!(
        refused["error"]["data"]["requiredCapabilities"],
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
    );
    assert!(matches!(
        wire.event(),
        Event::Violation(mcp_sansio::peer::Violation::Forbidden(GateError::NotDeclared { .. }))
    ));
    wire.send(&modern_with("2", "tasks/get", r#""taskId":"t""#, extension, ""));
    assert!(wire.told().starts_with("request tasks/get"));
    // Rule: [CAP-020]: an earlier declaration has no effect.
    wire.send(&modern("3", "tasks/get", r#""taskId":"t""#));
    wire.expect_error("3", -32021);
}

#[test]
fn incomplete_modern_metadata_is_malformed() {
    // Rule: [META-009] [CAP-019] [RPC-016].
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let metas = [
        format!("{{{version}}}"),
        format!(r#"{{{version},"io.modelcontextprotocol/clientCapabilities":[1]}}"#),
        format!(r#"{{{version},"io.modelcontextprotocol/clientCapabilities":null}}"#),
        r#"{"io.modelcontextprotocol/protocolVersion":7,"io.modelcontextprotocol/clientCapabilities":{}}"#.into(),
        r#"{"io.modelcontextprotocol/clientCapabilities":{}}"#.into(),
        "7".into(),
        "{}".into(),
    ];
    for meta in metas {
        let mut wire = server(full_server());
        wire.send(&request("1", "tools/call", &format!(r#"{{"name":"t","_meta":{meta}}}"#)));
        wire.expect_error("1", -32602);
        assert!(wire.told().starts_with("violation"), "{meta}");
        wire.expect_silence();
    }
    // Rule: [META-010]: the client info is optional.
    let mut wire = server(full_server());
    wire.send(&modern("1", "tools/call", r#""name":"t""#));
    assert!(wire.told().starts_with("request"));
}

#[test]
fn a_tool_result_that_is_a_task_requires_the_extension() {
    // Rule: [RPC-022] [CAP-025] [TASK-027].
    let capabilities: mcp_sansio::protocol::ClientCapabilities =
        serde_json::from_str(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#).unwrap();
    let mut wire = client_at(Revision::V2026_07_28, plain_client().capabilities(capabilities));
    let options = CallOptions::default();
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.line();
    wire.send(&result("2", r#"{"resultType":"task","taskId":"t"}"#));
    assert!(wire.told().starts_with("ended with"));
    wire.machine.call(Method::PromptsGet, &raw(r#"{"name":"p"}"#), &options, wire.now).unwrap();
    wire.line();
    wire.send(&result("3", r#"{"resultType":"task","taskId":"t"}"#));
    assert!(wire.told().starts_with("failed: the answer is not valid"));
}

#[test]
fn an_input_request_beyond_the_declared_capabilities_is_not_sent() {
    // Rule: [ELIC-005] [SAMP-006] [CAP-014] [CAP-027].
    let cases = [
        (
            Method::ElicitationCreate,
            r#"{"mode":"url","message":"m","url":"a:b","elicitationId":"e"}"#,
        ),
        (Method::SamplingCreateMessage, r#"{"messages":[],"maxTokens":1,"tools":[]}"#),
    ];
    for (method, params) in cases {
        let declared = r#"{"sampling":{},"elicitation":{}}"#;
        let mut wire = server_at(Revision::V2025_11_25, declared, full_server());
        let options = CallOptions::default();
        let called = wire.machine.call(method, &raw(params), &options, wire.now);
        assert!(matches!(called, Err(CommandError::Forbidden(GateError::NotDeclared { .. }))));
        wire.expect_silence();
        let declared = r#"{"sampling":{"tools":{}},"elicitation":{"url":{}}}"#;
        let mut wire = server_at(Revision::V2025_11_25, declared, full_server());
        wire.machine.call(method, &raw(params), &options, wire.now).unwrap();
        assert_eq!(wire.message()["method"], method.as_str());
    }
}

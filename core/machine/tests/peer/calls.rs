//! Calls and their responses, and mistakes of a caller.

use mcp_sansio::jsonrpc::{AsJson, ErrorObject};
use mcp_sansio::peer::{
    CallOptions, ClientMachine, ClientOptions, CommandError, Event, Failure, Limits, Request,
    ServerMachine,
};
use mcp_sansio::protocol::{CacheHints, CallToolParams, CallToolResult};
use mcp_sansio::{Era, ErrorCode, Method, Revision};
use serde_json::json;

use crate::fixtures::*;
use crate::pair::Pair;
use crate::wire::Wire;

fn limited(options: ClientOptions, change: impl FnOnce(&mut Limits)) -> ClientOptions {
    let mut limits = Limits::DEFAULT;
    change(&mut limits);
    options.limits(limits)
}

fn call(pair: &mut Pair) -> Request<'static> {
    let options = CallOptions::default();
    pair.client.call(Method::ToolsCall, &echo(), &options, pair.now).unwrap();
    pair.drive();
    pair.request()
}

#[test]
fn a_call_and_its_response_at_each_revision() {
    // Rule: [RPC-006] [RPC-019] [META-008] [META-011].
    let mut transcript = String::new();
    for revision in Revision::ALL {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        let request = call(&mut pair);
        assert_eq!(request.revision, revision);
        pair.server.respond(request.handle, &CallToolResult::text("hi"), pair.now).unwrap();
        pair.drive();
        assert!(pair.ended().outcome.is_ok());
        transcript.push_str(&format!("{revision}\n{}", pair.take_transcript()));
    }
    insta::assert_snapshot!(transcript);
}

#[test]
fn typed_parameters_are_written_for_the_revision() {
    // Rule: [LIFE-006] [LIFE-007].
    for revision in Revision::ALL {
        let mut wire = client_at(revision, plain_client());
        let params = CallToolParams::new("echo");
        let options = CallOptions::default();
        wire.machine.call_typed(Method::ToolsCall, &params, &options, wire.now).unwrap();
        assert_eq!(wire.message()["params"]["name"], "echo");
    }
}

#[test]
fn ids_are_never_reused() {
    // Rule: [RPC-004] [RPC-005].
    for revision in Revision::ALL {
        let mut wire = client_at(revision, plain_client());
        for id in 2..20 {
            let options = CallOptions::default();
            let call = wire.machine.call(Method::ToolsList, &raw("{}"), &options, wire.now);
            assert_eq!(wire.message()["id"], id);
            match id % 3 {
                0 => wire.send(&result(&id.to_string(), r#"{"tools":[]}"#)),
                1 => wire.send(&error(&id.to_string(), -32603, "")),
                _ => {
                    wire.machine.cancel(call.unwrap(), "", wire.now);
                    assert_eq!(wire.message()["method"], "notifications/cancelled");
                }
            }
            assert!(matches!(wire.event(), Event::Ended(_)));
        }
    }
}

#[test]
fn an_error_of_the_server_is_distinguished_from_local_failures() {
    // Rule: [RPC-008] [RPC-029].
    for revision in Revision::ALL {
        let mut wire = client_at(revision, plain_client());
        let options = CallOptions::default();
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        wire.line();
        wire.send(&error("2", -32001, r#","data":[1]"#));
        let Event::Ended(ended) = wire.event() else { panic!("an end") };
        let Err(Failure::Refused(refused)) = ended.outcome else { panic!("an error") };
        assert_eq!(refused.code, ErrorCode(-32001));
        assert_eq!(refused.data.unwrap().as_str(), "[1]");
    }
}

#[test]
fn the_type_of_a_result_determines_the_outcome() {
    // Rule: [RPC-020] [RPC-021] [RPC-022].
    let told = |revision, text: &str| {
        let mut wire = client_at(revision, plain_client());
        let options = CallOptions::default();
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        wire.line();
        wire.send(&result("2", text));
        wire.told()
    };
    let modern = Revision::V2026_07_28;
    assert_eq!(told(modern, r#"{"content":[]}"#), r#"ended with {"content":[]}"#);
    assert!(told(modern, r#"{"resultType":"complete"}"#).starts_with("ended with"));
    assert!(told(modern, r#"{"resultType":null}"#).starts_with("ended with"));
    let unknown = "failed: the answer is not valid: `resultType` is not `complete`, \
                   `input_required` or `task`";
    let task =
        "failed: the answer is not valid: a task, which this client does not accept for the method";
    for (odd, expected) in [("\"half\"", unknown), ("\"task\"", task), ("7", unknown)] {
        let told = told(modern, &format!(r#"{{"resultType":{odd}}}"#));
        assert_eq!(told, expected, "{odd}");
    }
    // In the legacy era the member has no meaning.
    // The first of two is used, wherever it is, behind more members than are indexed, or escaped.
    let many: String = (0..40).map(|number| format!(r#""m{number}":[{number}],"#)).collect();
    for before in ["", r#""content":[{"resultType":"half"}],"#, many.as_str()] {
        for name in ["resultType", r"result\u0054ype"] {
            let complete = format!(r#"{{{before}"{name}":"complete","resultType":"half"}}"#);
            assert!(told(modern, &complete).starts_with("ended with"), "{complete}");
            let odd = format!(r#"{{{before}"{name}":"half","resultType":"complete"}}"#);
            let told = told(modern, &odd);
            assert_eq!(told, unknown, "{odd}");
        }
    }
    let told = told(Revision::V2025_11_25, r#"{"resultType":"half"}"#);
    assert!(told.starts_with("ended with"));
}

#[test]
fn modern_results_have_the_members_that_the_era_requires() {
    // Rule: [RPC-019] [META-011] [CACHE-001] [RPC-010].
    let completed = |method: &str, members: &str, text: &str| {
        let mut wire = crate::wire::server(full_server().cache(CacheHints::default()));
        wire.send(&modern("1", method, members));
        let Event::Request(request) = wire.event() else { panic!("a request") };
        wire.machine.respond_with(request.handle, &raw(text), wire.now).unwrap();
        wire.message()["result"].clone()
    };
    let name = json!({ "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" } });
    let call = |text| completed("tools/call", r#""name":"t""#, text);
    assert_eq!(call("{}"), json!({ "resultType": "complete", "_meta": name }));
    assert_eq!(
        call(r#"{"content":[], "_meta": {} }"#),
        json!({ "content": [], "resultType": "complete", "_meta": name })
    );
    for other in [r#"{"_meta":null,"a":1}"#, r#"{"a":1,"_meta":[]}"#, r#"{"_meta":7,"a":1}"#] {
        assert_eq!(call(other), json!({ "a": 1, "resultType": "complete", "_meta": name }));
    }
    let mut both = name.clone();
    both["a/b"] = json!(1);
    assert_eq!(
        call(r#"{ "_meta":{"a/b":1},"resultType":"complete"}"#),
        json!({ "resultType": "complete", "_meta": both })
    );
    let own = json!({ "io.modelcontextprotocol/serverInfo": { "name": "x", "version": "2" } });
    assert_eq!(
        call(&json!({ "_meta": own }).to_string()),
        json!({ "resultType": "complete", "_meta": own })
    );
    let read = |text| completed("resources/read", r#""uri":"a:b""#, text);
    assert_eq!(
        read(r#"{"contents":[]}"#),
        json!({ "contents": [], "resultType": "complete", "_meta": name, "ttlMs": 0, "cacheScope": "private" })
    );
    assert_eq!(
        read(r#"{"contents":[],"ttlMs":5,"cacheScope":"public"}"#),
        json!({ "contents": [], "resultType": "complete", "_meta": name, "ttlMs": 5, "cacheScope": "public" })
    );
}

#[test]
fn error_codes_are_mapped_to_those_of_the_revision() {
    // Rule: [RPC-023] [RPC-025] [RPC-026] [RPC-027].
    let legacy = [(-32002, -32002), (-32022, -32603), (-32000, -32000), (-1, -1), (-32602, -32602)];
    let modern = [(-32002, -32602), (-32042, -32603), (-32000, -32603), (5, 5), (-32021, -32021)];
    for revision in Revision::ALL {
        let cases = if revision.era() == Era::Legacy { legacy } else { modern };
        for (given, sent) in cases {
            let mut pair = Pair::open_at(revision, plain_client(), full_server());
            let request = call(&mut pair);
            pair.server
                .reject(request.handle, ErrorObject::new(ErrorCode(given), "no"), pair.now)
                .unwrap();
            pair.drive();
            let Err(Failure::Refused(refused)) = pair.ended().outcome else { panic!("an error") };
            assert_eq!(refused.code, ErrorCode(sent), "{given} at {revision}");
        }
    }
}

#[test]
fn the_error_code_for_url_elicitation_exists_at_one_revision_only() {
    // Rule: [ELIC-020] [ELIC-021].
    for revision in Revision::ALL {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        let request = call(&mut pair);
        let error = ErrorObject::new(ErrorCode::URL_ELICITATION_REQUIRED, "Sign in first");
        pair.server.reject(request.handle, error, pair.now).unwrap();
        pair.drive();
        let Err(Failure::Refused(refused)) = pair.ended().outcome else { panic!("an error") };
        let sent = if revision == Revision::V2025_11_25 { -32042 } else { -32603 };
        assert_eq!(refused.code, ErrorCode(sent), "{revision}");
    }
}

#[test]
fn a_request_is_answered_once() {
    for revision in Revision::ALL {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        let request = call(&mut pair);
        pair.server.respond_with(request.handle, &raw("{}"), pair.now).unwrap();
        let again = pair.server.respond_with(request.handle, &raw("{}"), pair.now);
        assert!(matches!(again, Err(CommandError::NotDue)));
        let again = pair.server.reject(request.handle, ErrorObject::internal("no"), pair.now);
        assert!(matches!(again, Err(CommandError::NotDue)));
        // The table slot is reused, but not the handle.
        let next = call(&mut pair);
        assert_ne!(next.handle, request.handle);
        let stale = pair.server.respond_with(request.handle, &raw("{}"), pair.now);
        assert!(matches!(stale, Err(CommandError::NotDue)));
    }
}

#[test]
fn a_result_that_cannot_be_written_is_an_internal_error_to_the_client() {
    // Rule: [RPC-010] [RPC-016].
    for revision in Revision::ALL {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        for _ in 0..2 {
            let request = call(&mut pair);
            let answered = pair.server.respond_with(request.handle, &AsJson(&[1, 2]), pair.now);
            assert!(matches!(answered, Err(CommandError::NotWritable(_))), "{answered:?}");
            pair.drive();
            let Err(Failure::Refused(refused)) = pair.ended().outcome else { panic!("an error") };
            assert_eq!(refused.code, ErrorCode::INTERNAL_ERROR);
        }
    }
}

#[test]
fn an_invalid_call_sends_nothing() {
    for revision in Revision::ALL {
        let options = limited(plain_client(), |limits| limits.calls_in_flight_max = 1);
        let mut wire = client_at(revision, options);
        let options = CallOptions::default();
        let list = raw("[1]");
        let called = wire.machine.call(Method::ToolsCall, &list, &options, wire.now);
        assert!(matches!(called, Err(CommandError::NotWritable(_))));
        wire.expect_silence();
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        wire.line();
        let called = wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now);
        assert!(matches!(called, Err(CommandError::TooManyCalls { limit: 1 })));
        wire.expect_silence();
    }
}

#[test]
fn a_notification_cannot_be_called_and_a_request_cannot_be_notified() {
    // Rule: [RPC-002] [RPC-012] [LIFE-001].
    for revision in Revision::ALL {
        let mut wire = client_at(revision, host());
        let options = CallOptions::default();
        for method in
            [Method::Cancelled, Method::Initialized, Method::RootsListChanged, Method::Initialize]
        {
            let called = wire.machine.call(method, &raw("{}"), &options, wire.now);
            assert!(called.is_err(), "{method} at {revision}");
        }
        for method in [Method::ToolsList, Method::Ping, Method::Initialized, Method::Cancelled] {
            assert!(
                wire.machine.notify(method, &raw("{}"), wire.now).is_err(),
                "{method} at {revision}"
            );
        }
        wire.expect_silence();
    }
    let mut wire = server_at(Revision::V2025_11_25, r#"{"roots":{}}"#, full_server());
    let options = CallOptions::default();
    for method in [Method::Cancelled, Method::Progress, Method::ToolsListChanged] {
        assert!(wire.machine.call(method, &raw("{}"), &options, wire.now).is_err(), "{method}");
    }
    wire.expect_silence();
}

#[test]
fn a_server_notifies_what_the_revision_and_the_client_allow() {
    // Rule: [ELIC-017] [CAP-018].
    let params = raw(r#"{"elicitationId":"e"}"#);
    let url = r#"{"elicitation":{"url":{}}}"#;
    let mut wire = server_at(Revision::V2025_11_25, url, full_server());
    wire.machine.notify(Method::ElicitationComplete, &params, wire.now).unwrap();
    wire.expect(
        r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e"}}"#,
    );
    for method in [Method::Message, Method::ResourcesUpdated, Method::Progress, Method::Ping] {
        assert!(wire.machine.notify(method, &raw("{}"), wire.now).is_err(), "{method}");
    }
    wire.expect_silence();
    let mut wire = server_at(Revision::V2025_11_25, "{}", full_server());
    assert!(wire.machine.notify(Method::ElicitationComplete, &params, wire.now).is_err());
    let mut wire = server_at(Revision::V2025_06_18, r#"{"elicitation":{}}"#, full_server());
    assert!(wire.machine.notify(Method::ElicitationComplete, &params, wire.now).is_err());
    wire.expect_silence();
}

#[test]
fn the_metadata_of_the_caller_is_added_and_cannot_replace_that_of_the_machine() {
    // Rule: [META-001] [META-008] [PROG-001].
    let meta = r#"{"a/b":{"c":1},"progressToken":"mine","io.modelcontextprotocol/protocolVersion":"1","traceparent":"00"}"#;
    for revision in Revision::ALL {
        let mut wire = client_at(revision, plain_client());
        let options = CallOptions::default().meta(raw(meta)).progress();
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
        let sent = &wire.message()["params"]["_meta"];
        assert_eq!(sent["a/b"], json!({ "c": 1 }));
        assert_eq!(sent["traceparent"], "00");
        assert_eq!(sent["progressToken"], 2);
        assert_ne!(sent["io.modelcontextprotocol/protocolVersion"], "1");
    }
}

#[test]
fn a_method_of_an_extension_is_called_and_served() {
    // Rule: [CAP-025] [RPC-018].
    for revision in Revision::ALL {
        let deliver = || {
            let mut policy = mcp_sansio::peer::Policy::default();
            policy.deliver_unknown_methods = true;
            policy
        };
        let mut pair = Pair::open_at(revision, plain_client(), full_server().policy(deliver()));
        let options = CallOptions::default();
        pair.client.call_other("x/y", &raw(r#"{"a":1}"#), &options, pair.now).unwrap();
        pair.drive();
        let request = pair.request();
        assert_eq!(request.method.as_str(), "x/y");
        pair.server.respond_with(request.handle, &raw(r#"{"b":2}"#), pair.now).unwrap();
        pair.drive();
        assert!(pair.ended().outcome.unwrap().as_str().starts_with(r#"{"b":2"#));
        // By default the method is unknown.
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        pair.client.call_other("x/y", &raw("{}"), &options, pair.now).unwrap();
        pair.drive();
        let Err(Failure::Refused(refused)) = pair.ended().outcome else { panic!("an error") };
        assert_eq!(refused.code, ErrorCode::METHOD_NOT_FOUND);
    }
}

#[test]
fn a_server_can_call_legacy_clients_only() {
    // Rule: [RPC-030] [LIFE-017].
    for revision in LEGACY {
        let mut wire = server_at(revision, r#"{"roots":{}}"#, full_server());
        let options = CallOptions::default();
        wire.machine.call(Method::RootsList, &raw("{}"), &options, wire.now).unwrap();
        wire.expect(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{}}"#);
        wire.send(&result("1", r#"{"roots":[]}"#));
        assert_eq!(wire.told(), r#"ended with {"roots":[]}"#);
    }
    let mut pair = Pair::open_at(Revision::V2026_07_28, host(), full_server());
    let options = CallOptions::default();
    let called = pair.server.call(Method::RootsList, &raw("{}"), &options, pair.now);
    assert!(matches!(called, Err(CommandError::NotOpen)));
}

#[test]
fn cancelling_a_finished_call_sends_nothing() {
    // Rule: [CANC-006].
    let mut wire: Wire<_> = client_at(Revision::V2025_11_25, plain_client());
    let options = CallOptions::default();
    let call = wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    wire.line();
    wire.send(&result("2", "{}"));
    wire.told();
    wire.machine.cancel(call, "too late", wire.now);
    wire.expect_silence();
}

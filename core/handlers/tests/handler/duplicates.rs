//! Requests that repeat a member, from clients that try to make one reader check the first value
//! and another act on the last. The members are read from the schemas.

use std::collections::BTreeMap;

use mcp_sansio::gate::MethodKind;
use mcp_sansio::http::HttpServerOptions;
use mcp_sansio::{Era, Method, Revision, Side};
use serde_json::{Value, json};

use crate::duplicate_members::{
    Line, Log, META, Peer, TOKEN, Transport, VIOLATION, message, server, ways,
};
use crate::protected_server::{ProtectedServer, legacy_call};
use crate::spec::Schema;

/// A method and the members of its parameters, each with its schema.
pub(crate) struct Described {
    pub(crate) method: Method,
    pub(crate) members: Vec<(String, Value)>,
}

/// Returns the requests or the notifications that a side sends, from the schema of a revision and
/// that of tasks.
pub(crate) fn described(revision: Revision, side: Side, kind: MethodKind) -> Vec<Described> {
    let mut found: Vec<Described> = Vec::new();
    let mut schemas = vec![revision.as_str()];
    if revision.era() == Era::Modern {
        schemas.push("ext-tasks");
    }
    for schema in schemas {
        let schema = Schema::load(schema);
        for name in schema.names() {
            let definition = schema.definition(name).unwrap();
            if definition.get("anyOf").is_some() {
                continue;
            }
            let (members, _) = schema.members(definition, None);
            let member = |name| members.iter().rfind(|(key, _)| *key == name).map(|(_, it)| *it);
            let method = member("method").and_then(|it| Method::parse(it["const"].as_str()?));
            let Some(method) = method else { continue };
            let sent = method.row().side(side).revisions.contains(revision);
            if method.row().kind != kind || !sent {
                continue;
            }
            let params = member("params").map(|it| schema.members(it, None).0).unwrap_or_default();
            // Alternatives of a schema list a member more than once.
            let members: BTreeMap<String, Value> = params
                .into_iter()
                .map(|(key, it)| {
                    let nested = schema.members(it, None).0;
                    let nested = nested.into_iter().map(|(key, it)| (key.clone(), it.clone()));
                    (key.clone(), Value::Object(nested.collect()))
                })
                .collect();
            found.push(Described { method, members: members.into_iter().collect() });
        }
    }
    assert!(!found.is_empty(), "{revision}");
    found
}

/// Returns two values for a member: a harmless one, and one that an attacker would try to pass with
/// it.
fn values(method: Method, member: &str, revision: Revision) -> (Value, Value) {
    let (name, other) = match method {
        Method::PromptsGet => ("open", "secret"),
        _ => ("who", "delete"),
    };
    match member {
        "name" => (json!(name), json!(other)),
        "uri" => (json!("mem://public"), json!("mem://secret")),
        "arguments" | "context" | "task" | "capabilities" | "inputResponses" => {
            (json!({}), json!({ "a": {} }))
        }
        "notifications" => (json!({}), json!({ "toolsListChanged": true })),
        "ref" => {
            (json!({ "type": "ref/prompt", "name": "open" }), json!({ "type": "ref/resource" }))
        }
        "argument" => (json!({ "name": "a", "value": "b" }), json!({ "name": "c", "value": "d" })),
        "clientInfo" => (json!({ "name": "c", "version": "1" }), json!({})),
        "protocolVersion" => (json!(revision.as_str()), json!("2026-07-28")),
        "level" => (json!("info"), json!("debug")),
        "messages" => {
            let content = json!({ "type": "text", "text": "t" });
            (json!([{ "role": "user", "content": content }]), json!([]))
        }
        "requestedSchema" => (json!({ "type": "object", "properties": {} }), json!({})),
        "maxTokens" | "requestId" | "progress" | "total" | "progressToken" => (json!(1), json!(2)),
        "mode" => (json!("form"), json!("url")),
        "_meta" if revision.era() == Era::Modern => {
            let meta: Value = serde_json::from_str(&format!("{{{META}}}")).unwrap();
            (meta["_meta"].clone(), json!({ "progressToken": 1 }))
        }
        "_meta" => (json!({}), json!({ "progressToken": 1 })),
        _ => (json!("a"), json!("b")),
    }
}

/// Returns the member that a header repeats.
fn subject_of(method: Method) -> &'static str {
    if method == Method::ResourcesRead { "uri" } else { "name" }
}

/// Returns the key with its first letter as an escape.
pub(crate) fn escaped(key: &str) -> String {
    let (first, rest) = key.split_at(1);
    format!(r"\u{:04x}{rest}", first.as_bytes()[0])
}

/// Returns the members that a method requires, without one of them and without braces.
pub(crate) fn others(described: &Described, without: &str, revision: Revision) -> String {
    let wanted = [
        "name",
        "uri",
        "ref",
        "argument",
        "level",
        "taskId",
        "notifications",
        "_meta",
        "messages",
        "maxTokens",
        "message",
        "requestedSchema",
    ];
    let opening = ["protocolVersion", "capabilities", "clientInfo"];
    let mut text = String::new();
    for (key, _) in &described.members {
        let first = matches!(described.method, Method::Initialize) && opening.contains(&&**key);
        if key != without && (first || wanted.contains(&&**key)) {
            let value = values(described.method, key, revision).0;
            text.push_str(&format!(",{}:{value}", json!(key)));
        }
    }
    if revision.era() == Era::Modern && without != "_meta" && !text.contains(r#""_meta""#) {
        text.push(',');
        text.push_str(META);
    }
    text
}

/// Returns parameters with a member twice, in every order and spelling, and the header value for
/// each.
pub(crate) fn repeats(
    described: &Described,
    key: &str,
    revision: Revision,
) -> Vec<(String, [Option<String>; 2])> {
    let others = others(described, key, revision);
    let (harmless, wanted) = values(described.method, key, revision);
    let spelled = escaped(key);
    let subject = subject_of(described.method);
    let subjects = [&harmless, &wanted].map(|value| match key == subject {
        true => value.as_str().map(String::from),
        false => values(described.method, subject, revision).0.as_str().map(String::from),
    });
    let mut found = Vec::new();
    let spellings = [(key, key), (&spelled, key), (key, &spelled)];
    for (first, second, spelled) in [
        (&harmless, &wanted, 3),
        (&wanted, &harmless, 3),
        (&harmless, &harmless, 1),
        (&harmless, &json!(null), 1),
        (&json!(1), &harmless, 1),
    ] {
        for (one, two) in &spellings[..spelled] {
            let text = format!(r#"{{"{one}":{first}{others},"{two}":{second}}}"#);
            found.push((text, subjects.clone()));
            let text = format!(r#"{{"{one}":{first},"{two}":{second}{others}}}"#);
            found.push((text, subjects.clone()));
        }
    }
    found
}

#[test]
fn a_repeated_name_does_not_extend_the_scopes_of_a_token() {
    // Rule: [AUTHS-015] [HSRV-023].
    let revisions = [Revision::V2025_03_26, Revision::V2025_11_25, Revision::V2026_07_28];
    let mut ran = Vec::new();
    for revision in revisions {
        let mut peer = Peer::new(Transport::Http, revision);
        for (method, members) in [
            ("tools/call", r#""name":"who","name":"delete","arguments":{}"#),
            ("tools/call", r#""name":"delete","name":"who","arguments":{}"#),
            ("prompts/get", r#""name":"open","name":"secret""#),
            ("prompts/get", r#""name":"secret","name":"open""#),
            ("resources/read", r#""uri":"mem://public","uri":"mem://secret""#),
            ("resources/read", r#""uri":"mem://secret","uri":"mem://public""#),
        ] {
            for name in ["who", "delete", "open", "secret", "mem://public", "mem://secret"] {
                peer.ask(method, Some(name), members);
                ran.extend(peer.ran().into_iter().map(|it| (revision, members, name, it)));
            }
        }
    }
    assert!(ran.is_empty(), "{ran:#?}");
}

#[test]
fn a_request_that_repeats_a_member_of_its_schema_reaches_no_handler() {
    // Rule: [AUTHS-015] [HSRV-023] [HDR-025].
    let mut cases = 0;
    for (way, revision) in ways() {
        let mut peer = Peer::new(way, revision);
        for described in described(revision, Side::Client, MethodKind::Request) {
            let method = described.method.as_str();
            for (key, _) in &described.members {
                for (params, subjects) in repeats(&described, key, revision) {
                    let both = if subjects[0] == subjects[1] { 1 } else { 2 };
                    for name in &subjects[..both] {
                        peer.expect_refusal(method, name.as_deref(), &params, key);
                        cases += 1;
                    }
                }
            }
        }
    }
    assert!(cases > 5_000, "{cases}");
}

#[test]
fn a_call_with_task_parameters_is_checked_like_any_other() {
    for way in [Transport::Stream, Transport::Http] {
        let mut peer = Peer::new(way, Revision::V2025_11_25);
        for (params, member) in [
            (r#"{"task":{},"name":"who","name":"delete"}"#, "`name`"),
            (r#"{"name":"delete","task":{},"name":"who"}"#, "`name`"),
            (r#"{"task":null,"name":"who","task":{}}"#, "`task`"),
            (r#"{"task":{"ttl":1,"ttl":2},"name":"who"}"#, "`task.ttl`"),
        ] {
            peer.expect_refusal("tools/call", None, params, member);
        }
        let created = peer.ask("tools/call", None, r#""task":{},"name":"who""#);
        assert!(created["result"]["task"]["taskId"].is_string(), "{created}");
    }
}

#[test]
fn a_repeat_inside_a_member_is_refused() {
    let mut cases = 0;
    for (way, revision) in ways() {
        let mut peer = Peer::new(way, revision);
        for described in described(revision, Side::Client, MethodKind::Request) {
            for (key, nested) in &described.members {
                // The application names the keys in these, or another test covers them.
                if ["arguments", "inputResponses", "_meta"].contains(&&**key) {
                    continue;
                }
                let others = others(&described, key, revision);
                let subject = subject_of(described.method);
                let name = values(described.method, subject, revision).0;
                for inner in nested.as_object().unwrap().keys() {
                    for again in [inner.clone(), escaped(inner)] {
                        let object = format!(r#"{{"{inner}":1,"{again}":1}}"#);
                        let params = format!(r#"{{"{key}":{object}{others}}}"#);
                        let method = described.method.as_str();
                        peer.expect_refusal(method, name.as_str(), &params, inner);
                        cases += 1;
                    }
                }
            }
        }
    }
    assert!(cases > 200, "{cases}");
}

#[test]
fn every_key_of_the_metadata_may_occur_only_once() {
    for (way, revision) in ways() {
        let mut peer = Peer::new(way, revision);
        for key in [
            "progressToken",
            "traceparent",
            "tracestate",
            "baggage",
            "io.modelcontextprotocol/protocolVersion",
            "io.modelcontextprotocol/clientInfo",
            "io.modelcontextprotocol/clientCapabilities",
            "io.modelcontextprotocol/logLevel",
            "io.modelcontextprotocol/subscriptionId",
            "io.modelcontextprotocol/serverInfo",
            "io.modelcontextprotocol/related-task",
            "io.modelcontextprotocol/model-immediate-response",
        ] {
            let known = META.strip_suffix('}').unwrap().strip_prefix(r#""_meta":{"#).unwrap();
            let twice = format!(r#""{key}":"a","{}":"b""#, escaped(key));
            for meta in [format!("{known},{twice}"), format!("{twice},{known}")] {
                let params = format!(r#"{{"name":"who","_meta":{{{meta}}}}}"#);
                peer.expect_refusal("tools/call", Some("who"), &params, key);
            }
        }
    }
}

#[test]
fn a_request_without_repeats_needs_the_scopes_of_its_operation() {
    // However the key is spelled, and with any other members.
    for (way, revision) in ways() {
        let mut peer = Peer::new(way, revision);
        for (method, key, name) in [
            ("tools/call", "name", "delete"),
            ("prompts/get", "name", "secret"),
            ("resources/read", "uri", "mem://secret"),
        ] {
            let ran = name.trim_start_matches("mem://");
            for key in [key.to_owned(), escaped(key)] {
                let members = format!(r#""x":1,"{key}":"{name}","x":2"#);
                if matches!(way, Transport::Stream | Transport::StreamBatch) {
                    peer.ask(method, Some(name), &members);
                    assert_eq!(peer.ran(), [ran]);
                } else {
                    // The whole request is refused, also in a batch.
                    let params = peer.params(&members);
                    let mut text = message(Some("\"q\""), method, &params);
                    if way == Transport::HttpBatch {
                        text = format!("[{},{text}]", legacy_call(9, "who"));
                    }
                    let answer = peer.tell(&text, Some((method, Some(name))));
                    assert_eq!(peer.ran(), [""; 0], "{answer:?}");
                    assert_eq!(answer[0]["error"]["code"], -32600, "{answer:?}");
                }
            }
        }
    }
}

#[test]
fn arguments_that_are_not_an_object_are_rejected() {
    // Rule: [TOOL-004] [PRMT-006].
    for (way, revision) in ways() {
        let mut peer = Peer::new(way, revision);
        for (method, name) in
            [("tools/call", "who"), ("tools/call", "route"), ("prompts/get", "open")]
        {
            for arguments in ["[1]", "1", r#""{}""#] {
                let members = format!(r#""name":"{name}","arguments":{arguments}"#);
                let params = peer.params(&members);
                let answer = peer.ask_whole(method, Some(name), &params);
                assert_eq!(peer.ran(), [""; 0], "{answer}");
                assert_eq!(
                    answer["error"]["code"], -32602,
                    "{way:?} {revision} {params}: {answer}"
                );
                let text = answer["error"]["message"].as_str().unwrap();
                assert!(text.contains("`arguments`"), "{answer}");
            }
        }
    }
}

#[test]
fn a_notification_that_repeats_a_member_is_dropped_and_on_http_refused() {
    // Rule: [RPC-013].
    for (way, revision) in ways() {
        if matches!(way, Transport::StreamBatch | Transport::HttpBatch) {
            continue;
        }
        let mut peer = Peer::new(way, revision);
        for described in described(revision, Side::Client, MethodKind::Notification) {
            for (key, _) in &described.members {
                let method = described.method.as_str();
                for (params, _) in repeats(&described, key, revision) {
                    let text = message(None, method, &params);
                    peer.log.lock().unwrap().clear();
                    match &mut peer.line {
                        Line::Stream(_) => assert_eq!(peer.tell(&text, None), Vec::<Value>::new()),
                        Line::Http(fixture, session) => {
                            let bearer = format!("Bearer {TOKEN}");
                            let mut fields = vec![("authorization", bearer.as_str())];
                            if session.is_empty() {
                                fields.push(("mcp-protocol-version", "2026-07-28"));
                            } else {
                                fields.push(("mcp-session-id", session.as_str()));
                            }
                            let answer = fixture.send("POST", "/mcp", &fields, &text);
                            assert_eq!(answer.status, 400, "{revision} {text}: {answer:?}");
                            assert!(answer.text.contains(key), "{revision} {text}: {answer:?}");
                        }
                    }
                    assert_eq!(*peer.log.lock().unwrap(), [VIOLATION], "{way:?} {revision} {text}");
                }
            }
        }
    }
}

#[test]
fn an_argument_that_a_header_repeats_may_occur_only_once() {
    // Rule: [HDR-025] [HDR-028].
    let mut fixture =
        ProtectedServer::from_server(&server(&Log::default()), HttpServerOptions::new());
    let bearer = format!("Bearer {TOKEN}");
    for (arguments, member) in [
        (r#"{"region":"eu","region":"us"}"#, "region"),
        (r#"{"region":"us","region":"eu"}"#, "region"),
        (r#"{"region":"us","r\u0065gion":"us"}"#, "region"),
        (r#"{"region":"us","where":{"dry":true,"dry":true}}"#, "dry"),
        (r#"{"region":"us","where":{},"where":{"dry":true}}"#, "where"),
    ] {
        let params = format!(r#"{{"name":"route","arguments":{arguments},{META}}}"#);
        let body = message(Some("1"), "tools/call", &params);
        for dry in [None, Some(("mcp-param-dry", "true"))] {
            let mut fields = vec![
                ("authorization", bearer.as_str()),
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", "route"),
                ("mcp-param-region", "us"),
            ];
            fields.extend(dry);
            let answer = fixture.send("POST", "/mcp", &fields, &body);
            let error: Value = serde_json::from_str(&answer.text).unwrap();
            assert_eq!((answer.status, &error["error"]["code"]), (400, &json!(-32602)), "{body}");
            let text = error["error"]["message"].as_str().unwrap();
            assert!(text.contains(member), "{body}: {answer:?}");
        }
    }
}

//! Requests sent by hand to the everything server at 2026-07-28, as in the conformance suite.

use serde_json::{Value, json};

use crate::process::{RUNTIMES, Server};

/// Adds the metadata that every modern request carries.
fn with_meta(mut params: Value, capabilities: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

fn all() -> Value {
    json!({ "sampling": {}, "elicitation": {}, "roots": {} })
}

fn call(server: &mut Server, params: Value) -> Value {
    server.ask("call", "tools/call", with_meta(params, all()))
}

#[test]
fn a_failed_legacy_server_is_forgotten() {
    for runtime in RUNTIMES {
        let mut server = Server::start(runtime);
        for method in ["ping", "logging/setLevel", "resources/subscribe", "unknown/method"] {
            let answer = server.ask("1", method, with_meta(json!({}), all()));
            assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
        }
    }
}

#[test]
fn a_missing_capability_is_named() {
    for runtime in RUNTIMES {
        let mut server = Server::start(runtime);
        let params = with_meta(json!({ "name": "test_missing_capability" }), json!({}));
        let error = &server.ask("1", "tools/call", params)["error"];
        assert_eq!(error["code"], -32021);
        assert!(error["data"]["requiredCapabilities"]["sampling"].is_object(), "{error}");

        let name = "test_input_required_result_capabilities";
        let params = with_meta(json!({ "name": name }), json!({ "sampling": {} }));
        let answer = server.ask("2", "tools/call", params);
        let requests = answer["result"]["inputRequests"].as_object().unwrap();
        let methods: Vec<_> = requests.values().map(|request| &request["method"]).collect();
        assert_eq!(methods, ["sampling/createMessage"]);
    }
}

#[test]
fn only_the_requested_input_is_accepted() {
    let name = "test_input_required_result_elicitation";
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    for runtime in RUNTIMES {
        let mut server = Server::start(runtime);
        let first = call(&mut server, json!({ "name": name }));
        assert_eq!(first["result"]["resultType"], "input_required");
        let question = &first["result"]["inputRequests"]["user_name"];
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["requestedSchema"]["required"], json!(["name"]));

        for responses in [json!({ "other": answer }), Value::Null] {
            let params = json!({ "name": name, "inputResponses": responses });
            let again = call(&mut server, params);
            assert_ne!(again["result"]["resultType"], "complete", "{again}");
        }
        let params = json!({ "name": name, "inputResponses": { "user_name": 12345 } });
        assert_ne!(call(&mut server, params)["result"]["resultType"], "complete");

        let responses = json!({ "extra": answer, "user_name": answer });
        let last = call(&mut server, json!({ "name": name, "inputResponses": responses }));
        assert_eq!(last["result"]["resultType"], "complete");
        assert_eq!(last["result"]["content"][0]["text"], "Hello, Ada!");
    }
}

#[test]
fn a_modified_state_is_refused() {
    let name = "test_input_required_result_tampered_state";
    for runtime in RUNTIMES {
        let mut server = Server::start(runtime);
        let first = call(&mut server, json!({ "name": name }));
        let state = first["result"]["requestState"].as_str().unwrap();
        let responses = json!({ "confirm": { "action": "accept", "content": { "ok": true } } });
        let mut retry = |state: &str| {
            let params =
                json!({ "name": name, "inputResponses": responses, "requestState": state });
            call(&mut server, params)
        };
        assert!(retry(&format!("{state}-TAMPERED"))["error"]["code"].is_i64());
        assert_eq!(retry(state)["result"]["content"][0]["text"], "state-ok: confirmed");
    }
}

#[test]
fn each_round_has_a_new_state() {
    let name = "test_input_required_result_multi_round";
    let answer = |key: &str, field: &str| json!({ key: { "action": "accept", "content": { field: "blue" } } });
    for runtime in RUNTIMES {
        let mut server = Server::start(runtime);
        let first = call(&mut server, json!({ "name": name }))["result"].take();
        assert!(first["inputRequests"]["step1"].is_object());
        let second = call(
            &mut server,
            json!({
                "name": name, "inputResponses": answer("step1", "name"),
                "requestState": first["requestState"],
            }),
        )["result"]
            .take();
        assert!(second["inputRequests"]["step2"].is_object());
        assert_ne!(first["requestState"], second["requestState"]);
        let third = call(
            &mut server,
            json!({
                "name": name, "inputResponses": answer("step2", "color"),
                "requestState": second["requestState"],
            }),
        );
        assert_eq!(third["result"]["content"][0]["text"], "blue likes blue best.");
    }
}

#[test]
fn a_subscription_stream_carries_only_subscribed_notifications() {
    for runtime in RUNTIMES {
        let mut server = Server::start(runtime);
        let filters = [
            ("tools", json!({ "toolsListChanged": true })),
            ("prompts", json!({ "promptsListChanged": true })),
            ("uri", json!({ "resourceSubscriptions": ["test://watched-resource"] })),
        ];
        for (id, filter) in filters {
            let params = with_meta(json!({ "notifications": filter }), json!({}));
            server.send(&json!({
                "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params,
            }));
            let acknowledged = server.receive();
            assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
            assert_eq!(subscription(&acknowledged), id);
        }
        let triggers = [
            ("test_trigger_tool_change", "notifications/tools/list_changed", "tools"),
            ("test_trigger_prompt_change", "notifications/prompts/list_changed", "prompts"),
            ("test_touch_watched_resource", "notifications/resources/updated", "uri"),
            ("test_trigger_tool_change", "notifications/tools/list_changed", "tools"),
        ];
        for (tool, method, id) in triggers {
            let params = with_meta(json!({ "name": tool }), json!({}));
            server.send(
                &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }),
            );
            let messages = [server.receive(), server.receive()];
            let notification = messages.iter().find(|message| message["id"].is_null()).unwrap();
            assert_eq!((&notification["method"], subscription(notification)), (&json!(method), id));
            assert!(messages.iter().any(|message| message["id"] == 1));
        }
    }
}

fn subscription(message: &Value) -> &str {
    let id = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    id.as_str().unwrap_or_else(|| panic!("{message}"))
}

#[test]
fn log_messages_are_sent_to_subscribed_clients() {
    for runtime in RUNTIMES {
        let mut server = Server::start(runtime);
        let quiet = call(&mut server, json!({ "name": "test_logging_tool" }));
        assert_eq!(quiet["result"]["resultType"], "complete");
        let mut params = with_meta(json!({ "name": "test_logging_tool" }), json!({}));
        params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        server
            .send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
        assert_eq!(server.receive()["method"], "notifications/message");
        assert_eq!(server.receive()["id"], 1);
    }
}

#[test]
fn the_lists_are_complete_and_their_schemas_unchanged() {
    for runtime in RUNTIMES {
        let mut server = Server::start(runtime);
        let list = |server: &mut Server, method: &str| {
            let result = server.ask("1", method, with_meta(json!({}), json!({})))["result"].take();
            assert!(result["ttlMs"].is_u64() && result["cacheScope"].is_string(), "{result}");
            result
        };
        let tools = list(&mut server, "tools/list")["tools"].take();
        assert_eq!(tools[0]["name"], "test_simple_text");
        for tool in tools.as_array().unwrap() {
            assert!(!tool["description"].as_str().unwrap().is_empty());
            assert_eq!(tool["inputSchema"]["type"], "object");
        }
        let named = |name| tools.as_array().unwrap().iter().find(|tool| tool["name"] == name);
        let schema = &named("json_schema_2020_12_tool").unwrap()["inputSchema"];
        assert_eq!(schema["$defs"]["address"]["$anchor"], "addressDef");
        assert_eq!(schema["allOf"][0]["anyOf"][1]["required"], json!(["email"]));
        assert_eq!(schema["additionalProperties"], false);
        assert!(schema["if"].is_object() && schema["then"].is_object());

        assert_eq!(list(&mut server, "resources/list")["resources"].as_array().unwrap().len(), 4);
        assert_eq!(list(&mut server, "prompts/list")["prompts"].as_array().unwrap().len(), 6);
        list(&mut server, "resources/templates/list");
        let params = with_meta(json!({ "uri": "test://nope" }), json!({}));
        let error = server.ask("2", "resources/read", params)["error"].take();
        assert_eq!(
            (&error["code"], &error["data"]["uri"]),
            (&json!(-32602), &json!("test://nope"))
        );
    }
}

/// The defaults and choices of forms must be sent unchanged.
#[test]
fn forms_keep_their_defaults_and_choices() {
    for runtime in RUNTIMES {
        let mut server = Server::open(runtime);
        let mut form = |tool: &str| {
            let params = json!({ "name": tool, "arguments": {} });
            server.send(
                &json!({ "jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": params }),
            );
            let question = server.receive();
            assert_eq!(question["method"], "elicitation/create", "{question}");
            server.send(&json!({
                "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" },
            }));
            assert_eq!(server.receive()["id"], tool);
            question["params"]["requestedSchema"]["properties"].clone()
        };
        let fields = form("test_elicitation_sep1034_defaults");
        assert_eq!(fields["name"]["default"], "John Doe");
        assert_eq!(fields["age"]["default"], 30);
        assert_eq!(fields["score"]["default"], 95.5);
        assert_eq!(fields["status"]["default"], "active");
        assert_eq!(fields["verified"]["default"], true);

        let fields = form("test_elicitation_sep1330_enums");
        let has = |field: &Value, keys: &[&str], not: &[&str]| {
            keys.iter().all(|key| field.get(*key).is_some())
                && not.iter().all(|key| field.get(*key).is_none())
        };
        assert!(has(&fields["untitledSingle"], &["enum"], &["oneOf", "enumNames"]));
        assert!(has(&fields["titledSingle"], &["oneOf"], &["enum"]));
        assert!(has(&fields["legacyEnum"], &["enum", "enumNames"], &[]));
        assert!(has(&fields["untitledMulti"]["items"], &["enum"], &["anyOf"]));
        assert!(has(&fields["titledMulti"]["items"], &["anyOf"], &["enum"]));
    }
}

use mcp_sansio::protocol::{CreateMessageParams, SamplingContent, SamplingMessage};
use mcp_sansio_handlers::{Call, Elicit, HandlerError, NoArguments, Server};
use serde_json::{Value, json};

use crate::task_client::{Gate, TaskClient, settings};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirmation {
    /// Whether to continue.
    sure: bool,
}

fn form() -> mcp_sansio::protocol::InputRequest {
    Elicit::form::<Confirmation>("Sure?")
}

pub(crate) fn yes() -> Value {
    json!({ "action": "accept", "content": { "sure": true } })
}

pub(crate) fn server(gate: &Gate) -> Server {
    let [slow, first] = [(); 2].map(|()| gate.clone());
    Server::new("s", "1")
        .tasks(settings())
        .tool("both", "", |call: Call<NoArguments>| {
            call.run_as_task();
            let answers = (call.input::<Confirmation>("a")?, call.input::<Confirmation>("b")?);
            let (Some(a), Some(b)) = answers else {
                return call.require_input("a", form()).and("b", form()).into_result();
            };
            Ok(format!("{} {}", a.accepted(), b.accepted()))
        })
        .tool("slowly", "", move |call: Call<NoArguments>| {
            let gate = slow.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                match call.input::<Confirmation>("sure")? {
                    None => call.require_input("sure", form()).state("kept").into_result(),
                    Some(_) => Ok(call.state().unwrap_or_default().to_owned()),
                }
            }
        })
        .tool("again", "", |call: Call<NoArguments>| {
            call.run_as_task();
            match call.input::<Confirmation>("sure")? {
                Some(answer) if answer.content.as_ref().is_some_and(|content| content.sure) => {
                    Ok("at last")
                }
                _ => call.require_input("sure", form()).into_result(),
            }
        })
        .tool("forever", "", |call: Call<NoArguments>| {
            call.run_as_task();
            call.require_input("sure", form()).into_result::<()>()
        })
        .tool("restless", "", async |call: Call<NoArguments>| -> Result<(), HandlerError> {
            call.run_as_task();
            call.require_input("sure", form()).into_result()
        })
        .tool("model", "", |call: Call<NoArguments>| {
            call.run_as_task();
            let message = SamplingMessage::user(SamplingContent::text("2 + 2?"));
            call.require_input("model", CreateMessageParams::new([message], 10)).into_result::<()>()
        })
        .tool("first", "", move |call: Call<NoArguments>| {
            let gate = first.clone();
            async move {
                let Some(answer) = call.input::<Confirmation>("sure")? else {
                    return call.require_input("sure", form()).state("asked").into_result();
                };
                call.require_task()?;
                gate.passed().await;
                Ok(format!("{} {:?}", answer.accepted(), call.state()))
            }
        })
}

fn client() -> (Gate, TaskClient) {
    let gate = Gate::default();
    let client = TaskClient::new(&server(&gate));
    (gate, client)
}

fn open(task: &Value) -> Vec<&str> {
    assert_eq!(task["status"], "input_required", "{task}");
    task["inputRequests"].as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn input_requests_go_only_to_requests_that_declare_support() {
    // Rule: [MRTR-005] [CAP-020] [CAP-021].
    let (_, mut client) = client();
    let everything = client.capabilities.clone();
    let tasks_only = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    client.capabilities = tasks_only.clone();
    let filter = json!({ "notifications": { "taskIds": ["00000000000000000000000000000001"] } });
    client.send("subscriptions/listen", filter);
    client.capabilities = everything.clone();
    let task = client.task("both");
    client.capabilities = tasks_only;
    let refused = client.response("tasks/get", json!({ "taskId": task }))["error"].clone();
    assert_eq!(refused["code"], -32021, "{refused}");
    assert!(refused["data"]["requiredCapabilities"]["elicitation"].is_object(), "{refused}");
    let told = client.notifications.iter().find(|it| it["method"] == "notifications/tasks");
    assert_eq!(told, None);
    client.capabilities = everything;
    assert_eq!(open(&client.get(&task)), ["a", "b"]);
    client.update(&task, json!({ "a": yes(), "b": yes() }));
    let told: Vec<_> = client.notifications.iter().map(|it| &it["params"]["status"]).collect();
    assert_eq!(*told.last().unwrap(), "completed", "the stream tells the rest");
}

#[test]
fn input_requests_are_listed_until_all_are_answered() {
    // Rule: [TASK-030] [TASK-032] [TASK-033].
    let (_, mut client) = client();
    let task = client.task("both");
    let waiting = client.get(&task);
    assert_eq!(open(&waiting), ["a", "b"]);
    assert_eq!(waiting["inputRequests"]["a"]["method"], "elicitation/create");
    assert!(waiting.get("requestState").is_none());
    assert_eq!(client.get(&task), waiting);
    client.update(&task, json!({ "unknown": { "ignored": true } }));
    assert_eq!(client.get(&task), waiting);
    client.update(&task, json!({ "a": yes(), "unknown": {} }));
    assert_eq!(open(&client.get(&task)), ["b"]);
    // The first request has been answered already.
    client.update(&task, json!({ "a": { "action": "decline" } }));
    assert_eq!(open(&client.get(&task)), ["b"]);
    client.update(&task, json!({ "b": { "action": "decline" } }));
    let done = client.get(&task);
    assert_eq!(done["status"], "completed");
    assert_eq!(done["result"]["content"][0]["text"], "true false");
}

#[test]
fn a_task_works_between_input_requests_and_keeps_its_state() {
    // Rule: [TASK-009] [TASK-030].
    let (gate, mut client) = client();
    let task = client.task("slowly");
    assert_eq!(client.status(&task), "working");
    gate.open();
    assert_eq!(open(&client.get(&task)), ["sure"]);
    client.update(&task, json!({ "sure": yes() }));
    assert_eq!(client.get(&task)["result"]["content"][0]["text"], "kept");
}

#[test]
fn the_key_of_an_input_request_is_never_reused() {
    // Rule: [TASK-031].
    let (_, mut client) = client();
    let task = client.task("again");
    let mut seen = Vec::new();
    for _ in 0..3 {
        let waiting = client.get(&task);
        let [name] = open(&waiting)[..] else { panic!("{waiting}") };
        assert!(!seen.contains(&name.to_owned()));
        seen.push(name.to_owned());
        client.update(&task, json!({ name: { "action": "decline" } }));
        // An input request that was answered cannot be answered again.
        client.update(&task, json!({ name: yes() }));
        assert_eq!(client.status(&task), "input_required");
    }
    assert_eq!(seen, ["sure", "sure#2", "sure#3"]);
    client.update(&task, json!({ "sure#4": yes() }));
    assert_eq!(client.get(&task)["result"]["content"][0]["text"], "at last");
}

#[test]
fn a_task_that_awaits_input_can_be_cancelled() {
    // Rule: [TASK-034].
    let (_, mut client) = client();
    let task = client.task("both");
    client.cancel(&task);
    assert_eq!(client.status(&task), "cancelled");
    client.update(&task, json!({ "a": yes(), "b": yes() }));
    assert_eq!(client.status(&task), "cancelled");
}

#[test]
fn a_handler_that_always_asks_for_input_fails_at_the_round_limit() {
    let (_, mut client) = client();
    for tool in ["forever", "restless"] {
        let task = client.task(tool);
        let mut rounds = 0;
        loop {
            let waiting = client.get(&task);
            if waiting["status"] != "input_required" {
                assert_eq!(waiting["status"], "failed");
                assert_eq!(waiting["error"]["code"], -32603);
                break;
            }
            rounds += 1;
            let name = open(&waiting)[0].to_owned();
            client.update(&task, json!({ name: yes() }));
        }
        assert_eq!(rounds, 16);
    }
}

#[test]
fn an_input_request_that_the_client_does_not_support_fails_the_task() {
    // Rule: [MRTR-005] [TASK-037].
    let (_, mut client) = client();
    client.capabilities["sampling"] = Value::Null;
    client.capabilities.as_object_mut().unwrap().remove("sampling");
    let task = client.task("model");
    let failed = client.get(&task);
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["error"]["code"], -32021);
    assert_eq!(failed["error"]["data"]["requiredCapabilities"], json!({ "sampling": {} }));
}

#[test]
fn input_required_before_task_creation_is_requested_by_the_call() {
    // Rule: [TASK-042].
    let (gate, mut client) = client();
    let asked = client.call("first");
    assert_eq!(asked["resultType"], "input_required");
    assert!(asked.get("taskId").is_none());
    let params = json!({ "name": "first", "arguments": {}, "requestState": asked["requestState"],
                         "inputResponses": { "sure": yes() } });
    let created = client.result("tools/call", params);
    assert_eq!(created["resultType"], "task");
    for key in ["requestState", "inputRequests"] {
        assert!(created.get(key).is_none(), "{created}");
    }
    gate.open();
    let done = client.get(created["taskId"].as_str().unwrap());
    assert_eq!(done["result"]["content"][0]["text"], r#"true Some("asked")"#);
}

#[test]
fn an_answer_that_does_not_match_its_schema_fails_the_task_and_not_the_update() {
    let (_, mut client) = client();
    let task = client.task("again");
    client.update(&task, json!({ "sure": { "action": "accept", "content": { "sure": 5 } } }));
    let failed = client.get(&task);
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["error"]["code"], -32602);
}

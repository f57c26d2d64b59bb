//! Input requests that the client runs as tasks, at 2025-11-25.

use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::Revision;
use mcp_sansio::peer::{Event, Limits, Request, ServerMachine};
use mcp_sansio::protocol::{
    CreateMessageParams, ElicitFormParams, ElicitParams, ElicitSchema, InputRequest,
    InputRequiredResult, Map, SamplingMessage,
};
use serde_json::json;

use crate::fixtures::*;
use crate::played::Server;
use crate::wire::Wire;

const NOVEMBER: Revision = Revision::V2025_11_25;

/// A client that runs input requests as tasks.
const ALL: &str = r#"{"sampling":{},"elicitation":{},"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}"#;

fn form(ttl: Option<Duration>) -> InputRequest {
    let form = ElicitFormParams::new("Who?", ElicitSchema::new());
    InputRequest::from(ElicitParams::Form(form)).as_task(ttl)
}

fn thought(ttl: Option<Duration>) -> InputRequest {
    let params = CreateMessageParams::new([SamplingMessage::user("2 + 2?")], 10);
    InputRequest::from(params).as_task(ttl)
}

/// Returns a server that has asked for `question` on behalf of a call with id 2.
fn asked_with(limits: Limits, client: &str, question: InputRequest) -> Wire<Server> {
    let mut wire = server_at(NOVEMBER, client, full_server().limits(limits));
    let request = call(&mut wire);
    let questions = InputRequiredResult::new().input_requests(Map::default().with("q", question));
    wire.machine.require_input(&request, &questions, wire.now).unwrap();
    wire
}

fn asked(client: &str, question: InputRequest) -> Wire<Server> {
    asked_with(Limits::default(), client, question)
}

fn call(wire: &mut Wire<Server>) -> Request<'static> {
    wire.send(&request("2", "tools/call", r#"{"name":"t"}"#));
    let Event::Request(request) = wire.event() else { panic!("a request") };
    request
}

fn task(status: &str, more: &str) -> String {
    format!(
        r#"{{"taskId":"t\"1","status":"{status}","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null{more}}}"#
    )
}

/// Answers the last input request with a task.
fn create(wire: &mut Wire<Server>, task: &str) {
    let question = wire.message();
    assert_eq!(question["params"]["task"]["ttl"], 5000);
    let id = question["id"].to_string();
    wire.send(&result(&id, &format!(r#"{{"task":{task}}}"#)));
}

const TTL: Option<Duration> = Some(Duration::from_secs(5));

/// Returns the id of the next message, a request about the task.
fn about_task(wire: &mut Wire<Server>, method: &str) -> String {
    let message = wire.message();
    assert_eq!(message["method"], method);
    assert_eq!(message["params"], json!({ "taskId": "t\"1" }));
    message["id"].to_string()
}

fn answer_of(wire: &mut Wire<Server>) -> Result<String, String> {
    let Event::Request(again) = wire.event() else { panic!("the repeated request") };
    match again.inputs.response("q") {
        Some(response) => Ok(response.as_str().to_owned()),
        None => Err(again.inputs.refusal("q").unwrap().message.to_string()),
    }
}

#[test]
fn the_result_of_a_task_is_the_response_to_the_input_request() {
    // Rule: [TASK-001] [TASK-012] [TASK-013] [TASK-015] [TASK-016].
    let answer = r#"{"role":"assistant","content":{"type":"text","text":"4"},"model":"m","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t\"1"}}}"#;
    for last in ["completed", "failed", "cancelled", "input_required"] {
        let mut wire = asked(ALL, thought(TTL));
        create(&mut wire, &task("working", r#","pollInterval":300"#));
        wire.expect_silence();
        // Notifications of the client change nothing.
        wire.send(&notification("notifications/tasks/status", &task("completed", "")));
        assert!(wire.told().starts_with("notification"));
        for _ in 0..2 {
            wire.advance(Duration::from_millis(299));
            wire.expect_silence();
            wire.advance(Duration::from_millis(1));
            let get = about_task(&mut wire, "tasks/get");
            wire.send(&result(&get, &task("working", r#","pollInterval":300"#)));
        }
        wire.advance(Duration::from_millis(300));
        let get = about_task(&mut wire, "tasks/get");
        wire.send(&result(&get, &task(last, "")));
        let result_request = about_task(&mut wire, "tasks/result");
        wire.send(&result(&result_request, answer));
        assert_eq!(answer_of(&mut wire).as_deref(), Ok(answer), "{last}");
        assert_eq!(wire.machine.poll_timeout(), None);
        wire.expect_silence();
    }
}

#[test]
fn a_task_that_has_ended_when_it_is_created_is_not_polled() {
    // Rule: [TASK-012].
    let mut wire = asked(ALL, form(TTL));
    create(&mut wire, &task("completed", ""));
    let id = about_task(&mut wire, "tasks/result");
    wire.send(&result(&id, r#"{"action":"decline"}"#));
    assert_eq!(answer_of(&mut wire).as_deref(), Ok(r#"{"action":"decline"}"#));
}

#[test]
fn only_a_client_that_runs_such_tasks_is_asked_for_one() {
    // Rule: [TASK-002].
    let without = r#"{"sampling":{},"elicitation":{},"tasks":{"cancel":{}}}"#;
    let sampling = r#"{"sampling":{},"elicitation":{},"tasks":{"requests":{"sampling":{"createMessage":{}}}}}"#;
    for (client, question, expected) in [
        (without, thought(TTL), false),
        (without, form(TTL), false),
        (sampling, thought(TTL), true),
        (sampling, form(TTL), false),
        (ALL, form(TTL), true),
    ] {
        let mut wire = asked(client, question);
        let question = wire.message();
        assert_eq!(question["params"].get("task").is_some(), expected, "{question}");
        // The client may answer at once all the same.
        wire.send(&result(&question["id"].to_string(), r#"{"action":"decline"}"#));
        assert_eq!(answer_of(&mut wire).as_deref(), Ok(r#"{"action":"decline"}"#));
    }
}

#[test]
fn refusals_of_the_client_are_refusals_of_the_input_request() {
    // Rule: [TASK-013] [TASK-019].
    let refuse = |wire: &mut Wire<Server>, id: &str| {
        let error = r#"{"code":-32602,"message":"no"}"#;
        wire.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
        assert_eq!(answer_of(wire), Err("no".into()));
        wire.expect_silence();
    };
    let mut wire = asked(ALL, form(TTL));
    let id = wire.message()["id"].to_string();
    refuse(&mut wire, &id);
    let mut wire = asked(ALL, form(TTL));
    create(&mut wire, &task("working", ""));
    wire.advance(Duration::from_secs(1));
    let id = about_task(&mut wire, "tasks/get");
    refuse(&mut wire, &id);
    let mut wire = asked(ALL, form(TTL));
    create(&mut wire, &task("failed", ""));
    let id = about_task(&mut wire, "tasks/result");
    refuse(&mut wire, &id);
}

#[test]
fn a_task_is_cancelled_when_its_result_is_not_needed_any_more() {
    // Rule: [CANC-009].
    let cancel = notification("notifications/cancelled", r#"{"requestId":2}"#);
    // Between two status requests.
    let mut wire = asked(ALL, form(TTL));
    create(&mut wire, &task("working", ""));
    wire.send(&cancel);
    assert!(wire.told().starts_with("cancelled request"));
    let id = about_task(&mut wire, "tasks/cancel");
    wire.send(&result(&id, &task("cancelled", "")));
    wire.expect_silence();
    assert_eq!(wire.machine.poll_timeout(), None);
    // During one.
    let mut wire = asked(ALL, form(TTL));
    create(&mut wire, &task("working", ""));
    wire.advance(Duration::from_secs(1));
    let get = about_task(&mut wire, "tasks/get");
    wire.send(&cancel);
    assert!(wire.told().starts_with("cancelled request"));
    let sent = [wire.message(), wire.message()];
    let withdrawn = sent.iter().find(|it| it["method"] == "notifications/cancelled").unwrap();
    assert_eq!(withdrawn["params"]["requestId"].to_string(), get);
    assert!(sent.iter().any(|it| it["method"] == "tasks/cancel"));
    // Before its id is known.
    let mut wire = asked(ALL, form(TTL));
    let id = wire.message()["id"].to_string();
    wire.send(&cancel);
    assert!(wire.told().starts_with("cancelled request"));
    wire.expect_silence();
    wire.send(&result(&id, &format!(r#"{{"task":{}}}"#, task("working", ""))));
    about_task(&mut wire, "tasks/cancel");
    wire.advance_to_deadline();
    wire.expect_silence();
    // A client that cannot cancel tasks is not asked to.
    let client = r#"{"elicitation":{},"tasks":{"requests":{"elicitation":{"create":{}}}}}"#;
    let mut wire = asked(client, form(TTL));
    create(&mut wire, &task("working", ""));
    wire.send(&cancel);
    assert!(wire.told().starts_with("cancelled request"));
    wire.expect_silence();
}

#[test]
fn a_request_for_a_task_that_is_not_sent_yet_is_withdrawn() {
    let mut server = mcp_sansio::peer::Server::new(full_server(), 1);
    let now = Instant::ZERO;
    server.handle_message(initialize(NOVEMBER.as_str(), ALL).as_bytes(), now).unwrap();
    server.handle_message(INITIALIZED.as_bytes(), now).unwrap();
    while server.poll_transmit().is_some() {}
    let line = request("2", "tools/call", r#"{"name":"t"}"#);
    let event = server.handle_message(line.as_bytes(), now).unwrap();
    let Some(Event::Request(request)) = event else { panic!("a request") };
    let questions = InputRequiredResult::new().input_requests(Map::default().with("q", form(TTL)));
    server.require_input(&request.into_owned(), &questions, now).unwrap();
    let cancel = notification("notifications/cancelled", r#"{"requestId":2}"#);
    server.handle_message(cancel.as_bytes(), now).unwrap();
    assert_eq!(server.poll_transmit(), None);
    assert_eq!(server.poll_timeout(), None);
}

#[test]
fn a_server_waits_no_longer_than_the_time_to_live() {
    // Rule: [TASK-011].
    let late = "the client's task has not ended in time";
    // The handler's time to live: that of the client says how long it keeps the task.
    for ttl in ["null", "0", "1", "2500", "18446744073709551615"] {
        let (more, seconds) = (&*format!(r#","ttl":{ttl}"#), 5);
        let mut wire = asked(ALL, form(TTL));
        let created = task("working", r#","pollInterval":1000"#);
        create(&mut wire, &created.replace(r#","ttl":null"#, more));
        let mut polls = 0;
        let refused = loop {
            wire.advance_to_deadline();
            let next = wire.message();
            if next["method"] == "tasks/cancel" {
                break answer_of(&mut wire);
            }
            polls += 1;
            wire.send(&result(&next["id"].to_string(), &created));
        };
        assert_eq!((refused, polls), (Err(late.into()), seconds - 1));
    }
    // Neither a status nor a result arrives.
    for (status, method) in [("working", "tasks/get"), ("completed", "tasks/result")] {
        let mut wire = asked(ALL, form(TTL));
        create(&mut wire, &task(status, ""));
        if status == "working" {
            wire.advance_to_deadline();
        }
        about_task(&mut wire, method);
        wire.advance_to_deadline();
        assert_eq!(wire.now, Instant::from_millis(5000));
        let sent = [wire.message(), wire.message()];
        assert!(sent.iter().any(|it| it["method"] == "tasks/cancel"), "{sent:?}");
        assert_eq!(answer_of(&mut wire), Err("the client did not answer in time".into()));
    }
    // Without a time to live, an hour.
    let mut wire = asked(ALL, form(None));
    let question = wire.message();
    assert_eq!(question["params"]["task"], json!({}));
    let created = format!(r#"{{"task":{}}}"#, task("working", r#","pollInterval":9000000"#));
    wire.send(&result(&question["id"].to_string(), &created));
    let mut polls = 0;
    loop {
        wire.advance_to_deadline();
        let next = wire.message();
        if next["method"] == "tasks/cancel" {
            break;
        }
        // The client's interval is longer than the longest pause of a server, a minute.
        polls += 1;
        assert_eq!(wire.now, Instant::from_millis(60_000 * polls));
        let working = task("working", r#","pollInterval":9000000"#);
        wire.send(&result(&next["id"].to_string(), &working));
    }
    assert_eq!((polls, wire.now), (59, Instant::from_millis(3_600_000)));
    assert_eq!(answer_of(&mut wire), Err(late.into()));
}

#[test]
fn a_client_cannot_make_a_server_poll_without_a_pause() {
    for interval in ["0", "-1", "1.5", "\"x\"", "18446744073709551615"] {
        let mut wire = asked(ALL, form(TTL));
        create(&mut wire, &task("working", &format!(r#","pollInterval":{interval}"#)));
        wire.expect_silence();
        let due = wire.machine.poll_timeout().unwrap().saturating_since(wire.now);
        assert!(due >= Duration::from_millis(50) && due <= Duration::from_secs(5), "{interval}");
    }
}

#[test]
fn defective_tasks_are_refused_input() {
    let missing_status = r#"{"taskId":"t\"1","ttl":null}"#;
    for (created, expected) in [
        (r#"{"status":"working"}"#, "the client's task has no id"),
        (r#"{"taskId":7,"status":"working"}"#, "the client's task has no id"),
        (missing_status, "the client's task has no status"),
    ] {
        let mut wire = asked(ALL, form(TTL));
        let id = wire.message()["id"].to_string();
        wire.send(&result(&id, &format!(r#"{{"task":{created}}}"#)));
        assert_eq!(answer_of(&mut wire), Err(expected.into()));
    }
    let mut limits = Limits::default();
    limits.input_bytes_max = 1000;
    let mut wire = asked_with(limits, ALL, form(TTL));
    let id = wire.message()["id"].to_string();
    let long = format!(r#"{{"task":{{"taskId":"{}","status":"working"}}}}"#, "x".repeat(2000));
    wire.send(&result(&id, &long));
    assert_eq!(answer_of(&mut wire), Err("the id of the client's task is too long".into()));
    assert_eq!(wire.message()["method"], "tasks/cancel");
}

#[test]
fn a_response_to_a_request_that_was_not_sent_is_a_violation() {
    let mut wire = asked(ALL, form(TTL));
    create(&mut wire, &task("working", ""));
    for id in 1..10 {
        wire.send(&result(&id.to_string(), r#"{"action":"decline"}"#));
        assert!(wire.told().starts_with("violation"));
    }
    wire.advance(Duration::from_secs(1));
    about_task(&mut wire, "tasks/get");
}

#[test]
fn a_task_yields_its_result_however_long_the_client_keeps_it() {
    // Rule: [TASK-013].
    for ttl in ["null", "0", "1", "18446744073709551615"] {
        let mut wire = asked(ALL, form(TTL));
        let completed = task("completed", "").replace(r#""ttl":null"#, &format!(r#""ttl":{ttl}"#));
        create(&mut wire, &completed);
        let id = about_task(&mut wire, "tasks/result");
        wire.advance(Duration::from_millis(10));
        wire.send(&result(&id, r#"{"action":"cancel"}"#));
        assert!(answer_of(&mut wire).is_ok(), "{ttl}");
    }
}

/// Middleware that refuses status requests.
#[derive(Debug)]
struct RefusesStatus;

impl mcp_sansio::peer::MessageMiddleware for RefusesStatus {
    fn request(
        &self,
        message: &mcp_sansio::peer::MiddlewareMessage<'_>,
    ) -> mcp_sansio::peer::RequestAction {
        if message.method() == "tasks/get" {
            let error = mcp_sansio::jsonrpc::ErrorObject::internal("no");
            return mcp_sansio::peer::RequestAction::Refuse(error);
        }
        mcp_sansio::peer::RequestAction::Forward
    }
}

#[test]
fn a_task_whose_status_may_not_be_requested_is_cancelled() {
    // Rule: [CANC-009].
    let middleware = std::sync::Arc::new(RefusesStatus);
    let mut wire = server_at(NOVEMBER, ALL, full_server().message_middleware(middleware));
    wire.played.discard();
    let request = call(&mut wire);
    let questions = InputRequiredResult::new().input_requests(Map::default().with("q", form(TTL)));
    wire.machine.require_input(&request, &questions, wire.now).unwrap();
    create(&mut wire, &task("working", ""));
    wire.advance_to_deadline();
    about_task(&mut wire, "tasks/cancel");
    assert!(answer_of(&mut wire).is_err());
}

//! States are sealed when they are sent, and refused if they come back changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_sansio::protocol::{ElicitParams, ElicitResult, ElicitSchema, InputRequest};
use mcp_sansio::seal::Seal;
use mcp_sansio::{Era, Principal};
use mcp_sansio_handlers::endpoint::Endpoint as _;
use mcp_sansio_handlers::{Call, Elicit, Host, HostRequest, NoArguments, Server};
use serde_json::{Value, json};

use crate::task_client::{Gate, TaskClient};
use crate::tasks_http::{Response, TaskServer};
use crate::tasks_input::{self, yes};
use crate::{ASKING, connect_host, text};

const INVALID_PARAMS: i64 = -32602;

#[derive(Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Table {
    /// Number of the table.
    number: u32,
}

/// A clock that the test advances.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn pass(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

fn question() -> InputRequest {
    Elicit::form_with("Sure?", ElicitSchema::new())
}

fn sealed(server: Server, clock: &Clock) -> Server {
    let clock = clock.clone();
    let time = move || 1_785_000_000 + clock.0.load(Ordering::SeqCst);
    server.seal(Seal::new([7; 32]), Duration::from_secs(60)).unix_time(time)
}

fn server(clock: &Clock) -> Server {
    sealed(tables(), clock)
}

fn tables() -> Server {
    Server::new("tables", "1")
        .tool("book", "", |call: Call<Table>| {
            let number = call.arguments.number;
            match call.state() {
                None => call
                    .require_input("sure", question())
                    .state(format!("table {number}"))
                    .into_result(),
                Some("table 4") => {
                    call.require_input("sure", question()).state("last").into_result()
                }
                Some(state) => Ok(format!("{number}: {state}")),
            }
        })
        .tool("later", "", async |call: Call<Table>| match call.state() {
            None => {
                Pause::default().await;
                call.require_input("sure", question()).state("later").into_result()
            }
            Some(state) => Ok(state.to_owned()),
        })
        .tool("endless", "", |call: Call<NoArguments>| {
            call.require_input("sure", question()).state("s".repeat(100_000)).into_result::<()>()
        })
}

/// Is ready at the second poll.
#[derive(Default)]
struct Pause(bool);

impl Future for Pause {
    type Output = ();

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    }
}

fn first(tool: &str, number: u32) -> Value {
    json!({ "name": tool, "arguments": { "number": number } })
}

fn retry(tool: &str, number: u32, state: &str) -> Value {
    let mut params = first(tool, number);
    params["inputResponses"] = json!({ "sure": { "action": "accept", "content": {} } });
    params["requestState"] = state.into();
    params
}

fn state_of(result: &Value) -> String {
    assert_eq!(result["resultType"], "input_required", "{result}");
    result["requestState"].as_str().unwrap().to_owned()
}

#[test]
fn a_handler_receives_its_state_at_every_revision() {
    // Rule: [MRTR-006] [MRTR-012].
    for revision in ASKING {
        let host = Host::new("host", "1")
            .on_elicit(|_: HostRequest<ElicitParams>| ElicitResult::accept(Default::default()));
        let (client, mut pair) = connect_host(&server(&Clock::default()), host, revision);
        for (number, state) in [(3, "3: table 3"), (4, "4: last")] {
            let result = pair.run(client.call_tool("book", &Table { number })).unwrap();
            assert_eq!(text(&result), state, "{revision}: {}", pair.transcript);
        }
        let result = pair.run(client.call_tool("later", &Table { number: 1 })).unwrap();
        assert_eq!(text(&result), "later", "{revision}: {}", pair.transcript);
        let shown = pair.transcript.lines().iter().any(|line| line.contains("requestState"));
        assert_eq!(shown, revision.era() == Era::Modern);
    }
}

#[test]
fn states_expire_by_the_clock_of_the_driver_unless_the_server_has_its_own() {
    const INTERNAL_ERROR: i64 = -32603;
    let server = tables().seal(Seal::new([7; 32]), Duration::from_secs(60));
    let mut without_clock = TaskClient::new(&server);
    assert_eq!(without_clock.error("tools/call", first("book", 3)), INTERNAL_ERROR);

    let clock = Clock::default();
    let time = {
        let clock = clock.clone();
        move || clock.0.load(Ordering::SeqCst)
    };
    for (server, is_refused) in [(server.clone(), true), (server.unix_time(|| 0), false)] {
        let mut client = TaskClient::new(&server);
        client.endpoint.set_unix_time(Box::new(time.clone()));
        let state = state_of(&client.result("tools/call", first("book", 3)));
        clock.pass(59);
        client.result("tools/call", retry("book", 3, &state));
        clock.pass(2);
        if is_refused {
            let refused = client.error("tools/call", retry("book", 3, &state));
            assert_eq!(refused, INVALID_PARAMS);
        } else {
            client.result("tools/call", retry("book", 3, &state));
        }
    }
}

#[test]
fn a_forged_or_modified_state_is_refused() {
    // Rule: [MRTR-006].
    let mut client = TaskClient::new(&server(&Clock::default()));
    let state = state_of(&client.result("tools/call", first("book", 3)));
    for forged in [format!("{state}A"), state[1..].to_owned(), "table 3".into(), String::new()] {
        assert_eq!(
            client.error("tools/call", retry("book", 3, &forged)),
            INVALID_PARAMS,
            "{forged}"
        );
    }
    let result = client.result("tools/call", retry("book", 3, &state));
    assert_eq!(result["content"][0]["text"], "3: table 3");
}

#[test]
fn a_state_is_refused_with_another_tool_or_other_arguments() {
    // Rule: [MRTR-007] [MRTR-015].
    let mut client = TaskClient::new(&server(&Clock::default()));
    for tool in ["book", "later"] {
        let state = state_of(&client.result("tools/call", first(tool, 3)));
        let other = if tool == "book" { "later" } else { "book" };
        assert_eq!(client.error("tools/call", retry(other, 3, &state)), INVALID_PARAMS);
        assert_eq!(client.error("tools/call", retry(tool, 5, &state)), INVALID_PARAMS);
        client.result("tools/call", retry(tool, 3, &state));
    }
}

#[test]
fn a_state_is_refused_once_it_has_expired() {
    // Rule: [MRTR-007].
    let clock = Clock::default();
    let mut client = TaskClient::new(&server(&clock));
    let state = state_of(&client.result("tools/call", first("book", 3)));
    clock.pass(59);
    client.result("tools/call", retry("book", 3, &state));
    clock.pass(1);
    assert_eq!(client.error("tools/call", retry("book", 3, &state)), INVALID_PARAMS);
}

#[test]
fn a_state_is_accepted_on_another_connection_but_not_from_another_principal() {
    // Rule: [MRTR-007] [SEC-009] [SEC-010].
    let server = server(&Clock::default());
    let (mut here, mut there) =
        (TaskServer::from_server(&server), TaskServer::from_server(&server));
    let (ann, ben) = (Principal::new("ann"), Principal::new("ben"));
    for tool in ["book", "later"] {
        let Response(_, messages) =
            here.response("tools/call", first(tool, 3), Some(tool), Some(&ann));
        let state = state_of(&messages[0]["result"]);
        for stranger in [Some(&ben), None] {
            let Response(_, messages) =
                there.response("tools/call", retry(tool, 3, &state), Some(tool), stranger);
            assert_eq!(messages[0]["error"]["code"], INVALID_PARAMS, "{messages:?}");
        }
        let Response(_, messages) =
            there.response("tools/call", retry(tool, 3, &state), Some(tool), Some(&ann));
        assert!(messages[0]["result"]["content"].is_array(), "{messages:?}");
    }
}

#[test]
fn a_server_on_http_seals_states_by_default() {
    // Rule: [MRTR-006] [MRTR-007].
    let server = tables();
    let (ann, ben) = (Principal::new("ann"), Principal::new("ben"));
    let ask = |fixture: &mut TaskServer, params: Value, who| {
        let Response(_, messages) = fixture.response("tools/call", params, Some("book"), Some(who));
        messages[0].clone()
    };
    let mut fixture = TaskServer::from_server(&server);
    let state = state_of(&ask(&mut fixture, first("book", 3), &ann)["result"]);
    assert!(!state.contains("table"), "{state}");
    for (params, who) in [
        (retry("book", 3, "table 4"), &ann),
        (retry("book", 3, &format!("{state}A")), &ann),
        (retry("book", 5, &state), &ann),
        (retry("book", 3, &state), &ben),
    ] {
        assert_eq!(ask(&mut fixture, params, who)["error"]["code"], INVALID_PARAMS);
    }
    let opened = ask(&mut fixture, retry("book", 3, &state), &ann);
    assert_eq!(opened["result"]["content"][0]["text"], "3: table 3");
    // The state is valid for an hour.
    fixture.pass(Duration::from_secs(3599));
    assert!(ask(&mut fixture, retry("book", 3, &state), &ann)["result"].is_object());
    fixture.pass(Duration::from_secs(1));
    let late = ask(&mut fixture, retry("book", 3, &state), &ann);
    assert_eq!(late["error"]["code"], INVALID_PARAMS);
    // Another process has another key.
    let mut other = TaskServer::with_secret(&server, [8; 32]);
    let state = state_of(&ask(&mut other, first("book", 3), &ann)["result"]);
    let stranger = ask(&mut fixture, retry("book", 3, &state), &ann);
    assert_eq!(stranger["error"]["code"], INVALID_PARAMS);

    let mut open = TaskServer::from_server(&server.clone().unsealed_states());
    let state = state_of(&ask(&mut open, first("book", 3), &ann)["result"]);
    assert_eq!(state, "table 3");
    let made_up = ask(&mut open, retry("book", 3, "made up"), &ben);
    assert_eq!(made_up["result"]["content"][0]["text"], "3: made up");
    // On a byte stream states are not sealed by default.
    let mut client = TaskClient::new(&server);
    assert_eq!(state_of(&client.result("tools/call", first("book", 3))), "table 3");
}

#[test]
fn the_state_of_a_task_stays_on_the_server() {
    let gate = Gate::default();
    gate.open();
    let mut client = TaskClient::new(&sealed(tasks_input::server(&gate), &Clock::default()));
    let task = client.task("slowly");
    client.update(&task, json!({ "sure": yes() }));
    assert_eq!(client.get(&task)["result"]["content"][0]["text"], "kept");
}

#[test]
fn a_call_that_becomes_a_task_after_input_has_its_state() {
    let gate = Gate::default();
    let mut client = TaskClient::new(&sealed(tasks_input::server(&gate), &Clock::default()));
    let state = state_of(&client.call("first"));
    let retry = |state: &str| {
        json!({ "name": "first", "arguments": {}, "inputResponses": { "sure": yes() },
                "requestState": state })
    };
    assert_eq!(client.error("tools/call", retry("asked")), INVALID_PARAMS);
    let created = client.result("tools/call", retry(&state));
    gate.open();
    let task = client.get(created["taskId"].as_str().unwrap());
    assert_eq!(task["result"]["content"][0]["text"], r#"true Some("asked")"#);
}

#[test]
fn a_state_that_is_too_long_to_be_sealed_is_an_internal_error() {
    let mut client = TaskClient::new(&server(&Clock::default()));
    let params = json!({ "name": "endless", "arguments": {} });
    assert_eq!(client.error("tools/call", params), -32603);
}

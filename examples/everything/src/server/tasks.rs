//! Tools that run as tasks for clients that support tasks.

use std::time::Duration;

use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::protocol::{CallToolResult, InputRequest, TaskSupport, Tool, ToolExecution};
use mcp_sansio_handlers::{Call, Elicit, HandlerError, NoArguments, Server};
use mcp_sansio_tokio::task_settings;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::runtime::Runtime;

/// The duration of the short tasks, long enough to be observed while they run.
const WORK: Duration = Duration::from_millis(500);

/// The maximum duration of a computation in seconds.
const SECONDS_MAX: f64 = 600.0;

#[derive(Debug, Deserialize, JsonSchema)]
struct Whom {
    /// The name to greet
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Computation {
    /// The duration of the computation
    seconds: f64,
    /// The name of the computation
    label: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct File {
    /// The file to delete
    filename: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Confirmation {
    /// Is this all right?
    confirm: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Name {
    /// Your name
    name: String,
}

/// Enables tasks.
pub(super) fn allow(server: Server) -> Server {
    // If the random number generator fails, tasks stay disabled and calls run directly.
    match task_settings() {
        Ok(settings) => server.tasks(settings.poll_interval(Duration::from_millis(500))),
        Err(_) => server,
    }
}

pub(super) fn offer(server: Server, runtime: Runtime) -> Server {
    server
        .tool("greet", "Greets, never as a task", |call: Call<Whom>| {
            format!("Hello, {}!", call.arguments.name)
        })
        .tool(
            "slow_compute",
            "Computes for some seconds, as a task where it can",
            move |call: Call<Computation>| compute(call, runtime),
        )
        .tool_with(
            always_a_task("failing_job", "Fails after some work, always as a task"),
            move |call: Call<NoArguments>| async move {
                call.require_task()?;
                runtime.sleep(WORK).await;
                Ok(CallToolResult::error("This job fails, as it is meant to"))
            },
        )
        .tool_with(
            always_a_task(
                "protocol_error_job",
                "Ends with an error of the protocol, always as a task",
            ),
            move |call: Call<NoArguments>| async move {
                call.require_task()?;
                runtime.sleep(WORK).await;
                Err::<&str, _>(HandlerError::Protocol(ErrorObject::internal("the job failed")))
            },
        )
        .tool(
            "confirm_delete",
            "Asks whether to delete a file, as a task where it can; deletes nothing",
            confirm_delete,
        )
        .tool("multi_input", "Asks two things at once, as a task where it can", multi_input)
        .tool_with(
            always_a_task(
                "test_tool_with_task",
                "Asks for a name, then works with it, always as a task",
            ),
            move |call: Call<NoArguments>| asked_first(call, runtime),
        )
        .task_support("slow_compute", TaskSupport::Optional)
        .task_support("confirm_delete", TaskSupport::Optional)
        .task_support("multi_input", TaskSupport::Optional)
}

/// Defines a tool without arguments that always runs as a task. It is hidden from clients without
/// tasks, and their calls are refused.
fn always_a_task(name: &str, description: &str) -> Tool {
    let schema = RawJson::parse(r#"{"type":"object"}"#).expect("this is JSON");
    let execution = ToolExecution::new().task_support(TaskSupport::Required);
    Tool::new(name, schema).description(description).execution(execution)
}

async fn compute(call: Call<Computation>, runtime: Runtime) -> Result<String, HandlerError> {
    call.run_as_task();
    let Computation { seconds, label } = &call.arguments;
    let label = label.as_deref().unwrap_or("nothing in particular");
    if *seconds > 0.0 {
        call.progress(0.0, Some(*seconds), &format!("computing {label}"));
        runtime.sleep(Duration::from_secs_f64(seconds.min(SECONDS_MAX))).await;
    }
    Ok(format!("Computed {label} for {seconds} seconds."))
}

fn sure(question: impl Into<String>) -> InputRequest {
    Elicit::form::<Confirmation>(question)
}

fn confirm_delete(call: Call<File>) -> Result<String, HandlerError> {
    call.run_as_task();
    let name = &call.arguments.filename;
    match call.input::<Confirmation>("confirm")? {
        None => call.require_input("confirm", sure(format!("Delete {name}?"))).into_result(),
        Some(answer) if answer.content.as_ref().is_some_and(|content| content.confirm) => {
            Ok(format!("{name} would be deleted now."))
        }
        Some(_) => Ok(format!("{name} stays.")),
    }
}

fn multi_input(call: Call<NoArguments>) -> Result<String, HandlerError> {
    call.run_as_task();
    let (name, sure_of_it) = (call.input::<Name>("name")?, call.input::<Confirmation>("sure")?);
    let (Some(name), Some(sure_of_it)) = (name, sure_of_it) else {
        let who = Elicit::form::<Name>("What is your name?");
        return call.require_input("name", who).and("sure", sure("Are you sure?")).into_result();
    };
    let name = name.content.map_or_else(|| "Nobody".into(), |content| content.name);
    let sure = sure_of_it.content.is_some_and(|content| content.confirm);
    Ok(format!("{name} is {}sure.", if sure { "" } else { "not " }))
}

async fn asked_first(call: Call<NoArguments>, runtime: Runtime) -> Result<String, HandlerError> {
    if !call.accepts_task() {
        return Err(HandlerError::task_required());
    }
    let Some(answer) = call.input::<Name>("user_name")? else {
        // This input belongs to the call, before the task is created.
        let who = Elicit::form::<Name>("What is your name?");
        return call.require_input("user_name", who).into_result();
    };
    call.require_task()?;
    runtime.sleep(WORK).await;
    let name = answer.content.map_or_else(|| "whoever you are".into(), |content| content.name);
    Ok(format!("Worked for {name}."))
}

use std::time::Duration;

use mcp_sansio::peer::Limits;
use mcp_sansio_handlers::{Call, Elicit, HandlerError, Server};
use mcp_sansio_tokio::task_settings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
pub(crate) struct Echo {
    /// The text to echo
    pub(crate) text: String,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
pub(crate) struct Steps {
    /// The number of progress notifications before the result
    pub(crate) count: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Answer {
    /// What is it?
    word: String,
}

/// Between two steps: a stream of 300 takes about a second, and can be cut in between.
const PAUSE: Duration = Duration::from_millis(3);
/// How long a task takes: longer than its client needs to ask another node for it.
const TASK_TIME: Duration = Duration::from_secs(1);
/// How long tasks are kept: longer than a client waits for one.
const TASK_TTL: Duration = Duration::from_secs(60);
/// More than all clients call in that time.
const TASKS_MAX: usize = 100_000;

/// Returns the server.
pub(crate) fn server() -> Result<Server, String> {
    let mut limits = Limits::default();
    limits.progress_per_second_max = u32::MAX;
    let tasks = task_settings().map_err(|error| error.to_string())?;
    let tasks = tasks.ttl(TASK_TTL).tasks_max(TASKS_MAX).poll_interval(Duration::from_millis(200));
    let server = Server::new("cluster-node", env!("CARGO_PKG_VERSION"))
        .limits(limits)
        .tool("echo", "Sends the text back", |call: Call<Echo>| call.arguments.text)
        .tool("steps", "Reports progress, step by step", steps)
        .tool("ask", "Asks the user for the word, and returns it with the text", ask)
        .tool("job", "Sends the text back after a while", async |call: Call<Echo>| {
            call.run_as_task();
            tokio::time::sleep(TASK_TIME).await;
            call.arguments.text
        })
        .tool("asking_job", "Asks the user for the word after a while", async |call: Call<Echo>| {
            call.run_as_task();
            tokio::time::sleep(TASK_TIME / 2).await;
            ask(call)
        })
        .tasks(tasks);
    Ok(server)
}

async fn steps(call: Call<Steps>) -> String {
    let count = call.arguments.count;
    for step in 1..=count {
        call.progress(f64::from(step), Some(f64::from(count)), "");
        tokio::time::sleep(PAUSE).await;
    }
    count.to_string()
}

fn ask(call: Call<Echo>) -> Result<String, HandlerError> {
    match call.input::<Answer>("word")? {
        None => call.require_input("word", Elicit::form::<Answer>("Which word?")).into_result(),
        Some(answer) => match answer.content {
            Some(answer) => Ok(format!("{} {}", call.arguments.text, answer.word)),
            None => Err(HandlerError::failed("no answer")),
        },
    }
}

use std::time::Duration;

use mcp_sansio::peer::Limits;
use mcp_sansio_handlers::{Call, Elicit, HandlerError, Server};
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

/// Returns the server.
pub(crate) fn server() -> Server {
    let mut limits = Limits::default();
    limits.progress_per_second_max = u32::MAX;
    Server::new("cluster-node", env!("CARGO_PKG_VERSION"))
        .limits(limits)
        .tool("echo", "Sends the text back", |call: Call<Echo>| call.arguments.text)
        .tool("steps", "Reports progress, step by step", steps)
        .tool("ask", "Asks the user for the word, and returns it with the text", ask)
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

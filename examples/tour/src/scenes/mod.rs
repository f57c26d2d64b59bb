//! The scenes of the tour, with their server and their client.

mod http;
mod sign_in;
mod streams;

use std::time::Duration;

use mcp_sansio::protocol::{CallToolResult, ElicitParams, ElicitResult, Map};
use mcp_sansio_tokio::{Call, Elicit, HandlerError, Host, HostRequest, NoArguments, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

use crate::stage::{Outcome, Stage};

/// The pause between two steps of a walk.
const STEP: Duration = Duration::from_millis(10);

/// How long tea brews, and after which time a client reconnects for it.
const DRAW: Duration = Duration::from_millis(150);
const RETRY: Duration = Duration::from_millis(50);

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// City name or postal code
    location: String,
}

#[derive(Deserialize, JsonSchema)]
struct Booking {
    /// How many people will come
    guests: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Confirm the booking?
    sure: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Walk {
    /// The number of steps to walk
    steps: u32,
}

/// The server of the tour. It does not depend on revisions or transports.
pub(crate) fn server() -> Server {
    Server::new("tour", "1.0.0")
        .tool("forecast", "Weather at a place", async |call: Call<Place>| {
            for (step, what) in ["asking the station", "reading the answer"].into_iter().enumerate()
            {
                call.progress((step + 1) as f64, Some(2.0), what);
            }
            format!("Sunny in {}", call.arguments.location)
        })
        .tool("book", "Books a table", book)
        .tool("ponder", "Thinks for a minute", async |_: Call<NoArguments>| {
            sleep(Duration::from_secs(60)).await;
            "42"
        })
        .tool("walk", "Goes step by step", async |call: Call<Walk>| {
            let steps = call.arguments.steps;
            for step in 1..=steps {
                call.progress(f64::from(step), Some(f64::from(steps)), "walking");
                sleep(STEP).await;
            }
            format!("Arrived after {steps} steps")
        })
        .tool("brew", "Makes tea", async |call: Call<NoArguments>| {
            call.release_connection(RETRY);
            sleep(DRAW).await;
            "Tea is ready"
        })
}

/// A handler that needs the user. It is called again with the response.
async fn book(call: Call<Booking>) -> Result<String, HandlerError> {
    match call.input::<Confirmation>("confirm")? {
        None => {
            call.require_input("confirm", Elicit::form::<Confirmation>("Book it?")).into_result()
        }
        Some(answer) if answer.content.as_ref().is_some_and(|content| content.sure) => {
            Ok(format!("Booked for {}.", call.arguments.guests))
        }
        Some(_) => Ok("Not booked.".into()),
    }
}

fn host() -> Host {
    Host::new("visitor", "1.0.0").on_elicit(|_: HostRequest<ElicitParams>| {
        ElicitResult::accept(Map::new().with("sure", true))
    })
}

/// Returns the text of a tool result.
fn text(result: &CallToolResult) -> &str {
    result.content.first().and_then(|block| block.as_text()).unwrap_or_default()
}

pub(crate) async fn play(stage: &Stage) -> Outcome {
    let server = server();
    streams::play(stage, &server).await?;
    http::play(stage, &server).await?;
    sign_in::play(stage, &server).await?;
    stage.title(
        "That was all. Try `--wire`, and `mcp-inspect check -- CMD` or `--url URL` on a server of \
         yours.",
    );
    Ok(())
}

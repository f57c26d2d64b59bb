//! What is played.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_sansio::handler::{Call, Elicit, Error, Host, NoArguments, Question, Server};
use mcp_sansio::peer::Event;
use mcp_sansio::protocol::{ElicitParams, ElicitResult, Map};
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_examples::runtime::Runtime;
use mcp_sansio_tokio::TokioStream;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncWriteExt, duplex, split};

use crate::stage::{Outcome, Stage};

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// City name or postal code
    location: String,
}

#[derive(Deserialize, JsonSchema)]
struct Booking {
    /// How many people come
    guests: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Is it all right?
    sure: bool,
}

/// The server of the tour. Nothing in it knows of revisions.
pub(crate) fn server(runtime: Runtime) -> Server {
    Server::new("tour", "1.0.0")
        .tool("forecast", "Weather at a place", async |call: Call<Place>| {
            for (step, what) in ["asking the station", "reading the answer"].into_iter().enumerate()
            {
                call.progress((step + 1) as f64, Some(2.0), what);
            }
            format!("Sunny in {}", call.arguments.location)
        })
        .tool("book", "Books a table", book)
        .tool("ponder", "Thinks for a minute", move |_: Call<NoArguments>| async move {
            runtime.sleep(Duration::from_secs(60)).await;
            "42"
        })
}

/// A handler that needs the user. It is called again with the answer.
async fn book(call: Call<Booking>) -> Result<String, Error> {
    match call.input::<Confirmation>("confirm")? {
        None => call.ask("confirm", Elicit::form::<Confirmation>("Book it?")).into_result(),
        Some(answer) if answer.content.as_ref().is_some_and(|content| content.sure) => {
            Ok(format!("Booked for {}.", call.arguments.guests))
        }
        Some(_) => Ok("Not booked.".into()),
    }
}

fn host() -> Host {
    Host::new("visitor", "1.0.0")
        .on_elicit(|_: Question<ElicitParams>| ElicitResult::accept(Map::new().with("sure", true)))
}

pub(crate) async fn play(stage: &Stage) -> Outcome {
    let server = server(Runtime::Tokio);
    negotiation(stage, &server).await?;
    progress(stage).await?;
    input_round(stage, &server).await?;
    timeout(stage).await?;
    stray_line(stage, &server).await?;
    stage.title("That was all. Try `--wire`, and `mcp-inspect check -- CMD` on a server of yours.");
    Ok(())
}

async fn negotiation(stage: &Stage, server: &Server) -> Outcome {
    stage.title("1. One server, five revisions (in memory)");
    for revision in Revision::ALL {
        let host = host().revisions(Revisions::only(revision));
        let (client, trace) = stage.in_memory(server, &host)?;
        let session = client.opened().await?;
        let opening = trace.take();
        let result = client.call_tool("forecast", &json!({ "location": "Oslo" })).await?;
        let text = result.content.first().and_then(|block| block.as_text()).unwrap_or_default();
        stage.say(&format!("{}   {opening:<42}  {text}", session.revision));
    }
    let (client, trace) = stage.in_memory(server, &host())?;
    let session = client.opened().await?;
    stage.say(&format!("left to itself: {}   {}", session.revision, trace.take()));
    Ok(())
}

async fn progress(stage: &Stage) -> Outcome {
    stage.title("2. A call with progress (a child process, over its standard streams)");
    let (client, trace, child) = stage.child(&host())?;
    client.opened().await?;
    trace.take();
    let (sender, mut progress) = tokio::sync::mpsc::unbounded_channel();
    let result = client
        .call_tool("forecast", &json!({ "location": "Bergen" }))
        .on_progress(move |progress| {
            let message = progress.message.as_deref().unwrap_or_default();
            let line =
                format!("{} of {}: {message}", progress.progress, progress.total.unwrap_or(0.0));
            // The receiver outlives the call.
            let _sent = sender.send(line);
        })
        .await?;
    while let Ok(line) = progress.try_recv() {
        stage.say(&line);
    }
    stage.say(result.content.first().and_then(|block| block.as_text()).unwrap_or_default());
    stage.say(&trace.take());
    stage.end(client, child).await
}

async fn input_round(stage: &Stage, server: &Server) -> Outcome {
    stage.title("3. A handler asks the user: the same code in both eras");
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let host = host().revisions(Revisions::only(revision));
        let (client, trace) = stage.in_memory(server, &host)?;
        client.opened().await?;
        trace.take();
        let result = client.call_tool("book", &json!({ "guests": 4 })).await?;
        let text = result.content.first().and_then(|block| block.as_text()).unwrap_or_default();
        stage.say(&format!("{revision}   {text}   {}", trace.take()));
    }
    Ok(())
}

async fn timeout(stage: &Stage) -> Outcome {
    stage.title("4. A server that takes too long");
    let cancelled = Arc::new(AtomicBool::new(false));
    let noticed = Arc::clone(&cancelled);
    let server = server(Runtime::Tokio).observe(move |event| {
        if matches!(event, Event::Cancelled(_)) {
            noticed.store(true, Ordering::Relaxed);
        }
    });
    let (client, trace) = stage.in_memory(&server, &host())?;
    client.opened().await?;
    trace.take();
    let patience = Duration::from_millis(100);
    let ended = client.call_tool("ponder", &json!({})).timeout(patience).await;
    let Err(error) = ended else { return Err("the call should have timed out".into()) };
    // The cancellation is on its way when the call ends; a further call comes behind it.
    client.call_tool("forecast", &json!({ "location": "Hamar" })).await?;
    stage.say(&format!("after {patience:?} the caller learns: {error}"));
    stage.say(&trace.take());
    if !cancelled.load(Ordering::Relaxed) {
        return Err("the server was not told".into());
    }
    stage.say("the server was told, dropped the handler, and served the next call");
    Ok(())
}

async fn stray_line(stage: &Stage, server: &Server) -> Outcome {
    stage.title("5. A line that is no message");
    let (mut near, far) = duplex(64 * 1024);
    stage.serve(server, far)?;
    near.write_all(b"Hello? Is anybody there?\n").await?;
    let (reader, writer) = split(near);
    let (client, trace) = stage.connect(&host(), TokioStream::new(reader, writer));
    client.opened().await?;
    stage.say(&format!("answered and survived: {}", trace.take()));
    let result = client.call_tool("forecast", &json!({ "location": "Tromsø" })).await?;
    stage.say(result.content.first().and_then(|block| block.as_text()).unwrap_or_default());
    Ok(())
}

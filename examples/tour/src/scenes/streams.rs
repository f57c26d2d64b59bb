//! Scenes over byte streams: in memory, and over the standard streams of a child process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_sansio::peer::Event;
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_tokio::Server;
use mcp_sansio_tokio::TokioStream;
use serde_json::json;
use tokio::io::{AsyncWriteExt, duplex, split};

use super::{host, text};
use crate::stage::{Outcome, Stage};
use crate::trace::Steps;

pub(super) async fn play(stage: &Stage, server: &Server) -> Outcome {
    negotiation(stage, server).await?;
    progress(stage).await?;
    input_round(stage, server).await?;
    timeout(stage).await?;
    stray_line(stage, server).await
}

async fn negotiation(stage: &Stage, server: &Server) -> Outcome {
    stage.title("1. One server, five revisions (in memory)");
    for revision in Revision::ALL {
        let host = host().revisions(Revisions::only(revision));
        let (client, trace) = stage.in_memory(server, &host)?;
        let session = client.opened().await?;
        let opening = trace.take();
        let result = client.call_tool("forecast", &json!({ "location": "Oslo" })).await?;
        stage.say(&format!("{}   {opening:<42}  {}", session.revision, text(&result)));
    }
    let (client, trace) = stage.in_memory(server, &host())?;
    let session = client.opened().await?;
    stage.say(&format!("by default: {}   {}", session.revision, trace.take()));
    Ok(())
}

async fn progress(stage: &Stage) -> Outcome {
    stage.title("2. A call with progress (a child process, over its standard streams)");
    let (client, trace, child) = stage.child(&host())?;
    client.opened().await?;
    trace.take();
    let steps = Steps::default();
    let result = client
        .call_tool("forecast", &json!({ "location": "Bergen" }))
        .on_progress(steps.counter())
        .await?;
    stage.say(&steps.take().join(", "));
    stage.say(text(&result));
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
        stage.say(&format!("{revision}   {}   {}", text(&result), trace.take()));
    }
    Ok(())
}

async fn timeout(stage: &Stage) -> Outcome {
    stage.title("4. A server that takes too long");
    let cancelled = Arc::new(AtomicBool::new(false));
    let noticed = Arc::clone(&cancelled);
    let server = super::server().observe(move |event| {
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
    // The cancellation may still be in transit when the call ends. A further call is sent after it.
    client.call_tool("forecast", &json!({ "location": "Hamar" })).await?;
    stage.say(&format!("after {patience:?} the call fails: {error}"));
    stage.say(&trace.take());
    if !cancelled.load(Ordering::Relaxed) {
        return Err("the server did not receive the cancellation".into());
    }
    stage
        .say("the server received the cancellation, dropped the handler, and served the next call");
    Ok(())
}

async fn stray_line(stage: &Stage, server: &Server) -> Outcome {
    stage.title("5. A line that is not a message");
    let (mut near, far) = duplex(64 * 1024);
    stage.serve(server, far)?;
    near.write_all(b"Hello? Is anybody there?\n").await?;
    let (reader, writer) = split(near);
    let (client, trace) = stage.connect(&host(), TokioStream::new(reader, writer));
    client.opened().await?;
    stage.say(&format!("answered, and the connection stays open: {}", trace.take()));
    let result = client.call_tool("forecast", &json!({ "location": "Tromsø" })).await?;
    stage.say(text(&result));
    Ok(())
}

//! Scenes over HTTP: one server at one address for clients of every revision.

use mcp_sansio::http::HttpClientOptions;
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_tokio::Server;
use serde_json::json;

use super::{host, text};
use crate::cutting_proxy::CuttingProxy;
use crate::http_server::HttpServer;
use crate::stage::{Outcome, PAUSE, Stage, options};
use crate::trace::Steps;

/// The number of steps of the walk whose stream is cut.
const STEPS: usize = 5;
/// The step whose notification is cut.
const CUT_AT: usize = 3;

/// Returns options without the stream for server messages, which would clutter the trace.
fn quietly(url: &str) -> Outcome<HttpClientOptions> {
    Ok(options(url)?.listen(false))
}

pub(super) async fn play(stage: &Stage, server: &Server) -> Outcome {
    let http_server = HttpServer::open(server, PAUSE).await?;
    negotiation(stage, &http_server).await?;
    progress(stage, &http_server).await?;
    input_round(stage, &http_server).await?;
    cut(stage, &http_server).await?;
    long_work(stage, &http_server).await?;
    http_server.close().await
}

async fn negotiation(stage: &Stage, http_server: &HttpServer) -> Outcome {
    stage.title("6. The same server over HTTP: three kinds of clients at one address");
    let legacy = host().revisions(Revisions::only(Revision::V2025_06_18));
    let visitors = [
        ("a new client", host(), "/mcp"),
        ("one of 2025-06-18", legacy, "/mcp"),
        ("one that uses the old transport", host(), "/sse"),
    ];
    for (who, host, path) in visitors {
        let visit = stage.visit(options(&http_server.url(path))?, &host)?;
        let session = visit.client.opened().await?;
        let result = visit.client.call_tool("forecast", &json!({ "location": "Oslo" })).await?;
        stage.say(&format!("{who}: {}   {}", session.revision, text(&result)));
        let trace = visit.leave().await;
        stage.list(trace.exchanges());
    }
    Ok(())
}

async fn progress(stage: &Stage, http_server: &HttpServer) -> Outcome {
    stage.title("7. A call with progress: the response becomes an event stream");
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let host = host().revisions(Revisions::only(revision));
        let visit = stage.visit(quietly(&http_server.url("/mcp"))?, &host)?;
        visit.client.opened().await?;
        let steps = Steps::default();
        let result = visit
            .client
            .call_tool("forecast", &json!({ "location": "Bergen" }))
            .on_progress(steps.counter())
            .await?;
        stage.say(&format!("{revision}   {}, {}", steps.take().join(", "), text(&result)));
        visit.leave().await;
    }
    Ok(())
}

async fn input_round(stage: &Stage, http_server: &HttpServer) -> Outcome {
    stage.title("8. A handler asks the user: a request on the stream, or a second round");
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let host = host().revisions(Revisions::only(revision));
        let visit = stage.visit(quietly(&http_server.url("/mcp"))?, &host)?;
        visit.client.opened().await?;
        visit.trace.clear();
        let result = visit.client.call_tool("book", &json!({ "guests": 4 })).await?;
        stage.say(&format!("{revision}   {}", text(&result)));
        stage.list(visit.trace.exchanges());
        visit.leave().await;
    }
    Ok(())
}

async fn cut(stage: &Stage, http_server: &HttpServer) -> Outcome {
    stage.title("9. The connection is cut in the middle of a call, and nothing is lost");
    let cut = CuttingProxy::open(http_server.address()).await?;
    let host = host().revisions(Revisions::only(Revision::V2025_11_25));
    let visit = stage.visit(quietly(&format!("http://{}/mcp", cut.address()))?, &host)?;
    visit.client.opened().await?;
    visit.trace.clear();
    cut.arm("\"notifications/progress\"", CUT_AT);
    let steps = Steps::default();
    let result = visit
        .client
        .call_tool("walk", &json!({ "steps": STEPS }))
        .on_progress(steps.counter())
        .await?;
    stage.say(&format!("the network fails in the middle of notification {CUT_AT}"));
    stage.list(visit.trace.exchanges());
    let steps = steps.take();
    stage.say(&steps.join(", "));
    stage.say(text(&result));
    let expected: Vec<_> = (1..=STEPS).map(|step| format!("{step} of {STEPS}")).collect();
    if !cut.is_done() || steps != expected {
        return Err("each step should have arrived once in spite of the cut".into());
    }
    stage.say("each step and the result arrived, once and in order");
    visit.leave().await;
    Ok(())
}

async fn long_work(stage: &Stage, http_server: &HttpServer) -> Outcome {
    stage.title("10. Long work releases the connection; the client reconnects for the result");
    let host = host().revisions(Revisions::only(Revision::V2025_11_25));
    let visit = stage.visit(quietly(&http_server.url("/mcp"))?, &host)?;
    visit.client.opened().await?;
    visit.trace.clear();
    let result = visit.client.call_tool("brew", &json!({})).await?;
    let polls = visit
        .trace
        .exchanges()
        .iter()
        .filter(|line| line.starts_with("GET with Last-Event-ID"))
        .count();
    if polls == 0 {
        return Err("the client should have reconnected".into());
    }
    stage.list(visit.trace.exchanges());
    stage.say(text(&result));
    visit.leave().await;
    Ok(())
}

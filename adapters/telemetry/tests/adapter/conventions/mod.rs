//! Spans and metrics of servers and clients, as an exporter receives them.

mod attributes;
mod context;
mod exported;
mod failures;
mod handlers;
mod http;
mod measurements;

use mcp_sansio::protocol::{
    ElicitParams, ElicitResult, GetPromptResult, PromptMessage, Resource, TextResourceContents,
};
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_handlers::{
    Call, Client, Elicit, HandlerError, Host, HostRequest, NoArguments, ReadResource, Server,
};

use mcp_sansio_test::{HttpPair, StreamPair, connect, connect_http};

use exported::Exported;

/// Arguments of [`server`]'s items.
#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Place {
    location: String,
}

/// The answer to a question.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Answer {
    sure: bool,
}

/// A server with an item of each kind.
fn server() -> Server {
    Server::new("s", "1")
        .tool("forecast", "", |call: Call<Place>| format!("Sunny in {}", call.arguments.location))
        .tool("fail", "", |_: Call<NoArguments>| {
            Err::<String, _>(HandlerError::failed("the station is closed"))
        })
        .tool("refuse", "", |_: Call<NoArguments>| {
            Err::<String, _>(HandlerError::invalid_params("not now"))
        })
        .tool("ask", "", |call: Call<NoArguments>| match call.input::<Answer>("sure")? {
            None => call.require_input("sure", Elicit::form::<Answer>("Sure?")).into_result(),
            Some(_) => Ok::<_, HandlerError>(String::from("asked")),
        })
        .prompt("greet", "", |call: Call<Place>| {
            GetPromptResult::new([PromptMessage::user(call.arguments.location.clone())])
        })
        .resource(Resource::new("file:///a", "a"), |_: Call<ReadResource>| {
            TextResourceContents::new("file:///a", "content")
        })
}

/// A host of one revision that answers questions.
fn host(revision: Revision) -> Host {
    Host::new("h", "1")
        .revisions(Revisions::only(revision))
        .on_elicit(|_: HostRequest<ElicitParams>| ElicitResult::decline())
}

/// Connects [`server`] and [`host`] over a byte stream, each with telemetry of its own: that of the
/// server, and that of the host.
fn observed(revision: Revision) -> (Exported, Exported, Client, StreamPair) {
    let (there, here) = (Exported::new(), Exported::new());
    let server = server().observe_operations(there.telemetry.clone());
    let host = host(revision).observe_operations(here.telemetry.clone());
    let (client, pair) = connect(&server, &host);
    (there, here, client, pair)
}

/// Like [`observed`], over HTTP.
fn observed_over_http(revision: Revision) -> (Exported, Exported, Client, HttpPair) {
    let (there, here) = (Exported::new(), Exported::new());
    let server = server().observe_operations(there.telemetry.clone());
    let host = host(revision).observe_operations(here.telemetry.clone());
    let (client, pair) = connect_http(&server, &host, None);
    (there, here, client, pair)
}

fn oslo() -> Place {
    Place { location: "Oslo".into() }
}

//! The application: a thermometer and its client. It does not depend on the transport.

use std::sync::{Arc, Mutex, PoisonError};

use mcp_sansio::protocol::{CallToolResult, ElicitParams, ElicitResult, Map};
use mcp_sansio_handlers::{
    Call, Client, ClientError, Elicit, HandlerError, Host, HostRequest, NoArguments, Server,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Samples {
    /// The number of samples to take
    samples: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// The note to keep
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Reference {
    /// The reading of another thermometer in degrees Celsius
    degrees: f64,
}

/// Returns a server with a call that reports progress, one that asks the user, and one with long
/// texts.
#[must_use]
pub fn server() -> Server {
    Server::new("thermometer", "1.0.0")
        .tool("average", "Takes samples", async |call: Call<Samples>| {
            let samples = call.arguments.samples;
            for sample in 1..=samples {
                call.progress(f64::from(sample), Some(f64::from(samples)), "sampled");
            }
            "21.5 °C"
        })
        .tool("calibrate", "Calibrates it with another thermometer", calibrate)
        .tool("note", "Keeps a note and returns it", |call: Call<Note>| call.arguments.text)
}

async fn calibrate(call: Call<NoArguments>) -> Result<String, HandlerError> {
    match call.input::<Reference>("reference")? {
        None => call
            .require_input(
                "reference",
                Elicit::form::<Reference>("What does the other thermometer show?"),
            )
            .into_result(),
        Some(answer) => match answer.content {
            Some(reference) => Ok(format!("Set to {} °C.", reference.degrees)),
            None => Ok("Not changed.".into()),
        },
    }
}

/// Returns a host whose user always gives the same answer.
#[must_use]
pub fn host() -> Host {
    Host::new("reader", "1.0.0").on_elicit(|_: HostRequest<ElicitParams>| {
        ElicitResult::accept(Map::new().with("degrees", 22))
    })
}

/// The results of the calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    /// The progress values reported while the samples were taken.
    pub progress: Vec<f64>,
    /// The result of the average.
    pub average: String,
    /// The result of the calibration.
    pub calibration: String,
    /// The note returned by the server.
    pub note: String,
}

/// Calls all tools of the thermometer.
///
/// # Errors
///
/// Fails if a call fails.
pub async fn read(client: &Client, note: &str) -> Result<Readings, ClientError> {
    client.opened().await?;
    let steps = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&steps);
    let average = client
        .call_tool("average", &json!({ "samples": 5 }))
        .on_progress(move |progress| {
            reported.lock().unwrap_or_else(PoisonError::into_inner).push(progress.progress);
        })
        .await?;
    let calibration = client.call_tool("calibrate", &json!({})).await?;
    let kept = client.call_tool("note", &json!({ "text": note })).await?;
    let progress = std::mem::take(&mut *steps.lock().unwrap_or_else(PoisonError::into_inner));
    let (average, calibration, note) = (text(&average), text(&calibration), text(&kept));
    Ok(Readings { progress, average, calibration, note })
}

fn text(result: &CallToolResult) -> String {
    result.content.first().and_then(|block| block.as_text()).unwrap_or_default().to_owned()
}

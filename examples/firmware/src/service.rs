//! The MCP server of the device.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::time::Duration;

use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::peer::Limits;
use mcp_sansio::protocol::{Prompt, PromptArgument, Resource, TextResourceContents, Tool};
use mcp_sansio_handlers::{
    Call, HandlerError, Local, NoArguments, ReadResource, Server, Structured,
};
use serde::{Deserialize, Serialize};

use crate::sensor::{Sensor, millicelsius};
use crate::timers::Timers;
use crate::{heap, lamp, stack};

/// The URI of the resource that changes over time.
pub(crate) const TEMPERATURE: &str = "sensor://temperature";

#[derive(Deserialize)]
struct Switch {
    on: bool,
}

#[derive(Deserialize)]
struct Samples {
    samples: u16,
}

#[derive(Deserialize)]
struct LampRequest {
    room: Option<String>,
}

#[derive(Serialize)]
struct Reading {
    adc: u16,
    millicelsius: u32,
}

#[derive(Serialize)]
struct Memory {
    heap: Usage,
    stack: Usage,
}

/// Sizes in bytes.
#[derive(Serialize)]
struct Usage {
    size: usize,
    peak: usize,
}

/// Returns the server. The caller advances `sensor` and wakes `timers`.
// Neither this function nor its parts are inlined, so that the stack used to build the server is
// released afterwards.
#[inline(never)]
pub(crate) fn server(sensor: &Rc<Sensor>, timers: &Timers) -> Server<Local> {
    let server = Server::local("thermometer", env!("CARGO_PKG_VERSION"))
        .instructions("A thermometer with a lamp.")
        .limits(Limits::SMALL)
        .subscriptions();
    prompts(resources(tools(server, sensor, timers), sensor))
}

#[inline(never)]
fn prompts(server: Server<Local>) -> Server<Local> {
    server.prompt_with(
        Prompt::new("report")
            .description("Asks for a report about the temperature")
            .arguments([PromptArgument::new("room").description("Where the device is")]),
        |call: Call<LampRequest>| {
            let room = call.arguments.room.as_deref().unwrap_or("the room");
            format!("Read the sensor of the device and say whether {room} is too warm or too cold.")
        },
    )
}

#[inline(never)]
fn tools(server: Server<Local>, sensor: &Rc<Sensor>, timers: &Timers) -> Server<Local> {
    let read = {
        let sensor = Rc::clone(sensor);
        move |_: Call<NoArguments>| {
            let adc = sensor.value();
            Structured(Reading { adc, millicelsius: millicelsius(adc) })
        }
    };
    let average = {
        let (sensor, timers) = (Rc::clone(sensor), timers.clone());
        move |call: Call<Samples>| {
            let (sensor, timers) = (Rc::clone(&sensor), timers.clone());
            async move { average(&call, &sensor, &timers).await }
        }
    };
    server
        .tool_with(Tool::new("read_sensor", schema(r#"{"type":"object"}"#)).description("Measures once"), read)
        .tool_with(
            Tool::new(
                "switch_lamp",
                schema(
                    r#"{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}"#,
                ),
            )
                .description("Switches the lamp, and says whether it is on"),
            |call: Call<Switch>| {
                lamp::switch(call.arguments.on);
                if lamp::is_on() { "The lamp is on." } else { "The lamp is off." }
            },
        )
        .tool_with(
            Tool::new(
                "average",
                schema(
                    r#"{"type":"object","properties":{"samples":{"type":"integer","minimum":1,"maximum":100}},"required":["samples"]}"#,
                ),
            )
            .description("Measures ten times a second and says the mean"),
            average,
        )
}

async fn average(
    call: &Call<Samples>,
    sensor: &Sensor,
    timers: &Timers,
) -> Result<String, HandlerError> {
    let samples = call.arguments.samples;
    if !(1..=100).contains(&samples) {
        return Err(HandlerError::failed("`samples` must be from 1 to 100"));
    }
    let mut sum = 0;
    for taken in 1..=samples {
        timers.sleep(Duration::from_millis(100)).await;
        sum += millicelsius(sensor.value());
        call.progress(taken.into(), Some(samples.into()), "");
    }
    Ok(celsius(sum / u32::from(samples)))
}

#[inline(never)]
fn resources(server: Server<Local>, sensor: &Rc<Sensor>) -> Server<Local> {
    let sensor = Rc::clone(sensor);
    server
        .resource(
            Resource::new(TEMPERATURE, "temperature").description("The temperature now"),
            move |call: Call<ReadResource>| {
                let text = celsius(millicelsius(sensor.value()));
                TextResourceContents::new(call.arguments.uri.as_str(), text)
            },
        )
        .resource(
            Resource::new("device://memory", "memory")
                .description("Sizes and peak use of heap and stack, in bytes")
                .mime_type("application/json"),
            |call: Call<ReadResource>| -> Result<TextResourceContents, HandlerError> {
                let memory = Memory {
                    heap: Usage { size: crate::HEAP_SIZE, peak: heap::peak() },
                    stack: Usage { size: stack::size(), peak: stack::peak() },
                };
                let text = Json::from_serialize(&memory)?;
                let contents =
                    TextResourceContents::new(call.arguments.uri.as_str(), text.as_str());
                Ok(contents.mime_type("application/json"))
            },
        )
}

/// Formats a temperature with one decimal place.
fn celsius(millis: u32) -> String {
    let tenths = (millis + 50) / 100;
    format!("{}.{} °C", tenths / 10, tenths % 10)
}

/// Parses the schema of a tool's arguments.
fn schema(text: &'static str) -> RawJson<'static> {
    let Ok(schema) = RawJson::parse(text) else { panic!("the schemas of this file are JSON") };
    schema
}

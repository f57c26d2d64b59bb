//! The same tools and resources for both servers.

use mcp_sansio::Instant;
use mcp_sansio::catalog::Catalog;
use mcp_sansio::envelope::JsonText;
use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{Event, Limits, Request, Server, ServerMachine, ServerOptions};
use mcp_sansio::protocol::{
    CallToolResult, Implementation, ReadResourceResult, TextResourceContents, ToolAnnotations,
};
use mcp_sansio::{Method, Revision, Revisions};
use mcp_sansio_fixed::{Call, Failure, Resource, Service, Text, Tool};

const ANY: &str = r#"{"type":"object"}"#;
const NUMBERS: &str =
    "{\n  \"type\": \"object\",\n  \"properties\": {\"a\": {\"type\": \"integer\"}}\n}";
const READS: &str = r#"{"readOnlyHint":true}"#;
const INSTRUCTIONS: &str = "Add \"numbers\".";
pub(crate) const SENSOR: &str = "sensor://temperature";

/// A server without an allocator, of all revisions or of some: `SPOKEN` is 0 for all, 1 for the
/// newest two, 2 for the legacy ones, and 3 for the modern one.
pub(crate) struct Fixed<const SPOKEN: u8>;

const fn spoken(number: u8) -> Revisions {
    match number {
        0 => Revisions::ALL,
        1 => Revisions::since(Revision::V2025_11_25),
        2 => Revisions::LEGACY,
        _ => Revisions::MODERN,
    }
}

impl<const SPOKEN: u8> Service for Fixed<SPOKEN> {
    const NAME: &'static str = "same";
    const VERSION: &'static str = "1.\"0";
    const INSTRUCTIONS: Option<&'static str> = Some(INSTRUCTIONS);
    const REVISIONS: Revisions = spoken(SPOKEN);
    const TOOLS: &'static [Tool<Self>] = &[
        Tool::new("add", NUMBERS, |_, call, out| handle("add", call, out))
            .title("Add")
            .description("Adds a number\nto itself")
            .annotations(READS),
        Tool::new("echo", ANY, |_, call, out| handle("echo", call, out)),
        Tool::new("fail", ANY, |_, call, out| handle("fail", call, out)),
        Tool::new("break", ANY, |_, call, out| handle("break", call, out)),
    ];
    const RESOURCES: &'static [Resource<Self>] = &[
        Resource::new(SENSOR, "temperature", |_, out| {
            out.push_str("21 °C\n");
            Ok(())
        })
        .title("Temperature")
        .description("Now")
        .mime_type("text/plain"),
        Resource::new("sensor://broken", "broken", |_, _| Err(Failure::Internal("broken"))),
    ];
}

fn handle(name: &str, call: &Call<'_>, out: &mut Text<'_, '_>) -> Result<(), Failure> {
    match run(name, call.arguments) {
        Ok((text, true)) => {
            out.push_str(&text);
            Err(Failure::Tool)
        }
        Ok((text, false)) => {
            out.push_str(&text);
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

/// Runs a tool. Returns its text, and whether that is an error.
fn run(name: &str, arguments: JsonText<'_>) -> Result<(String, bool), Failure> {
    let number = |name| arguments.get_present(name).and_then(JsonText::to_integer);
    match name {
        "add" => {
            let a = number("a").ok_or(Failure::Arguments("`a` must be an integer"))?;
            Ok((a.wrapping_add(a).to_string(), false))
        }
        "echo" => {
            let text = arguments.get_present("text").and_then(JsonText::to_written);
            Ok((text.map(|text| text.chars().collect()).unwrap_or_default(), false))
        }
        "fail" => Ok(("it \"failed\"".into(), true)),
        _ => Err(Failure::Internal("it broke")),
    }
}

/// A machine with an allocator that offers the same.
pub(crate) struct Allocating(Server);

impl Allocating {
    pub(crate) fn new(spoken_number: u8, batch_length_max: usize) -> Self {
        let schema = |text| RawJson::trusted(text);
        let annotations = RawJson::trusted(READS);
        let annotations: ToolAnnotations = annotations.decode().expect("annotations");
        let tool = mcp_sansio::protocol::Tool::new("add", schema(NUMBERS));
        let mut catalog = Catalog::new();
        catalog
            .add_tool(
                tool.title("Add").description("Adds a number\nto itself").annotations(annotations),
            )
            .expect("a tool");
        for name in ["echo", "fail", "break"] {
            catalog.add_tool(mcp_sansio::protocol::Tool::new(name, schema(ANY))).expect("a tool");
        }
        let resource = mcp_sansio::protocol::Resource::new(SENSOR, "temperature");
        let resource = resource.title("Temperature").description("Now").mime_type("text/plain");
        catalog.add_resource(resource).expect("a resource");
        let broken = mcp_sansio::protocol::Resource::new("sensor://broken", "broken");
        catalog.add_resource(broken).expect("a resource");
        catalog.list_changed(false);
        let mut limits = Limits::default();
        limits.depth_max = 32;
        limits.id_length_max = 64;
        limits.batch_length_max = batch_length_max;
        let options = ServerOptions::new(Implementation::new("same", "1.\"0"))
            .instructions(INSTRUCTIONS)
            .revisions(spoken(spoken_number))
            .limits(limits)
            .catalog(catalog);
        Self(Server::new(options, 1))
    }

    /// Returns the answer to a frame.
    pub(crate) fn answer(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let now = Instant::ZERO;
        let mut events = Vec::new();
        if let Some(event) = self.0.handle_message(frame, now).expect("the connection is open") {
            events.push(event.into_owned());
        }
        while let Some(event) = self.0.poll_event() {
            events.push(event);
        }
        for event in events {
            if let Event::Request(request) = event {
                self.handle(&request, now);
            }
        }
        self.line()
    }

    pub(crate) fn frame_error(
        &mut self,
        error: mcp_sansio::framing::FrameError,
    ) -> Option<Vec<u8>> {
        self.0.handle_frame_error(error).expect("the connection is open");
        self.line()
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        while let Some(bytes) = self.0.poll_transmit() {
            line.extend_from_slice(bytes);
        }
        (!line.is_empty()).then_some(line)
    }

    fn handle(&mut self, request: &Request<'_>, now: Instant) {
        let subject = request.subject().and_then(|it| it.to_text()).unwrap_or_default();
        let handle = request.handle;
        let rejected = |what| ErrorObject::internal(what);
        match request.method.known() {
            Some(Method::ToolsCall) => {
                let arguments = request.arguments();
                let arguments = arguments.as_ref().map_or("{}", RawJson::as_str);
                match run(&subject, JsonText::trusted(arguments)) {
                    Ok((text, false)) => self.0.respond(handle, &CallToolResult::text(text), now),
                    Ok((text, true)) => self.0.respond(handle, &CallToolResult::error(text), now),
                    Err(Failure::Arguments(what)) => {
                        self.0.respond(handle, &CallToolResult::error(what), now)
                    }
                    Err(_) => self.0.reject(handle, rejected("it broke"), now),
                }
            }
            Some(Method::ResourcesRead) if subject == SENSOR => {
                let contents = TextResourceContents::new(SENSOR, "21 °C\n");
                let contents = contents.mime_type("text/plain").into();
                self.0.respond(handle, &ReadResourceResult::new([contents]), now)
            }
            Some(Method::ResourcesRead) => self.0.reject(handle, rejected("broken"), now),
            _ => {
                let error = ErrorObject::method_not_found(request.method.as_str());
                self.0.reject(handle, error, now)
            }
        }
        .expect("the request is due");
    }
}

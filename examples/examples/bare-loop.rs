//! A server on standard input and output that uses the machine directly, with blocking reads and
//! writes. It has no timers and answers immediately, so it needs no runtime.

use std::io::{self, Read, Write};
use std::task::{Context, Waker};

use mcp_sansio::catalog::Catalog;
use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{self, Event, ServerMachine, ServerOptions};
use mcp_sansio::protocol::{CallToolResult, Implementation, Tool};
use mcp_sansio::stream::{Action, OnEvent, StreamConnection, StreamSettings};
use mcp_sansio::{Instant, Method};
use mcp_sansio_std::now;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = RawJson::parse(r#"{"type":"object","properties":{"text":{"type":"string"}}}"#)?;
    let mut catalog = Catalog::new();
    catalog.add_tool(Tool::new("shout", schema).description("Says it louder"))?;
    let options = ServerOptions::new(Implementation::new("bare-loop", "1.0.0")).catalog(catalog);
    let machine = peer::Server::new(options, mcp_sansio_std::seed());
    let mut connection =
        StreamConnection::<_, io::Error>::new(OnEvent::new(machine, on), StreamSettings::pipe());
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut cx = Context::from_waker(Waker::noop());
    let mut buffer = [0; 4096];
    loop {
        match connection.advance(&mut cx, now()) {
            Action::Write => {
                while let length @ 1.. = connection.fill(&mut buffer) {
                    output.write_all(&buffer[..length])?;
                }
                output.flush()?;
                connection.handle_flushed();
            }
            Action::Wait => {
                let length = input.read(connection.space())?;
                connection.handle_read(Ok(length), now());
            }
            Action::Yield => connection.reset_budget(),
            Action::Close | Action::Restart | Action::Done => return Ok(()),
        }
    }
}

/// The application: one tool.
fn on(event: Event<'_>, machine: &mut peer::Server, now: Instant) {
    let Event::Request(request) = event else { return };
    // The machine only accepts calls of tools in its catalog, which has this one.
    let answered = if request.method == Method::ToolsCall {
        let arguments = request.arguments().unwrap_or(RawJson::EMPTY_OBJECT);
        let text = arguments.get("text").unwrap_or(RawJson::NULL);
        let text = text.to_text().unwrap_or_default().to_uppercase();
        machine.respond(request.handle, &CallToolResult::text(text), now)
    } else {
        let error = ErrorObject::method_not_found(request.method.as_str());
        machine.reject(request.handle, error, now)
    };
    // Fails only if the request was cancelled in the meantime.
    let _ = answered;
}

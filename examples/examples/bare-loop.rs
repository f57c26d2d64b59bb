//! The machine by hand: a server on standard input and output with nothing but blocking reads and
//! writes. It has no timers and answers at once, so it needs no more than this.

use std::io::{self, Read, Write};

use mcp_sansio::catalog::Catalog;
use mcp_sansio::framing::LineDecoder;
use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{self, Event, ServerOptions};
use mcp_sansio::protocol::{CallToolResult, Implementation, Method, Tool};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = RawJson::parse(r#"{"type":"object","properties":{"text":{"type":"string"}}}"#)?;
    let mut catalog = Catalog::new();
    catalog.add_tool(Tool::new("shout", schema).description("Says it louder"))?;
    let options = ServerOptions::new(Implementation::new("bare-loop", "1.0.0")).catalog(catalog);
    let mut machine = peer::Server::new(options, mcp_sansio_std::seed());
    let mut decoder = LineDecoder::growing(1 << 20);
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    loop {
        while let Some(event) = machine.poll_event() {
            on(event, &mut machine);
        }
        while let Some(bytes) = machine.poll_transmit() {
            output.write_all(bytes)?;
        }
        output.flush()?;
        if machine.is_closed() {
            return Ok(());
        }
        match input.read(decoder.space())? {
            0 => machine.handle_eof(),
            count => {
                decoder.commit(count);
                while let Some(frame) = decoder.next_frame() {
                    let now = mcp_sansio_std::now();
                    let event = match frame {
                        Ok(frame) => machine.handle_message(frame, now)?,
                        Err(error) => machine.handle_frame_error(error)?,
                    };
                    if let Some(event) = event {
                        on(event, &mut machine);
                    }
                }
            }
        }
    }
}

/// The application: one tool.
fn on(event: Event<'_>, machine: &mut peer::Server) {
    let Event::Request(request) = event else { return };
    // The machine has made sure that the tool is the one of the catalog.
    let answered = if request.method == Method::ToolsCall {
        let arguments = request.params.get("arguments").unwrap_or(RawJson::EMPTY_OBJECT);
        let text = arguments.get("text").unwrap_or(RawJson::NULL);
        let text = text.to_text().unwrap_or_default().to_uppercase();
        machine.respond(request.handle, &CallToolResult::text(text))
    } else {
        machine.reject(request.handle, ErrorObject::method_not_found(request.method.as_str()))
    };
    // It fails only for a request that was cancelled meanwhile.
    let _ = answered;
}

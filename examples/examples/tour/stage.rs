//! Connections to play on, and the words that go with them.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use mcp_sansio::handler::{Client, Host, Server};
use mcp_sansio_async::ByteStream;
use mcp_sansio_examples::wire::{Direction, Viewer, Wire};
use mcp_sansio_tokio::{ChildServer, Graces, TokioStream, drive, now};
use serde_json::Value;
use tokio::io::{DuplexStream, duplex, split};
use tokio::process::Command;

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Where the tour plays.
pub(crate) struct Stage {
    wire: bool,
    bold: bool,
}

/// The messages of a connection as the client sees them, each in a few words.
#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    /// What passed since the last time.
    pub(crate) fn take(&self) -> String {
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *steps).join("  ")
    }

    fn note(&self, step: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    }
}

impl Stage {
    pub(crate) fn new(wire: bool) -> Self {
        Self { wire, bold: io::stdout().is_terminal() }
    }

    pub(crate) fn title(&self, title: &str) {
        if self.bold {
            print(&format!("\n\x1b[1m{title}\x1b[0m"));
        } else {
            print(&format!("\n{title}"));
        }
    }

    pub(crate) fn say(&self, line: &str) {
        print(&format!("  {line}"));
    }

    /// A server and a client with a pipe of memory between them.
    pub(crate) fn in_memory(&self, server: &Server, host: &Host) -> Outcome<(Client, Trace)> {
        let (near, far) = duplex(64 * 1024);
        self.serve(server, far)?;
        let (reader, writer) = split(near);
        Ok(self.connect(host, TokioStream::new(reader, writer)))
    }

    /// Drives the server's side of a pipe.
    pub(crate) fn serve(&self, server: &Server, pipe: DuplexStream) -> Outcome {
        let (reader, writer) = split(pipe);
        let endpoint = server.endpoint(mcp_sansio_std::seed())?;
        tokio::spawn(drive(endpoint, TokioStream::new(reader, writer)));
        Ok(())
    }

    /// Drives the client's side of a stream.
    pub(crate) fn connect(
        &self,
        host: &Host,
        stream: impl ByteStream + Send + 'static,
    ) -> (Client, Trace) {
        let (trace, wire) = (Trace::default(), self.wire);
        let noting = trace.clone();
        let viewer: Viewer = Box::new(move |direction, line| {
            noting.note(in_short(direction, line));
            if wire {
                print(&format!("    {} {line}", direction.as_str()));
            }
        });
        let (client, endpoint) = host.connect(mcp_sansio_std::seed(), now());
        tokio::spawn(drive(endpoint, Wire::new(stream, Some(viewer))));
        (client, trace)
    }

    /// A client of this program, started once more as a server.
    pub(crate) fn child(&self, host: &Host) -> Outcome<(Client, Trace, ChildServer)> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve");
        let (child, stream) = ChildServer::spawn(command)?;
        let (client, trace) = self.connect(host, stream);
        Ok((client, trace, child))
    }

    /// Ends a child, which should need no force.
    pub(crate) async fn end(&self, client: Client, child: ChildServer) -> Outcome {
        client.close();
        let report = child.shutdown(Graces::default()).await?;
        let forced = if report.forced { ", but only by force" } else { "" };
        self.say(&format!("the child left: {}{forced}", report.status));
        Ok(())
    }
}

fn print(line: &str) {
    // Whoever closes the pipe has seen enough.
    let _ = writeln!(io::stdout(), "{line}");
}

/// A message in a few words.
fn in_short(direction: Direction, line: &str) -> String {
    let message: Value = serde_json::from_str(line).unwrap_or_default();
    let what = match (&message["method"], &message["result"], &message["error"]) {
        (Value::String(method), _, _) => method.trim_start_matches("notifications/").to_owned(),
        (_, result, _) if result["resultType"] == "input_required" => "input required".into(),
        (_, Value::Object(_), _) => "result".into(),
        (_, _, Value::Object(error)) => format!("error {}", error["code"]),
        _ => "?".into(),
    };
    let arrow = match direction {
        Direction::Out => "→",
        Direction::In => "←",
    };
    format!("{arrow} {what}")
}

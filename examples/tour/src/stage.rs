//! Connections for the scenes, and the output of the tour.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use mcp_sansio::Backoff;
use mcp_sansio::http::{HttpClientOptions, Location};
use mcp_sansio_cli::exchanges::{ExchangeViewer, Watched, in_words};
use mcp_sansio_cli::wire::{Viewer, Wire};
use mcp_sansio_tokio::adapter::ByteStream;
use mcp_sansio_tokio::adapter::child::GracePeriods;
use mcp_sansio_tokio::adapter::http_client::HttpDriver;
use mcp_sansio_tokio::auth::with_system_support;
use mcp_sansio_tokio::runtime::{TokioExchanger, TokioTimer};
use mcp_sansio_tokio::{ChildServer, Connector, Proxy, TokioStream, drive, now, seed};
use mcp_sansio_tokio::{Client, Host, Server};
use tokio::io::{DuplexStream, duplex, split};
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::trace::Trace;

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The delay of a client before it reconnects. Real clients wait a second or longer.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Opens connections and prints the narration.
pub(crate) struct Stage {
    wire: bool,
    bold: bool,
}

/// Returns the client options for the server at `url`.
pub(crate) fn options(url: &str) -> Outcome<HttpClientOptions> {
    let mut backoff = Backoff::DEFAULT;
    backoff.initial = PAUSE;
    Ok(HttpClientOptions::new(Location::parse(url)?).backoff(backoff))
}

/// A client with an HTTP connection.
pub(crate) struct Visit {
    pub(crate) client: Client,
    pub(crate) trace: Trace,
    driver: JoinHandle<()>,
}

impl Visit {
    /// Closes the connection after everything has been sent, and returns the trace.
    pub(crate) async fn leave(self) -> Trace {
        self.client.close();
        // A driver that panicked has ended, too.
        let _ended = self.driver.await;
        self.trace
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

    /// Prints lines that belong to the previous line.
    pub(crate) fn list(&self, lines: impl IntoIterator<Item = String>) {
        for line in lines {
            self.say(&format!("  {line}"));
        }
    }

    /// Connects a client and a server with an in-memory pipe.
    pub(crate) fn in_memory(&self, server: &Server, host: &Host) -> Outcome<(Client, Trace)> {
        let (near, far) = duplex(64 * 1024);
        self.serve(server, far)?;
        let (reader, writer) = split(near);
        Ok(self.connect(host, TokioStream::new(reader, writer)))
    }

    /// Drives the server side of a pipe.
    pub(crate) fn serve(&self, server: &Server, pipe: DuplexStream) -> Outcome {
        let (reader, writer) = split(pipe);
        let endpoint = server.endpoint(seed())?;
        tokio::spawn(drive(endpoint, TokioStream::new(reader, writer)));
        Ok(())
    }

    /// Drives the client side of a stream.
    pub(crate) fn connect(
        &self,
        host: &Host,
        stream: impl ByteStream + Send + 'static,
    ) -> (Client, Trace) {
        let (trace, wire) = (Trace::default(), self.wire);
        let noting = trace.clone();
        let viewer: Viewer = Box::new(move |direction, line| {
            noting.message(direction, line);
            if wire {
                print(&format!("    {} {line}", direction.as_str()));
            }
        });
        let (client, endpoint) = host.connect(seed(), now());
        tokio::spawn(drive(endpoint, Wire::new(stream, Some(viewer))));
        (client, trace)
    }

    /// Connects a client to an HTTP server.
    pub(crate) fn visit(&self, options: HttpClientOptions, host: &Host) -> Outcome<Visit> {
        let (trace, wire) = (Trace::default(), self.wire);
        let noting = trace.clone();
        let viewer: ExchangeViewer = Box::new(move |number, event| {
            noting.exchange(number, event);
            if wire {
                print(&format!("    {}", in_words(number, event)).replace('\n', "\n    "));
            }
        });
        // All connections are local, so no proxy is used.
        let connector = Connector::builder().proxy(Proxy::none()).build()?;
        let exchanger = Watched::new(TokioExchanger::new(connector), Some(viewer));
        let (client, endpoint) = with_system_support(host)?.connect_http(options, seed(), now());
        let driver = tokio::spawn(HttpDriver::new(endpoint, exchanger, TokioTimer::new()));
        Ok(Visit { client, trace, driver })
    }

    /// Starts this program as a child server and connects a client to it.
    pub(crate) fn child(&self, host: &Host) -> Outcome<(Client, Trace, ChildServer)> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve");
        let (child, stream) = ChildServer::spawn(command)?;
        let (client, trace) = self.connect(host, stream);
        Ok((client, trace, child))
    }

    /// Ends a child process, which should exit without being killed.
    pub(crate) async fn end(&self, client: Client, child: ChildServer) -> Outcome {
        client.close();
        let report = child.shutdown(GracePeriods::default()).await?;
        let forced = if report.forced { ", after a kill" } else { "" };
        self.say(&format!("the child exited: {}{forced}", report.status));
        Ok(())
    }
}

fn print(line: &str) {
    // A closed pipe is not an error: the reader has seen enough.
    let _ = writeln!(io::stdout(), "{line}");
}

//! HTTP servers: the example programs, and programs that are not MCP servers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::process::example;

/// An example server that serves HTTP until it is dropped.
pub(crate) struct HttpServerProcess {
    child: Child,
    /// `http://ADDRESS`
    origin: String,
}

impl HttpServerProcess {
    pub(crate) fn start(program: &str, flags: &[&str]) -> Self {
        Self::listening(program, &[&["--http", "127.0.0.1:0"], flags].concat(), &[], "/mcp\n")
    }

    /// Starts a server whose argument is its address. `end` follows its origin.
    pub(crate) fn at_address(program: &str, environment: &[(&str, &str)], end: &str) -> Self {
        Self::listening(program, &["127.0.0.1:0"], environment, end)
    }

    /// Starts a server on a Unix-domain socket.
    #[cfg(unix)]
    pub(crate) fn unix(path: &std::path::Path, flags: &[&str]) -> Self {
        let path = path.to_str().unwrap();
        let end = format!("/mcp at {path}\n");
        Self::listening("everything-server", &[&["--unix", path], flags].concat(), &[], &end)
    }

    /// Starts a server that announces its origin followed by `end`.
    fn listening(program: &str, flags: &[&str], environment: &[(&str, &str)], end: &str) -> Self {
        let mut child = Command::new(example(program))
            .args(flags)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        said.read_line(&mut line).unwrap();
        let origin = line.strip_prefix("listening on ").and_then(|url| url.strip_suffix(end));
        let origin = origin.unwrap_or_else(|| panic!("{line}")).to_owned();
        // Forward the remaining output to help debug failing tests.
        thread::spawn(move || std::io::copy(&mut said, &mut std::io::stderr()));
        Self { child, origin }
    }

    /// Starts the host of MCP Apps.
    pub(crate) fn apps_host() -> Self {
        Self::listening("apps-host", &["--listen", "127.0.0.1:0"], &[], "/\n")
    }

    pub(crate) fn everything() -> Self {
        Self::start("everything-server", &["--legacy-sse"])
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }
}

impl Drop for HttpServerProcess {
    fn drop(&mut self) {
        // These fail if the server has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The behavior of a program that is not an MCP server.
#[derive(Clone, Copy)]
pub(crate) enum Behavior {
    /// Responds to every request with this text and closes the connection.
    Responds(&'static str),
    /// Sends this text before any request and closes the connection.
    SendsFirst(&'static str),
    /// Responds to every request with this text and keeps the connection open.
    Stalls(&'static str),
}

/// Starts a program that listens until the test process ends. Returns its address without a scheme.
pub(crate) fn foreign_server(behavior: Behavior) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || misbehave(connection, behavior));
        }
    });
    address.to_string()
}

fn misbehave(mut connection: TcpStream, behavior: Behavior) {
    let (Behavior::Responds(text) | Behavior::SendsFirst(text) | Behavior::Stalls(text)) = behavior;
    if !matches!(behavior, Behavior::SendsFirst(_)) {
        read_request(&mut connection);
    }
    // Announce the close. Otherwise, the client may already send its next request, which would be
    // lost.
    let text = match behavior {
        Behavior::Responds(_) => text.replacen("\r\n\r\n", "\r\nconnection: close\r\n\r\n", 1),
        Behavior::SendsFirst(_) | Behavior::Stalls(_) => text.into(),
    };
    // The client may have disconnected.
    let _ = connection.write_all(text.as_bytes());
    if matches!(behavior, Behavior::Stalls(_)) {
        let _ = connection.read_to_end(&mut Vec::new());
    }
}

/// Reads a whole request, because closing a socket with unread data could discard the response.
fn read_request(connection: &mut TcpStream) {
    let mut reader = BufReader::new(connection);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|count| count > 0) && line != "\r\n" {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let _ = reader.read_exact(&mut vec![0; length]);
}

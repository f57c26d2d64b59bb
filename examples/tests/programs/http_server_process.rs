//! Servers on HTTP: ours, and some that are none.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::process::example;

/// A server of ours that serves HTTP, until it is dropped.
pub(crate) struct HttpServerProcess {
    child: Child,
    /// `http://ADDRESS`
    origin: String,
}

impl HttpServerProcess {
    pub(crate) fn start(program: &str, flags: &[&str]) -> Self {
        let mut child = Command::new(example(program))
            .args(["--http", "127.0.0.1:0"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        said.read_line(&mut line).unwrap();
        let origin = line.strip_prefix("listening on ").and_then(|url| url.strip_suffix("/mcp\n"));
        let origin = origin.unwrap_or_else(|| panic!("{line}")).to_owned();
        // Whatever else it says is for whoever looks into a test that fails.
        thread::spawn(move || std::io::copy(&mut said, &mut std::io::stderr()));
        Self { child, origin }
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
        // It has exited if these fail.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What somebody does with a connection who is no MCP server.
#[derive(Clone, Copy)]
pub(crate) enum Manner {
    /// Answers every request with this, and hangs up.
    Says(&'static str),
    /// Says this without being asked, and hangs up.
    Blurts(&'static str),
    /// Answers every request with this, and says no more.
    Trails(&'static str),
}

/// Somebody who listens, until the test ends. The address, without a scheme.
pub(crate) fn stranger(manner: Manner) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || be_rude(connection, manner));
        }
    });
    address.to_string()
}

fn be_rude(mut connection: TcpStream, manner: Manner) {
    let (Manner::Says(text) | Manner::Blurts(text) | Manner::Trails(text)) = manner;
    if !matches!(manner, Manner::Blurts(_)) {
        read_request(&mut connection);
    }
    // Who hangs up says so: else the next request may be on its way already, and is lost.
    let text = match manner {
        Manner::Says(_) => text.replacen("\r\n\r\n", "\r\nconnection: close\r\n\r\n", 1),
        Manner::Blurts(_) | Manner::Trails(_) => text.into(),
    };
    // Whoever has gone learns no more.
    let _ = connection.write_all(text.as_bytes());
    if matches!(manner, Manner::Trails(_)) {
        let _ = connection.read_to_end(&mut Vec::new());
    }
}

/// Reads a request whole, so that to hang up does not cut off the answer.
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

//! Servers inside of other frameworks answer a call.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::process::example;

/// A server process that is killed when dropped.
struct WebServer {
    child: Child,
    address: String,
}

impl WebServer {
    fn start(name: &str) -> Self {
        let mut child =
            Command::new(example(name)).arg("127.0.0.1:0").stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let stderr = child.stderr.take().unwrap();
        let read = BufReader::new(stderr).read_line(&mut line);
        let mut server = Self { child, address: String::new() };
        read.unwrap();
        let url = line.trim().strip_prefix("listening on http://");
        let address = url.and_then(|url| url.strip_suffix("/mcp"));
        server.address = address.unwrap_or_else(|| panic!("{line}")).into();
        server
    }

    /// Returns the whole response to a request that closes the connection.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

fn call(progress: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"forecast",
        "arguments":{{"location":"Oslo"}},"_meta":{{{progress}
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: forecast\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn the_weather_is_sunny_on_the_web() {
    for name in ["weather-server-axum", "weather-server-hyper"] {
        let server = WebServer::start(name);
        let response = server.ask(&call(""));
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{name}: {response}");
        assert!(response.contains("Sunny in Oslo"), "{name}: {response}");
        let response = server.ask(&call(r#""progressToken":1,"#));
        assert!(response.contains("text/event-stream"), "{name}: {response}");
        assert!(response.contains("asking the station"), "{name}: {response}");
        assert!(response.contains("Sunny in Oslo"), "{name}: {response}");
        let health = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let response = server.ask(health);
        assert_eq!(response.ends_with("fine"), name.ends_with("axum"), "{name}: {response}");
    }
}

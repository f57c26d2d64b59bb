//! An HTTP/1.1 client that works byte by byte.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Awaits a future with a timeout that is far longer than any test step takes.
pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    let output = tokio::time::timeout(Duration::from_secs(30), future).await;
    output.expect("the step finishes in time")
}

/// A client connection.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    /// Received bytes that have not been parsed yet.
    read: Vec<u8>,
    /// Decoded bytes of the chunked body that have not been parsed yet.
    body: Vec<u8>,
}

/// The head of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    fields: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_str())
    }
}

impl Wire {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::from(in_time(TcpStream::connect(address)).await.unwrap())
    }

    /// Connects from another address of this computer.
    pub(crate) async fn connect_from(source: [u8; 4], address: SocketAddr) -> Self {
        Self::connect_socket(TcpSocket::new_v4().unwrap(), source, address).await
    }

    /// Connects from another address, with a small receive buffer for unread data.
    pub(crate) async fn connect_unread_from(source: [u8; 4], address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        Self::connect_socket(socket, source, address).await
    }

    async fn connect_socket(socket: TcpSocket, source: [u8; 4], address: SocketAddr) -> Self {
        socket.bind((source, 0).into()).unwrap();
        Self::from(in_time(socket.connect(address)).await.unwrap())
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        in_time(self.stream.write_all(bytes.as_ref())).await.unwrap();
    }

    /// Reads more bytes. Returns whether any arrived.
    async fn fill(&mut self) -> bool {
        matches!(in_time(self.stream.read_buf(&mut self.read)).await, Ok(length) if length > 0)
    }

    /// Removes and returns the received bytes up to and including `end`.
    async fn until(&mut self, end: &[u8]) -> String {
        let mut from = 0;
        loop {
            if let Some(at) = self.read[from..].windows(end.len()).position(|w| w == end) {
                let taken: Vec<u8> = self.read.drain(..from + at + end.len()).collect();
                return String::from_utf8(taken).unwrap();
            }
            from = self.read.len().saturating_sub(end.len());
            let text = String::from_utf8_lossy(&self.read).into_owned();
            assert!(self.fill().await, "the connection ended within {text:?}");
        }
    }

    /// Returns the head of the next response.
    pub(crate) async fn head(&mut self) -> Head {
        let text = self.until(b"\r\n\r\n").await;
        let mut lines = text.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let fields = lines.map(|line| line.split_once(':').unwrap());
        let fields = fields.map(|(name, value)| (name.into(), value.trim().into())).collect();
        Head { status, fields }
    }

    /// Returns the next response with its whole body.
    pub(crate) async fn response(&mut self) -> (Head, String) {
        let head = self.head().await;
        let body = self.body(&head).await;
        (head, body)
    }

    /// Returns the whole body of the response whose head was read last.
    pub(crate) async fn body(&mut self, head: &Head) -> String {
        let mut body = Vec::new();
        if let Some(length) = head.field("content-length") {
            let length: usize = length.parse().unwrap();
            while self.read.len() < length {
                assert!(self.fill().await, "the connection ended within a body");
            }
            body = self.read.drain(..length).collect();
        } else if head.field("transfer-encoding").is_some() {
            while self.chunk().await {}
            body = std::mem::take(&mut self.body);
        }
        String::from_utf8(body).unwrap()
    }

    /// Reads the next chunk of the body. Returns `false` for the last chunk.
    async fn chunk(&mut self) -> bool {
        let length = self.until(b"\r\n").await;
        let length = usize::from_str_radix(length.trim_end(), 16).unwrap();
        while self.read.len() < length + 2 {
            assert!(self.fill().await, "the connection ended within a chunk");
        }
        self.body.extend(self.read.drain(..length));
        self.read.drain(..2);
        length > 0
    }

    /// Returns the next event of the body, or `None` at its end. Skips comments.
    pub(crate) async fn event(&mut self) -> Option<String> {
        loop {
            while let Some(at) = self.body.windows(2).position(|window| window == b"\n\n") {
                let event: Vec<u8> = self.body.drain(..at + 2).collect();
                if !event.starts_with(b":") {
                    return Some(String::from_utf8(event).unwrap());
                }
            }
            if !self.chunk().await {
                return None;
            }
        }
    }

    /// Returns the message of the next event that has one.
    pub(crate) async fn message(&mut self) -> Value {
        loop {
            let event = self.event().await.expect("the stream is open");
            let data = event.lines().find_map(|line| line.strip_prefix("data:"));
            match data.map(str::trim) {
                None | Some("") => {}
                Some(data) => return serde_json::from_str(data).unwrap(),
            }
        }
    }

    /// Discards input until the connection closes. Returns the number of bytes discarded.
    pub(crate) async fn closed(&mut self) -> usize {
        let mut bytes = self.read.len();
        loop {
            self.read.clear();
            if !self.fill().await {
                return bytes;
            }
            bytes += self.read.len();
        }
    }

    /// Posts a message and returns the whole response.
    pub(crate) async fn ask(&mut self, message: &Post) -> (Head, String) {
        self.send(message.bytes()).await;
        self.response().await
    }
}

impl From<TcpStream> for Wire {
    fn from(stream: TcpStream) -> Self {
        Self { stream, read: Vec::new(), body: Vec::new() }
    }
}

/// A POST request, well-formed or deliberately malformed.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) fields: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Post {
    fn new(message: &Value) -> Self {
        let fields = [
            ("Host", "localhost"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        let fields = fields.map(|(name, value)| (name, value.into())).to_vec();
        Self { fields, body: message.to_string() }
    }

    /// A modern `tools/call` request.
    pub(crate) fn call(tool: &str) -> Self {
        let mut post = Self::new(&json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": {}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "progressToken": "p",
            } },
        }));
        post.fields.push(("MCP-Protocol-Version", "2026-07-28".into()));
        post.fields.push(("Mcp-Method", "tools/call".into()));
        post.fields.push(("Mcp-Name", tool.into()));
        post
    }

    pub(crate) fn initialize() -> Self {
        Self::new(&json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            },
        }))
    }

    /// A message in a legacy session.
    pub(crate) fn legacy(session: &str, message: &Value) -> Self {
        let mut post = Self::new(message);
        post.fields.push(("MCP-Protocol-Version", "2025-11-25".into()));
        post.fields.push(("Mcp-Session-Id", session.into()));
        post
    }

    /// A legacy `tools/call` request.
    pub(crate) fn legacy_call(session: &str, tool: &str) -> Self {
        Self::legacy(
            session,
            &json!({
                "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": { "name": tool, "arguments": {}, "_meta": { "progressToken": "p" } },
            }),
        )
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.retain(|(known, _)| *known != name);
        self.fields.push((name, value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.fields.retain(|(known, _)| *known != name);
        self
    }

    /// Returns the head without the content length and without the final empty line.
    pub(crate) fn open_head(&self) -> String {
        let fields = self.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        format!("POST /mcp HTTP/1.1\r\n{}", fields.collect::<String>())
    }

    pub(crate) fn bytes(&self) -> String {
        let Self { body, .. } = self;
        format!("{}Content-Length: {}\r\n\r\n{body}", self.open_head(), body.len())
    }
}

/// A GET request that opens the session's stream, or resumes a stream after the event `last`.
pub(crate) fn get(session: &str, last: Option<&str>) -> String {
    let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\
         MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n{last}\r\n"
    )
}

/// Returns the id of an event.
pub(crate) fn id_of(event: &str) -> Option<String> {
    event.lines().find_map(|line| Some(line.strip_prefix("id:")?.trim().to_owned()))
}

/// Opens a legacy session and returns its id.
pub(crate) async fn open_session(wire: &mut Wire) -> String {
    open_session_with(wire, &[]).await
}

/// Opens a legacy session with additional fields in each request, and returns its id.
pub(crate) async fn open_session_with(wire: &mut Wire, fields: &[(&'static str, &str)]) -> String {
    let with = |post| fields.iter().fold(post, |post: Post, (name, it)| post.with(name, *it));
    let (head, body) = wire.ask(&with(Post::initialize())).await;
    assert_eq!(head.status, 200, "{body}");
    let session = head.field("mcp-session-id").unwrap().to_owned();
    let confirmed = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let (head, body) = wire.ask(&with(Post::legacy(&session, &confirmed))).await;
    assert_eq!((head.status, body.as_str()), (202, ""));
    session
}

/// Returns the text of a tool result.
pub(crate) fn text(body: &str) -> String {
    let message: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{body}"));
    text_of(&message)
}

pub(crate) fn text_of(message: &Value) -> String {
    let text = message["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{message}")).to_owned()
}

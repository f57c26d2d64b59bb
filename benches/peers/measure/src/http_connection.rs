use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::messages::{INITIALIZE, INITIALIZED, answered};

/// How long a server may take to start listening.
const START_MAX: Duration = Duration::from_secs(10);

/// A connection to an HTTP server, with its own session.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    session: String,
    pub(crate) next_id: u64,
}

/// The relevant fields of a response head.
struct Head {
    status: u16,
    length: usize,
    chunked: bool,
    session: Option<String>,
}

impl Connection {
    /// Connects and initializes the session.
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = connect(address);
        stream.set_nodelay(true).expect("a socket");
        let mut connection =
            Self { stream: BufReader::new(stream), session: String::new(), next_id: 1 };
        let (head, body) = connection.exchange(INITIALIZE);
        assert_eq!((head.status, answered(&body)), (200, Some(0)), "{body}");
        connection.session = head.session.expect("a session");
        let (head, body) = connection.exchange(INITIALIZED);
        assert_eq!(head.status, 202, "{body}");
        connection
    }

    /// Sends a request and reads the whole response.
    pub(crate) fn call(&mut self, request: &str) -> String {
        let (head, body) = self.exchange(request);
        assert_eq!(head.status, 200, "{body}");
        body
    }

    /// Opens the session's stream for server messages and returns it in place of this connection.
    pub(crate) fn listen(self, address: SocketAddr) -> TcpStream {
        let session = self.session;
        let mut stream = BufReader::new(connect(address));
        let request = format!(
            "GET /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\
             mcp-protocol-version: 2025-11-25\r\nmcp-session-id: {session}\r\n\r\n"
        );
        stream.get_mut().write_all(request.as_bytes()).expect("the server reads");
        let head = read_head(&mut stream);
        assert_eq!(head.status, 200, "a stream");
        stream.into_inner()
    }

    fn exchange(&mut self, body: &str) -> (Head, String) {
        let session = match &*self.session {
            "" => String::new(),
            session => {
                format!("mcp-protocol-version: 2025-11-25\r\nmcp-session-id: {session}\r\n")
            }
        };
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{session}content-length: {}\r\n\r\n\
             {body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("the server reads");
        let head = read_head(&mut self.stream);
        let body = if head.chunked { self.read_chunks() } else { self.read_exact(head.length) };
        (head, String::from_utf8(body).expect("a text"))
    }

    fn read_exact(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).expect("the server writes");
        bytes
    }

    fn read_chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line = read_line(&mut self.stream);
            let length = usize::from_str_radix(&line, 16).expect("the length of a chunk");
            let chunk = self.read_exact(length + "\r\n".len());
            if length == 0 {
                return body;
            }
            body.extend_from_slice(&chunk[..length]);
        }
    }
}

/// Connects, retrying while the server starts.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let start = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return stream,
            Err(error) => assert!(start.elapsed() < START_MAX, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn read_line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    let length = stream.read_line(&mut line).expect("the server writes");
    assert!(length > 0, "the server has closed the connection");
    line.trim_end().into()
}

fn read_head(stream: &mut BufReader<TcpStream>) -> Head {
    let status = read_line(stream);
    let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.expect("a status");
    let mut head = Head { status, length: 0, chunked: false, session: None };
    loop {
        let line = read_line(stream);
        let Some((name, value)) = line.split_once(':') else { return head };
        let value = value.trim();
        match &*name.to_ascii_lowercase() {
            "content-length" => head.length = value.parse().expect("a length"),
            "transfer-encoding" => head.chunked = true,
            "mcp-session-id" => head.session = Some(value.into()),
            _ => {}
        }
    }
}

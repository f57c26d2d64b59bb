//! A scripted HTTP/1.1 server with control over each byte.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl RecordedRequest {
    /// Whether the body is a message with this method.
    pub(crate) fn is(&self, rpc_method: &str) -> bool {
        self.body.contains(&format!("\"method\":\"{rpc_method}\""))
    }

    /// Returns the id of the message.
    pub(crate) fn id(&self) -> &str {
        let (_, rest) = self.body.split_once("\"id\":").expect("the message has an id");
        &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())]
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// Returns the HTTP method, the session and the JSON-RPC method, to compare whole
    /// conversations.
    pub(crate) fn line(&self) -> String {
        let message = self.body.split_once("\"method\":\"").map(|(_, rest)| rest);
        let message = message.and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let session = self.field("mcp-session-id").unwrap_or("-");
        format!("{} {session} {message}", self.method).trim_end().to_owned()
    }
}

/// One step of the server's reaction to a request.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Write(String),
    /// Waits until the test or another request notifies it.
    Wait(Arc<Notify>),
    /// Waits until the client closes the connection, then notifies.
    Held(Arc<Notify>),
    Close,
}

/// Returns a response with a content length.
pub(crate) fn respond(status: u16, fields: &str, body: &str) -> Vec<Action> {
    let length = body.len();
    vec![Action::Write(format!(
        "HTTP/1.1 {status} -\r\ncontent-length: {length}\r\n{fields}\r\n{body}"
    ))]
}

/// Returns a JSON response to a JSON-RPC request.
pub(crate) fn answer(asked: &RecordedRequest, fields: &str, result: &str) -> Vec<Action> {
    let id = asked.id();
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    respond(200, &format!("content-type: application/json\r\n{fields}"), &body)
}

/// Returns the head of an event stream.
pub(crate) fn stream() -> Action {
    Action::Write(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            .into(),
    )
}

/// Returns a part of the stream in chunks of at most `length` bytes.
pub(crate) fn chunks(text: &str, length: usize) -> Vec<Action> {
    let pieces = text.as_bytes().chunks(length);
    let pieces = pieces.map(|piece| std::str::from_utf8(piece).expect("the texts are ASCII"));
    pieces.map(|piece| Action::Write(format!("{:x}\r\n{piece}\r\n", piece.len()))).collect()
}

/// Returns the final chunk of the stream.
pub(crate) fn end() -> Action {
    Action::Write("0\r\n\r\n".into())
}

type Script = dyn Fn(&RecordedRequest, usize) -> Vec<Action> + Send + Sync;

/// A running server. It ends with the runtime.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl Server {
    /// Starts a server. `script` receives each request and the number of earlier requests.
    pub(crate) async fn start(
        script: impl Fn(&RecordedRequest, usize) -> Vec<Action> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::serve(listener, Arc::new(script))
    }

    // Not generic, so that the server is compiled once.
    fn serve(listener: TcpListener, script: Arc<Script>) -> Self {
        let (address, asked) = (listener.local_addr().unwrap(), Arc::default());
        let server = Self { address, asked: Arc::clone(&asked) };
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (asked, script) = (Arc::clone(&asked), Arc::clone(&script));
                tokio::spawn(async move { converse(socket, &asked, &*script).await });
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the requests received so far.
    pub(crate) fn asked(&self) -> Vec<RecordedRequest> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().iter().map(RecordedRequest::line).collect()
    }
}

async fn converse(
    mut socket: TcpStream,
    log: &Mutex<Vec<RecordedRequest>>,
    script: &Script,
) -> Option<()> {
    loop {
        let asked = read_request(&mut socket).await?;
        let before = {
            let mut log = log.lock().unwrap();
            log.push(asked.clone());
            log.len() - 1
        };
        for what in script(&asked, before) {
            match what {
                Action::Write(text) => {
                    socket.write_all(text.as_bytes()).await.ok()?;
                    // Send each piece as its own segment where possible.
                    tokio::task::yield_now().await;
                }
                Action::Wait(notify) => notify.notified().await,
                Action::Held(notify) => {
                    while socket.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
                    notify.notify_one();
                    return None;
                }
                Action::Close => return None,
            }
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<RecordedRequest> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.lines();
    let mut line = lines.next()?.split(' ');
    let (method, target) = (line.next()?.to_owned(), line.next()?.to_owned());
    let fields: BTreeMap<_, _> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = fields.get("content-length").map_or(0, |length| length.parse().unwrap());
    while bytes.len() < head + 4 + length {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(bytes[head + 4..].to_vec()).unwrap();
    Some(RecordedRequest { method, target, fields, body })
}

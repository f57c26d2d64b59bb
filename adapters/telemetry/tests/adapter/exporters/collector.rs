//! A receiver of OTLP over HTTP, and the client that the exporters use to reach it.

use std::future::{Future, ready};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};

/// A request that the collector has received.
pub(crate) struct Export {
    pub(crate) path: String,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
}

/// A collector on a socket of its own.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    exports: Receiver<Export>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, exports) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let export = receive(&mut stream);
                // Before the response, after which the test looks at it.
                if sender.send(export).is_err() {
                    return;
                }
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                    .unwrap();
            }
        });
        Self { address, exports }
    }

    /// Returns the exports so far.
    pub(crate) fn exports(&self) -> Vec<Export> {
        self.exports.try_iter().collect()
    }
}

/// Reads a request with a `Content-Length`.
fn receive(stream: &mut TcpStream) -> Export {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let path = line.split(' ').nth(1).unwrap().to_owned();
    let (mut length, mut content_type) = (0, String::new());
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "content-type" => content_type = value.trim().into(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Export { path, content_type, body }
}

/// Sends each request on a connection of its own, and waits for the response.
#[derive(Debug)]
pub(crate) struct BlockingClient;

type Sent<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for BlockingClient {
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Sent<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(ready(send(&request).map_err(Into::into)))
    }
}

fn send(request: &Request<Bytes>) -> std::io::Result<Response<Bytes>> {
    let authority = request.uri().authority().unwrap().as_str();
    let mut stream = TcpStream::connect(authority)?;
    let (method, path) = (request.method(), request.uri().path());
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {authority}\r\n");
    for (name, value) in request.headers() {
        head.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", request.body().len()));
    stream.write_all(head.as_bytes())?;
    stream.write_all(request.body())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let status: u16 = line.split(' ').nth(1).unwrap().parse().unwrap();
    Ok(Response::builder().status(status).body(Bytes::new()).unwrap())
}

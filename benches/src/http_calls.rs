use core::task::{Context, Waker};
use std::fmt;

use mcp_sansio::http::{ExchangeId, HttpServerOptions, RequestHead, RequestReader, ServerTransmit};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::Tool;
use mcp_sansio::{Caller, Instant, Revision};
use mcp_sansio_handlers::endpoint::{HandlerCall, HandlerPoll, HttpServer};
use mcp_sansio_handlers::{Call, Server};
use serde_json::json;

use crate::{Echo, http_harness};

const NOW: Instant = Instant::ZERO;

/// A server on HTTP with a typed handler, and a client that repeats one call: the work of an
/// adapter for a call, without reading and writing HTTP.
pub struct HttpCalls {
    server: HttpServer,
    reader: RequestReader,
    fields: Vec<(&'static str, String)>,
    body: String,
    caller: Caller,
}

impl HttpCalls {
    /// Opens a server, and makes it ready for calls at `revision`.
    ///
    /// # Panics
    ///
    /// If the server refuses the client.
    #[must_use]
    pub fn open(revision: Revision, length: usize) -> Self {
        let schema = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;
        let tool = Tool::new("echo", RawJson::parse(schema).expect("JSON"));
        let server =
            Server::new("bench", "1.0.0").tool_with(tool, |call: Call<Echo>| call.arguments.text);
        let mut server =
            server.http(HttpServerOptions::new(), [1; 32], 2).expect("the tool is valid");
        server.poll_handlers(&mut Context::from_waker(Waker::noop()), NOW);
        let mut params = json!({ "name": "echo", "arguments": { "text": "x".repeat(length) } });
        let fields = if revision == Revision::V2026_07_28 {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": revision.as_str(),
                "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            let fields = [
                ("mcp-protocol-version", revision.as_str()),
                ("mcp-method", "tools/call"),
                ("mcp-name", "echo"),
            ];
            fields.map(|(name, value)| (name, value.to_owned())).to_vec()
        } else {
            Vec::new()
        };
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let caller = Caller::ANONYMOUS;
        let mut calls =
            Self { reader: server.reader(), server, fields, body: body.to_string(), caller };
        if revision != Revision::V2026_07_28 {
            let session = calls.send(http_harness::INITIALIZE, &[]).expect("a session");
            calls.fields = vec![
                ("mcp-session-id", session),
                ("mcp-protocol-version", revision.as_str().to_owned()),
            ];
            let fields = calls.fields.clone();
            calls.send(http_harness::INITIALIZED, &fields);
        }
        calls
    }

    /// Makes one call.
    ///
    /// # Panics
    ///
    /// If it is not answered at once.
    pub fn call(&mut self) {
        let (fields, body) = (std::mem::take(&mut self.fields), std::mem::take(&mut self.body));
        self.send(&body, &fields);
        (self.fields, self.body) = (fields, body);
    }

    /// Reads one call: what a driver does without the lock of the server.
    ///
    /// # Panics
    ///
    /// If it is refused.
    pub fn read(&self) {
        let head = head(&self.fields);
        let admission = self.reader.admit(&head).expect("it is admitted");
        core::hint::black_box(self.reader.read_admitted(
            admission,
            &head,
            self.body.as_bytes(),
            &self.caller,
        ));
    }

    /// Sends a request, and returns the session that its response opens.
    fn send(&mut self, body: &str, fields: &[(&'static str, String)]) -> Option<String> {
        let head = head(fields);
        let admission = self.server.admit(&head).expect("it is admitted");
        let caller = &self.caller;
        let mut request = self.reader.read_admitted(admission, &head, body.as_bytes(), caller);
        let (exchange, work) = self.server.handle_read_request(&head, &mut request, NOW);
        self.pump();
        if let Some(work) = work {
            self.finish(work);
        }
        self.response(exchange)
    }

    fn finish(&mut self, work: HandlerCall<'_>) {
        match work.run() {
            HandlerPoll::Ready(finished) => self.server.finish(finished, NOW),
            HandlerPoll::Pending(_) => panic!("a plain function does not wait"),
        }
    }

    fn response(&mut self, exchange: ExchangeId) -> Option<String> {
        let response = match self.server.poll_transmit(exchange, NOW) {
            Some(ServerTransmit::Respond(response)) => response,
            other => panic!("{other:?} instead of a response"),
        };
        self.pump();
        assert!(response.head.status.is_success(), "{:?}", response.head);
        let mut fields = response.head.fields();
        fields.find(|(name, _)| *name == "mcp-session-id").map(|(_, id)| id.into_owned())
    }

    /// Takes the other output, as after each change.
    fn pump(&mut self) {
        while self.server.poll_call().is_some() {}
        while self.server.poll_ready().is_some() {}
        let _deadline = self.server.poll_timeout();
    }
}

fn head<'a>(fields: &'a [(&'static str, String)]) -> RequestHead<'a> {
    let mut head = http_harness::head_of("POST");
    // The limits of each caller apply.
    head.remote_address(core::net::IpAddr::from([127, 0, 0, 1]));
    for (name, value) in fields {
        head.field(name, value.as_bytes());
    }
    head
}

impl fmt::Debug for HttpCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCalls").finish_non_exhaustive()
    }
}

//! A protected server, and a client that writes each byte of its messages, over every transport and
//! at every revision.

use std::sync::{Arc, Mutex};

use mcp_sansio::http::HttpServerOptions;
use mcp_sansio::peer::Event;
use mcp_sansio::protocol::{
    CompleteParams, Prompt, PromptMessage, Resource, ResourceContents, TaskSupport,
    TextResourceContents, Tool,
};
use mcp_sansio::{Era, Instant, Revision};
use mcp_sansio_handlers::endpoint::{Endpoint, ServerEndpoint};
use mcp_sansio_handlers::{Call, NoArguments, ReadResource, Server};
use mcp_sansio_oauth::protected_resource::{Operation, TokenCheck};
use serde_json::{Value, json};

use crate::protected_server::{ProtectedServer, check, resource};
use crate::task_client::settings;

/// The names of the handlers that ran, and an entry for each reported violation.
pub(crate) type Log = Arc<Mutex<Vec<&'static str>>>;

pub(crate) const VIOLATION: &str = "a violation";

/// A server with tools, prompts and resources, one of each requiring the scope `write`. Every
/// handler logs that it ran.
pub(crate) fn server(ran: &Log) -> Server {
    let tool = |name: &'static str| {
        let ran = Arc::clone(ran);
        move |_: Call<NoArguments>| {
            ran.lock().unwrap().push(name);
            name
        }
    };
    let prompt = |name: &'static str| {
        let ran = Arc::clone(ran);
        move |_: Call<NoArguments>| {
            ran.lock().unwrap().push(name);
            PromptMessage::user(name)
        }
    };
    let read = |name: &'static str| {
        let ran = Arc::clone(ran);
        move |call: Call<ReadResource>| {
            ran.lock().unwrap().push(name);
            ResourceContents::from(TextResourceContents::new(&*call.arguments.uri, name))
        }
    };
    let (completed, observed) = (Arc::clone(ran), Arc::clone(ran));
    let resource = resource()
        .scopes_for(Operation::prompt("secret"), ["write"])
        .and_then(|it| it.scopes_for(Operation::resource("mem://secret"), ["write"]))
        .unwrap();
    let mirrored = r#"{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "where":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry"}}}}}"#;
    let mirrored = mcp_sansio::jsonrpc::RawJson::parse(mirrored).unwrap();
    Server::new("s", "1")
        .tasks(settings())
        .logging()
        .subscriptions()
        .tool("who", "", tool("who"))
        .tool("delete", "", tool("delete"))
        .task_support("who", TaskSupport::Optional)
        .task_support("delete", TaskSupport::Optional)
        .tool_with(Tool::new("route", mirrored), tool("route"))
        .prompt_with(Prompt::new("open"), prompt("open"))
        .prompt_with(Prompt::new("secret"), prompt("secret"))
        .resource(Resource::new("mem://public", "public"), read("public"))
        .resource(Resource::new("mem://secret", "secret"), read("secret"))
        .completion(move |_: Call<CompleteParams>| {
            completed.lock().unwrap().push("completion");
            Vec::<String>::new()
        })
        .observe(move |event| {
            if let Event::Violation(_) = event {
                observed.lock().unwrap().push(VIOLATION);
            }
        })
        .protect(resource, |asked: TokenCheck| check(&asked))
        .unix_time(|| 1_000)
}

/// How messages are sent to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stream,
    Http,
    /// A stream, in a batch with another message.
    StreamBatch,
    /// HTTP, in a batch with another message.
    HttpBatch,
}

pub(crate) enum Line {
    Stream(Box<ServerEndpoint>),
    /// The server and, at older revisions, the session id.
    Http(Box<ProtectedServer>, String),
}

/// A client whose token has only the base scope.
pub(crate) struct Peer {
    pub(crate) way: Transport,
    pub(crate) revision: Revision,
    pub(crate) line: Line,
    pub(crate) log: Log,
    /// Status of the last response on HTTP.
    status: Option<u16>,
}

pub(crate) const TOKEN: &str = "ann/use";

impl Peer {
    pub(crate) fn new(way: Transport, revision: Revision) -> Self {
        let log = Log::default();
        let server = server(&log);
        let line = match way {
            Transport::Stream | Transport::StreamBatch => {
                Line::Stream(Box::new(server.endpoint(7).unwrap()))
            }
            Transport::Http | Transport::HttpBatch => {
                let mut fixture = ProtectedServer::from_server(&server, HttpServerOptions::new());
                let session = match revision.era() {
                    Era::Legacy => fixture.open_at(revision.as_str(), TOKEN),
                    _ => String::new(),
                };
                Line::Http(Box::new(fixture), session)
            }
        };
        let mut peer = Self { way, revision, line, log, status: None };
        if let (Line::Stream(_), Era::Legacy) = (&peer.line, revision.era()) {
            let opened = peer.tell(&message(Some("0"), "initialize", &initialize(revision)), None);
            assert!(opened[0]["result"].is_object(), "{opened:?}");
            peer.tell(&message(None, "notifications/initialized", "{}"), None);
        }
        // A valid request works. On a stream the server has cached the start of `_meta` from here
        // on.
        for _ in 0..2 {
            peer.ask("tools/call", Some("who"), r#""name":"who","arguments":{}"#);
            assert_eq!(peer.ran(), ["who"], "{way:?} {revision}");
        }
        peer
    }

    /// Returns the handlers that ran since the last call.
    pub(crate) fn ran(&self) -> Vec<&'static str> {
        let mut log = std::mem::take(&mut *self.log.lock().unwrap());
        log.retain(|it| *it != VIOLATION);
        log
    }

    /// Sends a request with these members in its parameters and returns its response. `name` is the
    /// value of its header.
    pub(crate) fn ask(&mut self, method: &str, name: Option<&str>, members: &str) -> Value {
        let params = self.params(members);
        self.ask_whole(method, name, &params)
    }

    /// Returns parameters with these members and those that the revision requires.
    pub(crate) fn params(&self, members: &str) -> String {
        match self.revision.era() {
            Era::Legacy => format!("{{{members}}}"),
            _ => format!("{{{members},{META}}}"),
        }
    }

    /// Sends a request with exactly these parameters and returns its response.
    pub(crate) fn ask_whole(&mut self, method: &str, name: Option<&str>, params: &str) -> Value {
        let request = message(Some("\"q\""), method, params);
        let text = match self.way {
            Transport::Stream | Transport::Http => request,
            Transport::StreamBatch | Transport::HttpBatch => {
                format!("[{},{request}]", message(Some("\"other\""), "ping", "{}"))
            }
        };
        let mut answers = self.tell(&text, Some((method, name)));
        answers.retain(|answer| answer["id"] == "q");
        assert_eq!(answers.len(), 1, "{text}: {answers:?}");
        answers.remove(0)
    }

    /// Sends a text and returns the messages that are received in return.
    pub(crate) fn tell(&mut self, text: &str, of: Option<(&str, Option<&str>)>) -> Vec<Value> {
        match &mut self.line {
            Line::Stream(endpoint) => {
                endpoint.handle_frame(Ok(text.as_bytes()), Instant::ZERO);
                let mut said = Vec::new();
                endpoint.transmit(&mut |bytes| {
                    said.extend_from_slice(bytes);
                    bytes.len()
                });
                messages_in(&String::from_utf8(said).unwrap())
            }
            Line::Http(fixture, session) if !session.is_empty() => {
                let session = session.clone();
                let answer = fixture.post(TOKEN, &session, text);
                self.status = Some(answer.status);
                messages_in(&answer.text)
            }
            Line::Http(fixture, _) => {
                let bearer = format!("Bearer {TOKEN}");
                let (method, name) = of.unwrap_or_default();
                let mut fields = vec![
                    ("authorization", bearer.as_str()),
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", method),
                ];
                fields.extend(name.map(|name| ("mcp-name", name)));
                let answer = fixture.send("POST", "/mcp", &fields, text);
                self.status = Some(answer.status);
                messages_in(&answer.text)
            }
        }
    }

    /// Sends a request that repeats a member, and asserts that it reaches no handler.
    pub(crate) fn expect_refusal(
        &mut self,
        method: &str,
        name: Option<&str>,
        params: &str,
        member: &str,
    ) {
        let whole = format!("{:?} {} {method} {params}", self.way, self.revision);
        let answer = self.ask_whole(method, name, params);
        assert_eq!(self.ran(), [""; 0], "{whole}: {answer}");
        assert_eq!(answer["error"]["code"], -32602, "{whole}: {answer}");
        let text = answer["error"]["message"].as_str().unwrap();
        assert!(text.contains(member), "{whole}: {answer}");
        if let Some(status) = self.status {
            let expected = if self.revision.era() == Era::Modern { 400 } else { 200 };
            assert_eq!(status, expected, "{whole}: {answer}");
        }
    }
}

pub(crate) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

fn initialize(revision: Revision) -> String {
    json!({ "protocolVersion": revision.as_str(), "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" } })
    .to_string()
}

pub(crate) fn message(id: Option<&str>, method: &str, params: &str) -> String {
    let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#)
}

/// Returns the messages in lines, in a body or in an event stream.
pub(crate) fn messages_in(text: &str) -> Vec<Value> {
    let texts = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let values = texts.filter_map(|text| serde_json::from_str::<Value>(text).ok());
    values
        .flat_map(|value| match value {
            Value::Array(messages) => messages,
            message => vec![message],
        })
        .collect()
}

/// Returns every transport with each revision that supports it.
pub(crate) fn ways() -> Vec<(Transport, Revision)> {
    let plain =
        Revision::ALL.into_iter().flat_map(|it| [(Transport::Stream, it), (Transport::Http, it)]);
    let batches =
        [Transport::StreamBatch, Transport::HttpBatch].map(|way| (way, Revision::V2025_03_26));
    plain.chain(batches).collect()
}

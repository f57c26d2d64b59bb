//! Options and messages that many tests use.

use mcp_sansio::http::{HttpServerOptions, ServerLimits, ServerTimeouts};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer;
use mcp_sansio::protocol::{
    CapabilitySettings, Implementation, PromptsCapability, ResourcesCapability, ServerCapabilities,
    ToolsCapability,
};
use mcp_sansio::{Revision, Revisions};
use serde_json::Value;

use crate::test_server::{TestServer, Ticket};

/// The revisions with resumable streams.
pub(crate) const RESUMING: [Revision; 3] =
    [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

/// Returns options for a server with tools, resources, prompts and log messages, which notifies
/// changes.
pub(crate) fn full_server() -> peer::ServerOptions {
    peer::ServerOptions::new(Implementation::new("s", "1")).capabilities(
        ServerCapabilities::new()
            .tools(ToolsCapability::new().list_changed(true))
            .resources(ResourcesCapability::new().list_changed(true).subscribe(true))
            .prompts(PromptsCapability::new().list_changed(true))
            .logging(CapabilitySettings::default()),
    )
}

/// Returns a server with default options.
pub(crate) fn server() -> TestServer {
    TestServer::new(full_server(), HttpServerOptions::new())
}

pub(crate) fn server_of(revisions: Revisions) -> TestServer {
    TestServer::new(full_server().revisions(revisions), HttpServerOptions::new())
}

pub(crate) fn server_with(options: HttpServerOptions) -> TestServer {
    TestServer::new(full_server(), options)
}

pub(crate) fn limits(change: impl FnOnce(&mut ServerLimits)) -> HttpServerOptions {
    let mut limits = ServerLimits::default();
    change(&mut limits);
    HttpServerOptions::new().limits(limits)
}

pub(crate) fn timeouts(change: impl FnOnce(&mut ServerTimeouts)) -> HttpServerOptions {
    let mut timeouts = ServerTimeouts::default();
    change(&mut timeouts);
    HttpServerOptions::new().timeouts(timeouts)
}

pub(crate) fn raw(text: &str) -> RawJson<'_> {
    RawJson::parse(text).expect("valid JSON")
}

pub(crate) const HOST: (&str, &str) = ("Host", "localhost:3000");
pub(crate) const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");
pub(crate) const JSON: (&str, &str) = ("Content-Type", "application/json");
/// Fields of every POST.
pub(crate) const POST: [(&str, &str); 3] = [HOST, ACCEPT, JSON];

/// Concatenates fields.
pub(crate) fn join<'a>(
    first: &[(&'a str, &'a str)],
    second: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    [first, second].concat()
}

pub(crate) fn initialize(revision: Revision, capabilities: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    )
}

pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub(crate) fn request(id: u32, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// Returns a legacy `tools/call` request with a progress token.
pub(crate) fn call(id: u32) -> String {
    request(id, "tools/call", &format!(r#"{{"name":"t","_meta":{{"progressToken":{id}}}}}"#))
}

pub(crate) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

pub(crate) fn cancel(id: u32) -> String {
    notification("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#))
}

/// Returns a modern request with `members` in its parameters, in addition to the metadata.
pub(crate) fn modern(id: u32, method: &str, members: &str) -> String {
    modern_with(id, method, members, "2026-07-28", "{}")
}

pub(crate) fn modern_with(
    id: u32,
    method: &str,
    members: &str,
    version: &str,
    capabilities: &str,
) -> String {
    let comma = if members.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}{comma}"_meta":{{"progressToken":{id},"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{capabilities}}}}}}}"#
    )
}

pub(crate) fn modern_call(id: u32) -> String {
    modern(id, "tools/call", r#""name":"t""#)
}

/// A legacy session of a client.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) revision: Revision,
}

impl Session {
    /// Returns the fields of every later request.
    pub(crate) fn fields(&self) -> Vec<(&str, &str)> {
        let mut fields = vec![("Mcp-Session-Id", self.id.as_str())];
        if self.revision >= Revision::V2025_06_18 {
            fields.push(("MCP-Protocol-Version", self.revision.as_str()));
        }
        fields
    }
}

impl TestServer {
    /// Opens a session and confirms it.
    pub(crate) fn open(&mut self, revision: Revision, capabilities: &str) -> Session {
        let session = self.open_unconfirmed(revision, capabilities);
        let confirmed = self.post(&session, INITIALIZED);
        assert_eq!(self.reply(confirmed).status(), 202);
        self.event();
        session
    }

    pub(crate) fn open_unconfirmed(&mut self, revision: Revision, capabilities: &str) -> Session {
        let opened = self.request("POST", "/mcp", &POST, &initialize(revision, capabilities));
        let reply = self.reply(opened);
        assert_eq!(reply.status(), 200, "{reply:?}");
        let id = reply.field("mcp-session-id").expect("a session").into();
        assert_eq!(reply.messages_or_body()[0]["result"]["protocolVersion"], revision.as_str());
        Session { id, revision }
    }

    /// Posts a message to a session.
    pub(crate) fn post(&mut self, session: &Session, body: &str) -> Ticket {
        self.request("POST", "/mcp", &join(&POST, &session.fields()), body)
    }

    pub(crate) fn post_unread(&mut self, session: &Session, body: &str) -> Ticket {
        self.request_unread("POST", "/mcp", &join(&POST, &session.fields()), body)
    }

    /// Opens the standalone stream of a session.
    pub(crate) fn get(&mut self, session: &Session) -> Ticket {
        let accept = ("Accept", "text/event-stream");
        self.request("GET", "/mcp", &join(&[HOST, accept], &session.fields()), "")
    }

    /// Resumes a stream after an event.
    pub(crate) fn resume(&mut self, session: &Session, last: &str) -> Ticket {
        let own = [HOST, ("Accept", "text/event-stream"), ("Last-Event-ID", last)];
        self.request("GET", "/mcp", &join(&own, &session.fields()), "")
    }

    pub(crate) fn delete(&mut self, session: &Session) -> Ticket {
        self.request("DELETE", "/mcp", &join(&[HOST], &session.fields()), "")
    }

    /// Posts a modern request with its header.
    pub(crate) fn modern(&mut self, body: &str) -> Ticket {
        self.request("POST", "/mcp", &header_of(body).fields(), body)
    }
}

/// The header of a modern request.
pub(crate) struct Header(Vec<(&'static str, String)>);

impl Header {
    pub(crate) fn fields(&self) -> Vec<(&str, &str)> {
        let own = self.0.iter().map(|(name, value)| (*name, value.as_str()));
        POST.into_iter().chain(own).collect()
    }

    /// Replaces the value of a field, or removes the field.
    pub(crate) fn with(mut self, name: &'static str, value: Option<&str>) -> Self {
        self.0.retain(|(known, _)| *known != name);
        self.0.extend(value.map(|value| (name, value.to_owned())));
        self
    }
}

pub(crate) fn header_of(body: &str) -> Header {
    let body: Value = serde_json::from_str(body).expect("valid JSON");
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let version = text("/params/_meta/io.modelcontextprotocol~1protocolVersion");
    let name = match body["method"].as_str() {
        Some("tools/call" | "prompts/get") => text("/params/name"),
        Some("resources/read") => text("/params/uri"),
        _ => None,
    };
    let fields =
        [("MCP-Protocol-Version", version), ("Mcp-Method", text("/method")), ("Mcp-Name", name)];
    Header(fields.into_iter().filter_map(|(field, value)| Some((field, value?))).collect())
}

impl crate::reply::Reply {
    /// Returns the messages of a stream, or the JSON body.
    pub(crate) fn messages_or_body(&self) -> Vec<Value> {
        if self.is_stream() { self.messages() } else { vec![self.json()] }
    }

    /// Returns the code of the error in the body, and its id as JSON text.
    #[track_caller]
    pub(crate) fn error(&self) -> (i64, String) {
        let body = self.json();
        let id = body.get("id").map_or_else(|| "none".into(), Value::to_string);
        (body["error"]["code"].as_i64().expect("an error"), id)
    }
}

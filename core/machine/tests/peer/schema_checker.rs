//! Checks every line that a machine sends: one JSON-RPC message per line, valid by the official
//! schema of the revision.

use std::collections::{BTreeMap, BTreeSet};

use mcp_sansio::{Era, Method, Revision, Side};
use serde_json::Value;

use crate::validators;

/// The state of a connection.
#[derive(Debug, Default)]
pub(crate) struct SchemaChecker {
    session: Option<Revision>,
    /// Whether the server supports only the legacy era, so that modern metadata has no meaning.
    pub(crate) legacy_only: bool,
    /// Whether the other side sent a batch, which may be answered with a batch before the session
    /// is open.
    batch_heard: bool,
    /// Ids of client requests with modern metadata, as JSON text.
    modern: BTreeSet<String>,
    /// Methods of pending requests, by sender and id.
    asked: BTreeMap<(Side, String), String>,
    /// Ids that each side has used. A legacy session must not reuse them.
    used: BTreeSet<(Side, String)>,
}

impl SchemaChecker {
    /// Panics if `line`, sent by `sender`, breaks a rule for messages.
    pub(crate) fn examine(&mut self, sender: Side, line: &str) {
        // [STDIO-001] [STDIO-002] [STDIO-003] [RPC-014].
        assert!(!line.contains(['\n', '\r']), "more than one line: {line:?}");
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        match &value {
            Value::Array(messages) => {
                let opening = self.session.is_none() && self.batch_heard;
                let expected = self.session == Some(Revision::V2025_03_26) || opening;
                assert!(expected, "an unexpected batch: {line}");
                assert!(!messages.is_empty(), "an empty batch");
                messages.iter().for_each(|message| self.message(sender, message));
            }
            _ => self.message(sender, &value),
        }
    }

    /// Records a line of the other side without checking it: it may come from a script.
    pub(crate) fn hear(&mut self, sender: Side, line: &str) {
        let Ok(value) = serde_json::from_str::<Value>(line) else { return };
        self.batch_heard |= value.is_array();
        let messages = match &value {
            Value::Array(messages) => messages.as_slice(),
            single => core::slice::from_ref(single),
        };
        messages.iter().for_each(|message| self.note(sender, message));
    }

    fn note(&mut self, sender: Side, message: &Value) {
        let id = message.get("id").map(Value::to_string);
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) => {
                if meta_revision(message).is_some() && !self.legacy_only {
                    self.modern.insert(id.clone());
                }
                self.asked.insert((sender, id), method.into());
            }
            (None, Some(id)) => {
                let method = self.asked.remove(&(peer(sender), id));
                if method.as_deref() == Some("initialize")
                    && let Some(version) = message.pointer("/result/protocolVersion")
                {
                    self.session = version.as_str().and_then(Revision::parse);
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, sender: Side, message: &Value) {
        // [RPC-001].
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        let members = message.as_object().unwrap();
        let id = members.get("id");
        let modern = match id {
            Some(id) if members.contains_key("method") => {
                // [RPC-002] [RPC-003].
                assert!(id.is_i64() || id.is_string(), "the id of {message}");
                let modern = meta_revision(message).is_some();
                // [RPC-004].
                let fresh = self.used.insert((sender, id.to_string()));
                assert!(fresh, "an id is used twice: {message}");
                modern
            }
            Some(id) => sender == Side::Server && self.modern.contains(&id.to_string()),
            None => false,
        };
        if members.contains_key("method") {
            self.call(sender, message, modern);
        } else {
            self.response(sender, message, modern);
        }
        self.note(sender, message);
    }

    fn call(&self, sender: Side, message: &Value, modern: bool) {
        let method = message["method"].as_str().expect("a method is a string");
        // [RPC-011].
        assert!(message.get("params").is_none_or(Value::is_object), "{message}");
        let request = message.get("id").is_some();
        let revision = self.revision(modern, message);
        if revision.is_some_and(|revision| revision.era() == Era::Modern) {
            // [RPC-030].
            assert!(
                !(request && sender == Side::Server),
                "a modern server sends a request: {message}"
            );
        }
        let Some(known) = Method::parse(method) else { return };
        let definition = match (sender, request) {
            (Side::Client, true) => "ClientRequest",
            (Side::Client, false) => "ClientNotification",
            (Side::Server, true) => "ServerRequest",
            (Side::Server, false) => "ServerNotification",
        };
        if let Some(revision) = revision {
            valid(revision, "JSONRPCMessage", message);
            if !known.as_str().starts_with("tasks/") {
                valid(revision, definition, message);
            }
        }
    }

    fn response(&self, sender: Side, message: &Value, modern: bool) {
        // [RPC-007].
        let (result, error) = (message.get("result"), message.get("error"));
        assert!(
            result.is_some() != error.is_some(),
            "a response has either a result or an error: {message}"
        );
        let id = message.get("id").map(Value::to_string);
        let method = id.and_then(|id| self.asked.get(&(peer(sender), id))).map(String::as_str);
        if sender == Side::Client {
            // [RPC-031]: a client responds in a legacy session, and to pings while it opens.
            let answers = self.session.is_some() || method == Some("ping") || error.is_some();
            assert!(answers, "a modern client sends a response: {message}");
        }
        let revision = match result.and_then(|result| result.get("protocolVersion")) {
            Some(version) if method == Some("initialize") => {
                version.as_str().and_then(Revision::parse)
            }
            _ => self.revision(modern, message),
        };
        let Some(revision) = revision else { return };
        if let Some(result) = result {
            // [RPC-010] [RPC-019].
            assert!(result.is_object(), "{message}");
            assert_eq!(result.get("resultType").is_some(), modern, "{message}");
            match method {
                Some("initialize") => valid(revision, "InitializeResult", result),
                Some("server/discover") => valid(revision, "DiscoverResult", result),
                Some(
                    "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe",
                ) => {
                    valid(revision, "EmptyResult", result);
                }
                _ => {}
            }
        }
        // The schemas before 2025-11-25 have no error without an id; JSON-RPC uses null.
        if message.get("id").is_none_or(Value::is_null) && revision < Revision::V2025_11_25 {
            return;
        }
        valid(revision, "JSONRPCMessage", message);
    }

    fn revision(&self, modern: bool, message: &Value) -> Option<Revision> {
        if modern {
            return Some(Revision::V2026_07_28);
        }
        meta_revision(message).or(self.session)
    }
}

const fn peer(role: Side) -> Side {
    match role {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    }
}

fn meta_revision(message: &Value) -> Option<Revision> {
    let version = message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion")?;
    version.as_str().and_then(Revision::parse)
}

/// Panics if `value` is not valid against a definition of the revision's schema.
fn valid(revision: Revision, definition: &str, value: &Value) {
    validators::assert_valid(revision.as_str(), definition, value);
}

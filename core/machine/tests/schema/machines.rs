//! A client and a server that send each other the messages that machines write without a type.

use std::collections::BTreeMap;

use mcp_sansio::catalog::Changes;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    CallOptions, Client, ClientMachine, ClientOptions, Server, ServerMachine, ServerOptions,
};
use mcp_sansio::protocol::*;
use mcp_sansio::{Era, Instant, LoggingLevel, Method, Revision, Revisions};
use serde_json::Value;

use super::samples::{filter, implementation, raw};

const NOW: Instant = Instant::ZERO;

/// Returns all messages of a connection at each revision.
pub(crate) fn exchanged_at_each_revision() -> BTreeMap<Revision, Vec<Value>> {
    Revision::ALL.into_iter().map(|revision| (revision, exchanged(revision))).collect()
}

/// Returns the results of the requests of a method.
pub(crate) fn results(messages: &[Value], method: &str) -> Vec<Value> {
    let requests = messages.iter().filter(|message| message["method"] == method);
    let answers = |request: &Value| {
        let id = request["id"].clone();
        let same = move |message: &&Value| message["id"] == id && message.get("result").is_some();
        messages.iter().filter(same).map(|message| message["result"].clone()).collect()
    };
    requests.flat_map::<Vec<Value>, _>(answers).collect()
}

fn exchanged(revision: Revision) -> Vec<Value> {
    let mut pair = Pair::open_at(revision);
    pair.client.set_log_level(LoggingLevel::Info, NOW).unwrap();
    let subscription = pair.client.subscribe(&filter().resources_list_changed(true), NOW).unwrap();
    let tool = raw(r#"{"name":"t"}"#);
    let call = pair.call(Method::ToolsCall, &tool);
    pair.server.announce(Changes::new().tools(true).prompts(true).resources(true), NOW);
    pair.server.resource_updated("file:///a", NOW);
    pair.client.cancel(call, "the user \"left\"", NOW);
    pair.drive();
    if revision.era() == Era::Legacy {
        pair.call(Method::Ping, &raw("{}"));
        pair.client.cancel(subscription, "", NOW);
    } else {
        pair.server.close(NOW);
    }
    pair.drive();
    pair.messages
}

struct Pair {
    client: Client,
    server: Server,
    messages: Vec<Value>,
}

impl Pair {
    fn open_at(revision: Revision) -> Self {
        let client = ClientOptions::new(implementation()).revisions(Revisions::only(revision));
        let offers = ServerCapabilities::new()
            .tools(ToolsCapability::new().list_changed(true))
            .resources(ResourcesCapability::new().list_changed(true).subscribe(true))
            .prompts(PromptsCapability::new().list_changed(true))
            .logging(CapabilitySettings::default());
        let server = ServerOptions::new(implementation()).capabilities(offers);
        let (client, server) = (Client::new(client, 0, NOW), Server::new(server, 0));
        let mut pair = Self { client, server, messages: Vec::new() };
        pair.drive();
        assert_eq!(pair.client.session().unwrap().revision(), revision);
        pair
    }

    /// Calls a method, and delivers all messages that are queued.
    fn call(&mut self, method: Method, params: &RawJson<'_>) -> mcp_sansio::peer::CallHandle {
        let call = self.client.call(method, params, &CallOptions::default(), NOW).unwrap();
        self.drive();
        call
    }

    /// Delivers messages until neither machine sends any.
    fn drive(&mut self) {
        let mut sent = true;
        while sent {
            sent = false;
            while let Some(lines) = self.client.poll_transmit() {
                sent = true;
                for line in lines.split_inclusive(|byte| *byte == b'\n') {
                    self.messages.push(serde_json::from_slice(line).unwrap());
                    self.server.handle_message(line.trim_ascii_end(), NOW).unwrap();
                }
            }
            while let Some(lines) = self.server.poll_transmit() {
                sent = true;
                for line in lines.split_inclusive(|byte| *byte == b'\n') {
                    self.messages.push(serde_json::from_slice(line).unwrap());
                    self.client.handle_message(line.trim_ascii_end(), NOW).unwrap();
                }
            }
            while self.client.poll_event().is_some() || self.server.poll_event().is_some() {}
        }
    }
}

//! Items for one session, and the session in handlers.

use std::sync::Arc;

use mcp_sansio::http::ExchangeId;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Event;
use mcp_sansio::protocol::{
    CompleteParams, Prompt, PromptArgument, Resource, ResourceTemplate, TaskSupport,
    TextResourceContents, Tool,
};
use mcp_sansio::{Principal, Revision, Revisions, SessionKey};
use mcp_sansio_handlers::{
    Call, CatalogEdit, Client, Connections, Host, NoArguments, ReadResource, Server, ServerItem,
};
use mcp_sansio_test::{Pair, Stream, StreamPair, Transport};
use serde_json::{Value, json};

use crate::driven::Driven;
use crate::task_client::settings;

const LEGACY: [Revision; 3] = [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

fn tool(name: &str) -> Tool {
    Tool::new(name, RawJson::parse(r#"{"type":"object"}"#).unwrap())
}

/// Adds an item of each kind for a session. Their handlers keep `held`.
fn add(catalog: &mut CatalogEdit<'_>, session: SessionKey, held: &Arc<()>) {
    let held = Arc::clone(held);
    let close = move |call: Call<NoArguments>| {
        assert_eq!(call.session(), Some(session));
        format!("closed by {}", Arc::strong_count(&held) > 0)
    };
    let read = |_: Call<ReadResource>| TextResourceContents::new("note:own", "text");
    let fill = |_: Call<NoArguments>| "text".to_owned();
    let values = |_: Call<CompleteParams>| vec!["one".to_owned()];
    let prompt = Prompt::new("own").arguments([PromptArgument::new("a")]);
    let items = [
        catalog.add_item(ServerItem::new(tool("close"), close).for_session(session)),
        catalog
            .add_item(ServerItem::new(Resource::new("note:own", "n"), read).for_session(session)),
        catalog.add_item(
            ServerItem::new(ResourceTemplate::new("file:{name}", "f"), read).for_session(session),
        ),
        catalog.add_item(ServerItem::new(prompt, fill).complete("a", values).for_session(session)),
    ];
    assert!(items.iter().all(Result::is_ok), "{items:?}");
}

/// A server whose tool `open` adds items for the session of the call.
fn server(held: &Arc<()>) -> Server {
    let held = Arc::clone(held);
    let who = |call: Call<NoArguments>| {
        let session = call.session().map(|it| it.to_string()).unwrap_or_default();
        assert_eq!(call.session(), call.caller().session());
        format!("{session} {}", call.id().map(|it| it.to_string()).unwrap_or_default())
    };
    Server::new("s", "1")
        .subscriptions()
        .completion(|_: Call<CompleteParams>| Vec::<String>::new())
        .add_item(ServerItem::new(Prompt::new("open"), |_: Call<NoArguments>| "text".to_owned()))
        .add_item(ServerItem::new(Resource::new("note:open", "n"), |_: Call<ReadResource>| {
            TextResourceContents::new("note:open", "text")
        }))
        .tool("who", "", who)
        .tool("open", "", move |call: Call<NoArguments>| {
            let (session, held) = (call.session().unwrap(), Arc::clone(&held));
            call.edit_catalog(move |catalog| add(catalog, session, &held)).unwrap();
            "opened"
        })
}

/// A client with a session on HTTP.
struct InSession {
    revision: Revision,
    id: String,
    stream: ExchangeId,
}

impl InSession {
    fn open(driven: &mut Driven, revision: Revision) -> Self {
        let params = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let sent = driven.request("POST", &[], &body.to_string(), Some("ann"));
        let id = driven.session(sent);
        let mut client = Self { revision, id, stream: sent };
        client.request(driven, "POST", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client.stream = client.request(driven, "GET", "");
        client
    }

    fn request(&self, driven: &mut Driven, method: &str, body: &str) -> ExchangeId {
        let fields =
            [("mcp-session-id", &*self.id), ("mcp-protocol-version", self.revision.as_str())];
        driven.request(method, &fields, body, Some("ann"))
    }

    fn ask(&self, driven: &mut Driven, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": "seven", "method": method, "params": params });
        let sent = self.request(driven, "POST", &body.to_string());
        driven.messages(sent).remove(0)
    }

    fn text(&self, driven: &mut Driven, tool: &str) -> String {
        let answer = self.ask(driven, "tools/call", json!({ "name": tool, "arguments": {} }));
        answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns how many of the items for one session the client sees, and checks that it can use
    /// just these.
    fn seen(&self, driven: &mut Driven) -> usize {
        let mut ask = |method: &str, params| self.ask(driven, method, params);
        seen(&mut ask)
    }

    fn told(&self, driven: &Driven) -> Vec<String> {
        driven.told(self.stream)
    }
}

fn seen(ask: &mut dyn FnMut(&str, Value) -> Value) -> usize {
    let mut listed = 0;
    for (method, member, key, name) in [
        ("tools/list", "tools", "name", "close"),
        ("resources/list", "resources", "uri", "note:own"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate", "file:{name}"),
        ("prompts/list", "prompts", "name", "own"),
    ] {
        let items = ask(method, json!({}))["result"][member].clone();
        listed += items.as_array().unwrap().iter().filter(|it| it[key] == name).count();
    }
    let argument = json!({ "name": "a", "value": "" });
    let uses = [
        ask("tools/call", json!({ "name": "close", "arguments": {} })),
        ask("resources/read", json!({ "uri": "note:own" })),
        ask("resources/read", json!({ "uri": "file:a" })),
        ask("prompts/get", json!({ "name": "own", "arguments": {} })),
    ];
    let worked = uses.iter().filter(|it| it["result"].is_object()).count();
    let reference = json!({ "type": "ref/prompt", "name": "own" });
    let completed = ask("completion/complete", json!({ "ref": reference, "argument": argument }));
    let values = completed["result"]["completion"]["values"].as_array().map_or(0, Vec::len);
    assert_eq!((worked, 4 * values), (listed, listed));
    listed
}

fn modern(driven: &mut Driven, method: &str, params: Value) -> Value {
    let sent = driven.modern_of(method, params, Some("ann"));
    driven.messages(sent).remove(0)
}

const CHANGED: [&str; 3] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];

fn changes(mut told: Vec<String>) -> Vec<String> {
    told.retain(|it| CHANGED.contains(&it.as_str()));
    told.sort_unstable();
    told
}

#[test]
fn items_of_a_session_are_seen_used_and_announced_in_it_alone_and_end_with_it() {
    // Rule: [TOOL-028] [SESS-016].
    for revision in LEGACY {
        let held = Arc::new(());
        let mut driven = Driven::new(&server(&held));
        // Both sessions are of one principal.
        let own = InSession::open(&mut driven, revision);
        let other = InSession::open(&mut driven, revision);
        let listen = json!({ "notifications": { "toolsListChanged": true } });
        let listening = driven.modern_of("subscriptions/listen", listen, Some("ann"));

        assert_eq!(own.text(&mut driven, "open"), "opened");
        driven.settle();
        assert_eq!(own.seen(&mut driven), 4, "{revision}");
        assert_eq!(other.seen(&mut driven), 0, "{revision}");
        assert_eq!(seen(&mut |method, params| modern(&mut driven, method, params)), 0);
        let mut expected = CHANGED.map(str::to_owned);
        expected.sort_unstable();
        assert_eq!(changes(own.told(&driven)), expected);
        assert_eq!(changes(other.told(&driven)), [""; 0]);
        assert_eq!(changes(driven.told(listening)), [""; 0]);

        other.request(&mut driven, "DELETE", "");
        driven.settle();
        assert_eq!(own.seen(&mut driven), 4);
        own.request(&mut driven, "DELETE", "");
        driven.drive();
        driven.settle();
        assert_eq!(seen(&mut |method, params| modern(&mut driven, method, params)), 0);
        let catalog = driven.server.machine().catalog();
        assert!(catalog.tool("close").is_none() && catalog.prompt("own").is_none());
        assert_eq!(catalog.sessions().count(), 0);
        assert_eq!(Arc::strong_count(&held), 2, "the handlers are dropped");
        assert_eq!(changes(driven.told(listening)), [""; 0]);
    }
}

#[test]
fn an_item_for_a_session_that_has_ended_is_not_kept() {
    let held = Arc::new(());
    let mut driven = Driven::new(&server(&held));
    let client = InSession::open(&mut driven, Revision::V2025_11_25);
    let who = client.text(&mut driven, "who");
    let number = u64::from_str_radix(who.split(' ').next().unwrap(), 16).unwrap();
    let session = SessionKey::from_number(number).unwrap();
    client.request(&mut driven, "DELETE", "");
    let keep = Arc::clone(&held);
    let handle = driven.server.handle();
    handle.edit_catalog(move |catalog| add(catalog, session, &keep)).unwrap();
    driven.settle();
    modern(&mut driven, "tools/list", json!({}));
    assert!(driven.server.machine().catalog().tool("close").is_none());
    assert_eq!(Arc::strong_count(&held), 2);
}

#[test]
fn a_session_that_expires_takes_its_items_along() {
    let held = Arc::new(());
    let mut driven = Driven::new(&server(&held));
    let client = InSession::open(&mut driven, Revision::V2025_06_18);
    client.text(&mut driven, "open");
    assert!(driven.server.machine().catalog().tool("close").is_some());
    driven.server.handle_disconnect(client.stream, driven.now);
    while driven.server.machine().session_count() > 0 {
        driven.now = driven.server.poll_timeout().unwrap();
        driven.drive();
    }
    driven.drive();
    assert!(driven.server.machine().catalog().tool("close").is_none());
}

#[test]
fn a_handler_knows_the_session_of_its_request_and_the_id() {
    // Rule: [SESS-016].
    let mut driven = Driven::new(&server(&Arc::new(())));
    let clients = [(); 3].map(|()| InSession::open(&mut driven, Revision::V2025_06_18));
    let keys = clients.each_ref().map(|client| {
        let who = client.text(&mut driven, "who");
        let (key, id) = who.split_once(' ').unwrap();
        assert_eq!(id, r#""seven""#);
        // The key is that of the session, and not its id.
        assert_eq!(client.text(&mut driven, "who"), who);
        assert!(!client.id.contains(key));
        key.to_owned()
    });
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2], "{keys:?}");
    let answer = modern(&mut driven, "tools/call", json!({ "name": "who", "arguments": {} }));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with(' ') && text.len() > 1, "no session, but an id: {text}");
}

fn machine(pair: &StreamPair) -> &mcp_sansio::peer::Server {
    pair.transport.server.as_ref().unwrap().machine()
}

fn names<T: Transport>(client: &Client, pair: &mut Pair<T>) -> Vec<String> {
    pair.run(client.all_tools()).unwrap().into_iter().map(|it| it.name).collect()
}

#[test]
fn on_a_byte_stream_the_connection_of_a_legacy_client_is_the_session() {
    for revision in LEGACY {
        let host = Host::new("h", "1").revisions(Revisions::only(revision));
        let (client, mut pair) = mcp_sansio_test::connect(&server(&Arc::new(())), &host);
        let mut who = || pair.run(client.call_tool("who", &NoArguments {})).unwrap();
        let first = who().first_text().unwrap().to_owned();
        let key = first.split(' ').next().unwrap().to_owned();
        assert_eq!(key.len(), 16);
        assert!(who().first_text().unwrap().starts_with(&key));
        pair.run(client.call_tool("open", &NoArguments {})).unwrap();
        assert_eq!(names(&client, &mut pair), ["who", "open", "close"]);
        pair.run(client.call_tool("close", &NoArguments {})).unwrap();
        pair.run(client.get_prompt("own", [])).unwrap();
    }
    let (client, mut pair) = mcp_sansio_test::connect(&server(&Arc::new(())), &Host::new("h", "1"));
    let who = pair.run(client.call_tool("who", &NoArguments {})).unwrap();
    assert!(who.first_text().unwrap().starts_with(' '), "a modern request is in no session");
}

/// A client with a connection over HTTP+SSE.
struct OnEventStream {
    stream: ExchangeId,
    endpoint: String,
}

impl OnEventStream {
    fn connect(driven: &mut Driven) -> Self {
        let stream = driven.request_at(("GET", "/sse"), &[], "", None);
        Self { stream, endpoint: driven.endpoint(stream) }
    }

    fn post(&self, driven: &mut Driven, message: &Value) {
        let body = message.to_string();
        driven.request_at(("POST", &self.endpoint), &[], &body, None);
        driven.settle();
    }

    fn ask(&self, driven: &mut Driven, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.post(driven, &message);
        let mut answers = driven.messages(self.stream).into_iter().rev();
        answers.find(|message| message["id"] == 7).unwrap()
    }

    fn open(&self, driven: &mut Driven) {
        let client = json!({ "name": "c", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        assert!(self.ask(driven, "initialize", params)["result"].is_object());
        self.post(driven, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    fn names(&self, driven: &mut Driven) -> Vec<String> {
        let listed = self.ask(driven, "tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    fn call(&self, driven: &mut Driven, tool: &str) -> Value {
        self.ask(driven, "tools/call", json!({ "name": tool, "arguments": {} }))
    }
}

#[test]
fn a_session_that_is_opened_anew_on_http_sse_has_no_items_and_tasks_of_the_old_one() {
    let held = Arc::new(());
    let server = server(&held)
        .tasks(settings())
        .tool("slow", "", |_: Call<NoArguments>| "done")
        .task_support("slow", TaskSupport::Optional);
    let mut driven = Driven::new(&server);
    let client = OnEventStream::connect(&mut driven);
    let before = Arc::strong_count(&held);
    for _ in 0..3 {
        client.open(&mut driven);
        assert_eq!(client.names(&mut driven), ["who", "open", "slow"]);
        assert_eq!(Arc::strong_count(&held), before);
        client.call(&mut driven, "open");
        assert_eq!(client.names(&mut driven), ["who", "open", "slow", "close"]);
        // Its handler checks the session.
        assert_eq!(client.call(&mut driven, "close")["result"]["isError"], Value::Null);
        let task = json!({ "name": "slow", "arguments": {}, "task": { "ttl": 60_000 } });
        let created = client.ask(&mut driven, "tools/call", task);
        let task = json!({ "taskId": created["result"]["task"]["taskId"] });
        assert!(client.ask(&mut driven, "tasks/get", task.clone())["result"].is_object());
        client.open(&mut driven);
        assert!(client.ask(&mut driven, "tasks/get", task)["error"].is_object());
        driven.now = driven.now + std::time::Duration::from_secs(100);
        driven.drive();
    }
}

#[test]
fn an_edit_of_all_connections_adds_the_items_of_a_session_to_it_alone() {
    let (held, connections) = (Arc::new(()), Connections::new());
    let server = server(&held).connections(&connections);
    let host = Host::new("h", "1").revisions(Revisions::only(Revision::V2025_11_25));
    let mut clients = [1, 2].map(|seed| {
        let (client, endpoint) = host.connect(seed, mcp_sansio::Instant::ZERO);
        let stream = Stream::new(server.endpoint(seed).unwrap(), endpoint);
        let mut pair = Pair::new(stream);
        pair.run(client.opened()).unwrap();
        (client, pair)
    });
    let session = machine(&clients[0].1).session_key();
    let keep = Arc::clone(&held);
    connections.edit_catalog(move |catalog| add(catalog, session, &keep)).unwrap();
    let seen = clients.each_mut().map(|(client, pair)| {
        pair.run_until_idle();
        names(client, pair).len()
    });
    assert_eq!(seen, [3, 2]);
    assert_eq!(machine(&clients[1].1).catalog().sessions().count(), 0);
    // A later connection is another session.
    let late = server.endpoint(3).unwrap();
    assert!(late.machine().catalog().tool("close").is_none());
}

#[test]
fn an_item_needs_both_its_session_and_its_principal() {
    let mut driven = Driven::new(&server(&Arc::new(())));
    let client = InSession::open(&mut driven, Revision::V2025_11_25);
    let who = client.text(&mut driven, "who");
    let number = u64::from_str_radix(who.split(' ').next().unwrap(), 16).unwrap();
    let session = SessionKey::from_number(number).unwrap();
    let edit = move |catalog: &mut CatalogEdit<'_>| {
        for name in ["ann", "bob"] {
            let audience = mcp_sansio::catalog::Audience::new().principal(Principal::new(name));
            let item = ServerItem::new(tool(name), |_: Call<NoArguments>| "");
            catalog.add_item(item.audience(audience).for_session(session)).unwrap();
        }
    };
    driven.server.handle().edit_catalog(edit).unwrap();
    driven.drive();
    let listed = client.ask(&mut driven, "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["who", "open", "ann"]);
}

#[test]
fn an_event_has_the_session_of_its_request() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let server = server(&Arc::new(())).observe(move |event| {
        if let Event::Request(request) = event {
            sink.lock().unwrap().push(request.caller.session());
        }
    });
    let mut driven = Driven::new(&server);
    let client = InSession::open(&mut driven, Revision::V2025_11_25);
    client.text(&mut driven, "who");
    modern(&mut driven, "tools/call", json!({ "name": "who", "arguments": {} }));
    let seen = seen.lock().unwrap();
    assert!(matches!(seen[..], [Some(_), None]), "{seen:?}");
}

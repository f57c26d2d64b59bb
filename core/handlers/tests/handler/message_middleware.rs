//! Middleware around all messages.

use std::sync::{Arc, Mutex};

use mcp_sansio::jsonrpc::{ErrorObject, Json, RawJson};
use mcp_sansio::peer::{CommandError, Event};
use mcp_sansio::protocol::{
    ElicitParams, ElicitResult, Resource, SubscriptionFilter, TextResourceContents, Tool,
};
use mcp_sansio::{Era, ErrorCode, Instant, LoggingLevel, Method, Revision, Revisions, Side};
use mcp_sansio_handlers::endpoint::Endpoint;
use mcp_sansio_handlers::extension::Extension;
use mcp_sansio_handlers::middleware::{
    MessageMiddleware, MiddlewareMessage, MiddlewareResponse, NotificationAction, RequestAction,
    ResponseAction,
};
use mcp_sansio_handlers::{
    Call, CatalogEdit, Client, ClientError, Elicit, Host, HostRequest, NoArguments, ReadResource,
    Server,
};
use mcp_sansio_test::{Pair, Stream, Transport};
use serde_json::{Value, json};

use crate::panics::guard;

/// Legacy ones with elicitation, and the modern one.
const REVISIONS: [Revision; 3] =
    [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

type Lines = Arc<Mutex<Vec<String>>>;

fn taken(lines: &Lines) -> Vec<String> {
    std::mem::take(&mut *lines.lock().unwrap())
}

fn json_of(value: &Value) -> Json {
    Json::from_serialize(value).unwrap()
}

/// Writes a line for each message.
struct Log {
    name: &'static str,
    lines: Lines,
}

impl Log {
    fn note(&self, sender: Side, what: impl std::fmt::Display) {
        let mark = if sender == Side::Client { '>' } else { '<' };
        self.lines.lock().unwrap().push(format!("{}{mark} {what}", self.name));
    }
}

impl MessageMiddleware for Log {
    fn notification(&self, message: &MiddlewareMessage<'_>) -> NotificationAction {
        assert!(message.id().is_none());
        self.note(message.sender(), message.method());
        NotificationAction::Forward
    }

    fn request(&self, message: &MiddlewareMessage<'_>) -> RequestAction {
        assert!(message.id().is_some());
        self.note(message.sender(), message.method());
        RequestAction::Forward
    }

    fn response(
        &self,
        response: &MiddlewareResponse<'_>,
        outcome: Result<&RawJson<'_>, &ErrorObject<'_>>,
    ) -> ResponseAction {
        match outcome {
            Ok(_) => self.note(response.sender(), "result"),
            Err(error) => self.note(response.sender(), format_args!("error {}", error.code.0)),
        }
        ResponseAction::Forward
    }
}

/// Functions around messages.
#[derive(Default)]
pub(crate) struct Around {
    pub(crate) notification: Option<fn(&MiddlewareMessage<'_>) -> NotificationAction>,
    pub(crate) request: Option<fn(&MiddlewareMessage<'_>) -> RequestAction>,
    pub(crate) response: Option<fn(&MiddlewareResponse<'_>, Value) -> ResponseAction>,
}

impl MessageMiddleware for Around {
    fn notification(&self, message: &MiddlewareMessage<'_>) -> NotificationAction {
        self.notification.map_or(NotificationAction::Forward, |function| function(message))
    }

    fn request(&self, message: &MiddlewareMessage<'_>) -> RequestAction {
        self.request.map_or(RequestAction::Forward, |function| function(message))
    }

    fn response(
        &self,
        response: &MiddlewareResponse<'_>,
        outcome: Result<&RawJson<'_>, &ErrorObject<'_>>,
    ) -> ResponseAction {
        let (Some(function), Ok(result)) = (self.response, outcome) else {
            return ResponseAction::Forward;
        };
        function(response, result.decode().unwrap())
    }
}

fn with_meta(message: &MiddlewareMessage<'_>, key: &str) -> Json {
    let mut params: Value = message.params().decode().unwrap();
    params["_meta"][key] = json!({ "nested": true });
    json_of(&params)
}

/// A server with everything that causes messages.
fn server() -> Server {
    Server::new("s", "1")
        .logging()
        .subscriptions()
        .resource(Resource::new("a://b", "b"), |_: Call<ReadResource>| {
            TextResourceContents::new("a://b", "")
        })
        .tool("paint", "", async |call: Call<NoArguments>| {
            call.progress(1.0, Some(2.0), "half");
            call.log((LoggingLevel::Error, "brush"), "wet");
            call.resource_updated("a://b")?;
            if call.input::<Sure>("sure")?.is_none() {
                return call.require_input("sure", Elicit::form::<Sure>("Sure?")).into_result();
            }
            Ok::<_, mcp_sansio_handlers::HandlerError>("painted".to_owned())
        })
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Sure {
    sure: bool,
}

fn host(revision: Revision) -> Host {
    Host::new("h", "1")
        .revisions(Revisions::only(revision))
        .on_elicit(|_: HostRequest<ElicitParams>| {
            ElicitResult::accept([("sure".to_owned(), true.into())].into_iter().collect())
        })
        .on_roots(|_: HostRequest<()>| Vec::new())
}

/// Does what causes messages of all kinds. Returns the events of the subscription.
fn use_everything<T: Transport>(
    client: &Client,
    pair: &mut Pair<T>,
    add_tool: impl Fn(&mut Pair<T>),
) {
    let filter = SubscriptionFilter::default()
        .tools_list_changed(true)
        .resource_subscriptions(["a://b".to_owned()]);
    let subscription = client.subscribe(filter);
    pair.run_until_idle();
    let legacy = client.era() == Some(Era::Legacy);
    if legacy {
        client.set_log_level(LoggingLevel::Debug).unwrap();
        pair.run(client.ping()).unwrap();
        client.roots_changed().unwrap();
    }
    pair.run(client.all_tools()).unwrap();
    let call = client.call_tool("paint", &NoArguments {}).on_progress(|_| {});
    let call = if legacy { call } else { call.log_level(LoggingLevel::Debug) };
    assert_eq!(pair.run(call).unwrap().first_text(), Some("painted"));
    pair.run(client.call_tool("missing", &NoArguments {})).unwrap_err();
    add_tool(pair);
    pair.run_until_idle();
    drop(subscription);
    pair.run_until_idle();
    client.close();
    pair.run_until_idle();
}

#[test]
fn every_message_passes_the_middleware_of_both_sides() {
    // Rule: [EXT-028].
    for revision in REVISIONS {
        let (at_server, at_host) = (Lines::default(), Lines::default());
        let server = server().message_middleware(Log { name: "", lines: Arc::clone(&at_server) });
        let host = host(revision).message_middleware(Log { name: "", lines: Arc::clone(&at_host) });
        let add_tool = |catalog: &mut CatalogEdit<'_>| {
            let tool = Tool::new("new", RawJson::parse(r#"{"type":"object"}"#).unwrap());
            catalog.add_tool(tool, |_: Call<NoArguments>| "").unwrap();
        };
        let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
        use_everything(&client, &mut pair, |pair| {
            pair.transport.server.as_ref().unwrap().handle().edit_catalog(add_tool).unwrap();
        });
        let mut messages = pair.transcript.outline();
        messages.retain(|line| !line.starts_with("--"));
        messages.sort_unstable();
        let sorted = |lines: &Lines| {
            let mut lines = taken(lines);
            lines.sort_unstable();
            lines
        };
        assert_eq!(sorted(&at_server), messages, "{revision}");
        assert_eq!(sorted(&at_host), messages, "{revision}");
        let expected: &[&str] = if revision.era() == Era::Legacy {
            &[
                "> initialize",
                "> notifications/initialized",
                "> logging/setLevel",
                "> resources/subscribe",
                "> resources/unsubscribe",
                "> ping",
                "> notifications/roots/list_changed",
                "> tools/list",
                "> tools/call",
                "> error -32602",
                "> result",
                "< elicitation/create",
            ][..]
        } else {
            &[
                "> server/discover",
                "> subscriptions/listen",
                "> notifications/cancelled",
                "> tools/list",
                "> tools/call",
                "< notifications/subscriptions/acknowledged",
            ]
        };
        let both = [
            "< result",
            "< error -32602",
            "< notifications/progress",
            "< notifications/message",
            "< notifications/resources/updated",
            "< notifications/tools/list_changed",
        ];
        for line in expected.iter().chain(&both).filter(|line| **line != "> error -32602") {
            assert!(messages.iter().any(|it| it == line), "{revision}: {line} in {messages:?}");
        }
        // The same over HTTP.
        let (client, mut pair) = mcp_sansio_test::connect_http(&server, &host, None);
        use_everything(&client, &mut pair, |pair| {
            pair.transport.server.handle().edit_catalog(add_tool).unwrap();
        });
        let (mut at_server, mut at_host) = (sorted(&at_server), sorted(&at_host));
        // The cancellation of a modern request over HTTP is the end of its stream, not a message.
        at_server.retain(|line| !line.ends_with("unsubscribe"));
        at_host.retain(|line| !line.ends_with("unsubscribe"));
        assert_eq!(at_server, at_host, "{revision}");
        for line in expected.iter().chain(&both) {
            let is_message = !matches!(
                *line,
                "> error -32602" | "> notifications/cancelled" | "> resources/unsubscribe"
            );
            assert!(!is_message || at_host.iter().any(|it| it == line), "{revision}: {line}");
        }
    }
}

/// Connects a server and a host with these middleware over both bindings, and runs `act` on each.
fn on_each_binding(
    revision: Revision,
    at_server: fn() -> Around,
    at_host: fn() -> Around,
    act: impl Fn(&Client, &mut dyn Drive),
) {
    let (server, host) =
        (server().message_middleware(at_server()), host(revision).message_middleware(at_host()));
    let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
    act(&client, &mut pair);
    let (client, mut pair) = mcp_sansio_test::connect_http(&server, &host, None);
    act(&client, &mut pair);
}

/// A pair over any binding.
trait Drive {
    fn idle(&mut self);
    fn transcript(&self) -> String;
    fn call(&mut self, call: mcp_sansio_handlers::ClientCall<Json>) -> Result<Value, ClientError>;
}

impl<T: Transport> Drive for Pair<T> {
    fn idle(&mut self) {
        self.run_until_idle();
    }

    fn transcript(&self) -> String {
        self.transcript.to_string()
    }

    fn call(&mut self, call: mcp_sansio_handlers::ClientCall<Json>) -> Result<Value, ClientError> {
        self.run(call).map(|result| result.decode().unwrap())
    }
}

fn method(
    client: &Client,
    method: Method,
    params: &Value,
) -> mcp_sansio_handlers::ClientCall<Json> {
    client.call(method, RawJson::from_serialize(params).unwrap())
}

#[test]
fn metadata_of_every_message_reaches_the_peer() {
    // Rule: [EXT-029] [EXT-030].
    fn adds(side: Side) -> Around {
        match side {
            Side::Server => Around {
                notification: Some(|message| match message.sender() {
                    Side::Server => NotificationAction::Replace(with_meta(message, "a.b/server")),
                    Side::Client => NotificationAction::Forward,
                }),
                response: Some(|response, mut result| {
                    if response.sender() == Side::Client {
                        return ResponseAction::Forward;
                    }
                    result["_meta"]["a.b/answer"] = json!(1);
                    ResponseAction::Replace(json_of(&result))
                }),
                ..Around::default()
            },
            Side::Client => Around {
                notification: Some(|message| match message.sender() {
                    Side::Client => NotificationAction::Replace(with_meta(message, "a.b/client")),
                    Side::Server => NotificationAction::Forward,
                }),
                request: Some(|message| match message.sender() {
                    Side::Client => RequestAction::Replace(with_meta(message, "a.b/asked")),
                    Side::Server => RequestAction::Forward,
                }),
                ..Around::default()
            },
        }
    }
    for revision in REVISIONS {
        on_each_binding(
            revision,
            || adds(Side::Server),
            || adds(Side::Client),
            |client, pair| {
                let filter = SubscriptionFilter::default().resource_subscriptions(["a://b".into()]);
                let _subscription = client.subscribe(filter);
                pair.idle();
                let legacy = client.era() == Some(Era::Legacy);
                if legacy {
                    client.set_log_level(LoggingLevel::Debug).unwrap();
                    client.roots_changed().unwrap();
                }
                pair.idle();
                let paint = json!({ "name": "paint", "arguments": {} });
                let call = method(client, Method::ToolsCall, &paint).on_progress(|_| {});
                let call = if legacy { call } else { call.log_level(LoggingLevel::Debug) };
                let painted = pair.call(call).unwrap();
                assert_eq!(painted["_meta"]["a.b/answer"], json!(1), "{revision}");
                pair.idle();
                let text = pair.transcript();
                let messages = text.lines().filter_map(|line| line.find('{').map(|at| &line[at..]));
                let mut seen = Vec::new();
                for message in messages {
                    let Ok(message) = serde_json::from_str::<Value>(message) else { continue };
                    let meta = |of: &str, key: &str| message[of]["_meta"].get(key).is_some();
                    let name = message["method"].as_str().unwrap_or_default();
                    match name {
                        "notifications/progress" => {
                            assert!(!message["params"]["progressToken"].is_null(), "{message}");
                            assert!(meta("params", "a.b/server"), "{message}");
                        }
                        "notifications/message"
                        | "notifications/resources/updated"
                        | "notifications/subscriptions/acknowledged" => {
                            assert!(meta("params", "a.b/server"), "{message}");
                            let id = "io.modelcontextprotocol/subscriptionId";
                            let has_id = name != "notifications/message" && !legacy;
                            assert_eq!(meta("params", id), has_id, "{message}");
                        }
                        "notifications/initialized" | "notifications/roots/list_changed" => {
                            assert!(meta("params", "a.b/client"), "{message}");
                        }
                        "elicitation/create" => {}
                        "" => {
                            // The host answers the input request.
                            let of_host = message["result"].get("action").is_some();
                            assert!(of_host || meta("result", "a.b/answer"), "{message}");
                        }
                        _ => assert!(meta("params", "a.b/asked"), "{message}"),
                    }
                    seen.push(name.to_owned());
                }
                let opening = if legacy { "initialize" } else { "server/discover" };
                for name in
                    [opening, "notifications/progress", "notifications/message", "tools/call"]
                {
                    assert!(seen.iter().any(|it| it == name), "{revision}: {name} in {seen:?}");
                }
            },
        );
    }
}

#[test]
fn requests_that_the_machine_answers_are_refused_answered_and_changed() {
    // Rule: [EXT-028] [EXT-029].
    fn at_server() -> Around {
        Around {
            request: Some(|message| {
                assert!(message.caller().is_some() == (message.sender() == Side::Client));
                match message.method() {
                    "ping" => RequestAction::Answer(json_of(&json!({ "pong": 1 }))),
                    "server/discover" if message.params().get("x").is_some() => {
                        RequestAction::Answer(json_of(&json!({ "instructions": "early" })))
                    }
                    "resources/subscribe" | "subscriptions/listen" => {
                        assert!(message.revision().is_some());
                        assert!(message.peer_capabilities().is_some());
                        RequestAction::Refuse(ErrorObject::invalid_request("not today"))
                    }
                    // The level that is set, in place of the one that is asked for.
                    "logging/setLevel" => {
                        RequestAction::Replace(json_of(&json!({ "level": "emergency" })))
                    }
                    _ => RequestAction::Forward,
                }
            }),
            response: Some(|response, mut result| {
                match response.method() {
                    Some(Method::ToolsList) if response.sender() == Side::Server => {
                        result["tools"] = json!([]);
                    }
                    Some(Method::Initialize | Method::Discover) => {
                        result["instructions"] = json!("Be quick.");
                    }
                    _ => return ResponseAction::Forward,
                }
                ResponseAction::Replace(json_of(&result))
            }),
            ..Around::default()
        }
    }
    for revision in REVISIONS {
        on_each_binding(revision, at_server, Around::default, |client, pair| {
            pair.idle();
            let legacy = client.era() == Some(Era::Legacy);
            let session = client.session().unwrap();
            assert_eq!(session.instructions.as_deref(), Some("Be quick."), "{revision}");
            let listed = pair.call(method(client, Method::ToolsList, &json!({}))).unwrap();
            assert_eq!(listed["tools"], json!([]));
            if legacy {
                let pong = pair.call(method(client, Method::Ping, &json!({}))).unwrap();
                assert_eq!(pong, json!({ "pong": 1 }));
                let asked = json!({ "level": "debug" });
                pair.call(method(client, Method::LoggingSetLevel, &asked)).unwrap();
                let asked = json!({ "uri": "a://b" });
                let refused = pair.call(method(client, Method::ResourcesSubscribe, &asked));
                assert!(format!("{:?}", refused.unwrap_err()).contains("not today"));
            } else {
                let discovered = method(client, Method::Discover, &json!({ "x": 1 }));
                let discovered = pair.call(discovered).unwrap();
                // The machine completes the result.
                assert_eq!(discovered["resultType"], "complete");
                let _refused = client.subscribe(SubscriptionFilter::default());
                pair.idle();
                assert!(pair.transcript().contains("not today"));
            }
            let paint = json!({ "name": "paint", "arguments": {} });
            pair.call(method(client, Method::ToolsCall, &paint)).unwrap();
            pair.idle();
            // Neither the level nor the subscription has taken effect.
            assert!(!pair.transcript().contains("notifications/message"), "{revision}");
            assert!(!pair.transcript().contains("resources/updated"), "{revision}");
        });
    }
}

#[test]
fn a_refused_opening_is_not_sent_or_fails() {
    fn refuse() -> Around {
        Around {
            request: Some(|message| match message.method() {
                "initialize" | "server/discover" => {
                    RequestAction::Refuse(ErrorObject::new(ErrorCode(-31_000), "closed"))
                }
                _ => RequestAction::Forward,
            }),
            ..Around::default()
        }
    }
    let opened = |server: &Server, host: &Host| {
        let (client, endpoint) = host.connect(42, Instant::ZERO);
        let mut pair = Pair::new(Stream::new(server.endpoint(42).unwrap(), endpoint));
        pair.run_until_idle();
        assert!(client.session().is_none() && client.close_reason().is_some());
        pair.transcript.outline()
    };
    for revision in REVISIONS {
        let messages = opened(&server().message_middleware(refuse()), &host(revision));
        assert_eq!(messages[1..], ["< error -31000"], "{revision}");
        let messages = opened(&server(), &host(revision).message_middleware(refuse()));
        assert!(messages.is_empty(), "{revision}: {messages:?}");
    }
}

#[test]
fn requests_and_notifications_of_a_server_pass_the_middleware_of_its_host() {
    // Rule: [EXT-028] [EXT-029].
    fn at_host() -> Around {
        Around {
            notification: Some(|message| match message.method() {
                "notifications/message" => NotificationAction::Drop,
                "notifications/progress" => {
                    let mut params: Value = message.params().decode().unwrap();
                    params["message"] = json!("changed");
                    NotificationAction::Replace(json_of(&params))
                }
                _ => NotificationAction::Forward,
            }),
            request: Some(|message| match message.method() {
                "elicitation/create" => RequestAction::Answer(json_of(&json!({
                    "action": "decline"
                }))),
                _ => RequestAction::Forward,
            }),
            ..Around::default()
        }
    }
    for revision in REVISIONS {
        let seen = Lines::default();
        let observed = Arc::clone(&seen);
        let host = host(revision).message_middleware(at_host()).observe(move |event| match event {
            Event::Progress(progress) => {
                observed.lock().unwrap().push(progress.message.clone().unwrap().into_owned());
            }
            Event::Notification(it) if it.method == Method::Message => {
                observed.lock().unwrap().push("log".into());
            }
            Event::InputRequested(_) => observed.lock().unwrap().push("input".into()),
            _ => {}
        });
        let (client, mut pair) = mcp_sansio_test::connect(&server(), &host);
        pair.run_until_idle();
        let legacy = client.era() == Some(Era::Legacy);
        if legacy {
            client.set_log_level(LoggingLevel::Debug).unwrap();
        }
        let call = client.call_tool("paint", &NoArguments {}).on_progress(|_| {});
        let call = if legacy { call } else { call.log_level(LoggingLevel::Debug) };
        pair.run(call).unwrap();
        assert!(pair.transcript.count("notifications/message") > 0);
        let seen = taken(&seen);
        assert!(seen.iter().all(|line| line != "log"), "{revision}: {seen:?}");
        assert!(seen.iter().any(|line| line == "changed"), "{revision}: {seen:?}");
        // A modern server asks in a result.
        assert_eq!(seen.iter().any(|line| line == "input"), !legacy, "{revision}: {seen:?}");
        assert_eq!(pair.transcript.count("decline"), usize::from(legacy));
    }
}

#[test]
fn what_identifies_a_message_cannot_be_changed() {
    // Rule: [EXT-029].
    fn changes() -> Around {
        Around {
            notification: Some(|message| {
                let mut params: Value = message.params().decode().unwrap();
                match message.method() {
                    "notifications/progress" => params["progressToken"] = json!("mine"),
                    "notifications/resources/updated" => params["uri"] = json!("a://c"),
                    "notifications/message" => params["level"] = json!("loud"),
                    // Their end is awaited, so that they are not dropped.
                    "notifications/initialized" => return NotificationAction::Drop,
                    "notifications/subscriptions/acknowledged" => {
                        params["_meta"]["io.modelcontextprotocol/subscriptionId"] = json!(7);
                    }
                    _ => return NotificationAction::Forward,
                }
                NotificationAction::Replace(json_of(&params))
            }),
            request: Some(|message| match message.method() {
                "tools/call" => RequestAction::Replace(json_of(&json!({ "name": "other" }))),
                _ => RequestAction::Forward,
            }),
            response: Some(|response, mut result| {
                match response.method() {
                    Some(Method::ToolsList) => result["resultType"] = json!("task"),
                    Some(Method::ResourcesList) => result["_meta"] = json!(7),
                    _ => return ResponseAction::Forward,
                }
                ResponseAction::Replace(json_of(&result))
            }),
        }
    }
    for revision in REVISIONS {
        on_each_binding(revision, changes, Around::default, |client, pair| {
            let filter = SubscriptionFilter::default().resource_subscriptions(["a://b".into()]);
            let _subscription = client.subscribe(filter);
            pair.idle();
            let legacy = client.era() == Some(Era::Legacy);
            let opened = "subscriptions/acknowledged";
            assert_eq!(pair.transcript().contains(opened), !legacy, "{}", pair.transcript());
            for list in [Method::ToolsList, Method::ResourcesList] {
                let listed = pair.call(method(client, list, &json!({})));
                assert!(format!("{:?}", listed.unwrap_err()).contains("-32603"), "{revision}");
            }
            let paint = json!({ "name": "paint", "arguments": {} });
            let called = pair.call(method(client, Method::ToolsCall, &paint).on_progress(|_| {}));
            assert!(format!("{:?}", called.unwrap_err()).contains("-32603"), "{revision}");
        });
        let only_notifications = || Around { request: None, response: None, ..changes() };
        on_each_binding(revision, only_notifications, Around::default, |client, pair| {
            pair.idle();
            let legacy = client.era() == Some(Era::Legacy);
            let paint = json!({ "name": "paint", "arguments": {} });
            let call = method(client, Method::ToolsCall, &paint).on_progress(|_| {});
            let call = if legacy { call } else { call.log_level(LoggingLevel::Debug) };
            pair.call(call).unwrap();
            pair.idle();
            for dropped in ["notifications/progress", "notifications/message"] {
                assert!(!pair.transcript().contains(dropped), "{revision}: {dropped}");
            }
        });
    }
}

#[test]
fn a_panic_of_middleware_is_an_error_and_the_connection_continues() {
    fn panics() -> Around {
        Around {
            notification: Some(|message| match message.method() {
                "notifications/message" => panic!("broken"),
                _ => NotificationAction::Forward,
            }),
            request: Some(|message| match message.method() {
                "tools/list" => panic!("broken"),
                _ => RequestAction::Forward,
            }),
            response: Some(|response, _| match response.method() {
                Some(Method::ResourcesList) => panic!("broken"),
                _ => ResponseAction::Forward,
            }),
        }
    }
    let check = |server: &Server, host: &Host, at_server: bool| {
        let (client, mut pair) = mcp_sansio_test::connect(server, host);
        if at_server {
            pair.transport.server.as_mut().unwrap().catch_panics(guard());
        } else {
            pair.transport.client.as_mut().unwrap().catch_panics(guard());
        }
        pair.run_until_idle();
        let listed = pair.run(client.list_tools(None)).unwrap_err();
        assert!(format!("{listed:?}").contains("panicked"), "{listed:?}");
        if !at_server {
            let ClientError::NotSent(error) = &listed else { panic!("{listed:?}") };
            assert!(matches!(**error, CommandError::RefusedByMiddleware(_)));
        }
        let listed = pair.run(client.list_resources(None)).unwrap_err();
        assert!(format!("{listed:?}").contains("panicked"), "{listed:?}");
        assert_eq!(
            pair.run(client.list_resource_templates(None)).unwrap().resource_templates.len(),
            0
        );
    };
    let server_with = server().message_middleware(panics());
    check(&server_with, &host(Revision::LATEST), true);
    check(&server(), &host(Revision::LATEST).message_middleware(panics()), false);
}

#[test]
fn the_first_middleware_is_the_outermost_in_both_directions() {
    // Rule: [EXT-034].
    let lines = Lines::default();
    let log = |name| Log { name, lines: Arc::clone(&lines) };
    let early = Around {
        request: Some(|message| match message.method() {
            "ping" => RequestAction::Answer(json_of(&json!({}))),
            _ => RequestAction::Forward,
        }),
        ..Around::default()
    };
    let server = server()
        .message_middleware(log("outer"))
        .message_middleware(early)
        .message_middleware(log("inner"));
    let (client, mut pair) = mcp_sansio_test::connect(&server, &host(Revision::V2025_11_25));
    pair.run_until_idle();
    taken(&lines);
    pair.run(client.list_tools(None)).unwrap();
    let expected = ["outer> tools/list", "inner> tools/list", "inner< result", "outer< result"];
    assert_eq!(taken(&lines), expected);
    // The inner one sees neither the request nor the result.
    pair.run(client.ping()).unwrap();
    assert_eq!(taken(&lines), ["outer> ping", "outer< result"]);
}

#[test]
fn line_breaks_in_changed_messages_do_not_end_a_frame() {
    fn pretty(text: &RawJson<'_>) -> Json {
        let mut value: Value = text.decode().unwrap();
        value["_meta"]["a.b/c"] = json!({ "d": [1, "\n"] });
        RawJson::parse(&serde_json::to_string_pretty(&value).unwrap()).unwrap().into()
    }
    fn breaks() -> Around {
        Around {
            notification: Some(|message| NotificationAction::Replace(pretty(message.params()))),
            request: Some(|message| RequestAction::Replace(pretty(message.params()))),
            response: Some(|_, result| {
                let text = RawJson::from_serialize(&result).unwrap();
                ResponseAction::Replace(pretty(&text))
            }),
        }
    }
    for revision in REVISIONS {
        on_each_binding(revision, breaks, breaks, |client, pair| {
            pair.idle();
            let legacy = client.era() == Some(Era::Legacy);
            if legacy {
                client.set_log_level(LoggingLevel::Debug).unwrap();
                pair.call(method(client, Method::Ping, &json!({}))).unwrap();
            }
            let paint = json!({ "name": "paint", "arguments": {} });
            let call = method(client, Method::ToolsCall, &paint).on_progress(|_| {});
            let call = if legacy { call } else { call.log_level(LoggingLevel::Debug) };
            let painted = pair.call(call).unwrap();
            assert_eq!(painted["_meta"]["a.b/c"], json!({ "d": [1, "\n"] }));
            pair.idle();
            assert!(pair.transcript().contains("notifications/message"), "{revision}");
        });
    }
}

#[test]
fn an_extension_has_middleware_where_the_application_registers_it() {
    // Rule: [EXT-034] [EXT-035].
    let lines = Lines::default();
    let log = |name| Log { name, lines: Arc::clone(&lines) };
    let of_server = Extension::new("com.example/a").unwrap();
    let of_host = Extension::new("com.example/a").unwrap();
    let server = server()
        .message_middleware(log("first"))
        .extension(of_server.message_middleware(log("extension")))
        .message_middleware(log("last"));
    let host = host(Revision::V2025_11_25)
        .message_middleware(log("host"))
        .extension(of_host.message_middleware(log("host extension")));
    let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
    pair.run_until_idle();
    taken(&lines);
    pair.run(client.ping()).unwrap();
    let expected = [
        "host extension> ping",
        "host> ping",
        "first> ping",
        "extension> ping",
        "last> ping",
        "last< result",
        "extension< result",
        "first< result",
        "host< result",
        "host extension< result",
    ];
    assert_eq!(taken(&lines), expected);
}

#[test]
fn changed_messages_are_checked_like_those_of_the_peer() {
    // Rule: [EXT-029].
    fn at_server() -> Around {
        Around {
            request: Some(|message| {
                let text = match message.method() {
                    "tools/list" => r#"{"cursor":"a","cursor":"b"}"#,
                    "resources/list" => r#"{"_meta":7}"#,
                    _ => return RequestAction::Forward,
                };
                RequestAction::Replace(RawJson::parse(text).unwrap().into())
            }),
            ..Around::default()
        }
    }
    // The members of modern metadata stay, so that these are requests of legacy sessions.
    for revision in &REVISIONS[..2] {
        on_each_binding(*revision, at_server, Around::default, |client, pair| {
            for listed in [Method::ToolsList, Method::ResourcesList] {
                let refused = pair.call(method(client, listed, &json!({}))).unwrap_err();
                assert!(format!("{refused:?}").contains("-32602"), "{revision}: {refused:?}");
            }
        });
    }
}

#[test]
fn a_result_whose_metadata_is_null_can_be_changed() {
    let described = Around {
        response: Some(|_, result| {
            let mut value: Value = RawJson::from_serialize(&result).unwrap().decode().unwrap();
            value["seen"] = json!(true);
            ResponseAction::Replace(json_of(&value))
        }),
        ..Around::default()
    };
    let script = mcp_sansio_test::Script::server(Revision::V2025_11_25)
        .expect(r#"{"method":"tools/call"}"#)
        .reply(r#"{"content":[],"_meta":null}"#);
    let host = Host::new("h", "1").revisions(Revisions::only(Revision::V2025_11_25));
    let host = host.message_middleware(described);
    let (client, endpoint) = host.connect(42, Instant::ZERO);
    let mut pair = Pair::new(Stream::new(script, endpoint));
    pair.run(client.opened()).unwrap();
    let params = json!({ "name": "t", "arguments": {} });
    let result = pair.run(method(&client, Method::ToolsCall, &params)).unwrap();
    assert!(result.as_str().contains(r#""seen":true"#), "{result:?}");
}

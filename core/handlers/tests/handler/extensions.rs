//! Extensions: what both sides declare, the gate of their methods, and mistakes in registrations.

use std::sync::{Arc, Mutex};

use mcp_sansio::catalog::CatalogError;
use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::peer::{CloseReason, OpeningFailure};
use mcp_sansio::protocol::{ExtensionError, ExtensionRequirement, Resource, TextResourceContents};
use mcp_sansio::{Capability, ErrorCode, Instant, Revision, Revisions, Side};
use mcp_sansio_handlers::extension::{Extension, ExtensionGateError, ExtensionMethod};
use mcp_sansio_handlers::middleware::{MiddlewareResult, Next, ServerRequest};
use mcp_sansio_handlers::{
    Call, ClientError, HandlerError, Host, HostRequest, NoArguments, ReadResource, Server,
};
use mcp_sansio_test::{Pair, Script, Stream};
use serde_json::{Value, json};

use crate::{connect, connect_host, text};

const ID: &str = "com.example/sums";
const SUM: ExtensionMethod<Numbers, Sum> = ExtensionMethod::new(ID, "sums/add");
const ASK: ExtensionMethod<NoArguments, Sum> =
    ExtensionMethod::new(ID, "sums/ask").sent_by(Side::Server);

/// The revisions at which extensions are declared.
const DECLARED: [Revision; 3] =
    [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

#[derive(serde::Deserialize, serde::Serialize)]
struct Numbers {
    numbers: Vec<i64>,
}

#[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
struct Sum {
    sum: i64,
}

fn sums() -> Extension {
    Extension::new(ID)
        .unwrap()
        .settings(&json!({ "max": 3, "nested": { "nothing": null } }))
        .unwrap()
        .request(&SUM, async |call: Call<Numbers>| {
            if call.arguments.numbers.len() > 3 {
                return Err(HandlerError::invalid_params("too many numbers"));
            }
            Ok(Sum { sum: call.arguments.numbers.iter().sum() })
        })
}

fn server() -> Server {
    Server::new("s", "1")
        .extension(sums())
        .tool("declared", "", |call: Call<NoArguments>| {
            let theirs = call.client_extension("org.example/theirs");
            theirs.map_or_else(|| "nothing".to_owned(), |it| it.as_str().to_owned())
        })
        .tool("sums", "", |call: Call<NoArguments>| call.client_extension(ID).is_some().to_string())
}

fn host() -> Host {
    Host::new("host", "1").extension(Extension::new(ID).unwrap())
}

#[test]
fn a_method_of_an_extension_is_called_with_types_at_every_revision_that_declares_it() {
    // Rule: [EXT-007] [EXT-008] [EXT-009] [EXT-010] [EXT-021] [EXT-025].
    for revision in DECLARED {
        let (client, mut pair) = connect_host(&server(), host(), revision);
        let numbers = Numbers { numbers: vec![1, 2] };
        let sum = pair.run(client.call_extension(&SUM, &numbers)).unwrap();
        assert_eq!(sum, Sum { sum: 3 }, "{revision}");
        let settings = client.session().unwrap().extension(ID).unwrap();
        assert_eq!(settings.as_str(), r#"{"max":3,"nested":{"nothing":null}}"#);
        let numbers = Numbers { numbers: vec![1; 4] };
        let error = pair.run(client.call_extension(&SUM, &numbers)).unwrap_err();
        assert_eq!(error.as_refusal().unwrap().message, "too many numbers");
        let declared = pair.run(client.call_tool("sums", &NoArguments {})).unwrap();
        assert_eq!(text(&declared), "true", "{revision}");
    }
}

#[test]
fn the_middleware_of_extensions_runs_where_the_application_registers_them() {
    // Rule: [EXT-034] [EXT-035].
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let order = Arc::clone(&order);
        async move |request: ServerRequest, next: Next| -> MiddlewareResult {
            order.lock().unwrap().push(name);
            let result = next.run(request).await;
            order.lock().unwrap().push(name);
            result
        }
    };
    // Each adds its own, and can do nothing about those of the others.
    let one = || sums().middleware(note("one outer")).middleware(note("one inner"));
    let other = || Extension::new("com.example/other").unwrap().middleware(note("other"));
    let server = || Server::new("s", "1").tool("t", "", |_: Call<NoArguments>| "t");
    let servers = [
        server().middleware(note("app")).extension(one()).extension(other()),
        server().extension(other()).middleware(note("app")).extension(one()),
    ];
    let expected =
        [["app", "one outer", "one inner", "other"], ["other", "app", "one outer", "one inner"]];
    for (server, expected) in servers.iter().zip(expected) {
        for revision in DECLARED {
            let (client, mut pair) = connect(server, revision);
            pair.run(client.call_tool("t", &NoArguments {})).unwrap();
            let ran = std::mem::take(&mut *order.lock().unwrap());
            let both: Vec<_> = expected.iter().chain(expected.iter().rev()).copied().collect();
            assert_eq!(ran, both, "{revision}");
        }
    }
    // An extension that is refused adds nothing.
    let twice = server().extension(one()).extension(one());
    twice.endpoint(7).unwrap_err();
}

#[test]
fn the_first_revisions_have_no_extensions() {
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
        let (client, mut pair) = connect_host(&server(), host(), revision);
        assert!(client.session().unwrap().extension(ID).is_none());
        assert!(!pair.transcript.to_string().contains("extensions"), "{}", pair.transcript);
        let error = pair.run(client.call_extension(&SUM, &Numbers { numbers: vec![] }));
        assert!(
            matches!(error, Err(ClientError::Extension(ExtensionGateError::NotAtRevision { .. }))),
            "{error:?}"
        );
    }
}

#[test]
fn a_handler_sees_unknown_extensions_of_the_client_as_they_were_sent() {
    // Rule: [EXT-011].
    let settings = json!({ "a": [null, { "b": null }], "c": "\u{e9}" });
    for revision in DECLARED {
        let theirs = Extension::new("org.example/theirs").unwrap().settings(&settings).unwrap();
        let (client, mut pair) =
            connect_host(&server(), Host::new("h", "1").extension(theirs), revision);
        let declared = pair.run(client.call_tool("declared", &NoArguments {})).unwrap();
        assert_eq!(text(&declared), settings.to_string(), "{revision}");
        let (client, mut pair) = connect(&server(), revision);
        let declared = pair.run(client.call_tool("declared", &NoArguments {})).unwrap();
        assert_eq!(text(&declared), "nothing", "{revision}");
    }
}

#[test]
fn a_client_that_did_not_declare_an_extension_is_refused_with_its_name() {
    // Rule: [EXT-012] [EXT-014] [EXT-015].
    for revision in DECLARED {
        let (client, mut pair) = connect(&server(), revision);
        let params = RawJson::parse(r#"{"numbers":[1]}"#).unwrap();
        let error = pair.run(client.call_other(SUM.name(), params)).unwrap_err();
        let error = error.as_refusal().unwrap();
        if revision < Revision::V2026_07_28 {
            assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND);
            continue;
        }
        assert_eq!(error.code, ErrorCode(-32021));
        let data: Value = error.data.as_ref().unwrap().decode().unwrap();
        let needed = json!({ "requiredCapabilities": { "extensions": { ID: {} } } });
        assert_eq!(data, needed);
    }
}

#[test]
fn a_method_for_any_client_needs_no_declaration() {
    const OPEN: ExtensionMethod<NoArguments, Sum> =
        ExtensionMethod::new("com.example/open", "open/sum").from_any_client();
    let open = Extension::new("com.example/open").unwrap();
    let open = open.request(&OPEN, |_: Call<NoArguments>| Sum { sum: 0 });
    let (client, mut pair) = connect(&Server::new("s", "1").extension(open), Revision::LATEST);
    let result = pair.run(client.call_other(OPEN.name(), RawJson::EMPTY_OBJECT)).unwrap();
    assert_eq!(result.decode::<Sum>().unwrap(), Sum { sum: 0 });
}

#[test]
fn a_method_is_not_sent_unless_both_sides_declared_its_extension() {
    // Rule: [EXT-006] [EXT-013].
    for revision in DECLARED {
        let numbers = Numbers { numbers: vec![] };
        let plain = Server::new("s", "1").tool("t", "", |_: Call<NoArguments>| "text");
        for (server, host, missing) in
            [(plain, host(), Side::Server), (server(), Host::new("h", "1"), Side::Client)]
        {
            let (client, mut pair) = connect_host(&server, host, revision);
            let error = pair.run(client.call_extension(&SUM, &numbers)).unwrap_err();
            let ClientError::Extension(ExtensionGateError::NotDeclared { side, .. }) = error else {
                panic!("{error}")
            };
            assert_eq!(side, missing, "{revision}");
            assert!(!pair.transcript.to_string().contains(SUM.name()));
        }
    }
}

#[test]
fn null_is_not_a_declaration() {
    // Rule: [EXT-006].
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { ID: null } },
    });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": SUM.name(),
        "params": { "numbers": [], "_meta": meta } });
    let client = Script::new().send(&request.to_string()).expect(r#"{"error":{"code":-32021}}"#);
    let mut pair = Pair::new(Stream::new(server().endpoint(7).unwrap(), client));
    pair.run_until_idle();
    pair.transport.client.expect("the script").assert_done();
}

#[test]
fn parameters_that_do_not_fit_the_type_are_refused() {
    // Rule: [EXT-016].
    for revision in DECLARED {
        let (client, mut pair) = connect_host(&server(), host(), revision);
        let params = RawJson::parse(r#"{"numbers":"all"}"#).unwrap();
        let error = pair.run(client.call_other(SUM.name(), params)).unwrap_err();
        assert_eq!(error.as_refusal().unwrap().code, ErrorCode::INVALID_PARAMS);
    }
}

#[test]
fn nothing_is_declared_that_is_not_registered() {
    // Rule: [EXT-004] [EXT-018].
    let plain = Server::new("s", "1").tool("t", "", |_: Call<NoArguments>| "text");
    let host = Host::new("h", "1");
    assert!(plain.extensions().is_empty() && host.extensions().is_empty());
    for revision in DECLARED {
        let (_, pair) = connect_host(&plain, host.clone(), revision);
        assert!(!pair.transcript.to_string().contains("extensions"), "{}", pair.transcript);
    }
    let server = server();
    let [registered] = server.extensions() else { panic!("{:?}", server.extensions()) };
    assert_eq!((registered.id(), registered.methods().collect::<Vec<_>>()), (ID, vec!["sums/add"]));
    assert_eq!(self::host().extensions()[0].settings().as_str(), "{}");
}

fn problem(server: &Server) -> ExtensionError {
    match server.endpoint(7) {
        Err(CatalogError::Extension(problem)) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_identifier_has_a_vendor_and_a_name() {
    // Rule: [EXT-001].
    for id in ["sums", "", "/sums", "1.example/sums", "com.example/-"] {
        assert!(Extension::<mcp_sansio_handlers::ThreadSafe>::new(id).is_err(), "{id}");
        assert!(Extension::<mcp_sansio_handlers::ThreadSafe>::new(id).is_err(), "{id}");
    }
    let settings = Extension::<mcp_sansio_handlers::ThreadSafe>::new(ID).unwrap();
    assert!(matches!(settings.settings("text"), Err(ExtensionError::InvalidSettings { .. })));
}

#[test]
fn an_identifier_is_registered_once() {
    // Rule: [EXT-020].
    let other = Extension::new("com.example/other").unwrap();
    assert!(server().extension(other).endpoint(7).is_ok());
    let again = server().extension(Extension::new(ID).unwrap());
    assert_eq!(problem(&again), ExtensionError::Duplicate { id: ID.into() });
    let tasks = Extension::new("io.modelcontextprotocol/tasks").unwrap();
    let tasks = Server::new("s", "1").tasks(crate::task_client::settings()).extension(tasks);
    assert!(matches!(problem(&tasks), ExtensionError::Duplicate { .. }));
}

#[test]
fn the_name_of_a_method_is_taken_once() {
    // Rule: [EXT-026] [EXT-027].
    const OTHER: &str = "com.example/other";
    const SAME: ExtensionMethod<NoArguments, Sum> = ExtensionMethod::new(OTHER, "sums/add");
    const CORE: ExtensionMethod<NoArguments, Sum> = ExtensionMethod::new(OTHER, "tools/call");
    const NOTE: ExtensionMethod<NoArguments, Sum> =
        ExtensionMethod::new(OTHER, "notifications/progress");
    let other = |method| {
        let other = Extension::new(OTHER).unwrap();
        other.request(method, |_: Call<NoArguments>| Sum { sum: 0 })
    };
    let echo = |call: Call<Json>| call.arguments.clone();
    for server in [
        server().extension(other(&SAME)),
        Server::new("s", "1").extension(other(&CORE)),
        Server::new("s", "1").extension(other(&NOTE)),
        Server::new("s", "1").request("sums/add", echo).extension(sums()),
        Server::new("s", "1").extension(sums()).request("sums/add", echo),
        Server::new("s", "1").extension(sums().request(&SUM, |_: Call<Numbers>| Sum { sum: 0 })),
    ] {
        assert!(matches!(problem(&server), ExtensionError::MethodTaken { .. }), "{server:?}");
    }
    let foreign = Server::new("s", "1")
        .extension(Extension::new(OTHER).unwrap().request(&SUM, |_: Call<Numbers>| Sum { sum: 0 }));
    assert!(matches!(problem(&foreign), ExtensionError::ForeignMethod { .. }));
}

#[test]
fn a_side_registers_only_methods_of_the_other_and_its_own_middleware() {
    let answers =
        || Extension::new(ID).unwrap().request(&ASK, |_: Call<NoArguments>| Sum { sum: 0 });
    let foreign = ExtensionError::ForeignMethod { id: ID.into(), method: ASK.name().into() };
    assert_eq!(problem(&Server::new("s", "1").extension(answers())), foreign);
    let refused = |extension| {
        let (client, endpoint) = Host::new("h", "1").extension(extension).connect(7, Instant::ZERO);
        let mut pair = Pair::new(Stream::new(server().endpoint(7).unwrap(), endpoint));
        match pair.run(client.opened()).unwrap_err() {
            CloseReason::OpeningFailed(OpeningFailure::Extension(problem)) => *problem,
            reason => panic!("{reason}"),
        }
    };
    let foreign = ExtensionError::ForeignMethod { id: ID.into(), method: SUM.name().into() };
    assert_eq!(refused(sums()), foreign);
    let layer =
        async |request: ServerRequest, next: Next| -> MiddlewareResult { next.run(request).await };
    let layered = refused(Extension::new(ID).unwrap().middleware(layer));
    assert!(layered.to_string().contains("use `message_middleware`"), "{layered}");
}

#[test]
fn requirements_are_checked_when_all_is_registered() {
    // Rule: [EXT-022] [EXT-023] [EXT-024].
    let needs = || {
        let needs = Extension::new("com.example/needs").unwrap();
        needs.requires(Capability::Resources).requires_extension(ID)
    };
    let resource = |server: Server| {
        server.resource(Resource::new("mem://a", "a"), |_: Call<ReadResource>| {
            TextResourceContents::new("mem://a", "text")
        })
    };
    let unmet = |requirement| ExtensionError::Unmet { id: "com.example/needs".into(), requirement };
    let alone = Server::new("s", "1").extension(needs());
    let capability = ExtensionRequirement::Capability(Capability::Resources);
    assert_eq!(problem(&alone), unmet(capability));
    let extension = ExtensionRequirement::Extension(ID.into());
    assert_eq!(problem(&resource(alone)), unmet(extension));
    // Requirements may follow.
    assert!(
        resource(Server::new("s", "1").extension(needs()).extension(sums())).endpoint(7).is_ok()
    );
}

#[test]
fn a_host_with_an_unmet_requirement_sends_nothing() {
    // Rule: [EXT-019] [EXT-023].
    let needs = || Extension::new("com.example/needs").unwrap().requires(Capability::Roots);
    let (client, endpoint) = Host::new("h", "1").extension(needs()).connect(7, Instant::ZERO);
    let mut pair = Pair::new(Stream::new(server().endpoint(7).unwrap(), endpoint));
    let reason = pair.run(client.opened()).unwrap_err();
    let CloseReason::OpeningFailed(OpeningFailure::Extension(problem)) = reason else {
        panic!("{reason}")
    };
    let requirement = ExtensionRequirement::Capability(Capability::Roots);
    assert_eq!(*problem, ExtensionError::Unmet { id: "com.example/needs".into(), requirement });
    assert!(pair.transcript.lines().is_empty(), "{}", pair.transcript);
    let met = Host::new("h", "1").extension(needs()).on_roots(|_: HostRequest<()>| vec![]);
    connect_host(&server(), met, Revision::LATEST);
}

#[test]
fn a_host_answers_requests_of_an_extension_that_the_server_declared() {
    // Rule: [EXT-025].
    let revision = Revision::V2025_11_25;
    let ask = json!({ "jsonrpc": "2.0", "id": 7, "method": ASK.name(), "params": {} }).to_string();
    let asked = |extensions: Value| {
        let opened = json!({ "protocolVersion": revision.as_str(),
            "capabilities": { "extensions": extensions },
            "serverInfo": { "name": "script", "version": "1" } });
        Script::new()
            .expect(r#"{"method":"initialize","params":{"capabilities":{"extensions":{"com.example/sums":{}}}}}"#)
            .reply(&opened.to_string())
            .expect(r#"{"method":"notifications/initialized"}"#)
            .send(&ask)
    };
    for (server, extension) in [
        (asked(json!({ ID: {} })).expect(r#"{"id":7,"result":{"sum":5}}"#), true),
        (asked(json!({ ID: {} })).expect(r#"{"id":7,"error":{"code":-32601}}"#), false),
        (asked(json!({})).expect(r#"{"id":7,"error":{"code":-32601}}"#), true),
    ] {
        let mut registered = Extension::new(ID).unwrap();
        if extension {
            registered =
                registered.request(&ASK, async |_: HostRequest<NoArguments>| Sum { sum: 5 });
        }
        let host = Host::new("h", "1").revisions(Revisions::only(revision)).extension(registered);
        let (client, endpoint) = host.connect(7, Instant::ZERO);
        let mut pair = Pair::new(Stream::new(server, endpoint));
        pair.run(client.opened()).unwrap();
        pair.run_until_idle();
        pair.transport.server.expect("the script").assert_done();
    }
}

#[cfg(feature = "http")]
#[test]
fn over_http_a_missing_extension_is_a_bad_request() {
    // Rule: [EXT-015].
    use mcp_sansio::http::{HttpServerOptions, RequestHead, ServerTransmit};
    use mcp_sansio_handlers::endpoint::HandlerPoll;

    let mut http = server().http(HttpServerOptions::new(), [7; 32], 7).unwrap();
    let status = |http: &mut mcp_sansio_handlers::endpoint::HttpServer, extensions: Value| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "extensions": extensions },
        });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": SUM.name(),
            "params": { "numbers": [], "_meta": meta } });
        let mut head = RequestHead::new("POST", "/mcp");
        head.field("host", b"localhost");
        head.field("content-type", b"application/json");
        head.field("accept", b"application/json, text/event-stream");
        head.field("mcp-protocol-version", b"2026-07-28");
        head.field("mcp-method", SUM.name().as_bytes());
        let body = message.to_string();
        let caller = mcp_sansio::Caller::ANONYMOUS;
        let (exchange, call) = http.handle_request(&head, body.as_bytes(), &caller, Instant::ZERO);
        match call.expect("a handler").run() {
            HandlerPoll::Ready(output) => http.finish(output, Instant::ZERO),
            HandlerPoll::Pending(mut running) => {
                let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
                let polled = std::pin::Pin::new(&mut running).poll_at(&mut cx, Instant::ZERO);
                let std::task::Poll::Ready(Some(output)) = polled else { panic!("it waits") };
                http.finish(output, Instant::ZERO);
            }
        }
        match http.poll_transmit(exchange, Instant::ZERO) {
            Some(ServerTransmit::Respond(response)) => response.head.status.0,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(status(&mut http, json!({})), 400);
    assert_eq!(status(&mut http, json!({ ID: {} })), 200);
}

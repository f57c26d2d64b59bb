//! Functions around the handlers of a server.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_sansio::jsonrpc::{ErrorObject, Json, RawJson, RequestId};
use mcp_sansio::protocol::{
    CallToolResult, CompleteParams, CompletionArgument, ElicitParams, ElicitResult, ElicitSchema,
    PromptReference, Resource, TaskSupport, TextResourceContents,
};
use mcp_sansio::{ErrorCode, Method, Revision, Revisions};
use mcp_sansio_handlers::endpoint::Endpoint;
use mcp_sansio_handlers::handler::ResultBody;
use mcp_sansio_handlers::middleware::{MiddlewareResult, Next, ServerRequest};
use mcp_sansio_handlers::{
    Call, Client, Elicit, HandlerError, Host, HostRequest, Local, NoArguments, ReadResource, Server,
};
use mcp_sansio_test::{Pair, Transport};
use serde_json::json;

use crate::panics::guard;
use crate::task_client::{Gate, TaskClient, settings};
use crate::{ASKING, Place, connect, connect_host, text};

/// The lines that middleware and handlers write.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Adds middleware that notes the beginning and the end of each request.
    fn around(&self, server: Server, name: &'static str) -> Server {
        let log = self.clone();
        server.middleware(move |request: ServerRequest, next: Next| async move {
            let target = request.target().map(String::from).unwrap_or_default();
            log.note(format!("{name} {} {target}", request.method().as_str()));
            let result = next.run(request).await;
            log.note(format!("{name} {}", if result.is_ok() { "ok" } else { "error" }));
            result
        })
    }
}

/// Registers a handler for each kind of request.
fn server(log: &Log) -> Server {
    let note = |log: &Log, line: &'static str| {
        let log = log.clone();
        move || log.note(line)
    };
    let (tool, prompt, read) = (note(log, "tool"), note(log, "prompt"), note(log, "read"));
    let (complete, other) = (note(log, "complete"), note(log, "other"));
    Server::new("s", "1")
        .tool("greet", "", move |call: Call<Place>| {
            tool();
            format!("hello {}", call.arguments.location)
        })
        .prompt("ask", "", move |_: Call<NoArguments>| {
            prompt();
            String::from("why")
        })
        .resource(Resource::new("mem://a", "a"), move |call: Call<ReadResource>| {
            read();
            TextResourceContents::new(call.arguments.uri.clone(), "text")
        })
        .completion(move |_: Call<CompleteParams>| {
            complete();
            vec![String::from("Oslo")]
        })
        .request("x/other", move |_: Call<NoArguments>| {
            other();
            Json::from_serialize(&json!({ "other": true })).unwrap()
        })
}

fn oslo() -> Place {
    Place { location: "Oslo".into() }
}

fn calls_everything<T: Transport>(client: &Client, pair: &mut Pair<T>) {
    pair.run(client.call_tool("greet", &oslo())).unwrap();
    pair.run(client.get_prompt("ask", [])).unwrap();
    pair.run(client.read_resource("mem://a")).unwrap();
    let argument = CompletionArgument::new("city", "Os");
    let params = CompleteParams::new(PromptReference::new("ask"), argument);
    if client.session().unwrap().revision >= Revision::V2025_03_26 {
        pair.run(client.complete(&params)).unwrap();
    }
    pair.run(client.call_other("x/other", RawJson::EMPTY_OBJECT)).unwrap();
}

fn everything_once(revision: Revision) -> Vec<String> {
    let mut expected = Vec::new();
    for (request, handler) in [
        ("tools/call greet", "tool"),
        ("prompts/get ask", "prompt"),
        ("resources/read mem://a", "read"),
        ("completion/complete ask", "complete"),
        ("x/other ", "other"),
    ] {
        if handler != "complete" || revision >= Revision::V2025_03_26 {
            expected.push(format!("outer {request}"));
            expected.push(format!("inner {request}"));
            expected.extend([handler, "inner ok", "outer ok"].map(String::from));
        }
    }
    expected
}

#[test]
fn middleware_runs_in_registration_order_around_every_kind_of_request() {
    for revision in Revision::ALL {
        let log = Log::default();
        let server = log.around(log.around(server(&log), "outer"), "inner");
        let (client, mut pair) = connect(&server, revision);
        calls_everything(&client, &mut pair);
        assert_eq!(log.take(), everything_once(revision), "{revision}");
    }
}

#[cfg(feature = "http")]
#[test]
fn middleware_runs_the_same_on_http() {
    for revision in Revision::ALL.into_iter().filter(|it| *it >= Revision::V2025_03_26) {
        let log = Log::default();
        let server = log.around(log.around(server(&log), "outer"), "inner");
        let host = Host::new("h", "1").revisions(Revisions::only(revision));
        let (client, mut pair) = mcp_sansio_test::connect_http(&server, &host, None);
        calls_everything(&client, &mut pair);
        assert_eq!(log.take(), everything_once(revision), "{revision}");
    }
}

#[test]
fn a_request_that_the_protocol_refuses_does_not_reach_middleware() {
    let log = Log::default();
    let server = log.around(server(&log), "outer");
    let (client, mut pair) = connect(&server, Revision::LATEST);
    pair.run(client.call_tool("unknown", &oslo())).unwrap_err();
    pair.run(client.read_resource("mem://unknown")).unwrap_err();
    pair.run(client.call_other("x/unknown", RawJson::EMPTY_OBJECT)).unwrap_err();
    pair.run(client.list_tools(None)).unwrap();
    assert_eq!(log.take(), [""; 0]);
}

#[test]
fn middleware_sees_what_the_machine_knows_of_the_request() {
    let server = server(&Log::default()).middleware(async |request: ServerRequest, next: Next| {
        assert_eq!(*request.method(), Method::ToolsCall);
        assert_eq!(request.target().as_deref(), Some("greet"));
        assert_eq!(request.arguments().unwrap().as_str(), r#"{"location":"Oslo"}"#);
        assert!(request.params().get("name").is_some());
        assert_eq!(request.revision(), Revision::LATEST);
        assert!(request.caller().is_owner() && request.principal().is_none());
        assert!(matches!(request.id(), Some(RequestId::Number(_))));
        assert!(request.item().is_some());
        assert!(!request.is_read_only() && !request.is_task() && request.inputs().is_empty());
        assert!(!format!("{request:?} {next:?}").contains("Oslo"));
        next.run(request).await
    });
    let (client, mut pair) = connect(&server, Revision::LATEST);
    assert_eq!(text(&pair.run(client.call_tool("greet", &oslo())).unwrap()), "hello Oslo");
}

#[test]
fn middleware_can_answer_without_the_handler() {
    let log = Log::default();
    let answers = |request: ServerRequest, next: Next| async move {
        if request.target().as_deref() == Some("greet") {
            return Ok(ResultBody::Tool(CallToolResult::text("closed")));
        }
        next.run(request).await
    };
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server(&log).middleware(answers), revision);
        assert_eq!(text(&pair.run(client.call_tool("greet", &oslo())).unwrap()), "closed");
        assert_eq!(log.take(), [""; 0]);
        pair.run(client.get_prompt("ask", [])).unwrap();
        assert_eq!(log.take(), ["prompt"]);
    }
}

#[test]
fn an_error_of_middleware_is_sent_like_one_of_the_handler() {
    // Rule: [TOOL-008].
    let failing = async |_: ServerRequest, _: Next| -> MiddlewareResult {
        Err(HandlerError::failed("no disk"))
    };
    let (client, mut pair) =
        connect(&server(&Log::default()).middleware(failing), Revision::LATEST);
    let result = pair.run(client.call_tool("greet", &oslo())).unwrap();
    assert_eq!((text(&result), result.is_error), ("no disk", Some(true)));
    let error = pair.run(client.get_prompt("ask", [])).unwrap_err();
    assert_eq!(error.as_refusal().unwrap().code, ErrorCode::INTERNAL_ERROR);

    let refusing = async |_: ServerRequest, _: Next| -> MiddlewareResult {
        Err(HandlerError::Protocol(ErrorObject::new(ErrorCode(77), "no")))
    };
    let (client, mut pair) =
        connect(&server(&Log::default()).middleware(refusing), Revision::LATEST);
    let error = pair.run(client.call_tool("greet", &oslo())).unwrap_err();
    assert_eq!(error.as_refusal().unwrap().code, ErrorCode(77));
}

#[test]
fn middleware_can_call_the_handler_again() {
    let tries = Arc::new(Mutex::new(0));
    let server = Server::new("s", "1")
        .middleware(async |request: ServerRequest, next: Next| {
            for pause in [1, 2, 4] {
                match next.run(request.clone()).await {
                    Ok(ResultBody::Tool(result)) if result.is_error == Some(true) => {}
                    result => return result,
                }
                request.sleep(Duration::from_secs(pause)).await;
            }
            next.run(request).await
        })
        .tool("flaky", "", move |_: Call<NoArguments>| {
            let tries = Arc::clone(&tries);
            async move {
                *tries.lock().unwrap() += 1;
                if *tries.lock().unwrap() < 3 {
                    return Err(HandlerError::failed("busy"));
                }
                Ok("at last")
            }
        });
    let (client, mut pair) = connect(&server, Revision::LATEST);
    assert_eq!(text(&pair.run(client.call_tool("flaky", &NoArguments {})).unwrap()), "at last");
    assert_eq!(pair.clock().elapsed(), Duration::from_secs(3));
}

#[test]
fn a_panic_of_the_handler_is_an_error_for_middleware() {
    let log = Log::default();
    let server = log
        .around(Server::new("s", "1"), "outer")
        .tool("plain", "", |_: Call<NoArguments>| -> &str { panic!("plain") })
        .tool("later", "", async |_: Call<NoArguments>| -> &str { panic!("later") });
    let (client, mut pair) = connect(&server, Revision::LATEST);
    pair.transport.server.as_mut().unwrap().catch_panics(guard());
    for tool in ["plain", "later"] {
        let error = pair.run(client.call_tool(tool, &NoArguments {})).unwrap_err();
        assert_eq!(error.as_refusal().unwrap().code, ErrorCode::INTERNAL_ERROR);
        assert_eq!(log.take(), [format!("outer tools/call {tool}"), "outer error".into()]);
    }
}

#[test]
fn a_panic_of_middleware_is_answered_with_an_error() {
    let server = server(&Log::default())
        .middleware(async |_: ServerRequest, _: Next| -> MiddlewareResult { panic!("early") });
    let (client, mut pair) = connect(&server, Revision::LATEST);
    pair.transport.server.as_mut().unwrap().catch_panics(guard());
    let error = pair.run(client.call_tool("greet", &oslo())).unwrap_err();
    assert_eq!(error.as_refusal().unwrap().code, ErrorCode::INTERNAL_ERROR);
}

/// Notes when it is dropped.
struct Dropped(Log);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.note("dropped");
    }
}

#[test]
fn a_cancelled_request_drops_middleware_and_its_handler() {
    // Rule: [CANC-017].
    let log = Log::default();
    let inner = log.clone();
    let server =
        log.around(Server::new("s", "1"), "outer").tool("wait", "", move |_: Call<NoArguments>| {
            let dropped = Dropped(inner.clone());
            async move {
                std::future::pending::<()>().await;
                drop(dropped);
            }
        });
    for revision in [Revision::V2025_06_18, Revision::LATEST] {
        let (client, mut pair) = connect(&server, revision);
        let call = pair.start(client.call_tool("wait", &NoArguments {}));
        assert_eq!(log.take(), ["outer tools/call wait"]);
        drop(call);
        pair.run_until_idle();
        assert_eq!(log.take(), ["dropped"]);
    }
}

#[test]
fn a_cancelled_sleep_leaves_no_timer() {
    let server = Server::new("s", "1")
        .middleware(async |request: ServerRequest, next: Next| {
            request.sleep(Duration::from_secs(5)).await;
            next.run(request).await
        })
        .tool("greet", "", |_: Call<NoArguments>| "hello");
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let call = pair.start(client.call_tool("greet", &NoArguments {}));
    let timer =
        |pair: &mcp_sansio_test::StreamPair| pair.transport.server.as_ref().unwrap().poll_timeout();
    assert_eq!(timer(&pair), Some(pair.now() + Duration::from_secs(5)));
    drop(call);
    pair.run_until_idle();
    assert_eq!(timer(&pair), None);
    assert_eq!(text(&pair.run(client.call_tool("greet", &NoArguments {})).unwrap()), "hello");
    assert_eq!(timer(&pair), None);
}

#[test]
fn each_round_of_input_requests_passes_middleware() {
    let log = Log::default();
    let server = log.around(Server::new("s", "1"), "outer").tool(
        "book",
        "",
        async |call: Call<NoArguments>| match call.input::<serde_json::Value>("sure")? {
            None => call
                .require_input("sure", Elicit::form_with("Sure?", ElicitSchema::new()))
                .into_result(),
            Some(_) => Ok("booked"),
        },
    );
    for revision in ASKING {
        let host = Host::new("h", "1")
            .on_elicit(|_: HostRequest<ElicitParams>| ElicitResult::accept(Default::default()));
        let (client, mut pair) = connect_host(&server, host, revision);
        assert_eq!(text(&pair.run(client.call_tool("book", &NoArguments {})).unwrap()), "booked");
        let round = |result| ["outer tools/call book".into(), format!("outer {result}")];
        assert_eq!(log.take(), [round("error"), round("ok")].concat(), "{revision}");
    }
}

#[test]
fn local_middleware_needs_no_send() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let shared = Rc::clone(&seen);
    let server = Server::local("s", "1")
        .middleware(async move |request: ServerRequest, next: Next<Local>| {
            shared.borrow_mut().push(request.method().as_str().to_owned());
            next.run(request).await
        })
        .tool("greet", "", |_: Call<NoArguments>| "hello");
    let (client, mut pair) = connect(&server, Revision::LATEST);
    assert_eq!(text(&pair.run(client.call_tool("greet", &NoArguments {})).unwrap()), "hello");
    assert_eq!(*seen.borrow(), ["tools/call"]);
}

// ---------------------------------------------------------------------- tasks

/// Adds a tool that becomes a task and waits for the gate.
fn with_task(server: Server, gate: &Gate) -> Server {
    let gate = gate.clone();
    server.tasks(settings()).tool("slow", "", move |call: Call<NoArguments>| {
        let gate = gate.clone();
        async move {
            call.run_as_task();
            gate.passed().await;
            "slow"
        }
    })
}

#[test]
fn a_handler_that_becomes_a_task_stays_inside_its_middleware() {
    // Rule: [TASK-026].
    let (log, gate) = (Log::default(), Gate::default());
    let server = with_task(log.around(Server::new("s", "1"), "outer"), &gate);
    let mut client = TaskClient::new(&server);
    let task = client.task("slow");
    assert_eq!(client.status(&task), "working");
    assert_eq!(log.take(), ["outer tools/call slow"]);
    gate.open();
    client.pump();
    assert_eq!(client.status(&task), "completed");
    assert_eq!(log.take(), ["outer ok"]);
}

#[test]
fn a_cancelled_task_drops_its_middleware() {
    let (log, gate) = (Log::default(), Gate::default());
    let dropped = log.clone();
    let server =
        Server::new("s", "1").middleware(move |request: ServerRequest, next: Next| async move {
            let guard = Dropped(dropped);
            let result = next.run(request).await;
            drop(guard);
            result
        });
    let mut client = TaskClient::new(&with_task(server, &gate));
    let task = client.task("slow");
    assert_eq!(log.take(), [""; 0]);
    client.cancel(&task);
    assert_eq!(log.take(), ["dropped"]);
}

#[test]
fn a_task_that_its_client_requests_passes_middleware() {
    // Rule: [TASK-001].
    let (log, gate) = (Log::default(), Gate::default());
    let server = with_task(log.around(Server::new("s", "1"), "outer"), &gate);
    let server = server.task_support("slow", TaskSupport::Optional).middleware(
        async |request: ServerRequest, next: Next| {
            assert!(request.is_task());
            next.run(request).await
        },
    );
    let (client, mut pair) = connect(&server, Revision::V2025_11_25);
    let tool = pair.run(client.all_tools()).unwrap().remove(0);
    let task = pair.run(client.call_tool_as_task(&tool, &NoArguments {})).unwrap();
    gate.open();
    assert_eq!(text(&pair.run(task.result()).unwrap()), "slow");
    assert_eq!(log.take(), ["outer tools/call slow", "outer ok"]);
}

// ---------------------------------------------------------------------- outside of the endpoint

/// Counts wake-ups.
#[cfg(feature = "http")]
#[derive(Default)]
struct Count(std::sync::atomic::AtomicUsize);

#[cfg(feature = "http")]
impl std::task::Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[cfg(feature = "http")]
#[test]
fn a_handler_on_http_tells_the_driver_of_its_deadline_and_sees_the_time_of_its_poll() {
    use std::pin::Pin;
    use std::sync::atomic::Ordering;
    use std::task::{Context, Poll, Waker};

    use mcp_sansio::http::{HttpServerOptions, RequestHead};
    use mcp_sansio::{Caller, Instant};
    use mcp_sansio_handlers::endpoint::HandlerPoll;

    let server = Server::new("s", "1")
        .middleware(async |request: ServerRequest, next: Next| {
            request.sleep(Duration::from_secs(5)).await;
            next.run(request).await
        })
        .tool("greet", "", |_: Call<NoArguments>| "hello");
    let mut server = server.http(HttpServerOptions::new(), [7; 32], 7).unwrap();
    let (driver, handler) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let wakers = [Waker::from(Arc::clone(&driver)), Waker::from(Arc::clone(&handler))];
    let [mut driver_cx, mut handler_cx] = wakers.each_ref().map(Context::from_waker);
    server.poll_handlers(&mut driver_cx, Instant::ZERO);

    let params = json!({ "name": "greet", "arguments": {} });
    let body = crate::task_client::request(1, "tools/call", params, &json!({}));
    let mut head = RequestHead::new("POST", "/mcp");
    head.field("host", b"localhost");
    head.field("content-type", b"application/json");
    head.field("accept", b"application/json, text/event-stream");
    head.field("mcp-protocol-version", b"2026-07-28");
    head.field("mcp-method", b"tools/call");
    head.field("mcp-name", b"greet");
    let (_, call) =
        server.handle_request(&head, body.as_bytes(), &Caller::ANONYMOUS, Instant::ZERO);
    let HandlerPoll::Pending(mut running) = call.unwrap().run() else { panic!("it waits") };

    // Polled three seconds after the last input of the server.
    let [three, eight] = [3000, 8000].map(Instant::from_millis);
    let polled = Pin::new(&mut running).poll_at(&mut handler_cx, three);
    assert!(polled.is_pending());
    server.track(&running);
    assert_eq!(driver.0.load(Ordering::SeqCst), 1);
    // The machine has deadlines of its own, which do not end the sleep.
    while let Some(due) = server.poll_timeout().filter(|due| *due < eight) {
        server.handle_timeout(due);
        assert!(server.poll_timeout().is_none_or(|next| next > due));
    }
    assert_eq!(server.poll_timeout(), Some(eight));
    assert_eq!(handler.0.load(Ordering::SeqCst), 0);

    server.handle_timeout(eight);
    assert_eq!(handler.0.load(Ordering::SeqCst), 1);
    let Poll::Ready(Some(output)) = Pin::new(&mut running).poll_at(&mut handler_cx, eight) else {
        panic!("the sleep is over")
    };
    server.finish(output, eight);
    assert!(server.poll_timeout().is_none_or(|next| next > eight));
}

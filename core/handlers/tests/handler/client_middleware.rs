//! Middleware around the calls of a client.

use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::peer::Event;
use mcp_sansio::protocol::{ElicitParams, ElicitResult, Resource, TextResourceContents};
use mcp_sansio::{Instant, Revision, Revisions};
use mcp_sansio_handlers::middleware::{
    AccessLog, Calls, ClientRequest, MiddlewareResult, Next, RateLimit,
};
use mcp_sansio_handlers::{
    Call, Client, ClientError, Elicit, HandlerError, Host, HostRequest, NoArguments, ReadResource,
    Server,
};
use mcp_sansio_test::{Pair, Transport};

use crate::task_client::Gate;
use crate::{ASKING, Place, connect_host, text};

const SECOND: Duration = Duration::from_secs(1);

type Log = Arc<Mutex<Vec<String>>>;

/// A middleware that logs what passes it under its name.
fn logged(
    name: &'static str,
    log: &Log,
) -> impl Fn(ClientRequest, Next<Calls>) -> Logged + Clone + use<> {
    let log = Arc::clone(log);
    move |request, next| {
        let log = Arc::clone(&log);
        Box::pin(async move {
            let what = format!("{name} {} {:?}", request.method(), request.target());
            log.lock().unwrap().push(format!("> {what}"));
            let result = next.run(request).await;
            let end = if result.is_ok() { "ok" } else { "failed" };
            log.lock().unwrap().push(format!("< {name} {end}"));
            result
        })
    }
}

type Logged = std::pin::Pin<Box<dyn Future<Output = MiddlewareResult<Calls>> + Send>>;

/// A server with a tool that returns its argument, and the last metadata that it received.
fn server_with_meta() -> (Server, Arc<Mutex<String>>) {
    let seen = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&seen);
    let server = Server::new("s", "1")
        .observe(move |event| {
            if let Event::Request(request) = event {
                let meta = request.params.get("_meta").map(|meta| meta.as_str().to_owned());
                *shown.lock().unwrap() = meta.unwrap_or_default();
            }
        })
        .tool("echo", "", |call: Call<Place>| call.arguments.location.clone())
        .resource(Resource::new("file:///a", "a"), |_: Call<ReadResource>| {
            TextResourceContents::new("file:///a", "content")
        });
    (server, seen)
}

fn server() -> Server {
    server_with_meta().0
}

fn oslo() -> Place {
    Place { location: "Oslo".to_owned() }
}

/// Connects over a byte stream, and over HTTP where the revision has it.
fn on_each_binding(server: &Server, host: &Host, check: impl Fn(&Client, &mut dyn Drive)) {
    for revision in Revision::ALL {
        let host = host.clone().revisions(Revisions::only(revision));
        let (client, mut pair) = connect_host(server, host.clone(), revision);
        check(&client, &mut pair);
        #[cfg(feature = "http")]
        if revision >= Revision::V2025_03_26 {
            let (client, mut pair) = mcp_sansio_test::connect_http(server, &host, None);
            check(&client, &mut pair);
        }
    }
}

/// A pair over any transport.
trait Drive {
    fn call(&mut self, client: &Client) -> Result<String, ClientError>;
    fn read(&mut self, client: &Client) -> Result<usize, ClientError>;
}

impl<T: Transport> Drive for Pair<T> {
    fn call(&mut self, client: &Client) -> Result<String, ClientError> {
        self.run(client.call_tool("echo", &oslo())).map(|result| text(&result).to_owned())
    }

    fn read(&mut self, client: &Client) -> Result<usize, ClientError> {
        self.run(client.read_resource("file:///a")).map(|result| result.contents.len())
    }
}

#[test]
fn middleware_passes_every_call_in_the_order_of_registration() {
    // Rule: [EXT-034].
    let log = Log::default();
    let host = Host::new("host", "1")
        .call_middleware(logged("outer", &log))
        .call_middleware(logged("inner", &log));
    on_each_binding(&server(), &host, |client, pair| {
        log.lock().unwrap().clear();
        assert_eq!(pair.call(client).unwrap(), "Oslo");
        assert_eq!(pair.read(client).unwrap(), 1);
        let expected = [
            "> outer tools/call Some(\"echo\")",
            "> inner tools/call Some(\"echo\")",
            "< inner ok",
            "< outer ok",
            "> outer resources/read Some(\"file:///a\")",
            "> inner resources/read Some(\"file:///a\")",
            "< inner ok",
            "< outer ok",
        ];
        assert_eq!(*log.lock().unwrap(), expected);
    });
}

#[test]
fn changed_parameters_metadata_and_results_reach_the_inner_middleware_the_server_and_the_caller() {
    // Rule: [EXT-030].
    async fn change(mut request: ClientRequest, next: Next<Calls>) -> MiddlewareResult<Calls> {
        request.insert_meta("com.example/a", &serde_json::json!({ "deep": [1] }))?;
        request.insert_meta("com.example/b", &2)?;
        if request.method().as_str() == "tools/call" {
            let params = r#"{"name":"echo","arguments":{"location":"Rome"}}"#;
            request.set_params(RawJson::parse(params).unwrap());
        }
        let result = next.run(request).await?;
        let changed = result.as_str().replace("Rome", "ROME");
        Ok(Json::from(RawJson::parse(&changed).unwrap().into_owned()))
    }
    let seen = Log::default();
    let log = Arc::clone(&seen);
    let inner = move |mut request: ClientRequest, next: Next<Calls>| {
        log.lock().unwrap().push(request.meta().as_str().to_owned());
        request.remove_meta("com.example/b");
        async move { next.run(request).await }
    };
    let host = Host::new("host", "1").call_middleware(change).call_middleware(inner);
    let (server, received) = server_with_meta();
    on_each_binding(&server, &host, |client, pair| {
        seen.lock().unwrap().clear();
        assert_eq!(pair.call(client).unwrap(), "ROME");
        let received = received.lock().unwrap().clone();
        assert!(received.contains(r#""com.example/a":{"deep":[1]}"#), "{received}");
        assert!(!received.contains("com.example/b"), "{received}");
        assert_eq!(*seen.lock().unwrap(), [r#"{"com.example/a":{"deep":[1]},"com.example/b":2}"#]);
    });
}

#[test]
fn an_answer_of_middleware_sends_nothing_and_is_decoded_by_the_caller() {
    async fn answer(request: ClientRequest, _: Next<Calls>) -> MiddlewareResult<Calls> {
        let text = match request.params().get("arguments") {
            Some(_) => r#"{"content":[{"type":"text","text":"from here"}]}"#,
            None => "{}",
        };
        Ok(Json::from(RawJson::parse(text).unwrap().into_owned()))
    }
    let host = Host::new("host", "1").call_middleware(answer);
    let (client, mut pair) = connect_host(&server(), host, Revision::V2026_07_28);
    pair.transcript.clear();
    assert_eq!(Drive::call(&mut pair, &client).unwrap(), "from here");
    let invalid = Drive::read(&mut pair, &client);
    assert!(matches!(invalid, Err(ClientError::InvalidResult(_))), "{invalid:?}");
    assert!(pair.transcript.lines().is_empty(), "{}", pair.transcript);
}

#[test]
fn parameters_that_are_no_object_are_not_sent() {
    async fn spoil(mut request: ClientRequest, next: Next<Calls>) -> MiddlewareResult<Calls> {
        request.set_params(RawJson::parse("[1]").unwrap());
        request.insert_meta("a", &1)?;
        next.run(request).await
    }
    let host = Host::new("host", "1").call_middleware(spoil);
    on_each_binding(&server(), &host, |client, pair| {
        let refused = pair.call(client);
        assert!(matches!(refused, Err(ClientError::NotSent(_))), "{refused:?}");
    });
}

#[test]
fn a_retry_is_another_call_whose_progress_the_caller_sees() {
    async fn retry(request: ClientRequest, next: Next<Calls>) -> MiddlewareResult<Calls> {
        match next.run(request.clone()).await {
            Err(ClientError::TimedOut { .. }) => next.run(request).await,
            result => result,
        }
    }
    let calls = Arc::new(Mutex::new(0));
    let count = Arc::clone(&calls);
    let server = Server::new("s", "1").tool("slow", "", async move |call: Call<NoArguments>| {
        let number = {
            let mut calls = count.lock().unwrap();
            *calls += 1;
            *calls
        };
        call.progress(f64::from(number), None, "");
        if number == 1 {
            std::future::pending::<()>().await;
        }
        "done"
    });
    let host = Host::new("host", "1").call_middleware(retry);
    let (client, mut pair) = connect_host(&server, host, Revision::V2025_11_25);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shown = Arc::clone(&seen);
    let call = client
        .call_tool("slow", &NoArguments {})
        .timeout_hard(SECOND)
        .on_progress(move |progress| shown.lock().unwrap().push(progress.progress));
    assert_eq!(text(&pair.run(call).unwrap()), "done");
    assert_eq!((*calls.lock().unwrap(), seen.lock().unwrap().clone()), (2, vec![1.0, 2.0]));
}

#[test]
fn dropping_a_call_cancels_it_and_drops_its_middleware() {
    // Rule: [EXT-033].
    let (gate, alive) = (Gate::default(), Arc::new(()));
    let kept = Arc::clone(&alive);
    let hold = async move |request: ClientRequest, next: Next<Calls>| {
        let _kept = Arc::clone(&kept);
        next.run(request).await
    };
    let waits = gate.clone();
    let server = Server::new("s", "1").tool("wait", "", move |_: Call<NoArguments>| {
        let gate = waits.clone();
        async move {
            gate.passed().await;
            "done"
        }
    });
    let host = Host::new("host", "1").call_middleware(hold);
    let (client, mut pair) = connect_host(&server, host, Revision::V2025_11_25);
    let before = Arc::strong_count(&alive);
    let call = pair.start(client.call_tool("wait", &NoArguments {}));
    assert!(Arc::strong_count(&alive) > before);
    drop(call);
    pair.run_until_idle();
    assert_eq!(Arc::strong_count(&alive), before);
    assert_eq!(pair.transcript.count("notifications/cancelled"), 1, "{}", pair.transcript);
}

#[test]
fn a_call_with_input_rounds_passes_once() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Confirmation {
        #[allow(dead_code, reason = "only its presence is checked")]
        sure: bool,
    }
    let server =
        Server::new("s", "1").tool("book", "", async |call: Call<NoArguments>| match call
            .input::<Confirmation>(
            "sure",
        )? {
            None => call.require_input("sure", Elicit::form::<Confirmation>("?")).into_result(),
            Some(_) => Ok("booked"),
        });
    for revision in ASKING {
        let log = Log::default();
        let host = Host::new("host", "1").call_middleware(logged("m", &log)).on_elicit(
            |_: HostRequest<ElicitParams>| {
                ElicitResult::accept([("sure".to_owned(), true.into())].into_iter().collect())
            },
        );
        let (client, mut pair) = connect_host(&server, host, revision);
        let result = pair.run(client.call_tool("book", &NoArguments {})).unwrap();
        assert_eq!(text(&result), "booked");
        assert_eq!(log.lock().unwrap().len(), 2);
    }
}

#[test]
fn the_pages_of_a_list_pass_and_lookups_in_the_cache_do_not() {
    let log = Log::default();
    let host = Host::new("host", "1")
        .call_middleware(logged("m", &log))
        .cache(mcp_sansio::peer::CacheOptions::DEFAULT);
    let (client, mut pair) = connect_host(&server(), host, Revision::V2026_07_28);
    assert_eq!(pair.run(client.all_tools()).unwrap().len(), 1);
    assert_eq!(*log.lock().unwrap(), ["> m tools/list None", "< m ok"]);
}

#[test]
fn cached_pages_of_a_list_pass_too() {
    let log = Log::default();
    let host = Host::new("host", "1")
        .call_middleware(logged("m", &log))
        .cache(mcp_sansio::peer::CacheOptions::DEFAULT);
    let minute = Duration::from_secs(60);
    let server = server().cache(mcp_sansio::protocol::CacheHints::public(minute));
    let (client, mut pair) = connect_host(&server, host, Revision::V2026_07_28);
    for _ in 0..2 {
        assert_eq!(pair.run(client.all_tools()).unwrap().len(), 1);
        assert_eq!(log.lock().unwrap().split_off(0), ["> m tools/list None", "< m ok"]);
    }
    assert_eq!(pair.transcript.count("tools/list"), 1);
}

#[test]
fn an_access_log_reports_calls_with_their_outcomes() {
    let records = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&records);
    let log = AccessLog::new(move |record| {
        let record = record.to_string();
        // Without the time.
        let (_, record) = record.split_once(' ').unwrap();
        log.lock().unwrap().push(record.to_owned());
    });
    let host = Host::new("h", "1").call_middleware(log);
    let server = Server::new("s", "1")
        .tool("find", "", |_: Call<Place>| "found")
        .tool("fail", "", |_: Call<Place>| Err::<String, _>(HandlerError::failed("lost")))
        .resource(Resource::new("mem://a", "a"), |_: Call<ReadResource>| {
            TextResourceContents::new("mem://a", "text")
        })
        .tool("slow", "", async |_: Call<NoArguments>| core::future::pending::<String>().await);
    let (client, mut pair) = connect_host(&server, host, Revision::LATEST);
    pair.run(client.call_tool("find", &oslo())).unwrap();
    pair.run(client.call_tool("fail", &oslo())).unwrap();
    pair.run(client.read_resource("mem://a")).unwrap();
    pair.run(client.call_tool("none", &NoArguments {})).unwrap_err();
    let hurried = client.call_tool("slow", &NoArguments {}).timeout_hard(10 * SECOND);
    pair.run(hurried).unwrap_err();
    let slow = pair.start(client.call_tool("slow", &NoArguments {}));
    pair.advance(Duration::from_millis(35));
    pair.run_until_idle();
    drop(slow);
    let expected = [
        r#"tools/call "find" - ok 0ms"#,
        r#"tools/call "fail" - tool-error 0ms"#,
        r#"resources/read "mem://a" - ok 0ms"#,
        r#"tools/call "none" - error:-32602 0ms"#,
        r#"tools/call "slow" - failed 10000ms"#,
        r#"tools/call "slow" - cancelled 35ms"#,
    ];
    assert_eq!(*records.lock().unwrap(), expected);
}

#[test]
fn calls_beyond_the_rate_limit_of_a_connection_wait_or_are_not_sent() {
    let limit = RateLimit::new(1, SECOND).wait_max(SECOND);
    let host = Host::new("host", "1").call_middleware(limit);
    let (client, mut pair) = connect_host(&server(), host.clone(), Revision::V2026_07_28);
    let started = pair.now();
    assert!(Drive::call(&mut pair, &client).is_ok());
    let waiting = pair.start(client.call_tool("echo", &oslo()));
    let refused = Drive::call(&mut pair, &client);
    let Err(ClientError::RateExceeded { retry_after }) = refused else { panic!("{refused:?}") };
    assert_eq!(retry_after, 2 * SECOND);
    assert!(pair.run(waiting).is_ok());
    assert_eq!(pair.now().saturating_since(started), SECOND);
    let (other, mut pair) = connect_host(&server(), host, Revision::V2026_07_28);
    assert!(Drive::call(&mut pair, &other).is_ok(), "another connection has its own bucket");
}

#[test]
fn the_clock_of_middleware_includes_the_time_in_which_nothing_drove_the_connection() {
    let records = Log::default();
    let log = Arc::clone(&records);
    let log = AccessLog::new(move |record| {
        log.lock().unwrap().push(format!("{:?} {:?}", record.started, record.duration));
    });
    let host =
        Host::new("host", "1").call_middleware(log).call_middleware(RateLimit::new(1, SECOND));
    let (client, mut pair) = connect_host(&server(), host.clone(), Revision::LATEST);
    // Moves the clock of the first pair, which is idle meanwhile.
    let (_, other) = connect_host(&server(), host, Revision::LATEST);
    let mut other = Pair::with_clock(other.transport, pair.clock());
    let mut expected = Vec::new();
    for _ in 0..3 {
        other.advance(SECOND);
        expected.extend([(); 2].map(|()| format!("{:?} {:?}", pair.now(), Duration::ZERO)));
        Drive::call(&mut pair, &client).unwrap();
        let refused = Drive::call(&mut pair, &client);
        let Err(ClientError::RateExceeded { retry_after }) = refused else { panic!("{refused:?}") };
        assert_eq!(retry_after, SECOND);
    }
    assert_eq!(*records.lock().unwrap(), expected);
}

#[test]
fn the_time_in_which_nothing_drove_the_connection_is_not_the_duration_of_a_dropped_call() {
    let records = Log::default();
    let log = Arc::clone(&records);
    let log = AccessLog::new(move |record| {
        log.lock().unwrap().push(format!("{:?} {:?}", record.started, record.duration));
    });
    let host = Host::new("host", "1").call_middleware(log);
    let (client, mut pair) = connect_host(&server(), host, Revision::LATEST);
    let mut call = Box::pin(client.call_tool("echo", &oslo()).into_future());
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    // The clock of the connection moves, and the call is dropped before it is polled again.
    pair.advance(SECOND);
    drop(call);
    assert_eq!(*records.lock().unwrap(), [format!("{:?} {:?}", pair.now(), Duration::ZERO)]);
}

#[test]
fn a_call_that_becomes_a_task_passes_and_keeps_its_progress() {
    use crate::task_client::settings;
    let log = Log::default();
    let server = Server::new("s", "1")
        .tasks(settings())
        .tool("long", "", async |call: Call<NoArguments>| {
            call.progress(1.0, None, "");
            "done"
        })
        .task_support("long", mcp_sansio::protocol::TaskSupport::Optional);
    let host = Host::new("host", "1").call_middleware(logged("m", &log));
    let (client, mut pair) = connect_host(&server, host, Revision::V2025_11_25);
    let tools = pair.run(client.all_tools()).unwrap();
    let seen = Arc::new(Mutex::new(0));
    let shown = Arc::clone(&seen);
    let call = client
        .call_tool_as_task(&tools[0], &NoArguments {})
        .on_progress(move |_| *shown.lock().unwrap() += 1);
    let task = pair.run(call).unwrap();
    let result = pair.run(task.result()).unwrap();
    assert_eq!((text(&result), *seen.lock().unwrap()), ("done", 1));
    assert!(log.lock().unwrap().contains(&"> m tools/call Some(\"long\")".to_owned()));
}

#[cfg(feature = "http")]
#[test]
fn a_header_of_a_call_is_sent_over_http_only_with_all_its_rounds_and_no_other_call() {
    use mcp_sansio::http::{HttpClientOptions, HttpServerOptions, Location};
    use mcp_sansio::peer::CommandError;
    use mcp_sansio::peer::InvalidHeader;
    use mcp_sansio_test::{Http, URL};

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Confirmation {
        #[allow(dead_code, reason = "only its presence is checked")]
        sure: bool,
    }
    let server = server().tool("book", "", async |call: Call<NoArguments>| {
        match call.input::<Confirmation>("sure")? {
            None => call.require_input("sure", Elicit::form::<Confirmation>("?")).into_result(),
            Some(_) => Ok("booked"),
        }
    });
    let host = Host::new("host", "1").on_elicit(|_: HostRequest<ElicitParams>| {
        ElicitResult::accept([("sure".to_owned(), true.into())].into_iter().collect())
    });
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let host = host.clone().revisions(Revisions::only(revision));
        let options = HttpClientOptions::new(Location::parse(URL).unwrap());
        let (client, endpoint) = host.connect_http(options, 7, Instant::ZERO);
        let http = server.http(HttpServerOptions::new(), [7; 32], 7).unwrap();
        let sent = Log::default();
        let log = Arc::clone(&sent);
        let mut pair = Pair::new(Http::new(http, endpoint).intercept(move |request| {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            if body.contains("tools/call") {
                let tenant = request.fields().find(|(name, _)| *name == "x-tenant");
                log.lock().unwrap().push(tenant.map(|(_, value)| value).unwrap_or("-").to_owned());
            }
            None
        }));
        pair.run(client.opened()).unwrap();
        assert!(client.is_http());
        let call = client.call_tool("book", &NoArguments {}).header("X-Tenant", "north");
        assert_eq!(text(&pair.run(call).unwrap()), "booked");
        assert!(Drive::call(&mut pair, &client).is_ok());
        let rounds = if revision == Revision::V2026_07_28 { 2 } else { 1 };
        let mut expected = vec!["north"; rounds];
        expected.push("-");
        assert_eq!(*sent.lock().unwrap(), expected, "{revision}");
        let refused = pair.run(client.call_tool("echo", &oslo()).header("Mcp-Method", "x"));
        let Err(ClientError::InvalidHeader(InvalidHeader::Reserved(name))) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(name, "mcp-method");

        let (client, mut pair) = connect_host(&server, host, revision);
        assert!(!client.is_http());
        pair.transcript.clear();
        let refused = pair.run(client.call_tool("echo", &oslo()).header("X-Tenant", "north"));
        let Err(ClientError::NotSent(error)) = refused else { panic!("{refused:?}") };
        assert!(matches!(*error, CommandError::NoHeaderFields), "{error}");
        assert!(pair.transcript.lines().is_empty());
    }
}

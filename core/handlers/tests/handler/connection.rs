use std::sync::{Arc, Mutex};

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{CloseReason, CommandError, Event, Failure};
use mcp_sansio::{Capability, Era, Instant, Method, Revision, Revisions};
use mcp_sansio_handlers::endpoint::Endpoint;
use mcp_sansio_handlers::{Call, ClientError, Host, NoArguments, SendError, Server};

use mcp_sansio_test::{Pair, Stream};

use crate::connect;

fn sleeper() -> Server {
    Server::new("s", "1").tool("sleep", "", async |_: Call<NoArguments>| {
        std::future::pending::<()>().await;
    })
}

#[test]
fn calls_of_a_closed_connection_end_with_its_reason() {
    let (client, mut pair) = connect(&sleeper(), Revision::LATEST);
    client.close();
    pair.run_until_idle();
    let error = pair.run(client.call_tool("sleep", &NoArguments {})).unwrap_err();
    assert!(matches!(error, ClientError::Closed(CloseReason::Local)), "{error}");
    assert_eq!(client.close_reason(), Some(CloseReason::Local));
    assert_eq!(pair.run(client.opened()).unwrap_err(), CloseReason::Local);
    assert!(client.session().is_some());
}

#[test]
fn a_call_that_is_not_sent_names_the_missing_capability() {
    let (client, mut pair) = connect(&sleeper(), Revision::LATEST);
    let error = pair.run(client.read_resource("file:///a")).unwrap_err();
    assert!(matches!(error, ClientError::NotSent(_)), "{error}");
    assert_eq!(error.missing_capability(), Some(Capability::Resources));
    let error = pair.run(client.call(Method::Initialize, RawJson::EMPTY_OBJECT)).unwrap_err();
    assert_eq!(error.missing_capability(), None);
    let ClientError::NotSent(error) = error else { panic!("{error}") };
    assert!(matches!(*error, CommandError::OutOfPlace(_)), "{error}");
}

#[test]
fn every_call_ends_when_the_driver_goes_away() {
    let (client, mut pair) = connect(&sleeper(), Revision::LATEST);
    let mut made = Box::pin(client.call_tool("sleep", &NoArguments {}).into_future());
    assert!(pair.poll(made.as_mut()).is_none());
    let mut waiting = Box::pin(client.call_tool("sleep", &NoArguments {}).into_future());
    pair.transport.client = None;
    let error = pair.poll(made.as_mut()).unwrap().unwrap_err();
    assert!(matches!(error, ClientError::Failed(Failure::ConnectionLost)), "{error}");
    let error = pair.poll(waiting.as_mut()).unwrap().unwrap_err();
    assert!(matches!(error, ClientError::Closed(CloseReason::Local)), "{error}");
    assert!(pair.run(client.call_tool("sleep", &NoArguments {})).is_err());
    // A finished call reports its result only once.
    assert!(pair.poll(made.as_mut()).is_none());
}

#[test]
fn the_connection_closes_with_its_last_handle() {
    let (client, mut pair) = connect(&sleeper(), Revision::LATEST);
    let second = client.clone();
    drop(client);
    pair.run_until_idle();
    assert!(!pair.transport.client.as_ref().unwrap().is_closed());
    let mut call = Box::pin(second.call_tool("sleep", &NoArguments {}).into_future());
    drop(second);
    assert!(pair.poll(call.as_mut()).is_none());
    assert!(!pair.transport.client.as_ref().unwrap().is_closed());
    drop(call);
    pair.run_until_idle();
    assert!(pair.transport.client.as_ref().unwrap().is_drained());
}

#[test]
fn dropping_the_last_handles_on_several_threads_closes_the_connection() {
    for _ in 0..50 {
        let (client, mut pair) = connect(&sleeper(), Revision::LATEST);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let client = client.clone();
                std::thread::spawn(move || drop(client))
            })
            .collect();
        drop(client);
        for thread in threads {
            thread.join().unwrap();
        }
        pair.run_until_idle();
        assert!(pair.transport.client.as_ref().unwrap().is_closed());
    }
}

#[test]
fn a_server_that_is_closed_drops_its_handlers_and_is_drained() {
    let (client, mut pair) = connect(&sleeper(), Revision::LATEST);
    let mut call = Box::pin(client.call_tool("sleep", &NoArguments {}).into_future());
    assert!(pair.poll(call.as_mut()).is_none());
    let remote = pair.transport.server.as_ref().unwrap().handle();
    remote.close();
    pair.run_until_idle();
    assert!(pair.transport.server.as_ref().unwrap().is_drained());
    // The endpoint is gone, and the error says so.
    pair.transport.server = None;
    assert_eq!(remote.resource_updated("mem://a"), Err(SendError::Closed));
}

#[test]
fn a_client_may_close_its_output_and_still_read_the_answer() {
    // Rule: [STDIO-017].
    let gate = Arc::new(Mutex::new(None::<std::task::Waker>));
    let held = Arc::clone(&gate);
    let server = Server::new("s", "1").tool("wait", "", move |_: Call<NoArguments>| {
        let (held, mut first) = (Arc::clone(&held), true);
        std::future::poll_fn(move |cx| {
            if std::mem::take(&mut first) {
                *held.lock().unwrap() = Some(cx.waker().clone());
                return std::task::Poll::Pending;
            }
            std::task::Poll::Ready("done")
        })
    });
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let mut call = Box::pin(client.call_tool("wait", &NoArguments {}).into_future());
    assert!(pair.poll(call.as_mut()).is_none());
    let now = pair.now();
    pair.transport.server.as_mut().unwrap().handle_eof(now);
    assert!(!pair.transport.server.as_ref().unwrap().is_drained());
    gate.lock().unwrap().take().unwrap().wake();
    assert!(pair.poll(call.as_mut()).unwrap().is_ok());
    assert!(pair.transport.server.as_ref().unwrap().is_drained());
}

#[test]
fn a_failed_opening_is_reported_to_waiting_callers() {
    let (client, endpoint) = Host::new("h", "1").connect(0, Instant::ZERO);
    let mut pair = Pair::new(Stream::new(sleeper().endpoint(0).unwrap(), endpoint));
    pair.transport.server = None;
    let mut opened = Box::pin(client.opened());
    assert!(pair.poll(opened.as_mut()).is_none());
    let error = pair.run(client.call_tool("sleep", &NoArguments {})).unwrap_err();
    assert_eq!(error.to_string(), "the connection is not open yet");
    pair.transport.client.as_mut().unwrap().handle_eof(Instant::ZERO);
    assert_eq!(pair.poll(opened.as_mut()).unwrap().unwrap_err(), CloseReason::EndOfInput);
}

#[test]
fn observers_see_violations_of_the_peer() {
    // Rule: [RPC-017].
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (theirs, ours) = (Arc::clone(&seen), Arc::clone(&seen));
    let note = |event: &Event<'_>, to: &Mutex<Vec<String>>| {
        if let Event::Violation(violation) = event {
            to.lock().unwrap().push(violation.to_string());
        }
    };
    let server = sleeper().observe(move |event| note(event, &theirs));
    let host = Host::new("h", "1").observe(move |event| note(event, &ours));
    let (client, mut pair) = crate::connect_host(&server, host, Revision::LATEST);
    let now = pair.now();
    pair.transport.server.as_mut().unwrap().handle_frame(Ok(b"{"), now);
    pair.transport.client.as_mut().unwrap().handle_frame(Ok(b"noise"), now);
    assert_eq!(seen.lock().unwrap().len(), 2);
    assert!(!pair.transport.client.as_ref().unwrap().is_closed());
    drop(client);
}

#[test]
fn a_call_before_opening_reaches_the_restarted_server() {
    // Rule: [VER-022].
    let server = Server::new("s", "1").revisions(Revisions::LEGACY).tool(
        "greet",
        "",
        |_: Call<NoArguments>| "hello",
    );
    let (client, endpoint) = Host::new("host", "1").connect(7, Instant::ZERO);
    // The first process reads the probe and exits.
    let mut pair = Pair::new(Stream::new(server.endpoint(7).expect("a server"), endpoint));
    let second = pair.transport.server.take();
    let mut call = std::pin::pin!(async {
        client.opened().await.expect("a session");
        client.call_tool("greet", &NoArguments {}).await
    });
    assert!(pair.poll(call.as_mut()).is_none());
    assert_eq!(pair.transcript.lines().len(), 1, "{}", pair.transcript);
    let now = pair.now();
    assert!(pair.transport.client.as_mut().expect("a client").restart(now));
    pair.transport.server = second;
    let result = pair.poll(call.as_mut()).expect("an answer").expect("a result");
    assert_eq!(crate::text(&result), "hello");
    assert_eq!(client.era(), Some(Era::Legacy));
    assert!(pair.transcript.count("server/discover") > 0);
    assert!(!pair.transport.client.as_mut().expect("a client").restart(now));
}

#[test]
fn the_probe_of_a_client_of_both_eras_is_no_violation() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    let violations = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&violations);
    let server = Server::new("old", "1").revisions(Revisions::LEGACY).observe(move |event| {
        if matches!(event, Event::Violation(_)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let (client, pair) = mcp_sansio_test::connect(&server, &Host::new("both", "1"));
    assert_eq!(client.era(), Some(Era::Legacy));
    assert!(pair.transcript.count("server/discover") > 0);
    assert_eq!(violations.load(Ordering::Relaxed), 0);
    #[cfg(feature = "http")]
    {
        let host = Host::new("both", "1");
        let (client, _pair) = mcp_sansio_test::connect_http(&server, &host, None);
        assert_eq!(client.era(), Some(Era::Legacy));
        assert_eq!(violations.load(Ordering::Relaxed), 0);
    }
}

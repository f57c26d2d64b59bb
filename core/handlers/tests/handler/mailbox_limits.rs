//! Limits of the queues between handlers or applications and the driver of a connection.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcp_sansio::peer::Limits;
use mcp_sansio::{LoggingLevel, Revision};
use mcp_sansio_handlers::{Call, ClientError, Context, NoArguments, SendError, Server, blocking};

use crate::{connect, text};

fn reports(call: &Context, count: usize, text: &str) {
    for turn in 1..=count {
        call.progress(turn as f64, None, text);
    }
}

#[test]
fn a_handler_that_reports_in_a_loop_does_not_block_the_reports_of_another() {
    let mut limits = Limits::DEFAULT;
    (limits.reports_max, limits.progress_per_second_max) = (100, u32::MAX);
    // Both run on other threads before the driver polls.
    let jobs = Arc::new(std::sync::Mutex::new(Vec::new()));
    let queue = Arc::clone(&jobs);
    let server = Server::new("s", "1")
        .limits(limits)
        .spawner(move |job| queue.lock().unwrap().push(job))
        .tool("loud", "", blocking(|call: Call<NoArguments>| reports(&call, 10_000, "loud")))
        .tool("quiet", "", blocking(|call: Call<NoArguments>| reports(&call, 10, "quiet")));
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let mut calls: Vec<_> = ["loud", "quiet"]
        .map(|tool| client.call_tool(tool, &NoArguments {}).on_progress(|_| ()))
        .map(|call| Box::pin(call.into_future()))
        .into();
    calls.iter_mut().for_each(|call| assert!(pair.poll(call.as_mut()).is_none()));
    let jobs = std::mem::take(&mut *jobs.lock().unwrap());
    jobs.into_iter().for_each(|job| job());
    calls.iter_mut().for_each(|call| assert!(pair.poll(call.as_mut()).unwrap().is_ok()));
    assert_eq!(pair.transcript.count(r#""message":"loud""#), 100);
    assert_eq!(pair.transcript.count(r#""message":"quiet""#), 10);
}

#[test]
fn the_bytes_of_pending_reports_are_bounded() {
    let mut limits = Limits::DEFAULT;
    limits.mailbox_bytes_max = 10_000;
    let server = Server::new("s", "1").limits(limits).logging().tool(
        "log",
        "",
        |call: Call<NoArguments>| {
            let data = "x".repeat(900);
            (0..1000).for_each(|_| call.log(LoggingLevel::Error, &data));
            call.log(LoggingLevel::Error, "short");
        },
    );
    let (client, mut pair) = connect(&server, Revision::V2025_11_25);
    pair.run(client.call_tool("log", &NoArguments {})).unwrap();
    let long = pair.transcript.count("xxx");
    assert!((5..=11).contains(&long), "{long}");
    assert!(long * 900 <= 10_000);
}

#[test]
fn commands_over_the_limit_are_refused_and_earlier_ones_are_executed() {
    let mut limits = Limits::DEFAULT;
    limits.commands_max = 3;
    let server = Server::new("s", "1").limits(limits).tool("a", "", |_: Call<NoArguments>| "a");
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let remote = pair.transport.server.as_ref().unwrap().handle();
    let edited = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let edit = || {
        let edited = Arc::clone(&edited);
        remote.edit_catalog(move |_| _ = edited.fetch_add(1, Ordering::SeqCst))
    };
    let all = [edit(), edit(), edit(), edit(), edit()];
    assert_eq!(all, [Ok(()), Ok(()), Ok(()), Err(SendError::Full), Err(SendError::Full)]);
    assert_eq!(remote.resource_updated("mem://a"), Err(SendError::Full));
    pair.run_until_idle();
    assert_eq!(edited.load(Ordering::SeqCst), 3);
    // The queue has room again.
    assert_eq!(edit(), Ok(()));
    // Repeated updates of one resource count as one command.
    (0..10).for_each(|_| remote.resource_updated("mem://a").unwrap());
    remote.close();
    pair.run_until_idle();
    assert_eq!(edited.load(Ordering::SeqCst), 4);
    pair.transport.server = None;
    assert_eq!(edit(), Err(SendError::Closed));
    drop(client);
}

#[test]
fn a_handler_that_edits_in_a_loop_leaves_room_for_others() {
    let mut limits = Limits::DEFAULT;
    limits.commands_max = 10;
    let jobs = Arc::new(std::sync::Mutex::new(Vec::new()));
    let queue = Arc::clone(&jobs);
    let many = |call: Call<NoArguments>| {
        (0..1000).filter(|_| call.edit_catalog(|_| ()).is_ok()).count().to_string()
    };
    let server = Server::new("s", "1")
        .limits(limits)
        .spawner(move |job| queue.lock().unwrap().push(job))
        .tool("greedy", "", blocking(many))
        .tool("other", "", blocking(many));
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let mut calls: Vec<_> = ["greedy", "other"]
        .map(|tool| Box::pin(client.call_tool(tool, &NoArguments {}).into_future()))
        .into();
    calls.iter_mut().for_each(|call| assert!(pair.poll(call.as_mut()).is_none()));
    let jobs = std::mem::take(&mut *jobs.lock().unwrap());
    jobs.into_iter().for_each(|job| job());
    let counts: Vec<usize> = calls
        .iter_mut()
        .map(|call| text(&pair.poll(call.as_mut()).unwrap().unwrap()).parse().unwrap())
        .collect();
    // The first handler was alone and gets its whole share. The second gets half of the rest.
    assert_eq!(counts, [10, 5]);
}

#[test]
fn repeated_task_requests_do_not_accumulate() {
    let server = Server::new("s", "1").tool("wish", "", |call: Call<NoArguments>| {
        (0..100_000).for_each(|_| call.release_connection(std::time::Duration::ZERO));
        call.edit_catalog(|_| ()).map_or("refused", |()| "edited")
    });
    let mut small = Limits::DEFAULT;
    small.commands_max = 1;
    let (client, mut pair) = connect(&server.limits(small), Revision::LATEST);
    let result = pair.run(client.call_tool("wish", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "edited");
}

#[test]
fn calls_over_the_limit_end_with_an_error() {
    let mut limits = Limits::DEFAULT;
    limits.commands_max = 2;
    let server = Server::new("s", "1").tool("a", "", |_: Call<NoArguments>| "a");
    let host = mcp_sansio_handlers::Host::new("h", "1").limits(limits);
    let (client, mut pair) = crate::connect_host(&server, host, Revision::LATEST);
    let mut calls: Vec<_> =
        (0..3).map(|_| Box::pin(client.call_tool("a", &NoArguments {}).into_future())).collect();
    let refused = pair.run(calls.pop().unwrap()).unwrap_err();
    assert!(matches!(refused, ClientError::TooManyCommands), "{refused}");
    for call in calls {
        assert_eq!(text(&pair.run(call).unwrap()), "a");
    }
    assert_eq!(text(&pair.run(client.call_tool("a", &NoArguments {})).unwrap()), "a");
}

#[test]
fn calls_that_are_dropped_before_they_are_sent_leave_no_message() {
    let server = Server::new("s", "1").tool("a", "", |_: Call<NoArguments>| "a");
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let sent = pair.transcript.lines().len();
    for _ in 0..100 {
        drop(client.call_tool("a", &NoArguments {}).into_future());
    }
    pair.run_until_idle();
    assert_eq!(pair.transcript.lines().len(), sent, "{}", pair.transcript);
    assert_eq!(text(&pair.run(client.call_tool("a", &NoArguments {})).unwrap()), "a");
}

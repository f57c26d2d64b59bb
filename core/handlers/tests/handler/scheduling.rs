use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use mcp_sansio::protocol::{Resource, ResourceContents, TextResourceContents};
use mcp_sansio::{Instant, Revision};
use mcp_sansio_handlers::endpoint::Endpoint;
use mcp_sansio_handlers::handler::Job;
use mcp_sansio_handlers::{Call, NoArguments, ReadResource, Server, blocking};

use crate::{Place, connect, text};

/// Handlers that wait until the test releases them.
#[derive(Clone, Default)]
struct Gates(Arc<Mutex<Vec<(String, Waker)>>>);

impl Gates {
    fn server(&self) -> Server {
        let gates = self.clone();
        Server::new("s", "1").tool("wait", "", move |call: Call<Place>| {
            let (gates, mut first) = (gates.clone(), true);
            std::future::poll_fn(move |cx| {
                if std::mem::take(&mut first) {
                    let location = call.arguments.location.clone();
                    gates.0.lock().unwrap().push((location, cx.waker().clone()));
                    return Poll::Pending;
                }
                Poll::Ready(call.arguments.location.clone())
            })
        })
    }
}

fn place(location: impl ToString) -> Place {
    Place { location: location.to_string() }
}

#[test]
fn handlers_finish_in_the_order_in_which_they_are_woken() {
    // Rule: [LIFE-010].
    const MANY: usize = 200;
    let gates = Gates::default();
    let (client, mut pair) = connect(&gates.server(), Revision::LATEST);
    let mut calls: Vec<_> =
        (0..MANY).map(|n| Box::pin(client.call_tool("wait", &place(n)).into_future())).collect();
    pair.run_until_idle();
    for call in &mut calls {
        assert!(pair.poll(call.as_mut()).is_none());
    }
    let waiting = std::mem::take(&mut *gates.0.lock().unwrap());
    assert_eq!(waiting.len(), MANY);
    let sent = pair.transcript.lines().len();
    for (_, waker) in waiting.into_iter().rev() {
        waker.wake_by_ref();
        waker.wake();
        pair.run_until_idle();
    }
    assert_eq!(pair.transcript.lines().len() - sent, MANY);
    for (n, call) in calls.iter_mut().enumerate() {
        assert_eq!(text(&pair.poll(call.as_mut()).unwrap().unwrap()), n.to_string());
        assert!(pair.transcript.lines()[sent + MANY - 1 - n].contains(&format!(r#""text":"{n}""#)));
    }
}

#[test]
fn handlers_are_woken_from_other_threads() {
    let gates = Gates::default();
    let (client, mut pair) = connect(&gates.server(), Revision::LATEST);
    let mut calls: Vec<_> =
        (0..8).map(|n| Box::pin(client.call_tool("wait", &place(n)).into_future())).collect();
    pair.run_until_idle();
    let threads: Vec<_> = std::mem::take(&mut *gates.0.lock().unwrap())
        .into_iter()
        .map(|(_, waker)| std::thread::spawn(move || waker.wake()))
        .collect();
    // The driver runs in the meantime.
    while threads.iter().any(|thread| !thread.is_finished()) {
        pair.run_until_idle();
    }
    for call in &mut calls {
        assert!(pair.poll(call.as_mut()).unwrap().is_ok());
    }
}

#[test]
fn a_late_wake_up_does_not_disturb_the_next_handler_in_the_slot() {
    let gates = Gates::default();
    let (client, mut pair) = connect(&gates.server(), Revision::LATEST);
    let mut first = Box::pin(client.call_tool("wait", &place("first")).into_future());
    assert!(pair.poll(first.as_mut()).is_none());
    drop(first);
    pair.run_until_idle();
    let (_, stale) = gates.0.lock().unwrap().remove(0);
    stale.wake();
    pair.run_until_idle();
    let mut second = Box::pin(client.call_tool("wait", &place("second")).into_future());
    assert!(pair.poll(second.as_mut()).is_none());
    gates.0.lock().unwrap().remove(0).1.wake();
    assert_eq!(text(&pair.poll(second.as_mut()).unwrap().unwrap()), "second");
}

#[test]
fn a_handler_that_reports_in_a_loop_uses_bounded_memory() {
    let mut limits = mcp_sansio::peer::Limits::DEFAULT;
    limits.reports_max = 5;
    let server =
        Server::new("s", "1").limits(limits).tool("talk", "", |call: Call<NoArguments>| {
            for turn in 1..=10_000 {
                call.progress(f64::from(turn), None, "and on");
            }
            "done"
        });
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let talk = client.call_tool("talk", &NoArguments {}).on_progress(|_| ());
    assert_eq!(text(&pair.run(talk.into_future()).unwrap()), "done");
    assert_eq!(pair.transcript.count("notifications/progress"), 5);
}

#[test]
fn a_handler_that_always_wakes_itself_does_not_starve_others() {
    let gates = Gates::default();
    let server = gates
        .server()
        .tool("spin", "", |call: Call<NoArguments>| {
            let mut turns = 0.0;
            std::future::poll_fn(move |cx| -> Poll<()> {
                turns += 1.0;
                call.progress(turns, None, "");
                cx.waker().wake_by_ref();
                Poll::Pending
            })
        })
        .tool("quick", "", |_: Call<NoArguments>| "quick");
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let spin = client.call_tool("spin", &NoArguments {}).on_progress(|_| ());
    let spins = [spin.into_future(), client.call_tool("spin", &NoArguments {}).into_future()];
    let waits = client.call_tool("wait", &place("Oslo")).into_future();
    pair.step();
    pair.step();
    // The handler still reports, and others make progress.
    let quick = client.call_tool("quick", &NoArguments {});
    assert_eq!(text(&pair.run(quick).unwrap()), "quick");
    gates.0.lock().unwrap().remove(0).1.wake();
    assert_eq!(text(&pair.run(waits).unwrap()), "Oslo");
    assert!(pair.transcript.count("notifications/progress") > 2);
    drop(spins);
    pair.run_until_idle();
}

#[test]
fn a_dropped_driver_is_not_kept_alive_by_handles() {
    struct Driver;
    impl std::task::Wake for Driver {
        fn wake(self: Arc<Self>) {}
    }
    let driver = Arc::new(Driver);
    let mut endpoint = Server::new("s", "1").endpoint(0).unwrap();
    let remote = endpoint.handle();
    let waker = Waker::from(Arc::clone(&driver));
    endpoint.poll_handlers(&mut std::task::Context::from_waker(&waker), Instant::ZERO);
    drop(waker);
    assert_eq!(Arc::strong_count(&driver), 2);
    drop(endpoint);
    assert_eq!(Arc::strong_count(&driver), 1);
    remote.close();
}

/// Jobs of blocking handlers, waiting to be run.
#[derive(Clone, Default)]
struct Jobs(Arc<Mutex<VecDeque<Job>>>);

impl Jobs {
    fn server(&self) -> Server {
        let jobs = self.clone();
        Server::new("s", "1")
            .spawner(move |job| jobs.0.lock().unwrap().push_back(job))
            .tool(
                "block",
                "",
                blocking(|call: Call<Place>| {
                    call.progress(1.0, None, "begun");
                    call.progress(2.0, None, "ended");
                    format!("{} {}", call.arguments.location, call.is_cancelled())
                }),
            )
            .resource(
                Resource::new("mem://slow", "slow"),
                blocking(|call: Call<ReadResource>| {
                    ResourceContents::from(TextResourceContents::new(&*call.arguments.uri, "slow"))
                }),
            )
    }

    fn next(&self) -> Job {
        self.0.lock().unwrap().pop_front().unwrap()
    }
}

#[test]
fn a_blocking_handler_runs_on_the_spawner_and_its_progress_precedes_its_response() {
    // Rule: [PROG-006].
    let jobs = Jobs::default();
    let (client, mut pair) = connect(&jobs.server(), Revision::LATEST);
    let call = client.call_tool("block", &place("Oslo")).on_progress(|_| ());
    let mut call = Box::pin(call.into_future());
    assert!(pair.poll(call.as_mut()).is_none());
    let job = jobs.next();
    std::thread::spawn(job).join().unwrap();
    assert_eq!(text(&pair.poll(call.as_mut()).unwrap().unwrap()), "Oslo false");
    let last: Vec<_> = pair.transcript.lines().iter().rev().take(3).collect();
    assert!(last[0].contains("Oslo") && last[1].contains("ended") && last[2].contains("begun"));
    let mut read = Box::pin(client.read_resource("mem://slow").into_future());
    assert!(pair.poll(read.as_mut()).is_none());
    jobs.next()();
    assert!(pair.poll(read.as_mut()).unwrap().is_ok());
}

#[test]
fn a_blocking_handler_sees_that_its_request_was_cancelled() {
    // Rule: [CANC-016] [CANC-017].
    let seen = Arc::new(Mutex::new(None));
    let (sink, jobs) = (Arc::clone(&seen), Jobs::default());
    let look = move |call: Call<NoArguments>| *sink.lock().unwrap() = Some(call.is_cancelled());
    let server = jobs.server().tool("look", "", blocking(look));
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let mut call = Box::pin(client.call_tool("look", &NoArguments {}).into_future());
    assert!(pair.poll(call.as_mut()).is_none());
    drop(call);
    pair.run_until_idle();
    let sent = pair.transcript.lines().len();
    jobs.next()();
    pair.run_until_idle();
    assert_eq!(*seen.lock().unwrap(), Some(true));
    assert_eq!(pair.transcript.lines().len(), sent);
}

#[test]
fn a_job_that_is_never_run_still_ends_its_call() {
    let jobs = Jobs::default();
    let (client, mut pair) = connect(&jobs.server(), Revision::LATEST);
    let mut call = Box::pin(client.call_tool("block", &place("Oslo")).into_future());
    assert!(pair.poll(call.as_mut()).is_none());
    drop(jobs.next());
    let error = pair.poll(call.as_mut()).unwrap().unwrap_err();
    assert!(error.to_string().contains("the handler did not finish"), "{error}");
}

#[test]
fn without_a_spawner_a_blocking_handler_runs_on_the_thread_of_its_driver() {
    let block = |call: Call<NoArguments>| call.is_cancelled().to_string();
    let server = Server::new("s", "1").tool("block", "", blocking(block));
    let (client, mut pair) = connect(&server, Revision::LATEST);
    assert_eq!(text(&pair.run(client.call_tool("block", &NoArguments {})).unwrap()), "false");
}

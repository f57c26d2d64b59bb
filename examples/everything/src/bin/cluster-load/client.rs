use std::io::Write as _;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_sansio::peer::{Event, Failure};
use mcp_sansio::protocol::{CallToolResult, ElicitParams, ElicitResult, Map};
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_handlers::{ClientError, Host, HostRequest};
use mcp_sansio_tokio::{HttpConnection, connect};

use crate::Load;
use crate::node::{Echo, Steps};
use crate::tally::Tally;

/// Longer than a lease and a pause of the store: a call that has not ended by then was forgotten.
const PATIENCE: Duration = Duration::from_secs(45);
/// The events of a stream.
const STEPS: u32 = 300;
/// The pause after a failure, so that a node that is gone is not counted a thousand times.
const PAUSE: Duration = Duration::from_millis(200);

/// Makes calls with many clients, and checks how each one ends.
pub(crate) async fn load(load: Load) -> Result<(), String> {
    let tally = Arc::new(Tally::default());
    let next = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..load.clients)
        .map(|number| {
            let (load, tally, next) = (load.clone(), Arc::clone(&tally), Arc::clone(&next));
            tokio::spawn(async move { run_client(number, &load, &tally, &next).await })
        })
        .collect();
    for client in clients {
        client.await.map_err(|error| error.to_string())?;
    }
    let report = tally.report();
    std::io::stdout().write_all(report.as_bytes()).map_err(|error| error.to_string())?;
    let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    let ended = count(&tally.ok) + count(&tally.failed);
    if count(&tally.wrong) > 0 || ended != load.calls {
        return Err(format!("{ended} of {} calls have ended as they must", load.calls));
    }
    if load.strict && (count(&tally.failed) > 0 || count(&tally.sessions_lost) > 0) {
        return Err("calls have failed, or sessions were lost".into());
    }
    Ok(())
}

/// Opens sessions and keeps them.
pub(crate) async fn idle(load: Load) -> Result<(), String> {
    let tally = Arc::new(Tally::default());
    let mut sessions = Vec::new();
    for _ in 0..load.sessions {
        let host = host(&load, &tally, &Arc::default());
        sessions.push(connect(&load.url, &host).await.map_err(|error| error.to_string())?);
    }
    // There is nothing left to report a failure to.
    let _ = writeln!(std::io::stdout(), "{} sessions", sessions.len());
    std::future::pending().await
}

/// Returns a host that answers every question, and counts the sessions of its connection.
fn host(load: &Load, tally: &Arc<Tally>, opened: &Arc<AtomicU32>) -> Host {
    let (tally, opened) = (Arc::clone(tally), Arc::clone(opened));
    let host = Host::new("cluster-load", env!("CARGO_PKG_VERSION"));
    let host = if load.tasks {
        host.revisions(Revisions::only(Revision::V2026_07_28)).follow_tasks()
    } else {
        host.revisions(Revisions::only(Revision::V2025_11_25))
    };
    host.on_elicit(|_: HostRequest<ElicitParams>| {
        ElicitResult::accept(Map::new().with("word", "yes"))
    })
    .observe(move |event| {
        if let Event::Opened(_) = event
            && opened.fetch_add(1, Ordering::Relaxed) > 0
        {
            tally.sessions_lost.fetch_add(1, Ordering::Relaxed);
        }
    })
}

async fn open(load: &Load, tally: &Arc<Tally>) -> HttpConnection {
    loop {
        match connect(&load.url, &host(load, tally, &Arc::default())).await {
            Ok(connection) => return connection,
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn run_client(number: usize, load: &Load, tally: &Arc<Tally>, next: &AtomicUsize) {
    let mut connection = open(load, tally).await;
    loop {
        let call = next.fetch_add(1, Ordering::Relaxed);
        if call >= load.calls {
            // A node may be gone.
            let _ended = tokio::time::timeout(PAUSE * 10, connection.close()).await;
            return;
        }
        let text = format!("{number}-{call}");
        let outcome = match call % 10 {
            2 | 7 if load.tasks => {
                check(&connection, "asking_job", &text, &format!("{text} yes")).await
            }
            _ if load.tasks => check(&connection, "job", &text, &text).await,
            0 | 5 => check_steps(&connection, tally).await,
            2 | 7 => check(&connection, "ask", &text, &format!("{text} yes")).await,
            _ => check(&connection, "echo", &text, &text).await,
        };
        match outcome {
            Ok(()) => tally.succeed(),
            Err(End::Wrong(what)) => {
                tally.break_promise(what);
                // It has ended all the same.
                tally.failed.fetch_add(1, Ordering::Relaxed);
            }
            // Its answer may have been refused, which the server cannot know.
            Err(End::TimedOut) if call % 5 == 2 && !load.tasks => {
                tally.fail("the answer was not delivered".into())
            }
            Err(End::TimedOut) => {
                tally.break_promise("no end in time".into());
                tally.failed.fetch_add(1, Ordering::Relaxed);
            }
            Err(End::Failed(why, closed)) => {
                tally.fail(why);
                tokio::time::sleep(PAUSE).await;
                if closed {
                    tally.reconnected.fetch_add(1, Ordering::Relaxed);
                    connection = open(load, tally).await;
                }
            }
        }
        tokio::time::sleep(load.pause).await;
    }
}

/// Why a call has no result.
enum End {
    /// An error, and whether the connection is closed.
    Failed(String, bool),
    /// The client has given up.
    TimedOut,
    /// A broken promise.
    Wrong(String),
}

/// Calls a tool and compares its result.
async fn check(
    connection: &HttpConnection,
    tool: &str,
    text: &str,
    expected: &str,
) -> Result<(), End> {
    let call = connection
        .call_tool(tool, &Echo { text: text.into() })
        .timeout(PATIENCE)
        .timeout_hard(PATIENCE);
    compare(call.await.map(|result| text_of(&result)), expected)
}

/// Calls the tool that reports progress, and checks that the reports are complete and in order.
async fn check_steps(connection: &HttpConnection, tally: &Tally) -> Result<(), End> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&seen);
    let call = connection
        .call_tool("steps", &Steps { count: STEPS })
        .timeout(PATIENCE)
        .timeout_hard(PATIENCE)
        .on_progress(move |progress| {
            reported.lock().expect("no panic").push(progress.progress as u32);
        });
    let result = call.await.map(|result| text_of(&result));
    let is_ok = result.is_ok();
    let outcome = compare(result, &STEPS.to_string());
    let seen = seen.lock().expect("no panic");
    let in_order = seen.windows(2).all(|pair| pair[1] == pair[0] + 1);
    if !in_order || seen.first().is_some_and(|first| *first != 1) {
        // A loss that was not told: the call had more events after it.
        tally.break_promise("events are missing or out of order".into());
    } else if is_ok && seen.len() != STEPS as usize {
        tally.break_promise("a result before the last event".into());
    }
    outcome
}

fn text_of(result: &CallToolResult) -> String {
    result.content.first().and_then(|block| block.as_text()).unwrap_or_default().to_owned()
}

fn compare(result: Result<String, ClientError>, expected: &str) -> Result<(), End> {
    match result {
        Ok(text) if text == expected => Ok(()),
        Ok(text) => Err(End::Wrong(format!("the result of another call: {text:?}"))),
        Err(ClientError::TimedOut { .. }) => Err(End::TimedOut),
        Err(ClientError::Failed(failure)) => {
            let text = failure.to_string();
            let closed = matches!(failure, Failure::ConnectionLost);
            Err(End::Failed(text, closed))
        }
        Err(error) => Err(End::Failed(error.to_string(), true)),
    }
}

//! Opens a connection for a command line, and describes failures.

mod card;
mod child;
mod http;
mod sign_in;

use std::future::{Future, pending};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_sansio::jsonrpc::Omissions;
use mcp_sansio::peer::{Event, Timeouts, Violation};
use mcp_sansio::{Method, Revisions};
use mcp_sansio_cli::canned::{self, Seen};
use mcp_sansio_cli::recording;
use mcp_sansio_cli::together::{before, together};
use mcp_sansio_handlers::{Client, Host};
use mcp_sansio_tokio::skills;
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::NAME;
use crate::failure::Failure;
use crate::options::{Command, Options, Place};
use crate::terminal::say;

/// Connects to the server, runs the command, and closes the connection.
pub(crate) fn inspect(options: &Options) -> Result<ExitCode, String> {
    if let Some(file) = &options.record {
        // Fail before the connection, not after the recording would be lost.
        let made = recording::create_private(file);
        made.map_err(|error| format!("cannot record to {}: {error}", file.display()))?;
    }
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let outcome = runtime.block_on(async {
        match &options.server {
            Place::Program(program) => child::inspect(options, program).await,
            Place::Url(url) if matches!(options.command, Command::Card) => {
                card::show_card(options, url).await.map(|()| ExitCode::SUCCESS)
            }
            Place::Url(url) => http::inspect(options, url).await,
        }
    });
    // A task that still blocks a thread, such as name resolution, does not delay the exit.
    runtime.shutdown_background();
    outcome
}

/// Returns the host for any kind of connection.
fn host(options: &Options) -> (Host, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let mut timeouts = Timeouts::default();
    let patience = options.patience();
    (timeouts.call, timeouts.call_hard, timeouts.opening) = (patience, patience, patience);
    let host = canned::host(NAME, &seen).timeouts(timeouts).observe(|event| {
        if let Event::Violation(Violation::ElementsOmitted(omissions)) = event {
            remark_omissions(omissions);
        }
    });
    let mut host = skills::declare(host);
    if let Some(revision) = options.revision {
        host = host.revisions(Revisions::only(revision));
    }
    if options.trace {
        host = host.observe_operations(mcp_sansio_trace::telemetry());
    }
    if let Some(file) = &options.record {
        host = host.record(recording::tapes_at(file));
    }
    if matches!(options.command, Command::Call { .. }) {
        host = host.observe(|event| {
            if let Event::Notification(notification) = event
                && notification.method == Method::Message
            {
                say(&format!("log: {}", notification.params));
            }
        });
    }
    (host, seen)
}

/// Completes at the time limit of the command; never when listening without a timeout.
fn alarm(options: &Options) -> impl Future {
    let endless = matches!(options.command, Command::Listen { .. }) && options.timeout.is_none();
    let user_time = if options.sign_in.is_some() { sign_in::USER_TIME } else { Duration::ZERO };
    // Its time begins now, not when the future is polled first.
    let time = (!endless).then(|| sleep(options.patience() + user_time));
    async {
        match time {
            Some(time) => time.await,
            None => pending().await,
        }
    }
}

/// Returns the result of `work`, or that of a command whose time is over or that was interrupted.
async fn within(
    seen: &Seen,
    alarm: impl Future,
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    match interruptible(before(alarm, work)).await? {
        Some(outcome) => outcome,
        // Listening ends successfully after the requested time.
        None if seen.listening.load(Ordering::Relaxed) => Ok(()),
        None => Err(Failure::Silent),
    }
}

/// Returns the result of `work`, unless a signal comes first.
async fn interruptible<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::select! {
        // First, so that a signal is waited for before the work starts a server.
        biased;
        status = interruption() => Err(Failure::Interrupted(status)),
        outcome = work => Ok(outcome),
    }
}

/// Completes when the user interrupts the program or the system ends it. Returns the exit status.
/// Later signals have no other effect, so each step that takes long waits for them.
#[cfg(unix)]
async fn interruption() -> u8 {
    use std::future::poll_fn;
    use std::task::Poll;

    use tokio::signal::unix::{SignalKind, signal};

    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let received = |kind| Some((signal(kind).ok()?, kind.as_raw_value()));
    let kinds = kinds.into_iter().filter(|kind| !is_ignored(kind.as_raw_value()));
    let mut signals: Vec<_> = kinds.filter_map(received).collect();
    let number = poll_fn(|cx| {
        let received = signals
            .iter_mut()
            .find_map(|(signal, number)| signal.poll_recv(cx).is_ready().then_some(*number));
        received.map_or(Poll::Pending, Poll::Ready)
    });
    u8::try_from(number.await).map_or(u8::MAX, |number| 128_u8.saturating_add(number))
}

/// As on Unix, where Ctrl-C is the signal 2.
#[cfg(not(unix))]
async fn interruption() -> u8 {
    if tokio::signal::ctrl_c().await.is_err() {
        pending::<()>().await;
    }
    130
}

/// Returns whether the program was started to ignore a signal, as by `nohup`. Only Linux tells.
#[cfg(unix)]
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

/// Runs `work` while the connection is driven, then closes the connection within `farewell`.
async fn converse(
    options: &Options,
    mut driver: impl Future + Unpin,
    (client, seen): (&Client, &Seen),
    work: impl Future<Output = Result<(), Failure>>,
    farewell: Duration,
) -> Result<(), Failure> {
    let outcome = together(&mut driver, within(seen, alarm(options), work)).await;
    client.close();
    // The result of the shutdown does not affect the result of the command.
    let _ = interruptible(before(sleep(farewell), &mut driver)).await?;
    outcome
}

/// Describes the first protocol violation of the server.
fn violation(seen: &Seen) -> Option<String> {
    let violation = seen.violation.get()?;
    Some(format!("the server broke a rule of the protocol: {violation}"))
}

/// Prints a violation of the server although the command succeeded.
fn remark(violation: Option<&str>) {
    if let Some(violation) = violation {
        say(&format!("{NAME}: note: {violation}"));
    }
}

/// Prints what was left out of a result.
fn remark_omissions(omissions: &Omissions) {
    for omission in omissions {
        say(&format!("{NAME}: note: left out of the result: {omission}"));
    }
    match omissions.count() - omissions.iter().count() {
        0 => {}
        more => say(&format!("{NAME}: note: left out of the result: {more} more")),
    }
}

fn silence(options: &Options) -> String {
    format!("did not answer within {} s", options.patience().as_secs_f64())
}

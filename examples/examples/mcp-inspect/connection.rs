//! From a command line to a connection, and to words for whatever becomes of it.

use std::fmt::Write;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use mcp_sansio::Revisions;
use mcp_sansio::handler::{Client, ClientEndpoint, Endpoint};
use mcp_sansio::peer::{Event, Timeouts};
use mcp_sansio::protocol::Method;
use mcp_sansio_async::{ByteStream, Driver, Timer};
use mcp_sansio_examples::canned::{self, Seen};
use mcp_sansio_examples::runtime::Runtime;
use mcp_sansio_examples::together::{before, together};
use mcp_sansio_examples::wire::{Noise, Viewer, Wire};

use crate::failure::Failure;
use crate::options::{self, Options};
use crate::{NAME, commands, say};

/// How long a server may take to exit when it is no longer needed, before it is made to: whoever
/// only looks does not like to wait.
const GRACE: Duration = Duration::from_millis(500);

/// How long what is still to be sent may take once the work is done.
const FAREWELL: Duration = Duration::from_millis(200);

/// How a server ended, and how it behaved until then.
struct End {
    /// What it did that it should not have, in words.
    misdeed: Option<String>,
    status: ExitStatus,
    last_words: Vec<String>,
    forced: bool,
}

/// Starts the server, does what is asked for, ends the server.
pub(crate) fn inspect(options: &Options) -> Result<(), String> {
    let mut command = Command::new(&options.server[0]);
    command.args(&options.server[1..]);
    let viewer = options.wire.then(|| -> Viewer {
        Box::new(|direction, line| say(&format!("{} {line}", direction.as_str())))
    });
    let outcome = match options.runtime {
        Runtime::Tokio => options.runtime.block_on(on_tokio(options, command, viewer)),
        Runtime::Std => options.runtime.block_on(on_std(options, command, viewer)),
    };
    let (outcome, end) = outcome.map_err(|error| error.to_string())??;
    match outcome {
        Ok(()) => {
            if let Some(misdeed) = end.misdeed {
                say(&format!("{NAME}: note: {misdeed}"));
            }
            Ok(())
        }
        Err(failure) => Err(explain(failure, end, options.patience())),
    }
}

type Inspected = Result<(Result<(), Failure>, End), String>;

async fn on_tokio(options: &Options, command: Command, viewer: Option<Viewer>) -> Inspected {
    use mcp_sansio_tokio::{ChildServer, Graces, TokioTimer, now};
    let spawned = ChildServer::spawn(command).map_err(|error| error.to_string())?;
    let (child, stream) = spawned;
    let (client, endpoint, seen) = connect(options, now());
    let wire = Wire::new(stream, viewer);
    let noise = wire.noise();
    let driver = Driver::new(endpoint, wire, TokioTimer::new());
    let outcome = converse(options, driver, client, &seen).await;
    let mut graces = Graces::default();
    (graces.end_of_input, graces.terminate) = (GRACE, GRACE);
    let report = child.shutdown(graces).await.map_err(|error| error.to_string())?;
    let (status, last_words, forced) = (report.status, report.stderr_tail, report.forced);
    let misdeed = describe(&noise, &seen);
    Ok((outcome, End { misdeed, status, last_words, forced }))
}

async fn on_std(options: &Options, command: Command, viewer: Option<Viewer>) -> Inspected {
    use mcp_sansio_std::{ChildOptions, ChildServer, Clock, now};
    let mut child_options = ChildOptions::default();
    (child_options.patience, child_options.term_patience) = (GRACE, GRACE);
    let spawned =
        ChildServer::spawn_with(command, child_options).map_err(|error| error.to_string())?;
    let (child, stream) = spawned;
    let (client, endpoint, seen) = connect(options, now());
    let wire = Wire::new(stream, viewer);
    let noise = wire.noise();
    let driver = Driver::new(endpoint, wire, Clock::new());
    let outcome = converse(options, driver, client, &seen).await;
    let report = child.shutdown().map_err(|error| error.to_string())?;
    let (status, last_words) = (report.status, report.stderr_tail);
    let (misdeed, forced) = (describe(&noise, &seen), report.forced.is_some());
    Ok((outcome, End { misdeed, status, last_words, forced }))
}

/// The client's side of the connection.
fn connect(options: &Options, now: mcp_sansio::Instant) -> (Client, ClientEndpoint, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let mut timeouts = Timeouts::default();
    let patience = options.patience();
    (timeouts.call, timeouts.call_hard, timeouts.opening) = (patience, patience, patience);
    let mut host = canned::host(NAME, &seen).timeouts(timeouts);
    if let Some(revision) = options.revision {
        host = host.revisions(Revisions::only(revision));
    }
    if matches!(options.command, options::Command::Call { .. }) {
        host = host.observe(|event| {
            if let Event::Notification(notification) = event
                && notification.method == Method::Message
            {
                say(&format!("log: {}", notification.params));
            }
        });
    }
    let (client, endpoint) = host.connect(mcp_sansio_std::seed(), now);
    (client, endpoint, seen)
}

/// Does the work while the connection is driven, and closes the connection.
async fn converse<E: Endpoint, S: ByteStream, T: Timer>(
    options: &Options,
    mut driver: Driver<E, S, T>,
    client: Client,
    seen: &Seen,
) -> Result<(), Failure> {
    let unlimited =
        matches!(options.command, options::Command::Listen { .. }) && options.timeout.is_none();
    let work = commands::run(options, &client, seen);
    let outcome = if unlimited {
        together(&mut driver, work).await
    } else {
        let alarm = options.runtime.sleep(options.patience());
        let outcome = together(&mut driver, before(alarm, work)).await;
        match (outcome, &options.command) {
            (Some(outcome), _) => outcome,
            // It was told for how long to listen.
            (None, options::Command::Listen { .. }) if client.session().is_some() => Ok(()),
            (None, _) => Err(Failure::Silent),
        }
    };
    client.close();
    // What it comes to says nothing about the work.
    let _ = before(options.runtime.sleep(FAREWELL), &mut driver).await;
    outcome
}

/// What a server did that it should not have, in words.
fn describe(noise: &Noise, seen: &Seen) -> Option<String> {
    let (count, first) = noise.seen();
    let lines = match count {
        0 => {
            let violation = seen.violation.get()?;
            return Some(format!("the server broke a rule of the protocol: {violation}"));
        }
        1 => "a line that is no message",
        _ => "lines that are no messages",
    };
    let count = if count == 1 { String::new() } else { format!("{count} ") };
    Some(format!(
        "the server wrote {count}{lines} to its standard output, which is for messages only: `{first}`"
    ))
}

/// One message that says what went wrong, and what is known besides.
fn explain(failure: Failure, end: End, patience: Duration) -> String {
    let mut message = match failure {
        Failure::Lost if end.forced => "the server closed the connection".into(),
        Failure::Lost => format!("the server went away: {}", end.status),
        Failure::Silent => {
            format!("the server did not answer within {} s", patience.as_secs_f64())
        }
        Failure::Other(message) => message,
    };
    // Nothing can fail that writes into a string.
    if let Some(misdeed) = end.misdeed {
        let _ = write!(message, "; {misdeed}");
    }
    if !end.last_words.is_empty() {
        message.push_str("; on standard error it said last:");
        for line in end.last_words {
            let _ = write!(message, "\n  {line}");
        }
    }
    message
}

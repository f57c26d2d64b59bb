//! A server that is started as a child process and used over its standard streams.

use std::fmt::Write;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use mcp_sansio_cli::canned::Seen;
use mcp_sansio_cli::wire::{Noise, Viewer, Wire};
use mcp_sansio_tokio::{ChildServer, GracePeriods, drive, now, seed};

use super::{converse, host, remark, silence, violation};
use crate::failure::Failure;
use crate::options::Options;
use crate::{commands, say};

/// How long a server may take to exit before it is terminated. Short, because an interactive user
/// is waiting.
const GRACE: Duration = Duration::from_millis(500);

/// How long pending output may take after the command has finished.
const FAREWELL: Duration = Duration::from_millis(200);

/// How a server ended, and how it behaved before.
struct End {
    /// A description of its first violation.
    violation: Option<String>,
    status: ExitStatus,
    last_words: Vec<String>,
    forced: bool,
}

/// Starts the server, runs the command, and shuts the server down.
pub(super) async fn inspect(options: &Options, words: &[String]) -> Result<(), String> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let viewer = options.wire.then(|| -> Viewer {
        Box::new(|direction, line| say(&format!("{} {line}", direction.as_str())))
    });
    let (outcome, end) = converse_with(options, command, viewer).await?;
    match outcome {
        Ok(()) => {
            remark(end.violation.as_deref());
            Ok(())
        }
        Err(failure) => Err(explain(failure, end, options)),
    }
}

async fn converse_with(
    options: &Options,
    command: Command,
    viewer: Option<Viewer>,
) -> Result<(Result<(), Failure>, End), String> {
    let spawned = ChildServer::spawn(command).map_err(|error| error.to_string())?;
    let (child, stream) = spawned;
    let (host, seen) = host(options);
    let (client, endpoint) = host.connect(seed(), now());
    let wire = Wire::new(stream, viewer);
    let noise = wire.noise();
    let driver = drive(endpoint, wire);
    let work = commands::run(options, &client, &seen);
    let outcome = converse(options, driver, &client, work, FAREWELL).await;
    let mut grace_periods = GracePeriods::default();
    (grace_periods.end_of_input, grace_periods.terminate) = (GRACE, GRACE);
    let report = child.shutdown(grace_periods).await.map_err(|error| error.to_string())?;
    let (status, last_words, forced) = (report.status, report.stderr_tail, report.forced);
    let violation = describe(&noise, &seen);
    Ok((outcome, End { violation, status, last_words, forced }))
}

/// Describes the first violation of the server, if there is one.
fn describe(noise: &Noise, seen: &Seen) -> Option<String> {
    let (count, first) = noise.seen();
    let lines = match count {
        0 => return violation(seen),
        1 => "a line that is not a message",
        _ => "lines that are not messages",
    };
    let count = if count == 1 { String::new() } else { format!("{count} ") };
    Some(format!(
        "the server wrote {count}{lines} to its standard output, which is reserved for messages: `{first}`"
    ))
}

/// Combines a failure with the known circumstances into one message.
fn explain(failure: Failure, end: End, options: &Options) -> String {
    let mut message = match failure {
        Failure::Lost if end.forced => "the server closed the connection".into(),
        Failure::Lost => format!("the server exited: {}", end.status),
        Failure::Silent => format!("the server {}", silence(options)),
        failure => failure.to_string(),
    };
    // Writing to a string cannot fail.
    if let Some(violation) = end.violation {
        let _ = write!(message, "; {violation}");
    }
    if !end.last_words.is_empty() {
        message.push_str("; its last lines on standard error:");
        for line in end.last_words {
            let _ = write!(message, "\n  {line}");
        }
    }
    message
}

//! A server that is started as a child process and used over its standard streams.

use std::fmt::Write;
use std::pin::pin;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mcp_sansio_cli::canned::Seen;
use mcp_sansio_cli::wire::{Direction, Lines, Noise, Viewer};
use mcp_sansio_tokio::adapter::child::{self, GracePeriods};
use mcp_sansio_tokio::{Error, SpawnOptions, spawn_with};

use super::{alarm, host, interruptible, remark, silence, violation, within};
use crate::commands;
use crate::failure::Failure;
use crate::options::{Options, Program};
use crate::terminal::say;

/// How long a server may take to exit before it is terminated. Short, because an interactive user
/// is waiting.
const GRACE: Duration = Duration::from_millis(500);

/// How a server ended, and how it behaved before.
#[derive(Default)]
struct End {
    /// A description of its first violation.
    violation: Option<String>,
    /// Its exit status, unless it was told to exit.
    status: Option<ExitStatus>,
    last_words: Vec<String>,
}

/// Starts the server, runs the command, and shuts the server down.
pub(super) async fn inspect(options: &Options, program: &Program) -> Result<ExitCode, String> {
    let (name, args) = (&program.words[0], &program.words[1..]);
    let command = child::command(name, args, &program.env, program.directory.as_deref());
    let viewer = options.wire.then(|| -> Viewer {
        Box::new(|direction, line| say(&format!("{} {line}", direction.as_str())))
    });
    let (outcome, end) = converse_with(options, command, Lines::new(viewer)).await?;
    match outcome {
        Ok(()) => {
            remark(end.violation.as_deref());
            Ok(ExitCode::SUCCESS)
        }
        Err(Failure::Interrupted(status)) => Ok(status.into()),
        Err(failure) => Err(explain(failure, end, options)),
    }
}

async fn converse_with(
    options: &Options,
    command: Command,
    lines: Lines,
) -> Result<(Result<(), Failure>, End), String> {
    let noise = lines.noise();
    let lines = Mutex::new(lines);
    let mut grace_periods = GracePeriods::DEFAULT;
    (grace_periods.end_of_input, grace_periods.terminate) = (GRACE, GRACE);
    let spawn_options =
        SpawnOptions::new().grace_periods(grace_periods).observe_bytes(move |direction, bytes| {
            let direction = match direction {
                mcp_sansio::peer::Direction::Received => Direction::In,
                _ => Direction::Out,
            };
            lines.lock().unwrap_or_else(PoisonError::into_inner).look(direction, bytes);
        });
    let (host, seen) = host(options);
    let mut alarm = pin!(alarm(options));
    // The opening has the same time limit as the command, and says more about the reason.
    // Interrupting it kills the server, which serves nothing yet.
    let client = match interruptible(spawn_with(command, &host, spawn_options)).await {
        Ok(Ok(client)) => client,
        Err(interrupted) => return Ok((Err(interrupted), End::default())),
        Ok(Err(Error::Closed { reason, status, stderr_tail: last_words, .. })) => {
            let end = End { violation: describe(&noise, &seen), status, last_words };
            return Ok((Err(Failure::from(*reason)), end));
        }
        Ok(Err(error)) => return Err(error.to_string()),
    };
    let work = commands::run(options, &client, &seen);
    let outcome = within(&seen, alarm.as_mut(), work).await;
    // MCP 2025-11-25 basic/lifecycle#shutdown [STDIO-015]: also if a signal ends the command.
    let report = match interruptible(client.shutdown()).await {
        Ok(report) => report.map_err(|error| error.to_string())?,
        // The server was killed.
        Err(interrupted) => return Ok((Err(interrupted), End::default())),
    };
    let status = Some(report.status).filter(|_| !report.forced);
    let violation = describe(&noise, &seen);
    Ok((outcome, End { violation, status, last_words: report.stderr_tail }))
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
        Failure::Lost => match end.status {
            Some(status) => format!("the server exited: {status}"),
            None => "the server closed the connection".into(),
        },
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

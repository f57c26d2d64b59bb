//! An interactive client that inspects any server and reports its faults.

mod check;
mod commands;
mod connection;
mod diagram;
mod failure;
mod options;
mod recordings;
mod skills;

use std::io::{self, Write};
use std::process::ExitCode;

use mcp_sansio::Printable;
use mcp_sansio_cli::arguments::Arguments;

use options::{Options, USAGE};
use recordings::Task;

const NAME: &str = "mcp-inspect";

fn main() -> ExitCode {
    let mut arguments = match Arguments::from_args() {
        Ok(arguments) => arguments,
        Err(stop) => return stop.report(NAME, USAGE),
    };
    let outcome = match Task::parse(&mut arguments) {
        Ok(Some(task)) => task.run(),
        Ok(None) => match Options::parse(arguments) {
            Ok(options) => connection::inspect(&options),
            Err(stop) => return stop.report(NAME, USAGE),
        },
        Err(stop) => return stop.report(NAME, USAGE),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&format!("{NAME}: {message}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints a line of results, without control characters of the server. Write errors are ignored.
fn show(line: &str) {
    let _ = writeln!(io::stdout(), "{}", Printable::new(line));
}

/// Prints a line to standard error, separate from the results.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}", Printable::new(line));
}

//! An interactive client that inspects any server and reports its faults.

mod check;
mod commands;
mod completions;
mod connection;
mod diagram;
mod failure;
mod options;
mod recordings;
mod skills;
mod terminal;

use std::process::ExitCode;

use mcp_sansio_cli::arguments::{Arguments, Stop};

use options::{Options, USAGE};
use recordings::Task;

const NAME: &str = "mcp-inspect";

fn main() -> ExitCode {
    match run() {
        Ok(Ok(status)) => status,
        Ok(Err(message)) => {
            terminal::say_failure(&message);
            ExitCode::FAILURE
        }
        Err(stop) => stop.report(NAME, USAGE),
    }
}

/// Runs the command line. Returns its exit status or its failure, or why it was not run.
fn run() -> Result<Result<ExitCode, String>, Stop> {
    let mut arguments = Arguments::from_args()?;
    if arguments.first() == Some("completions") {
        return completions::print(arguments).map(|()| Ok(ExitCode::SUCCESS));
    }
    Ok(match Task::parse(&mut arguments)? {
        Some(task) => task.run().map(|()| ExitCode::SUCCESS),
        None => connection::inspect(&Options::parse(arguments)?),
    })
}

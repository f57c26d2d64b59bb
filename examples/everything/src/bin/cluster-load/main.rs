//! A server to run on many nodes, and clients that load them and check every answer: for fault
//! tests of deployments, see `.ci/cluster`.

mod client;
mod node;
mod tally;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use everything::runtime;
use mcp_sansio_cli::arguments::{Argument, Arguments, Stop};

const USAGE: &str = "\
cluster-load node OPTIONS
cluster-load load --url URL [--clients N] [--calls N] [--pause MILLISECONDS] [--strict] [--tasks]
cluster-load idle --url URL [--sessions N]

node: serves the tools that the load calls; the options are those of bench-server.
load: N clients (64) make N calls (10000) in total and check that each one ends exactly once, that
events arrive in order and complete, or that their loss is told. Exits with 1 if not. With
--strict, also if any call fails or any session is lost. With --tasks, the calls are tasks of
2026-07-28, and each one has to end.
idle: opens N sessions (1000) and keeps them until it is told to stop.
";

fn main() -> ExitCode {
    let mut arguments = match Arguments::from_args() {
        Ok(arguments) => arguments,
        Err(stop) => return stop.report("cluster-load", USAGE),
    };
    let outcome = match arguments.shift() {
        Ok(Some(Argument::Word(word))) if word == "node" => {
            match runtime::parse_server(arguments) {
                Ok(place) => node::server().and_then(|server| place.serve(server, "")),
                Err(stop) => return stop.report("cluster-load", USAGE),
            }
        }
        Ok(Some(Argument::Word(word))) if word == "load" || word == "idle" => {
            match parse(arguments) {
                Ok(load) if word == "load" => run(client::load(load)),
                Ok(load) => run(client::idle(load)),
                Err(stop) => return stop.report("cluster-load", USAGE),
            }
        }
        Ok(_) => return Stop::wrong("give `node`, `load` or `idle`").report("cluster-load", USAGE),
        Err(stop) => return stop.report("cluster-load", USAGE),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nothing left to report a failure to.
            let _ = writeln!(std::io::stderr(), "cluster-load: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A run.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    url: String,
    clients: usize,
    calls: usize,
    /// Between two calls of a client.
    pause: Duration,
    strict: bool,
    /// Whether the calls are tasks.
    tasks: bool,
    sessions: usize,
}

fn parse(mut arguments: Arguments) -> Result<Load, Stop> {
    let mut load = Load {
        url: String::new(),
        clients: 64,
        calls: 10_000,
        pause: Duration::ZERO,
        strict: false,
        tasks: false,
        sessions: 1000,
    };
    while let Some(argument) = arguments.shift()? {
        let Argument::Flag(flag) = argument else { return Err(Stop::wrong("unexpected argument")) };
        let mut number = || -> Result<usize, Stop> {
            let text = arguments.value(&flag)?;
            text.parse().map_err(|_| Stop::Wrong(format!("`{flag}` needs a number")))
        };
        match flag.as_str() {
            "--url" => load.url = arguments.value(&flag)?,
            "--clients" => load.clients = number()?,
            "--calls" => load.calls = number()?,
            "--sessions" => load.sessions = number()?,
            "--pause" => load.pause = Duration::from_millis(number()? as u64),
            "--strict" => load.strict = true,
            "--tasks" => load.tasks = true,
            _ => return Err(Stop::unknown(&flag)),
        }
    }
    if load.url.is_empty() { Err(Stop::wrong("`--url URL` is missing")) } else { Ok(load) }
}

fn run(work: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(work)
}

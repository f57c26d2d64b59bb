//! Compares other SDKs with this project. Takes `all` or the name of a part, and `--quick`.

mod http;
mod http_connection;
mod links;
mod messages;
mod process;
mod programs;
mod sizes;
mod sse;
mod stdio;
mod table;

use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
peers all|links|idle|stdio|http|stores|sse|sizes [--quick]

Builds a program for each SDK, measures them, and prints tables in Markdown.

  links     round trips in one process: instructions, allocations, time
  idle      memory of idle clients and servers in one process
  stdio     servers on standard input and output
  http      servers on HTTP
  stores    servers on HTTP with stores of sessions and events: needs redis-server
  sse       decoders of Server-Sent Events
  sizes     the smallest servers: size, crates, time to build
  --quick   a shorter and less accurate run
";

/// How much work is done for each figure.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// How long servers are called.
    time: Duration,
    /// The number of round trips for timing a link.
    rounds: u64,
    /// The number of additional round trips in the second instruction count.
    counted_rounds: u64,
}

fn main() -> ExitCode {
    let (flags, words): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let effort = match &*flags.iter().map(String::as_str).collect::<Vec<_>>() {
        [] => Effort { time: Duration::from_secs(5), rounds: 50_000, counted_rounds: 1000 },
        ["--quick"] => Effort { time: Duration::from_secs(1), rounds: 5000, counted_rounds: 100 },
        _ => return usage(),
    };
    match &*words.iter().map(String::as_str).collect::<Vec<_>>() {
        ["all"] => {
            links::compare(effort);
            links::compare_idle();
            stdio::compare(effort);
            http::compare(effort);
            http::compare_stores(effort);
            sse::compare(effort);
            sizes::compare();
        }
        ["links"] => links::compare(effort),
        ["idle"] => links::compare_idle(),
        ["stdio"] => stdio::compare(effort),
        ["http"] => http::compare(effort),
        ["stores"] => http::compare_stores(effort),
        ["sse"] => sse::compare(effort),
        ["sizes"] => sizes::compare(),
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::FAILURE
}

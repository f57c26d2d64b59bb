//! A server for measurements.

use std::io::Write;
use std::process::ExitCode;

use everything::{bench, runtime};
use mcp_sansio_cli::arguments::Arguments;
use mcp_sansio_trace as trace;

const USAGE: &str = "\
bench-server (--stdio | --http ADDRESS [--legacy-sse] [--auth]) [--runtime NAME]
             [--store URL [--node NAME]] [--seal-key-file FILE] [--trace]

A server for measurements: tools echo {\"text\"}, add {\"a\",\"b\"} and progress {\"count\"} (that many
notifications, then a result), resource mem://blob (64 KiB of text).

  --stdio          serve on standard input and output
  --http ADDRESS   serve HTTP at http://ADDRESS/mcp; port 0 takes a free one
  --legacy-sse     serve clients of 2024-11-05 as well, at /sse
  --auth           require access tokens, and start an authorization server that grants them
                   without asking: for tests and demonstrations
  --store URL      share sessions with other nodes through the Redis at URL, and answer health
                   checks at /health
  --node NAME      the name of this node, which Redis lists
  --seal-key-file FILE
                   seal the states of input rounds with the key in FILE, 64 hexadecimal digits;
                   further lines are previous keys
  --trace          write a line for each request and notification on standard error
  --runtime NAME   tokio (default), smol, async-std or std
";

fn main() -> ExitCode {
    let place = match Arguments::from_args().and_then(runtime::parse_server) {
        Ok(place) => place,
        Err(stop) => return stop.report("bench-server", USAGE),
    };
    let server = bench::server();
    let server = if place.trace { server.observe_operations(trace::telemetry()) } else { server };
    match place.serve(server, "add") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nothing left to report a failure to.
            let _ = writeln!(std::io::stderr(), "bench-server: {error}");
            ExitCode::FAILURE
        }
    }
}

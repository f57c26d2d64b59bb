//! A server with every feature, for whoever tests a client.

use std::io::Write;
use std::process::ExitCode;

use mcp_sansio_examples::arguments::Arguments;
use mcp_sansio_examples::{everything, runtime};

const USAGE: &str = "\
everything-server (--stdio | --http ADDRESS [--legacy-sse] [--auth]) [--runtime NAME]
                  [--no-tasks] [--record FOLDER]

Offers every feature that a server can have, at all five revisions: content of all kinds, progress,
log messages, questions to the user and to the model, subscriptions, completion, and the fixtures
of the official conformance suite.

  --stdio          serve on standard input and output
  --http ADDRESS   serve HTTP at http://ADDRESS/mcp; port 0 takes a free one
  --legacy-sse     serve clients of 2024-11-05 as well, at /sse
  --auth           serve those alone who have signed in, and start an authorization server for them,
                   which asks nobody anything: for tests and demonstrations
  --no-tasks       run nothing as a task, and leave out what runs in no other way: for clients of
                   2025-11-25 that call every tool plainly
  --record FOLDER  record what the server does, a file for each connection on a byte stream and one
                   for all clients on HTTP, for `mcp-inspect replay` and `mcp-inspect show`
  --runtime NAME   tokio (default), smol, async-std or std
";

fn main() -> ExitCode {
    let place = match Arguments::from_args().and_then(runtime::parse_server) {
        Ok(place) => place,
        Err(stop) => return stop.report("everything-server", USAGE),
    };
    match place.serve(everything::server(place.runtime, !place.no_tasks), everything::WRITES) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell if this fails.
            let _ = writeln!(std::io::stderr(), "everything-server: {error}");
            ExitCode::FAILURE
        }
    }
}

//! A server with every feature, to test clients with.

use std::io::Write;
use std::process::ExitCode;

use everything::{runtime, server};
use mcp_sansio_cli::arguments::Arguments;
use mcp_sansio_trace as trace;

const USAGE: &str = "\
everything-server (--stdio | --http ADDRESS [--auth] | --unix PATH) [--legacy-sse]
                  [--runtime NAME] [--no-tasks] [--extensions] [--skills FOLDER]
                  [--record FOLDER] [--store URL [--node NAME]]
                  [--seal-key-file FILE] [--trace]

Offers every server feature at all five revisions: content of all kinds, progress, log messages,
elicitation and sampling, subscriptions, completion, and the fixtures of the official conformance
suite.

  --stdio          serve on standard input and output
  --http ADDRESS   serve HTTP at http://ADDRESS/mcp; port 0 takes a free one
  --unix PATH      serve HTTP at http://localhost/mcp on the Unix-domain socket at PATH
  --legacy-sse     serve clients of 2024-11-05 as well, at /sse
  --auth           require access tokens, and start an authorization server that grants them
                   without asking: for tests and demonstrations
  --no-tasks       run no tools as tasks, and omit those that need it: for clients of 2025-11-25
                   that call every tool without a task
  --extensions     offer MCP Apps and an extension of its own, `com.example/sums`
  --skills FOLDER  serve the skills in FOLDER as well
  --record FOLDER  record the server for `mcp-inspect replay` and `mcp-inspect show`: one file for
                   each connection on a byte stream, and one for all clients on HTTP
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
        Err(stop) => return stop.report("everything-server", USAGE),
    };
    let server = server::server(place.runtime, !place.no_tasks);
    let server = if place.extensions { server::with_extensions(server) } else { server };
    let server = if place.trace { server.observe_operations(trace::telemetry()) } else { server };
    let server = match &place.skills {
        Some(folder) => server::with_skills(server, folder),
        None => Ok(server),
    };
    match server.and_then(|server| place.serve(server, server::WRITES)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nothing left to report a failure to.
            let _ = writeln!(std::io::stderr(), "everything-server: {error}");
            ExitCode::FAILURE
        }
    }
}

//! A demonstration in one run: a client and a server at every revision, in memory, over pipes and
//! over HTTP.

mod cutting_proxy;
mod http_server;
mod scenes;
mod stage;
mod trace;

use std::io::{self, Write};
use std::process::ExitCode;

use mcp_sansio_cli::arguments::{Argument, Arguments, Stop};

use stage::Stage;

const USAGE: &str = "\
tour [--wire]

Shows a client and a server that communicate at every revision of the protocol.

  --wire   print every frame and every HTTP exchange as well
";

/// The role of this process. The tour starts itself as a server.
enum Role {
    Tour { wire: bool },
    Server,
}

fn parse(mut arguments: Arguments) -> Result<Role, Stop> {
    let mut wire = false;
    while let Some(argument) = arguments.shift()? {
        match argument {
            Argument::Flag(flag) if flag == "--wire" => wire = true,
            Argument::Flag(flag) => return Err(Stop::unknown(&flag)),
            Argument::Word(word) if word == "serve" => return Ok(Role::Server),
            Argument::Word(word) => {
                return Err(Stop::Wrong(format!("unexpected argument `{word}`")));
            }
            Argument::Rest(_) => return Err(Stop::wrong("unexpected argument `--`")),
        }
    }
    Ok(Role::Tour { wire })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let role = match Arguments::from_args().and_then(parse) {
        Ok(role) => role,
        Err(stop) => return stop.report("tour", USAGE),
    };
    let outcome = match role {
        Role::Server => mcp_sansio_tokio::serve_stdio(scenes::server()).await.map_err(Into::into),
        Role::Tour { wire } => scenes::play(&Stage::new(wire)).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nothing left to report a failure to.
            let _ = writeln!(io::stderr(), "tour: {error}");
            ExitCode::FAILURE
        }
    }
}

//! The runtimes that the programs support.

use std::future::{Future, poll_fn};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use mcp_sansio_async::Timer;
use mcp_sansio_cli::recording;
use mcp_sansio_handlers::Server;
use mcp_sansio_handlers::endpoint::IntoEndpoint;

use crate::{http, seal};
use mcp_sansio_cli::arguments::{Argument, Arguments, Stop};

/// The runtime that polls futures, performs I/O and runs timers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// tokio with a single thread.
    #[default]
    Tokio,
    /// smol, with one thread for spawned tasks.
    Smol,
    /// async-std, with its thread pool for spawned tasks.
    AsyncStd,
    /// Blocking calls, with a thread for each task.
    Std,
}

/// A future that completes after a pause.
pub type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Runtime {
    /// Returns the runtime called `name`.
    ///
    /// # Errors
    ///
    /// Fails if the name is unknown.
    pub fn parse(name: &str) -> Result<Self, Stop> {
        match name {
            "tokio" => Ok(Self::Tokio),
            "smol" => Ok(Self::Smol),
            "async-std" => Ok(Self::AsyncStd),
            "std" => Ok(Self::Std),
            _ => Err(Stop::Wrong(format!(
                "unknown runtime `{name}`; known runtimes: tokio, smol, async-std and std"
            ))),
        }
    }

    /// Waits for `duration` on this runtime.
    #[must_use]
    pub fn sleep(self, duration: Duration) -> Pause {
        match self {
            // The timer is created at the first poll, which happens on the runtime.
            Self::Tokio => Box::pin(async move { tokio::time::sleep(duration).await }),
            Self::Smol | Self::AsyncStd => Box::pin(async move {
                async_io::Timer::after(duration).await;
            }),
            Self::Std => {
                let mut clock = mcp_sansio_std::Clock::new();
                let deadline = clock.now() + duration;
                Box::pin(poll_fn(move |cx| clock.poll_until(cx, deadline)))
            }
        }
    }

    /// Runs a future to completion on this thread.
    ///
    /// # Errors
    ///
    /// Fails if the system is out of resources, such as file descriptors.
    pub fn block_on<F: Future>(self, future: F) -> std::io::Result<F::Output> {
        match self {
            Self::Tokio => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                let output = runtime.block_on(future);
                // A read of a terminal that is still blocked does not delay the exit.
                runtime.shutdown_background();
                Ok(output)
            }
            Self::Smol => Ok(smol::block_on(future)),
            Self::AsyncStd => Ok(async_std::task::block_on(future)),
            Self::Std => Ok(mcp_sansio_std::block_on(future)),
        }
    }

    /// Serves on standard input and output until the connection ends.
    ///
    /// # Errors
    ///
    /// Returns a description of the failure. A client that disconnects is not an error.
    pub fn serve_stdio(self, server: impl IntoEndpoint) -> Result<(), String> {
        match self {
            Self::Tokio => self
                .block_on(mcp_sansio_tokio::serve_stdio(server))
                .map_err(|error| error.to_string())?
                .map_err(|error| error.to_string()),
            Self::Smol | Self::AsyncStd => self
                .block_on(mcp_sansio_async_std::serve_stdio(server))
                .map_err(|error| error.to_string())?
                .map_err(|error| error.to_string()),
            Self::Std => mcp_sansio_std::serve_stdio(server).map_err(|error| error.to_string()),
        }
    }
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// On standard input and output.
    Stdio,
    /// For HTTP on this address.
    Http(String),
    /// For HTTP on the Unix-domain socket at this path.
    #[cfg(unix)]
    Unix(PathBuf),
}

/// How and where to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The runtime.
    pub runtime: Runtime,
    /// Where to listen.
    pub transport: Transport,
    /// Whether to serve clients of 2024-11-05 over HTTP as well.
    pub legacy_sse: bool,
    /// Whether HTTP clients must be authorized.
    pub auth: bool,
    /// Whether tasks are disabled.
    pub no_tasks: bool,
    /// Whether extensions are offered.
    pub extensions: bool,
    /// Whether a line is written for each request and notification.
    pub trace: bool,
    /// The folder of skills to serve, if any.
    pub skills: Option<PathBuf>,
    /// The folder for recordings, if any.
    pub record: Option<PathBuf>,
    /// The URL of the Redis through which nodes share their sessions, if any.
    pub store: Option<String>,
    /// The name of this node.
    pub node: Option<String>,
    /// The file of the keys that seal request states, if any.
    pub seal_key_file: Option<PathBuf>,
}

impl Place {
    /// Serves until the connection ends, or over HTTP until the process is told to stop. With
    /// authorization, the tool `writes` requires an additional scope.
    ///
    /// # Errors
    ///
    /// Returns a description of the failure. A client that disconnects is not an error.
    pub fn serve(&self, server: Server, writes: &str) -> Result<(), String> {
        let server = match &self.record {
            Some(folder) => {
                let tapes = recording::tapes_in(folder)
                    .map_err(|error| format!("cannot record in {}: {error}", folder.display()))?;
                server.record(tapes)
            }
            None => server,
        };
        let server = match &self.seal_key_file {
            Some(path) => seal::with_keys_of(server, path)
                .map_err(|error| format!("cannot use {}: {error}", path.display()))?,
            None => server,
        };
        match &self.transport {
            Transport::Stdio => self.runtime.serve_stdio(server),
            Transport::Http(address) => http::serve(self, server, address, writes),
            #[cfg(unix)]
            Transport::Unix(path) => http::serve_unix(self, &server, path),
        }
    }
}

/// Parses the common command line of the servers.
///
/// # Errors
///
/// Returns [`Stop`] if help is requested or the command line is invalid.
pub fn parse_server(mut arguments: Arguments) -> Result<Place, Stop> {
    let (mut runtime, mut transports) = (Runtime::default(), Vec::new());
    let (mut legacy_sse, mut auth, mut no_tasks) = (false, false, false);
    let (mut record, mut skills, mut extensions) = (None, None, false);
    let mut trace = false;
    let (mut store, mut node, mut seal_key_file) = (None, None, None);
    while let Some(argument) = arguments.shift()? {
        match argument {
            Argument::Flag(flag) => match flag.as_str() {
                "--stdio" => transports.push(Transport::Stdio),
                "--runtime" => runtime = Runtime::parse(&arguments.value(&flag)?)?,
                "--http" => transports.push(Transport::Http(arguments.value(&flag)?)),
                #[cfg(unix)]
                "--unix" => transports.push(Transport::Unix(arguments.value(&flag)?.into())),
                "--legacy-sse" => legacy_sse = true,
                "--auth" => auth = true,
                "--no-tasks" => no_tasks = true,
                "--extensions" => extensions = true,
                "--trace" => trace = true,
                "--skills" => skills = Some(arguments.value(&flag)?.into()),
                "--record" => record = Some(arguments.value(&flag)?.into()),
                "--store" => store = Some(arguments.value(&flag)?),
                "--node" => node = Some(arguments.value(&flag)?),
                "--seal-key-file" => seal_key_file = Some(arguments.value(&flag)?.into()),
                _ => return Err(Stop::unknown(&flag)),
            },
            Argument::Word(word) => {
                return Err(Stop::Wrong(format!("unexpected argument `{word}`")));
            }
            Argument::Rest(_) => return Err(Stop::wrong("unexpected argument `--`")),
        }
    }
    let transport = match (transports.pop(), transports.is_empty()) {
        (Some(transport), true) => transport,
        _ => {
            return Err(Stop::wrong(
                "give one transport: `--stdio`, `--http ADDRESS` or `--unix PATH`",
            ));
        }
    };
    if legacy_sse && transport == Transport::Stdio {
        return Err(Stop::wrong("`--legacy-sse` needs `--http ADDRESS` or `--unix PATH`"));
    }
    if auth && !matches!(transport, Transport::Http(_)) {
        return Err(Stop::wrong("`--auth` needs `--http ADDRESS`"));
    }
    if store.is_some() && transport == Transport::Stdio {
        return Err(Stop::wrong("`--store` needs `--http ADDRESS` or `--unix PATH`"));
    }
    if node.is_some() && store.is_none() {
        return Err(Stop::wrong("`--node` needs `--store URL`"));
    }
    Ok(Place {
        runtime,
        transport,
        legacy_sse,
        auth,
        no_tasks,
        extensions,
        trace,
        skills,
        record,
        store,
        node,
        seal_key_file,
    })
}

//! The runtimes that the programs can be told to use.

use std::future::{Future, poll_fn};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use mcp_sansio_async::Timer;
use mcp_sansio_handlers::{IntoEndpoint, Server};

use crate::arguments::{Argument, Arguments, Stop};
use crate::{http, recording};

/// What polls the futures, moves the bytes and fires the timers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// tokio, with one thread.
    #[default]
    Tokio,
    /// smol, with a thread for what it spawns.
    Smol,
    /// async-std, with its threads for what it spawns.
    AsyncStd,
    /// None: blocking calls of the standard library and `poll(2)`.
    Std,
}

/// A pause.
pub type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Runtime {
    /// The runtime called `name`.
    ///
    /// # Errors
    ///
    /// The caller's fault: there is none.
    pub fn parse(name: &str) -> Result<Self, Stop> {
        match name {
            "tokio" => Ok(Self::Tokio),
            "smol" => Ok(Self::Smol),
            "async-std" => Ok(Self::AsyncStd),
            "std" => Ok(Self::Std),
            _ => Err(Stop::Wrong(format!(
                "there is no runtime `{name}`; there are tokio, smol, async-std and std"
            ))),
        }
    }

    /// Waits for some time, inside of this runtime.
    #[must_use]
    pub fn sleep(self, duration: Duration) -> Pause {
        match self {
            // The alarm is set where the runtime is known: when it is polled first.
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

    /// Runs a future to its end on this thread.
    ///
    /// # Errors
    ///
    /// The system's fault: it is out of descriptors, or the like.
    pub fn block_on<F: Future>(self, future: F) -> std::io::Result<F::Output> {
        match self {
            Self::Tokio => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                let output = runtime.block_on(future);
                // A read of a terminal that still waits does not hold up the end.
                runtime.shutdown_background();
                Ok(output)
            }
            Self::Smol => Ok(smol::block_on(future)),
            Self::AsyncStd => Ok(async_std::task::block_on(future)),
            Self::Std => mcp_sansio_std::block_on(future),
        }
    }

    /// Serves on the standard streams until the connection is over.
    ///
    /// # Errors
    ///
    /// What broke it, in words. That the other side has gone is no error.
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

/// Where a server serves, and on what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The runtime.
    pub runtime: Runtime,
    /// The address to listen on for HTTP; the standard streams where there is none.
    pub http: Option<String>,
    /// Whether clients of 2024-11-05 are served over HTTP as well.
    pub legacy_sse: bool,
    /// Whether only those are served over HTTP who have signed in.
    pub auth: bool,
    /// Whether nothing runs as a task.
    pub no_tasks: bool,
    /// Where to record what the server does, if anywhere: a folder.
    pub record: Option<PathBuf>,
}

impl Place {
    /// Serves until the connection is over; over HTTP until the process is told to end. Of those who
    /// have to sign in, the tool `writes` wants more than the others do.
    ///
    /// # Errors
    ///
    /// What is wrong, in words. That the other side has gone is no error.
    pub fn serve(&self, server: Server, writes: &str) -> Result<(), String> {
        let server = match &self.record {
            Some(folder) => {
                let tapes = recording::tapes_in(folder)
                    .map_err(|error| format!("cannot record in {}: {error}", folder.display()))?;
                server.record(tapes)
            }
            None => server,
        };
        match &self.http {
            None => self.runtime.serve_stdio(server),
            Some(address) => http::serve(self, server, address, writes),
        }
    }
}

/// The command line that the servers have in common: where to serve.
///
/// # Errors
///
/// Help was asked for, or the use is wrong.
pub fn parse_server(mut arguments: Arguments) -> Result<Place, Stop> {
    let (mut runtime, mut stdio, mut http) = (Runtime::default(), false, None);
    let (mut legacy_sse, mut auth, mut no_tasks, mut record) = (false, false, false, None);
    while let Some(argument) = arguments.shift()? {
        match argument {
            Argument::Flag(flag) => match flag.as_str() {
                "--stdio" => stdio = true,
                "--runtime" => runtime = Runtime::parse(&arguments.value(&flag)?)?,
                "--http" => http = Some(arguments.value(&flag)?),
                "--legacy-sse" => legacy_sse = true,
                "--auth" => auth = true,
                "--no-tasks" => no_tasks = true,
                "--record" => record = Some(arguments.value(&flag)?.into()),
                _ => return Err(Stop::unknown(&flag)),
            },
            Argument::Word(word) => {
                return Err(Stop::Wrong(format!("what is `{word}` for?")));
            }
            Argument::Rest(_) => return Err(Stop::wrong("what is `--` for?")),
        }
    }
    if stdio == http.is_some() {
        return Err(Stop::wrong("say where to serve: `--stdio` or `--http ADDRESS`"));
    }
    if legacy_sse && http.is_none() {
        return Err(Stop::wrong("`--legacy-sse` goes with `--http ADDRESS`"));
    }
    if auth && http.is_none() {
        return Err(Stop::wrong("`--auth` goes with `--http ADDRESS`"));
    }
    Ok(Place { runtime, http, legacy_sse, auth, no_tasks, record })
}

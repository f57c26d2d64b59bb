use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str;

use serde::Deserialize;

use crate::Instant;
#[cfg(feature = "http")]
use crate::http;
use crate::peer::{Client, Server};

use super::arguments::Unperformable;
use super::call::Call;
use super::error::{Difference, RecordingError, ReplayError};
use super::recorded::Recorded;
use super::start::{FORMAT, Machine, Start};
use super::tape::Tape;

/// Replays a recording: it creates the recorded machine again and repeats its calls step by step.
///
/// Each step executes the next call on the machine, records it, and compares the new line with the
/// old one. A recording that replays to its end has produced the same outputs, byte for byte.
///
/// ```
/// use mcp_sansio::Instant;
/// use mcp_sansio::peer::{Server, ServerOptions};
/// use mcp_sansio::protocol::Implementation;
/// use mcp_sansio::recording::{Recorded, Replay, Tape};
/// use std::sync::{Arc, Mutex};
///
/// let kept = Arc::new(Mutex::new(Vec::new()));
/// let sink = Arc::clone(&kept);
/// let tape = Tape::new(move |line| sink.lock().unwrap().extend_from_slice(line));
/// let options = ServerOptions::new(Implementation::new("weather", "1.0.0"));
/// let mut server = Recorded::<Server>::new(options, 42, tape);
/// server.handle_message(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Instant::ZERO)?;
/// while let Some(_bytes) = server.poll_transmit() {}
///
/// let recording = kept.lock().unwrap().clone();
/// let mut replay = Replay::new(&recording)?;
/// while let Some(step) = replay.step()? {
///     println!("{}: {}", step.line, step.text);
/// }
/// assert_eq!((replay.inputs(), replay.outputs()), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Replay<'r> {
    rest: &'r [u8],
    line: usize,
    machine: Played,
    inputs: usize,
    outputs: usize,
    at: Option<Instant>,
    failed: Option<ReplayError>,
}

#[derive(Debug)]
enum Played {
    Server(Box<Recorded<Server>>),
    Client(Box<Recorded<Client>>),
    #[cfg(feature = "http")]
    HttpServer(Box<Recorded<http::Server>>),
    #[cfg(feature = "http")]
    HttpClient(Box<Recorded<http::Client>>),
}

/// A line of a recording whose call was replayed with the same outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplayStep<'r> {
    /// The line number; the first line is 1.
    pub line: usize,
    /// The line: a JSON object. See `docs/guide/recording.md`.
    pub text: &'r str,
    /// The machine's time, if it is known.
    pub at: Option<Instant>,
    /// Whether the line is an input, and not only an output that was taken.
    pub is_input: bool,
}

impl<'r> Replay<'r> {
    /// Creates the machine of a recording.
    ///
    /// # Errors
    ///
    /// Returns [`ReplayError::Recording`] if this crate cannot read the first line, and
    /// [`ReplayError::Difference`] if the new machine would write another first line.
    pub fn new(recording: &'r [u8]) -> Result<Self, ReplayError> {
        let (first, rest) = first_line(recording, 1)?;
        let not_one =
            |error: &dyn ToString| RecordingError::NotARecording { reason: error.to_string() };
        let Some(first) = first else {
            return Err(not_one(&"it is empty").into());
        };
        let Version { recording: found } =
            serde_json::from_str(first).map_err(|error| not_one(&error))?;
        if found != FORMAT {
            return Err(RecordingError::UnknownFormat { found, known: FORMAT }.into());
        }
        let start: Start<'_> = serde_json::from_str(first).map_err(|error| not_one(&error))?;
        let unperformable =
            |Unperformable(reason)| RecordingError::NotARecording { reason: reason.to_string() };
        let mut machine = made(&start.machine).map_err(unperformable)?;
        let noted = machine.take_notes();
        // Recordings of other versions are replayed as long as those versions behave the same. A
        // setting that a version did not know, such as a limit, has its default on both sides.
        same(1, &written(&start), &in_version_of(&start, &noted))?;
        Ok(Self { rest, line: 1, machine, inputs: 0, outputs: 0, at: None, failed: None })
    }

    /// Replays the next call of the recording. Returns `None` at the end.
    ///
    /// # Errors
    ///
    /// See [`ReplayError`]. An error is permanent: later calls return it again.
    pub fn step(&mut self) -> Result<Option<ReplayStep<'r>>, ReplayError> {
        match &self.failed {
            Some(failed) => Err(failed.clone()),
            None => self.try_step().inspect_err(|error| self.failed = Some(error.clone())),
        }
    }

    fn try_step(&mut self) -> Result<Option<ReplayStep<'r>>, ReplayError> {
        let line = self.line + 1;
        let (Some(text), rest) = first_line(self.rest, line)? else { return Ok(None) };
        let damaged = |reason: String| RecordingError::Damaged { line, reason };
        let call: Call<'_> =
            serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        self.machine.perform(&call).map_err(|Unperformable(reason)| damaged(reason.to_string()))?;
        let noted = self.machine.take_notes();
        same(line, text, str::from_utf8(&noted).unwrap_or_default())?;
        self.at = call.at().or(self.at);
        let is_input = call.is_input();
        self.inputs += usize::from(is_input);
        self.outputs += usize::from(!is_input);
        (self.rest, self.line) = (rest, line);
        Ok(Some(ReplayStep { line, text, at: self.at, is_input }))
    }

    /// Returns the number of inputs replayed so far.
    #[must_use]
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// Returns the number of outputs that matched the recording so far.
    #[must_use]
    pub const fn outputs(&self) -> usize {
        self.outputs
    }
}

/// The version of the format, which is stored the same way in every version.
#[derive(Deserialize)]
struct Version {
    recording: u32,
}

/// Returns the first line of `rest` without its newline, and the remaining bytes. The line is
/// `None` at the end of the recording.
fn first_line(rest: &[u8], line: usize) -> Result<(Option<&str>, &[u8]), RecordingError> {
    let Some(end) = memchr::memchr(b'\n', rest) else {
        let cut = RecordingError::CutShort { line };
        return if rest.is_empty() { Ok((None, rest)) } else { Err(cut) };
    };
    let text = str::from_utf8(&rest[..end]).map_err(|error| match line {
        1 => RecordingError::NotARecording { reason: error.to_string() },
        _ => RecordingError::Damaged { line, reason: error.to_string() },
    })?;
    Ok((Some(text), &rest[end + 1..]))
}

fn same(line: usize, recorded: &str, replayed: &str) -> Result<(), Difference> {
    let replayed = replayed.trim_end_matches('\n');
    if recorded == replayed {
        return Ok(());
    }
    Err(Difference { line, recorded: recorded.into(), replayed: replayed.into() })
}

/// Returns the first line of the new machine in the version that wrote `start`.
fn in_version_of(start: &Start<'_>, noted: &[u8]) -> String {
    let noted = str::from_utf8(noted).unwrap_or_default();
    let Ok(mut again) = serde_json::from_str::<Start<'_>>(noted) else { return noted.into() };
    again.version.clone_from(&start.version);
    written(&again)
}

fn written(start: &Start<'_>) -> String {
    let mut text = String::new();
    let written = crate::jsonrpc::WriteJson::write_json(&crate::jsonrpc::AsJson(start), &mut text);
    debug_assert!(written.is_ok(), "it was written before");
    text
}

/// The seed of the hash tables, which does not affect any output.
pub(super) const SEED: u64 = 0;

fn made(machine: &Machine<'_>) -> Result<Played, Unperformable> {
    let tape = Tape::kept();
    Ok(match machine {
        Machine::Server(settings) => {
            Played::Server(Box::new(Recorded::<Server>::new(settings.to_options()?, SEED, tape)))
        }
        Machine::Client { at, options } => {
            let (options, now) = (options.to_options()?, Instant::from_nanos(*at));
            Played::Client(Box::new(Recorded::<Client>::new(options, SEED, now, tape)))
        }
        #[cfg(feature = "http")]
        Machine::HttpServer { options, http } => {
            let (options, http) = (options.to_options()?, http.to_options()?);
            let server = Recorded::<http::Server>::replayed(options, http, tape);
            let server =
                server.map_err(|_| Unperformable("the server refuses a tool of its catalog"))?;
            Played::HttpServer(Box::new(server))
        }
        #[cfg(feature = "http")]
        Machine::HttpClient { at, seed, options, http } => {
            let (options, now) = (options.to_options()?, Instant::from_nanos(*at));
            let http = http.to_options()?;
            let client = Recorded::<http::Client>::replayed(options, http, *seed, now, tape);
            Played::HttpClient(Box::new(client))
        }
    })
}

impl Played {
    fn perform(&mut self, call: &Call<'_>) -> Result<(), Unperformable> {
        match self {
            Self::Server(server) => server.perform(call),
            Self::Client(client) => client.perform(call),
            #[cfg(feature = "http")]
            Self::HttpServer(server) => server.perform(call),
            #[cfg(feature = "http")]
            Self::HttpClient(client) => client.perform(call),
        }
    }

    fn take_notes(&mut self) -> Vec<u8> {
        match self {
            Self::Server(server) => server.take_notes(),
            Self::Client(client) => client.take_notes(),
            #[cfg(feature = "http")]
            Self::HttpServer(server) => server.take_notes(),
            #[cfg(feature = "http")]
            Self::HttpClient(client) => client.take_notes(),
        }
    }
}

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str;

use mcp_sansio_sync::{Arc, Mutex};
use serde::Deserialize;

use super::call::{Call, MISPLACED, Unperformable};
use super::exchange::{Field, Stored, session_of};
use super::handle::Handle;
use super::recorder::SEED;
use super::settings::{FORMAT, Machine, RestrictedChange, Start};
use crate::catalog::{Announcement, Catalog};
use crate::http::{
    self, ExchangeId, IncomingResponse, NotStored, ParsedBody, RemoteAddress, RequestHead,
    StoredEvent,
};
use crate::jsonrpc::{AsJson, WriteJson};
use crate::peer::Status;
use crate::peer::{self, StreamMachine};
use crate::recorded::{Recordable, Recorded, StreamCall, Tape};
use crate::{Caller, Instant, Principal};

/// Replays a recording: it creates the recorded machine again and repeats its calls step by step.
///
/// Each step executes the next call on the machine, records it, and compares the new line with the
/// old one. A recording that replays to its end has produced the same outputs, byte for byte.
///
/// ```
/// use mcp_sansio::Instant;
/// use mcp_sansio::peer::{Server, ServerOptions};
/// use mcp_sansio::protocol::Implementation;
/// use mcp_sansio::recording::Replay;
/// use mcp_sansio::{Recorded, Tape};
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
    /// The lines that the machine has recorded since the last step.
    noted: Arc<Mutex<Vec<u8>>>,
    inputs: usize,
    outputs: usize,
    at: Option<Instant>,
    failed: Option<ReplayError>,
}

#[derive(Debug)]
enum Played {
    Server(Box<Recorded<peer::Server>>),
    Client(Box<Recorded<peer::Client>>),
    HttpServer(Box<Recorded<http::Server>>),
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
    /// Returns [`ReplayError::NotARecording`], [`ReplayError::UnknownFormat`] or
    /// [`ReplayError::Damaged`] if this crate cannot read the first line, and
    /// [`ReplayError::Difference`] if the new machine would write another first line.
    pub fn new(recording: &'r [u8]) -> Result<Self, ReplayError> {
        let (first, rest) = first_line(recording, 1)?;
        let not_one =
            |error: &dyn ToString| ReplayError::NotARecording { reason: error.to_string() };
        let Some(first) = first else {
            return Err(not_one(&"it is empty"));
        };
        let Version { recording: found } =
            serde_json::from_str(first).map_err(|error| not_one(&error))?;
        if found != FORMAT {
            return Err(ReplayError::UnknownFormat { found, known: FORMAT });
        }
        let start: Start<'_> = serde_json::from_str(first).map_err(|error| not_one(&error))?;
        let unperformable =
            |Unperformable(reason)| ReplayError::NotARecording { reason: reason.to_string() };
        let noted = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&noted);
        let tape = Tape::of_replay(move |line| lines.lock(|lines| lines.extend_from_slice(line)));
        let machine = made(&start.machine, tape).map_err(unperformable)?;
        let first_noted = noted.lock(core::mem::take);
        // Recordings of other versions are replayed as long as those versions behave the same. A
        // setting that a version did not know, such as a limit, has its default on both sides.
        same(1, &written(&start), &in_version_of(&start, &first_noted))?;
        Ok(Self { rest, line: 1, machine, noted, inputs: 0, outputs: 0, at: None, failed: None })
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
        let damaged = |reason: String| ReplayError::Damaged { line, reason };
        let call: Call<'_> =
            serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        self.machine.perform(&call).map_err(|Unperformable(reason)| damaged(reason.to_string()))?;
        let noted = self.noted.lock(core::mem::take);
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
fn first_line(rest: &[u8], line: usize) -> Result<(Option<&str>, &[u8]), ReplayError> {
    let Some(end) = memchr::memchr(b'\n', rest) else {
        let cut = ReplayError::CutShort { line };
        return if rest.is_empty() { Ok((None, rest)) } else { Err(cut) };
    };
    let text = str::from_utf8(&rest[..end]).map_err(|error| match line {
        1 => ReplayError::NotARecording { reason: error.to_string() },
        _ => ReplayError::Damaged { line, reason: error.to_string() },
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
    let written = AsJson(start).write_json(&mut text);
    debug_assert!(written.is_ok(), "it was written before");
    text
}

fn made(machine: &Machine<'_>, tape: Tape) -> Result<Played, Unperformable> {
    Ok(match machine {
        Machine::Server(settings) => Played::Server(Box::new(Recorded::<peer::Server>::new(
            settings.to_options()?,
            SEED,
            tape,
        ))),
        Machine::Client { at, options } => {
            let (options, now) = (options.to_options()?, Instant::from_nanos(*at));
            Played::Client(Box::new(Recorded::<peer::Client>::new(options, SEED, now, tape)))
        }
        Machine::HttpServer { options, http } => {
            let (options, http) = (options.to_options()?, http.to_options()?);
            let server = Recorded::<http::Server>::new(options, http, [0; 32], SEED, tape);
            let server =
                server.map_err(|_| Unperformable("the server refuses a tool of its catalog"))?;
            Played::HttpServer(Box::new(server))
        }
        Machine::HttpClient { at, seed, options, http } => {
            let (options, now) = (options.to_options()?, Instant::from_nanos(*at));
            let http = http.to_options()?;
            let client = Recorded::<http::Client>::new(options, http, *seed, now, tape);
            Played::HttpClient(Box::new(client))
        }
    })
}

impl Played {
    fn perform(&mut self, call: &Call<'_>) -> Result<(), Unperformable> {
        match self {
            Self::Server(server) => perform_on_server(server, call),
            Self::Client(client) => perform_on_client(client, call),
            Self::HttpServer(server) => perform_on_http_server(server, call),
            Self::HttpClient(client) => perform_on_http_client(client, call),
        }
    }
}

// The outcome of a call is compared when it is recorded again.

fn perform_on_server(
    server: &mut Recorded<peer::Server>,
    call: &Call<'_>,
) -> Result<(), Unperformable> {
    match call {
        Call::Catalog { catalog, changed, .. } => {
            let state = catalog.to_catalog()?;
            server.edit_catalog(|catalog| {
                *catalog = state;
                catalog.set_announcement(Announcement::new(*changed, Vec::new()));
            });
        }
        Call::ServerCommand { at, command } => {
            drop(server.apply(command.clone(), Instant::from_nanos(*at)));
        }
        call => return perform_on_stream(server, call),
    }
    Ok(())
}

fn perform_on_client(
    client: &mut Recorded<peer::Client>,
    call: &Call<'_>,
) -> Result<(), Unperformable> {
    match call {
        Call::Restart { at } => _ = client.restart(Instant::from_nanos(*at)),
        Call::Suspend {} => _ = client.suspend(),
        Call::Reopen { at } => client.resume(Instant::from_nanos(*at)),
        Call::ClientCommand { at, command } => {
            drop(client.apply(command.clone(), Instant::from_nanos(*at)));
        }
        call => return perform_on_stream(client, call),
    }
    Ok(())
}

/// Executes a call that machines of both roles have.
fn perform_on_stream<M>(machine: &mut Recorded<M>, call: &Call<'_>) -> Result<(), Unperformable>
where
    M: for<'c> Recordable<Call<'c> = StreamCall<'c>> + StreamMachine,
{
    let at = Instant::from_nanos;
    match call {
        Call::Message { at: now, frame, .. } => {
            drop(machine.handle_message(&frame.bytes()?, at(*now)));
        }
        Call::FrameError { error, .. } => drop(machine.handle_frame_error((*error).into())),
        Call::EndOfInput {} => machine.handle_eof(),
        Call::Timeout { at: now } => machine.handle_timeout(at(*now)),
        Call::Transmit { .. } => drop(machine.poll_transmit().map(<[u8]>::len)),
        Call::Peek {} => {
            let _shown = machine.peek_transmit();
            machine.note(StreamCall::Keep);
        }
        Call::Sent { bytes } => {
            let length = bytes.bytes()?.len();
            let _shown = machine.peek_transmit();
            machine.consume_transmit(length);
        }
        Call::Event { .. } => drop(machine.poll_event()),
        _ => return Err(MISPLACED),
    }
    Ok(())
}

fn perform_on_http_client(
    client: &mut Recorded<http::Client>,
    call: &Call<'_>,
) -> Result<(), Unperformable> {
    let at = Instant::from_nanos;
    let id = |exchange: &Handle| ExchangeId(exchange.key());
    match call {
        Call::Response { at: now, exchange, status, fields } => {
            let values = fields.iter().map(Field::value).collect::<Result<Vec<_>, _>>()?;
            let mut head = IncomingResponse::new(Status(*status));
            for (Field(name, _), value) in fields.iter().zip(&values) {
                head.field(name, value);
            }
            client.handle_response(id(exchange), &head, at(*now));
        }
        Call::Body { at: now, exchange, bytes } => {
            client.handle_body(id(exchange), &bytes.bytes()?, at(*now));
        }
        Call::BodyEnd { at: now, exchange } => client.handle_body_end(id(exchange), at(*now)),
        Call::ExchangeFailed { at: now, exchange, failure } => {
            client.refuse(id(exchange), failure.to_failure(), at(*now));
        }
        Call::Pause { at: now, exchange } => client.pause(id(exchange), at(*now)),
        Call::Resume { at: now, exchange } => client.resume(id(exchange), at(*now)),
        Call::Timeout { at: now } => client.handle_timeout(at(*now)),
        Call::Send { .. } | Call::Abort { .. } => drop(client.poll_transmit()),
        Call::Event { .. } => drop(client.poll_event()),
        Call::ClientCommand { at: now, command } => {
            drop(client.apply(command.clone(), at(*now)));
        }
        _ => return Err(MISPLACED),
    }
    Ok(())
}
fn perform_on_http_server(
    server: &mut Recorded<http::Server>,
    call: &Call<'_>,
) -> Result<(), Unperformable> {
    let at = Instant::from_nanos;
    match call {
        Call::Request { .. } => perform_request(server, call)?,
        Call::Disconnect { at: now, exchange } => {
            server.handle_disconnect(ExchangeId(exchange.key()), at(*now));
        }
        Call::Timeout { at: now } => server.handle_timeout(at(*now)),
        Call::Refuse { at: now, request, refusal } => {
            drop(server.refuse(*request, refusal.to_rejection(), at(*now)));
        }
        Call::Expiry { exchange, until } => {
            server.set_expiry(ExchangeId(exchange.key()), at(*until));
        }
        Call::Release { request, retry } => {
            server.release_connection(*request, *retry);
        }
        Call::Catalog { at: Some(now), catalog, changed, changed_for } => {
            let (now, state) = (at(*now), catalog.to_catalog()?);
            let announcement = RestrictedChange::to_announcement(changed_for, *changed);
            let edit = |catalog: &mut Catalog| {
                *catalog = state;
                catalog.set_announcement(announcement);
            };
            server.edit_catalog(edit, now);
        }
        Call::Stored { at: now, read, events } => {
            let events = events.as_ref().map(|it| it.iter().map(Stored::to_event).collect());
            let events: Option<Vec<StoredEvent>> = events.transpose()?;
            server.handle_stored(read.to_id(), events.ok_or(NotStored), at(*now));
        }
        Call::ReadFailed { at: now, read } => server.fail_read(read.to_id(), at(*now)),
        Call::Store { .. } => drop(server.poll_store()),
        Call::Ready { .. } => drop(server.poll_ready()),
        Call::Poll { at: now, exchange, .. } => {
            drop(server.poll_transmit(ExchangeId(exchange.key()), at(*now)));
        }
        Call::Event { .. } => drop(server.poll_event()),
        Call::ServerCommand { at: now, command } => {
            drop(server.apply(command.clone(), at(*now)));
        }
        _ => return Err(MISPLACED),
    }
    Ok(())
}
fn perform_request(
    server: &mut Recorded<http::Server>,
    call: &Call<'_>,
) -> Result<(), Unperformable> {
    let Call::Request {
        at,
        method,
        target,
        fields,
        contradictory,
        body,
        principal,
        scopes,
        address,
        refused,
        session,
        ..
    } = call
    else {
        return Err(MISPLACED);
    };
    let session = session.as_deref().map(session_of).transpose()?;
    server.machine.draw_next_session(session);
    let values = fields.iter().map(Field::value).collect::<Result<Vec<_>, _>>()?;
    let mut head = RequestHead::new(method, target);
    for (Field(name, _), value) in fields.iter().zip(&values) {
        head.field(name, value);
    }
    head.remote = address.map(RemoteAddress::new);
    head.contradictory = contradictory.as_deref().map(singular).transpose()?;
    let caller = match principal.as_deref().map(Principal::new) {
        Some(principal) if !scopes.is_empty() => {
            Caller::from_scopes(principal, scopes.iter().map(AsRef::<str>::as_ref))
        }
        principal => principal.into(),
    };
    let permit = |_: Option<&ParsedBody<'_>>| match refused {
        Some(refused) => Err(refused.to_rejection()),
        None => Ok(()),
    };
    let (body, now) = (body.bytes()?, Instant::from_nanos(*at));
    let mut request = server.reader().read(&head, &body, &caller);
    let _ = server.handle_read_request(&head, &mut request, &permit, now);
    Ok(())
}
/// Returns the name of a field that must not be repeated.
fn singular(name: &str) -> Result<&'static str, Unperformable> {
    let names = [
        "Host",
        "Origin",
        "Mcp-Name",
        "Mcp-Method",
        "Content-Type",
        "Last-Event-ID",
        "Content-Length",
        "Content-Encoding",
        "Mcp-Session-Id",
        "MCP-Protocol-Version",
    ];
    let found = names.into_iter().find(|known| *known == name);
    found.ok_or(Unperformable("the field may be repeated"))
}

/// The reason why a replay stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The first line is not that of a recording.
    #[error("this is not a recording: {reason}")]
    NotARecording {
        /// The error in the line.
        reason: String,
    },
    /// This crate does not support the format version of the recording.
    #[error("the recording has format {found}; this program reads format {known}")]
    UnknownFormat {
        /// The version of the recording.
        found: u32,
        /// [`FORMAT`].
        known: u32,
    },
    /// A line does not contain a valid call for the machine.
    #[error("line {line} of the recording is damaged: {reason}")]
    Damaged {
        /// The line number; the first line is 1.
        line: usize,
        /// The error in the line.
        reason: String,
    },
    /// The last line is incomplete: the file was truncated, or is still being written. All earlier
    /// lines are complete.
    #[error("the recording ends in the middle of line {line}")]
    CutShort {
        /// The number of the line; the first line is 1.
        line: usize,
    },
    /// The machine behaved differently from the recording.
    #[error(transparent)]
    Difference(#[from] Difference),
}

/// The machine behaved differently from the recording. Either it has another version, or the
/// recording was modified, or one of the runs has a defect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} differs: recorded `{recorded}`, replayed `{replayed}`")]
#[non_exhaustive]
pub struct Difference {
    /// The number of the line; the first line is 1.
    pub line: usize,
    /// The line of the recording.
    pub recorded: String,
    /// The line of the replay; empty if there is no such line.
    pub replayed: String,
}

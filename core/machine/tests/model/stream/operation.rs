//! What can happen to the streams of one session, and how often.

use std::fmt;

use proptest::prelude::*;
use proptest::sample::select;

use crate::gate::VERSIONS;

/// What the session is, and how many events of a stream the server keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) version: &'static str,
    pub(super) kept: usize,
}

/// What happens. Numbers of calls, streams and exchanges count those that there were, from the
/// start and round again. The stream 0 is for what belongs to no call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// Calls a tool, which opens a stream.
    Post,
    /// Opens the stream 0.
    Listen,
    /// Comes back for a stream with the id that came so many before its last.
    Resume {
        stream: usize,
        back: usize,
    },
    /// Comes back with an id that was never given.
    Invent,
    /// The connection of an exchange breaks.
    Break(usize),
    /// The client stops reading an exchange, or goes on.
    Stall(usize),
    /// The server has news of a call, its answer, or news of its own.
    Progress(usize),
    Answer(usize),
    Log,
}

pub(super) fn setting() -> impl Strategy<Value = Setting> {
    (select(&VERSIONS[1..4]), 1..5_usize).prop_map(|(version, kept)| Setting { version, kept })
}

pub(super) fn operation() -> impl Strategy<Value = Operation> {
    let back = prop_oneof![2 => Just(0), 1 => 0..8_usize];
    let resume = (0..4_usize, back).prop_map(|(stream, back)| Operation::Resume { stream, back });
    prop_oneof![
        2 => Just(Operation::Post),
        1 => Just(Operation::Listen),
        4 => resume,
        1 => Just(Operation::Invent),
        4 => (0..8_usize).prop_map(Operation::Break),
        3 => (0..8_usize).prop_map(Operation::Stall),
        6 => (0..4_usize).prop_map(Operation::Progress),
        1 => (0..4_usize).prop_map(Operation::Answer),
        4 => Just(Operation::Log),
    ]
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a session of {} that keeps {} events", self.version, self.kept)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Post => write!(f, "→ POST tools/call"),
            Self::Listen => write!(f, "→ GET"),
            Self::Resume { stream, back } => {
                write!(f, "→ GET stream {stream} after the event {back} before its last")
            }
            Self::Invent => write!(f, "→ GET after an event that never was"),
            Self::Break(exchange) => write!(f, "the connection of exchange {exchange} breaks"),
            Self::Stall(exchange) => write!(f, "the client stalls exchange {exchange}, or goes on"),
            Self::Progress(call) => write!(f, "progress of call {call}"),
            Self::Answer(call) => write!(f, "answer to call {call}"),
            Self::Log => write!(f, "log"),
        }
    }
}

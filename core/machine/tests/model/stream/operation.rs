//! Operations on the streams of a session, and how often they occur.

use std::fmt;

use proptest::prelude::*;
use proptest::sample::select;

use crate::gate::VERSIONS;

/// The revision of the session, and how many events of a stream the server keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) version: &'static str,
    pub(super) kept: usize,
}

/// An operation. Numbers of calls, streams and exchanges are taken modulo how many there have been.
/// Stream 0 is the standalone stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// Calls a tool, which opens a stream.
    Post,
    /// Opens stream 0.
    Listen,
    /// Resumes a stream with the id that precedes its last one by `back`.
    Resume {
        stream: usize,
        back: usize,
    },
    /// Resumes with an unknown id.
    Invent,
    /// Breaks the connection of an exchange.
    Break(usize),
    /// Stops reading an exchange, or continues.
    Stall(usize),
    /// Sends progress of a call, its response, or a log message.
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
            Self::Invent => write!(f, "→ GET after an unknown event"),
            Self::Break(exchange) => write!(f, "the connection of exchange {exchange} breaks"),
            Self::Stall(exchange) => {
                write!(f, "the client stalls exchange {exchange}, or continues")
            }
            Self::Progress(call) => write!(f, "progress of call {call}"),
            Self::Answer(call) => write!(f, "answer to call {call}"),
            Self::Log => write!(f, "log"),
        }
    }
}

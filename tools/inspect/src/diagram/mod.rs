//! Sequence diagrams of recordings: the messages with their direction, time and stream.
//!
//! Reads the format described in `docs/guide/recording.md`. Does not depend on the machines.

mod exchanges;
mod json;
mod line;
mod links;
mod page;
mod text;

use line::Line;
pub(crate) use page::page;

/// The side that sends a message, or that a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Drawn on the left.
    Client,
    /// Drawn on the right.
    Server,
}

impl Side {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request.
    Request,
    /// A response with a result.
    Result,
    /// A response with an error.
    Error,
    /// A notification.
    Notification,
    /// An HTTP head without a JSON-RPC message.
    Transport,
    /// A resumed stream.
    Resumption,
    /// An exchange or a stream that ended early.
    Cut,
    /// A note about an event on one side.
    Note,
}

/// A row of the diagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The line number in the recording.
    pub(crate) line: usize,
    /// The time in nanoseconds on the clock of the recorded machine.
    pub(crate) at: Option<u64>,
    /// The sender of the message, or the side that a note is about.
    pub(crate) from: Side,
    /// The kind of the row.
    pub(crate) kind: Kind,
    /// A short description.
    pub(crate) label: String,
    /// The full text.
    pub(crate) detail: String,
    /// The related request: the request itself, or the one that is answered or referred to.
    pub(crate) link: Option<String>,
    /// The exchange that carries it.
    pub(crate) exchange: Option<usize>,
}

/// An exchange and its position in the diagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// The title of the exchange.
    pub(crate) name: String,
    /// The indices of the first row and the last row.
    pub(crate) rows: (usize, usize),
    /// Whether the exchange ended early.
    pub(crate) cut: bool,
}

/// A recording as rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diagram {
    /// The side whose machine was recorded.
    pub(crate) recorded: Side,
    /// The name of the machine.
    pub(crate) name: String,
    /// The rows in order.
    pub(crate) rows: Vec<Row>,
    /// The exchanges of a recording over HTTP.
    pub(crate) exchanges: Vec<Exchange>,
}

impl Diagram {
    /// Reads a recording, up to the first line that cannot be read.
    ///
    /// # Errors
    ///
    /// Returns a description if the first line is not that of a recording.
    pub(crate) fn read(recording: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(recording);
        let mut lines = text.lines();
        let start = line::Start::read(lines.next().unwrap_or_default())?;
        let mut reader = links::Reader::new(&start);
        for (text, number) in lines.zip(2..) {
            match Line::read(text) {
                Ok(line) => reader.take(&line, number),
                Err(_) => {
                    reader.note(number, "the recording cannot be read any further", text);
                    break;
                }
            }
        }
        Ok(reader.finish(&start))
    }
}

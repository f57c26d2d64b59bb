//! A recording as a picture: who said what to whom, when, and on which stream.
//!
//! It reads lines as `docs/guide/recording.md` describes them, and knows nothing of the machines.

mod exchanges;
mod json;
mod line;
mod links;
mod page;
mod text;

use line::Line;
pub use page::page;

/// Which side a message comes from, or is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// On the left.
    Client,
    /// On the right.
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

/// What a row of the diagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message that wants an answer.
    Request,
    /// An answer with a result.
    Result,
    /// An answer with an error.
    Error,
    /// A message that wants none.
    Notification,
    /// What is said in terms of HTTP alone.
    Transport,
    /// A stream that is taken up again.
    Resumption,
    /// The end of a way before its time.
    Cut,
    /// Something that one side notices.
    Note,
}

/// A row of the diagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The number of the line in the recording.
    pub line: usize,
    /// The time, in nanoseconds of the recorded machine's clock.
    pub at: Option<u64>,
    /// Where it comes from; of a note, whose it is.
    pub from: Side,
    /// What it is.
    pub kind: Kind,
    /// A few words on it.
    pub label: String,
    /// The whole of it.
    pub detail: String,
    /// The request that it is, answers or is about.
    pub link: Option<String>,
    /// The exchange that carries it.
    pub exchange: Option<usize>,
}

/// Where an exchange stands in the diagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// What it is called.
    pub name: String,
    /// Its first row and its last one.
    pub rows: (usize, usize),
    /// It ended before its time.
    pub cut: bool,
}

/// A recording as rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagram {
    /// Whose machine was recorded.
    pub recorded: Side,
    /// What the machine is called.
    pub name: String,
    /// What happened, in order.
    pub rows: Vec<Row>,
    /// The exchanges, where it happened over HTTP.
    pub exchanges: Vec<Exchange>,
}

impl Diagram {
    /// Reads a recording, as far as it can be read.
    ///
    /// # Errors
    ///
    /// Its first line is none of a recording. Says why.
    pub fn read(recording: &[u8]) -> Result<Self, String> {
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

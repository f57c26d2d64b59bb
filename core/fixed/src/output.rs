//! The output: one line in lent memory.

use core::fmt;

use mcp_sansio::envelope::{IdRef, Sink, WriteId as _, write_escaped};

/// The output is too small for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSmall {
    /// The least capacity, in bytes.
    pub least: usize,
}

impl fmt::Display for TooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the output has less than {} bytes", self.least)
    }
}

impl core::error::Error for TooSmall {}

/// An end of the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    length: usize,
    is_full: bool,
}

/// A line, as long as the memory for it. What does not fit is left out, and the output notes that.
#[derive(Debug)]
pub(crate) struct Output<'b> {
    memory: &'b mut [u8],
    length: usize,
    /// Where writing must stop, to leave room for what follows.
    limit: usize,
    is_full: bool,
}

impl<'b> Output<'b> {
    pub(crate) const fn new(memory: &'b mut [u8]) -> Self {
        let limit = memory.len();
        Self { memory, length: 0, limit, is_full: false }
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// Returns the number of bytes that still fit.
    pub(crate) const fn room(&self) -> usize {
        self.limit.saturating_sub(self.length)
    }

    /// Returns the current end, to cut the output there later.
    pub(crate) const fn mark(&self) -> Mark {
        Mark { length: self.length, is_full: self.is_full }
    }

    pub(crate) fn clear(&mut self) {
        self.cut(Mark { length: 0, is_full: false });
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.get(..self.length).unwrap_or_default()
    }

    /// Leaves `count` bytes at the end of the memory free.
    pub(crate) const fn reserve_end(&mut self, count: usize) {
        self.limit = self.memory.len().saturating_sub(count);
    }

    /// Returns whether everything was written.
    pub(crate) const fn is_complete(&self) -> bool {
        !self.is_full
    }

    /// Removes everything after a mark.
    pub(crate) fn cut(&mut self, mark: Mark) {
        Mark { length: self.length, is_full: self.is_full } = mark;
    }

    /// Returns whether nothing was written after a mark.
    pub(crate) const fn ends_at(&self, mark: Mark) -> bool {
        self.length == mark.length && !self.is_full
    }

    /// Appends JSON text of the program on one line.
    // MCP 2026-07-28 basic/transports/stdio#sending-messages [STDIO-001]: messages contain no
    // newlines. In JSON they occur only between tokens; in strings they are escaped.
    pub(crate) fn push_json(&mut self, text: &str) {
        let start = self.length;
        self.push_str(text);
        for byte in self.memory.get_mut(start..self.length).unwrap_or_default() {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }

    /// Appends what `value` displays as the content of a string.
    pub(crate) fn push_displayed(&mut self, value: &dyn fmt::Display) {
        let mut text = Text(self);
        // An error means that the output is full, which it notes.
        let _ = fmt::Write::write_fmt(&mut text, format_args!("{value}"));
    }
}

impl Sink for Output<'_> {
    fn push_str(&mut self, text: &str) {
        let end = self.length + text.len();
        match self.memory.get_mut(self.length..end) {
            Some(place) if end <= self.limit && !self.is_full => {
                place.copy_from_slice(text.as_bytes());
                self.length = end;
            }
            _ => self.is_full = true,
        }
    }
}

/// The text of a result, written into the output of the server.
///
/// It implements [`core::fmt::Write`], whose macros add some kilobytes to an image;
/// [`push_str`](Self::push_str) and [`push_integer`](Self::push_integer) do without. Text that does
/// not fit is left out: the client gets an error instead of the result.
#[derive(Debug)]
pub struct Text<'t, 'b>(pub(crate) &'t mut Output<'b>);

impl Text<'_, '_> {
    /// Appends `text`.
    pub fn push_str(&mut self, text: &str) {
        write_escaped(self.0, text);
    }

    /// Appends `number` in decimal.
    pub fn push_integer(&mut self, number: i64) {
        IdRef::Number(number).write_id(self.0);
    }

    /// Returns whether everything fitted so far.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.0.is_complete()
    }
}

impl fmt::Write for Text<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text);
        if self.is_complete() { Ok(()) } else { Err(fmt::Error) }
    }
}

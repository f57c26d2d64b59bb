use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio_sync::Mutex;
use serde::Serialize;

use crate::jsonrpc::{AsJson, WriteJson};

use super::call::Call;

/// A sink for the lines of a recording.
///
/// Each line is passed to the sink in full, with its newline, as soon as its call has returned. If
/// the process dies, the lines kept so far are a valid recording that merely ends early.
pub struct Tape {
    sink: Sink,
    /// The next chunk was peeked at, and nothing was recorded since.
    peeked: bool,
}

/// The callback that receives the lines.
type TakesLines = Box<dyn FnMut(&[u8]) + Send>;

#[cfg_attr(test, allow(clippy::large_enum_variant, reason = "the lock of tests is large"))]
enum Sink {
    /// In a mutex that is never locked, only so that a machine can be shared between threads.
    Lent(Mutex<TakesLines>),
    /// Collects the lines for replays, which compare them.
    Kept(Vec<u8>),
}

impl Tape {
    /// Creates a tape that passes each line to `sink`, in full and with its newline.
    ///
    /// The sink decides how to handle a line that it cannot store. It runs on the thread of the
    /// machine, so it must be fast.
    #[must_use]
    pub fn new(sink: impl FnMut(&[u8]) + Send + 'static) -> Self {
        Self { sink: Sink::Lent(Mutex::new(Box::new(sink))), peeked: false }
    }

    /// Creates a tape that keeps its lines until they are taken.
    pub(crate) const fn kept() -> Self {
        Self { sink: Sink::Kept(Vec::new()), peeked: false }
    }

    /// Returns the lines recorded since the last call.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.peeked = false;
        match &mut self.sink {
            Sink::Lent(_) => Vec::new(),
            Sink::Kept(lines) => core::mem::take(lines),
        }
    }

    /// Records a call.
    pub(crate) fn note<'a>(&mut self, call: impl Into<Option<Call<'a>>>) {
        let Some(call) = call.into() else { return };
        if core::mem::take(&mut self.peeked) && !matches!(call, Call::Sent { .. }) {
            self.write(&Call::Peek {});
        }
        self.write(&call);
    }

    /// Records that the next chunk was peeked at. It is usually removed at once, completely or in
    /// part, and the line of that call then implies the peek.
    pub(crate) const fn note_peek(&mut self) {
        self.peeked = true;
    }

    pub(crate) fn write(&mut self, line: &impl Serialize) {
        let mut text = String::new();
        let written = AsJson(line).write_json(&mut text);
        debug_assert!(written.is_ok(), "a line is made of text and whole numbers");
        let mut text = text.into_bytes();
        // A line break in JSON can only be between tokens.
        for byte in &mut text {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        text.push(b'\n');
        match &mut self.sink {
            Sink::Lent(sink) => sink.get_mut()(&text),
            Sink::Kept(lines) => lines.extend_from_slice(&text),
        }
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tape(..)")
    }
}

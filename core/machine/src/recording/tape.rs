use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio_sync::Mutex;
use serde::Serialize;

use crate::jsonrpc::{AsJson, WriteJson};

use super::call::Call;

/// What a machine that is recorded writes to: a sink for lines.
///
/// Each line is handed over whole, its newline included, as soon as the call that it tells of is
/// done. So what the sink has kept when the process dies is a recording that is merely short.
pub struct Tape {
    sink: Sink,
    /// The next chunk was chosen, and nothing was noted since.
    peeked: bool,
}

/// Is handed each line.
type TakesLines = Box<dyn FnMut(&[u8]) + Send>;

#[cfg_attr(test, allow(clippy::large_enum_variant, reason = "the lock of tests is large"))]
enum Sink {
    /// In a lock that is never taken, so that a machine may be shared between threads as ever.
    Lent(Mutex<TakesLines>),
    /// For replays, which compare the lines.
    Kept(Vec<u8>),
}

impl Tape {
    /// A tape that hands each line to `sink`: a whole one, with its newline.
    ///
    /// What becomes of a line that cannot be kept is for the sink to decide. It is called where the
    /// machine is, so it must be quick.
    #[must_use]
    pub fn new(sink: impl FnMut(&[u8]) + Send + 'static) -> Self {
        Self { sink: Sink::Lent(Mutex::new(Box::new(sink))), peeked: false }
    }

    /// A tape that keeps its lines until they are taken.
    pub(crate) const fn kept() -> Self {
        Self { sink: Sink::Kept(Vec::new()), peeked: false }
    }

    /// What was noted since the last time.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.peeked = false;
        match &mut self.sink {
            Sink::Lent(_) => Vec::new(),
            Sink::Kept(lines) => core::mem::take(lines),
        }
    }

    /// Notes a call, or what comes before all calls.
    pub(crate) fn note<'a>(&mut self, call: impl Into<Option<Call<'a>>>) {
        let Some(call) = call.into() else { return };
        if core::mem::take(&mut self.peeked) && !matches!(call, Call::Sent { .. }) {
            self.write(&Call::Peek {});
        }
        self.write(&call);
    }

    /// Notes that the next chunk was looked at. Commonly it is taken away at once, whole or in
    /// part, which says as much.
    pub(crate) const fn note_peek(&mut self) {
        self.peeked = true;
    }

    pub(crate) fn write(&mut self, line: &impl Serialize) {
        let mut text = String::new();
        let written = AsJson(line).write_json(&mut text);
        debug_assert!(written.is_ok(), "a line is made of text and whole numbers");
        let mut text = text.into_bytes();
        // Line ends in JSON stand between tokens.
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

//! A byte stream that shows each line to a viewer.

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use mcp_sansio_async::ByteStream;

/// The direction of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the peer.
    In,
    /// To the peer.
    Out,
}

impl Direction {
    /// Returns an arrow.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "<--",
            Self::Out => "-->",
        }
    }
}

/// A callback for every line.
pub type Viewer = Box<dyn FnMut(Direction, &str) + Send>;

/// A byte stream that shows each of its lines and counts the ones that cannot be messages.
pub struct Wire<S> {
    stream: S,
    lines: Lines,
}

/// Divides the bytes of a connection into lines, shows each, and counts the ones that cannot be
/// messages.
pub struct Lines {
    input: Line,
    output: Line,
    viewer: Option<Viewer>,
    noise: Noise,
}

/// Received lines that are not messages, such as debug output of a server.
#[derive(Clone, Debug, Default)]
pub struct Noise(Arc<Mutex<(usize, String)>>);

impl Noise {
    /// Returns the number of lines, and the start of the first one.
    #[must_use]
    pub fn seen(&self) -> (usize, String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, line: &str) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.0 += 1;
        if seen.0 == 1 {
            seen.1 = line.chars().take(NOISE_LENGTH_MAX).collect();
        }
    }
}

/// The number of characters kept of the first line, enough to recognize it.
const NOISE_LENGTH_MAX: usize = 80;

/// The maximum number of bytes shown of a line, about a screenful.
const LINE_LENGTH_MAX: usize = 4096;

/// Shortens a text for display. `length` is the full length of the line if `text` is only its
/// start.
pub(crate) fn shortened(text: &str, length: usize) -> Cow<'_, str> {
    let mut end = text.len().min(LINE_LENGTH_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let start = &text[..end];
    if start.len() < text.len() || length > LINE_LENGTH_MAX {
        format!("{start}... ({} bytes)", length.max(text.len())).into()
    } else {
        text.into()
    }
}

/// The part of a line that has been transferred.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    length: usize,
}

impl<S> Wire<S> {
    /// Shows the lines of `stream` to `viewer`.
    #[must_use]
    pub fn new(stream: S, viewer: Option<Viewer>) -> Self {
        Self { stream, lines: Lines::new(viewer) }
    }
}

impl Lines {
    /// Shows the lines to `viewer`.
    #[must_use]
    pub fn new(viewer: Option<Viewer>) -> Self {
        let (input, output, noise) = Default::default();
        Self { input, output, viewer, noise }
    }

    /// Returns the received lines that are not messages.
    #[must_use]
    pub fn noise(&self) -> Noise {
        self.noise.clone()
    }

    /// Takes bytes that were transferred, in any pieces.
    pub fn look(&mut self, direction: Direction, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = self.line(direction);
            let room = LINE_LENGTH_MAX.saturating_sub(line.bytes.len());
            line.bytes.extend_from_slice(&part[..part.len().min(room)]);
            line.length += part.len();
            if part.ends_with(b"\n") {
                self.show(direction);
            }
        }
    }

    /// Shows the line that was transferred.
    fn show(&mut self, direction: Direction) {
        let line = std::mem::take(self.line(direction));
        let text = String::from_utf8_lossy(&line.bytes);
        let text = text.trim_end();
        // As for the decoder of messages.
        let message = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r']);
        if direction == Direction::In && !message.is_empty() && !message.starts_with(['{', '[']) {
            self.noise.note(text);
        }
        if let Some(viewer) = &mut self.viewer {
            viewer(direction, &shortened(text, line.length));
        }
    }

    const fn line(&mut self, direction: Direction) -> &mut Line {
        match direction {
            Direction::In => &mut self.input,
            Direction::Out => &mut self.output,
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // The last line of a program may have no line end.
        if self.input.length > 0 {
            self.show(Direction::In);
        }
    }
}

impl<S: ByteStream> ByteStream for Wire<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let read = self.stream.poll_read(cx, buffer);
        if let Poll::Ready(Ok(length)) = read {
            self.lines.look(Direction::In, &buffer[..length]);
        }
        read
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.stream.poll_write(cx, bytes);
        if let Poll::Ready(Ok(length)) = written {
            self.lines.look(Direction::Out, &bytes[..length]);
        }
        written
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_close(cx)
    }
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").field("noise", &self.noise).finish_non_exhaustive()
    }
}

impl<S> std::fmt::Debug for Wire<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("lines", &self.lines).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn the_last_line_is_shown_without_a_line_end() {
        let shown = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&shown);
        let viewer: Viewer = Box::new(move |_, line| seen.lock().unwrap().push(line.to_owned()));
        let mut lines = Lines::new(Some(viewer));
        let noise = lines.noise();
        lines.look(Direction::In, b"{\"id\":1}\nfatal: no");
        lines.look(Direction::In, b" memory");
        drop(lines);
        assert_eq!(*shown.lock().unwrap(), ["{\"id\":1}", "fatal: no memory"]);
        assert_eq!(noise.seen(), (1, "fatal: no memory".into()));
    }
}

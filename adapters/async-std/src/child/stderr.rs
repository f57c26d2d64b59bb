use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_process::ChildStderr;
use blocking::unblock;
use futures_lite::AsyncReadExt;

use crate::task::{Executor, Task};
use crate::timer::timeout;

/// What becomes of what a child process writes to its standard error. It is read in any case, so
/// that the child never waits, and the last lines are kept for reports.
// MCP 2025-11-25 basic/transports#stdio [STDIO-004] [STDIO-005]: a client may capture, forward or
// ignore it.
#[derive(Default)]
pub enum Stderr {
    /// Nothing more.
    #[default]
    Keep,
    /// Each line goes to the standard error of this process.
    Forward,
    /// Each line, without its end, goes to a function, which must not block.
    Lines(Box<dyn FnMut(&str) + Send>),
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keep => "Keep",
            Self::Forward => "Forward",
            Self::Lines(_) => "Lines(..)",
        })
    }
}

/// How many lines are kept: a panic with its backtrace, or a usage message.
const LINES_KEPT: usize = 32;

/// How many bytes of a line are kept; what is beyond is dropped.
const LINE_LENGTH_MAX: usize = 4096;

/// How much is read at once.
const CHUNK: usize = 4096;

/// How long after the exit last words may still be on their way. They are in the pipe then; a
/// grandchild that holds the other end open is not waited for.
const SETTLE: Duration = Duration::from_millis(100);

/// The task that reads, and what it has read.
#[derive(Debug)]
pub(super) struct Reader {
    task: Task<()>,
    tail: Arc<Mutex<Tail>>,
}

impl Reader {
    pub(super) fn start(stderr: ChildStderr, mut sink: Stderr) -> Self {
        let tail = Arc::new(Mutex::new(Tail::default()));
        let shared = Arc::clone(&tail);
        let task = Executor::current().spawn(async move { read(stderr, &mut sink, &shared).await });
        Self { task, tail }
    }

    pub(super) fn tail(&self) -> Vec<String> {
        let tail = lock(&self.tail);
        let unfinished = (!tail.line.is_empty()).then(|| tail.current());
        tail.lines.iter().cloned().chain(unfinished).collect()
    }

    /// Waits for the last words of a child that has exited.
    pub(super) async fn settle(&mut self) {
        let _ = timeout(SETTLE, &mut self.task).await;
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The last lines.
#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<String>,
    /// The line that has not ended yet.
    line: Vec<u8>,
}

impl Tail {
    /// Takes bytes, and tells `ended` of each line that they end.
    fn extend(&mut self, bytes: &[u8], mut ended: impl FnMut(&str)) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, is_end) = piece.strip_suffix(b"\n").map_or((piece, false), |t| (t, true));
            let room = LINE_LENGTH_MAX - self.line.len();
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if is_end {
                self.end_line(&mut ended);
            }
        }
    }

    fn end_line(&mut self, mut ended: impl FnMut(&str)) {
        let line = self.current();
        self.line.clear();
        ended(&line);
        if self.lines.len() == LINES_KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    fn current(&self) -> String {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        String::from_utf8_lossy(line).into_owned()
    }
}

async fn read(mut stderr: ChildStderr, sink: &mut Stderr, tail: &Mutex<Tail>) {
    let mut chunk = [0; CHUNK];
    loop {
        let length = stderr.read(&mut chunk).await.unwrap_or(0);
        let mut lines = Vec::new();
        let mut ended = |line: &str| lines.push(line.to_owned());
        {
            let mut tail = lock(tail);
            tail.extend(&chunk[..length], &mut ended);
            if length == 0 && !tail.line.is_empty() {
                tail.end_line(&mut ended);
            }
        }
        hand_on(&lines, sink).await;
        if length == 0 {
            return;
        }
    }
}

/// Hands lines on with no lock held: the function may ask for the tail.
async fn hand_on(lines: &[String], sink: &mut Stderr) {
    match sink {
        Stderr::Keep => {}
        Stderr::Forward => {
            let mut text = lines.join("\n");
            if !lines.is_empty() {
                text.push('\n');
                // Where our own standard error is closed, there is nobody to tell.
                let _ = unblock(move || io::stderr().write_all(text.as_bytes())).await;
            }
        }
        Stderr::Lines(function) => lines.iter().for_each(|line| function(line)),
    }
}

fn lock(tail: &Mutex<Tail>) -> MutexGuard<'_, Tail> {
    tail.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_wherever_the_bytes_are_split() {
        let text = b"one\r\n\ntwo \xff\nthree";
        for piece in 1..=text.len() {
            let mut tail = Tail::default();
            let mut lines = Vec::new();
            for bytes in text.chunks(piece) {
                tail.extend(bytes, |line| lines.push(line.to_owned()));
            }
            assert_eq!(lines, ["one", "", "two \u{fffd}"]);
            assert_eq!(tail.current(), "three");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut tail = Tail::default();
        for number in 0..100 {
            tail.extend(format!("{number}\n").as_bytes(), |_| {});
        }
        tail.extend(&[b'x'; 3 * LINE_LENGTH_MAX], |_| {});
        assert_eq!((tail.lines.len(), tail.lines[0].as_str()), (LINES_KEPT, "68"));
        assert_eq!(tail.current().len(), LINE_LENGTH_MAX);
    }
}

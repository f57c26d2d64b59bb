use std::future::poll_fn;
use std::time::Duration;

use super::{Process, Stderr, StderrTail};
use crate::Runtime;
use crate::task::{Task, spawn};
use crate::timer::timeout;

/// Bytes per read.
const CHUNK: usize = 4096;

/// How long to wait for output after the exit. The output is already in the pipe then; a grandchild
/// that holds the write end open is not waited for.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// The task that reads a child's standard error, and the lines that it has read.
#[derive(Debug)]
pub(super) struct StderrReader {
    task: Task<()>,
    tail: StderrTail,
}

impl StderrReader {
    pub(super) fn start<P: Process>(runtime: &P::Runtime, stderr: P::Stderr, sink: Stderr) -> Self {
        let tail = StderrTail::default();
        let task = spawn(runtime, read::<P>(stderr, sink, tail.clone()));
        Self { task, tail }
    }

    pub(super) fn tail(&self) -> Vec<String> {
        self.tail.lines()
    }

    /// Waits for the final output of a child that has exited.
    pub(super) async fn drain(&mut self, runtime: &impl Runtime) {
        let _ = timeout(runtime, DRAIN_TIMEOUT, &mut self.task).await;
    }
}

impl Drop for StderrReader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read<P: Process>(mut stderr: P::Stderr, mut sink: Stderr, tail: StderrTail) {
    let mut chunk = [0; CHUNK];
    loop {
        let read = poll_fn(|cx| P::poll_stderr(&mut stderr, cx, &mut chunk));
        let length = read.await.unwrap_or(0);
        if let Some(text) = tail.take(&chunk[..length], &mut sink) {
            P::forward(text).await;
        }
        if length == 0 {
            return;
        }
    }
}

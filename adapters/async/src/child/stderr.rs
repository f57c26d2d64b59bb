use std::future::poll_fn;
use std::time::Duration;

use super::{Process, Stderr, StderrTail};
use crate::Runtime;
use crate::task::{Task, spawn};
use crate::timer::timeout;

/// Bytes per read.
const CHUNK: usize = 4096;

/// The task that reads a child's standard error.
#[derive(Debug)]
pub(super) struct StderrReader {
    task: Task<()>,
    has_ended: bool,
}

impl StderrReader {
    pub(super) fn start<P: Process>(
        runtime: &P::Runtime,
        stderr: P::Stderr,
        sink: Stderr,
        tail: StderrTail,
    ) -> Self {
        Self { task: spawn(runtime, read::<P>(stderr, sink, tail)), has_ended: false }
    }

    /// Waits until no process holds the standard error any more. Returns false if that takes longer
    /// than `limit`.
    pub(super) async fn has_ended(&mut self, runtime: &impl Runtime, limit: Duration) -> bool {
        if !self.has_ended {
            self.has_ended = timeout(runtime, limit, &mut self.task).await.is_some();
        }
        self.has_ended
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

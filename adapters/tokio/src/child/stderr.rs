use std::time::Duration;

use mcp_sansio_async::child::{Stderr, Tail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How much is read at once.
const CHUNK: usize = 4096;

/// How long after the exit last words may still be on their way. They are in the pipe then; a
/// grandchild that holds the other end open is not waited for.
const SETTLE: Duration = Duration::from_millis(100);

/// The task that reads, and what it has read.
#[derive(Debug)]
pub(super) struct Reader {
    task: JoinHandle<()>,
    tail: Tail,
}

impl Reader {
    pub(super) fn start(stderr: ChildStderr, sink: Stderr) -> Self {
        let tail = Tail::default();
        let task = tokio::spawn(read(stderr, sink, tail.clone()));
        Self { task, tail }
    }

    pub(super) fn tail(&self) -> Vec<String> {
        self.tail.lines()
    }

    /// Waits for the last words of a child that has exited.
    pub(super) async fn settle(&mut self) {
        if !self.task.is_finished() {
            let _ = timeout(SETTLE, &mut self.task).await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read(mut stderr: ChildStderr, mut sink: Stderr, tail: Tail) {
    let mut chunk = [0; CHUNK];
    loop {
        let length = stderr.read(&mut chunk).await.unwrap_or(0);
        if let Some(text) = tail.take(&chunk[..length], &mut sink) {
            // Where our own standard error is closed, there is nobody to tell.
            let _ = tokio::io::stderr().write_all(text.as_bytes()).await;
        }
        if length == 0 {
            return;
        }
    }
}

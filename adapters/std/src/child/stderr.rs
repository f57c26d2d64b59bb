use std::fmt;
use std::io::{self, Write};
use std::process::ChildStderr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::tail::Tail;
#[cfg(unix)]
use crate::stop::Stop;

/// Where a child's standard error goes. Either way it is read all the time, so that the child never
/// has to wait to write it, and its last lines are kept.
#[derive(Default)]
#[non_exhaustive]
pub enum Stderr {
    /// Nowhere else.
    #[default]
    Captured,
    /// As it is to a writer, for example `std::io::stderr()`. A writer that blocks holds up the
    /// child; one that fails is not tried again.
    Forwarded(Box<dyn Write + Send>),
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Captured => "Captured",
            Self::Forwarded(_) => "Forwarded(..)",
        })
    }
}

/// The thread that reads a child's standard error.
// MCP 2026-07-28 basic/transports/stdio#stdio [STDIO-005]: captured or forwarded, but
// never left unread.
#[derive(Debug)]
pub(super) struct StderrThread {
    shared: Arc<Shared>,
    #[cfg(unix)]
    stop: Stop,
    /// `None` once it is joined.
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug)]
struct State {
    tail: Tail,
    ended: bool,
}

/// How long the standard error is read after the child has exited: what it wrote is there already,
/// and a process that it has left behind may hold it open forever. 100 ms.
const GRACE: Duration = Duration::from_millis(100);

/// What is read at once, in bytes. 8 KiB: a crash in one or two reads.
const READ_LENGTH: usize = 8 * 1024;

impl StderrThread {
    pub(super) fn spawn(
        stderr: ChildStderr,
        destination: Stderr,
        lines_max: usize,
    ) -> io::Result<Self> {
        let state = Mutex::new(State { tail: Tail::new(lines_max), ended: false });
        let shared = Arc::new(Shared { state, ended: Condvar::new() });
        let reading = Reading { shared: Arc::clone(&shared), destination };
        let builder = thread::Builder::new().name("mcp-stderr".into());
        #[cfg(unix)]
        {
            let stop = Stop::default();
            let stopped = stop.clone();
            // The thread goes on as long as it can be read; there is nobody to tell of an error.
            let run = move || {
                let _ = crate::block_on(stopped.guard(reading.run(stderr)));
            };
            Ok(Self { shared, stop, thread: Some(builder.spawn(run)?) })
        }
        #[cfg(not(unix))]
        {
            let thread = builder.spawn(move || reading.run(stderr))?;
            Ok(Self { shared, thread: Some(thread) })
        }
    }

    pub(super) fn tail(&self) -> Vec<String> {
        self.shared.lock().tail.lines()
    }

    /// Waits for the end of the standard error, for `pause` at most. Whether it has come.
    pub(super) fn wait(&self, pause: Duration) -> bool {
        let waited =
            self.shared.ended.wait_timeout_while(self.shared.lock(), pause, |state| !state.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    /// After the exit of the child: takes what there is left and ends the thread.
    pub(super) fn finish(&mut self) {
        let ended = self.wait(GRACE);
        self.join(ended);
    }

    #[cfg(unix)]
    fn join(&mut self, _: bool) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // A writer that panics has said so itself.
            let _ = thread.join();
        }
    }

    /// A read cannot be called off here, so a thread that has more to read is left to it.
    #[cfg(not(unix))]
    fn join(&mut self, ended: bool) {
        if let Some(thread) = self.thread.take().filter(|_| ended) {
            let _ = thread.join();
        }
    }
}

impl Drop for StderrThread {
    fn drop(&mut self) {
        self.join(false);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's side. Dropped, it says that this was the end.
struct Reading {
    shared: Arc<Shared>,
    destination: Stderr,
}

impl Reading {
    #[cfg(unix)]
    async fn run(mut self, stderr: ChildStderr) {
        use mcp_sansio_async::ByteStream;
        let Ok(mut stream) = crate::FdStream::reading(stderr) else { return };
        let mut buffer = [0; READ_LENGTH];
        loop {
            let read = std::future::poll_fn(|cx| stream.poll_read(cx, &mut buffer)).await;
            match read {
                Ok(0) | Err(_) => return,
                Ok(length) => self.take(&buffer[..length]),
            }
        }
    }

    #[cfg(not(unix))]
    fn run(mut self, mut stderr: ChildStderr) {
        let mut buffer = [0; READ_LENGTH];
        loop {
            match io::Read::read(&mut stderr, &mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
                Ok(length) => self.take(&buffer[..length]),
            }
        }
    }

    fn take(&mut self, text: &[u8]) {
        self.shared.lock().tail.push(text);
        if let Stderr::Forwarded(writer) = &mut self.destination
            && writer.write_all(text).and_then(|()| writer.flush()).is_err()
        {
            self.destination = Stderr::Captured;
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.ended.notify_all();
    }
}

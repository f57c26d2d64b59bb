use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_sansio::Spawner;
use mcp_sansio::peer::CloseReason;
use mcp_sansio::stream::Endpoint as _;
use mcp_sansio_handlers::{Client, ConnectionError, Host, ServerConnection};

use super::{ChildConnection, ExitReport, Process};
use crate::error::Error;
use crate::{ByteStream, Driver, Runtime, seed};

/// Handling of a child's standard error. It is always read, so that the child never blocks, and the
/// last lines are kept for reports.
// MCP 2025-11-25 basic/transports#stdio [STDIO-004] [STDIO-005]: a client may capture, forward or
// ignore it.
#[derive(Default)]
#[non_exhaustive]
pub enum Stderr {
    /// Only keeps the last lines.
    #[default]
    Keep,
    /// Forwards each line to the standard error of this process.
    Forward,
    /// Passes each line, without its line ending, to a function, which must not block.
    Lines(Box<dyn FnMut(&str) + Send>),
}

impl Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keep => "Keep",
            Self::Forward => "Forward",
            Self::Lines(_) => "Lines(..)",
        })
    }
}

/// Lines kept: enough for a panic with its backtrace, or for a usage message.
const TAIL_LINES_MAX: usize = 32;

/// Bytes kept of each line; the rest is dropped.
const LINE_LENGTH_MAX: usize = 4096;

/// The last lines of a standard error. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct StderrTail(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    ended: VecDeque<String>,
    /// The current, unfinished line.
    line: Vec<u8>,
}

impl StderrTail {
    /// Returns the last 32 complete lines and the unfinished one, without line endings. Invalid
    /// UTF-8 is replaced, and each line has at most 4,096 bytes.
    #[must_use]
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.lock();
        let unfinished = (!lines.line.is_empty()).then(|| lines.current());
        lines.ended.iter().cloned().chain(unfinished).collect()
    }

    /// Processes the bytes read (none at end of file) and passes the completed lines to `sink`.
    /// Returns the text to write to the standard error of this process.
    #[must_use]
    pub(crate) fn take(&self, bytes: &[u8], sink: &mut Stderr) -> Option<String> {
        let mut ended = Vec::new();
        self.lock().take(bytes, |line| ended.push(line.to_owned()));
        // Not under the lock, since the function may read the tail.
        match sink {
            Stderr::Keep => None,
            Stderr::Forward if ended.is_empty() => None,
            Stderr::Forward => Some(ended.join("\n") + "\n"),
            Stderr::Lines(function) => {
                ended.iter().for_each(|line| function(line));
                None
            }
        }
    }

    /// Forgets the lines of a process that has ended.
    pub(super) fn clear(&self) {
        *self.lock() = Lines::default();
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    /// Appends bytes (none at end of file) and calls `ended` for each line that they complete.
    fn take(&mut self, bytes: &[u8], mut ended: impl FnMut(&str)) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, is_end) = piece.strip_suffix(b"\n").map_or((piece, false), |t| (t, true));
            let room = LINE_LENGTH_MAX - self.line.len();
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if is_end {
                self.end_line(&mut ended);
            }
        }
        if bytes.is_empty() && !self.line.is_empty() {
            self.end_line(&mut ended);
        }
    }

    fn end_line(&mut self, mut ended: impl FnMut(&str)) {
        let line = self.current();
        self.line.clear();
        ended(&line);
        if self.ended.len() == TAIL_LINES_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(line);
    }

    fn current(&self) -> String {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        String::from_utf8_lossy(line).into_owned()
    }
}

// ------------------------------------------------------------------ any connection

/// A connection to a server, over any transport: the type of connections in
/// [`Servers`](mcp_sansio_handlers::Servers) of several kinds. Derefs to the [`Client`].
///
/// Create it with `from` of a connection. What a kind of connection does not have is `None`.
#[derive(Debug)]
pub struct AnyConnection(Box<dyn Connection>);

/// A connection to a server, in an [`AnyConnection`], with the methods of that type.
pub(crate) trait Connection: Debug + Deref<Target = Client> + Send + Sync {
    fn id(&self) -> Option<u32> {
        None
    }

    fn kill(&self) {
        self.close();
    }

    fn stderr_tail(&self) -> Option<Vec<String>> {
        None
    }

    fn last_failure(&self) -> Option<ConnectionError> {
        None
    }

    fn shutdown(self: Box<Self>) -> Shutdown;
}

pub(crate) type Shutdown = Pin<Box<dyn Future<Output = Result<Option<ExitReport>, Error>> + Send>>;

impl AnyConnection {
    pub(crate) fn new(connection: impl Connection + 'static) -> Self {
        Self(Box::new(connection))
    }

    /// Returns the process id of the server, or `None` while it does not run, or is no child
    /// process.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.0.id()
    }

    /// Kills a child process, as [`ChildConnection::kill`] does. Another connection is
    /// [closed](Client::close) without waiting.
    pub fn kill(&self) {
        self.0.kill();
    }

    /// Returns the last 32 lines of a child process's standard error so far:
    /// [`ChildConnection::stderr_tail`].
    #[must_use]
    pub fn stderr_tail(&self) -> Option<Vec<String>> {
        self.0.stderr_tail()
    }

    /// Returns the error of the last failed exchange with a server over HTTP: a `ConnectorError`.
    #[must_use]
    pub fn last_failure(&self) -> Option<ConnectionError> {
        self.0.last_failure()
    }

    /// Closes the connection and waits until it is closed, as [`ChildConnection::shutdown`] and
    /// `HttpConnection::shutdown` do. Returns how a child process has ended.
    ///
    /// # Errors
    ///
    /// As [`ChildConnection::shutdown`].
    pub async fn shutdown(self) -> Result<Option<ExitReport>, Error> {
        self.0.shutdown().await
    }
}

impl ServerConnection for AnyConnection {
    fn client(&self) -> &Client {
        self
    }

    fn seed() -> u64 {
        seed()
    }

    fn is_permanent(error: &(dyn std::error::Error + 'static)) -> bool {
        Error::is_permanent_in(error)
    }
}

impl<P: Process> ServerConnection for ChildConnection<P> {
    fn client(&self) -> &Client {
        self
    }

    fn seed() -> u64 {
        seed()
    }

    fn is_permanent(error: &(dyn std::error::Error + 'static)) -> bool {
        Error::is_permanent_in(error)
    }
}

impl Error {
    /// Returns whether another attempt to connect would fail in the same way until something is
    /// changed: the program does not exist or may not be executed, or the server refuses this
    /// client. [`Servers`](mcp_sansio_handlers::Servers) do not try again then.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        use std::io::ErrorKind::{InvalidInput, NotADirectory, NotFound, PermissionDenied};

        match self {
            Self::Spawn(error) => matches!(
                error.source.kind(),
                NotFound | NotADirectory | PermissionDenied | InvalidInput
            ),
            Self::Closed { reason, .. } => match &**reason {
                CloseReason::OpeningFailed(failure) => failure.is_permanent(),
                _ => false,
            },
            #[cfg(feature = "http-client")]
            Self::Connect(error) => error.is_permanent(),
            _ => false,
        }
    }

    /// The same for any error: for [`ServerConnection::is_permanent`].
    #[must_use]
    pub fn is_permanent_in(error: &(dyn std::error::Error + 'static)) -> bool {
        error.downcast_ref().is_some_and(Self::is_permanent)
    }
}

impl<P: Process> From<ChildConnection<P>> for AnyConnection {
    fn from(connection: ChildConnection<P>) -> Self {
        Self::new(connection)
    }
}

impl<P: Process> Connection for ChildConnection<P> {
    fn id(&self) -> Option<u32> {
        Self::id(self)
    }

    fn kill(&self) {
        Self::kill(self);
    }

    fn stderr_tail(&self) -> Option<Vec<String>> {
        Some(Self::stderr_tail(self))
    }

    fn shutdown(self: Box<Self>) -> Shutdown {
        Box::pin(async { (*self).shutdown().await.map(Some) })
    }
}

/// Connects to the server at the other end of `stream`. A spawned task drives the connection, until
/// it is [closed](Client::close) or the last handle and call are dropped.
///
/// # Errors
///
/// [`Error::Closed`]: the connection could not be opened.
///
/// # Panics
///
/// Where [`Runtime::current`] does.
pub async fn connect_over<R: Runtime>(
    stream: impl ByteStream + Send + 'static,
    host: &Host,
) -> Result<Client, Error> {
    let runtime = R::current();
    let (client, mut endpoint) = host.connect(seed(), runtime.now());
    endpoint.set_spawner(Spawner::new(R::spawn_blocking));
    let driver = Driver::new(endpoint, stream, runtime.timer());
    // The client learns why the connection ends.
    runtime.spawn(async { drop(driver.await) });
    client.opened().await?;
    Ok(client)
}

impl From<Client> for AnyConnection {
    /// Of a connection that the application drives.
    fn from(client: Client) -> Self {
        Self::new(DrivenConnection(client))
    }
}

/// A connection that the application drives.
#[derive(Debug)]
struct DrivenConnection(Client);

impl Deref for DrivenConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

impl Connection for DrivenConnection {
    fn shutdown(self: Box<Self>) -> Shutdown {
        self.0.close();
        Box::pin(std::future::ready(Ok(None)))
    }
}

impl Deref for AnyConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_do_not_depend_on_how_bytes_are_split() {
        let text = b"one\r\n\ntwo \xff\nthree";
        for piece in 1..=text.len() {
            let (tail, heard) = (StderrTail::default(), Arc::new(Mutex::new(Vec::new())));
            let (known, hear) = (tail.clone(), Arc::clone(&heard));
            let mut sink = Stderr::Lines(Box::new(move |line| {
                assert!(known.lines().contains(&line.to_owned()));
                hear.lock().unwrap().push(line.to_owned());
            }));
            for bytes in text.chunks(piece) {
                assert_eq!(tail.take(bytes, &mut sink), None);
            }
            assert_eq!(*heard.lock().unwrap(), ["one", "", "two \u{fffd}"]);
            assert_eq!(tail.lines(), ["one", "", "two \u{fffd}", "three"]);
            assert_eq!(tail.take(b"", &mut sink), None);
            assert_eq!(heard.lock().unwrap().last().unwrap(), "three");
            assert_eq!(tail.lines().len(), 4);
        }
    }

    #[test]
    fn lines_are_forwarded_when_they_have_ended() {
        let (tail, mut sink) = (StderrTail::default(), Stderr::Forward);
        assert_eq!(tail.take(b"on", &mut sink), None);
        assert_eq!(tail.take(b"e\ntwo\nthr", &mut sink).as_deref(), Some("one\ntwo\n"));
        assert_eq!(tail.take(b"", &mut sink).as_deref(), Some("thr\n"));
        assert_eq!(tail.take(b"", &mut sink), None);
        assert_eq!(tail.take(b"four\n", &mut Stderr::Keep), None);
    }

    #[test]
    fn the_stderr_tail_is_bounded() {
        let tail = StderrTail::default();
        for number in 0..100 {
            assert_eq!(tail.take(format!("{number}\n").as_bytes(), &mut Stderr::Keep), None);
        }
        assert_eq!(tail.take(&[b'x'; 3 * LINE_LENGTH_MAX], &mut Stderr::Keep), None);
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (TAIL_LINES_MAX + 1, "68"));
        assert_eq!(lines[TAIL_LINES_MAX].len(), LINE_LENGTH_MAX);
    }
}

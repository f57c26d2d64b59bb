use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::client::private_file::{self, ReadError, private};

/// How long to wait for another process that writes. Two seconds: a write takes milliseconds, so a
/// longer holder is stuck, and waiting blocks a thread.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// The first pause between attempts: about the duration of a write.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// The longest pause between attempts: an exchange with a server takes about as long.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Exclusive access to a file until it is dropped. It is released when the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock on the file at `path`, which others hold while they write.
    pub(crate) fn acquire(path: &Path) -> Result<Self, ReadError> {
        Self::acquire_within(path, WRITE_TIMEOUT, || true)
    }

    /// Waits for the lock on the file at `path`, as long as `waits` returns true and at most for
    /// `patience`. The lock file is not removed: otherwise two processes could each hold a file of
    /// that name.
    #[allow(clippy::disallowed_methods, reason = "only the core must not read the time")]
    pub(crate) fn acquire_within(
        path: &Path,
        patience: Duration,
        waits: impl Fn() -> bool,
    ) -> Result<Self, ReadError> {
        let until = Instant::now() + patience;
        let mut pause = PAUSE_MIN;
        loop {
            if let Some(file) = try_lock(path)? {
                return Ok(Self { _file: file });
            }
            if !waits() || Instant::now() >= until {
                break;
            }
            thread::sleep(pause);
            // The pause grows with the time that has passed.
            pause = (pause + pause / 16).min(PAUSE_MAX);
        }
        let reason = "another process has held the lock for too long";
        Err(io::Error::new(io::ErrorKind::TimedOut, reason).into())
    }
}

#[cfg(not(windows))]
fn open(path: &Path) -> Result<File, ReadError> {
    let mut options = OpenOptions::new();
    private_file::open(private(options.write(true).create(true).truncate(false)), path)
}

// The standard library has file locks since 1.89.
#[cfg(unix)]
fn try_lock(path: &Path) -> Result<Option<File>, ReadError> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;

    let file = open(path)?;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
}

/// A file without sharing cannot be opened twice.
#[cfg(windows)]
fn try_lock(path: &Path) -> Result<Option<File>, ReadError> {
    use std::os::windows::fs::OpenOptionsExt;

    const ERROR_SHARING_VIOLATION: i32 = 32;
    let mut options = OpenOptions::new();
    private(options.write(true).create(true).truncate(false).share_mode(0));
    match options.open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// On other systems the file is only read again right before it is written.
#[cfg(not(any(unix, windows)))]
fn try_lock(path: &Path) -> Result<Option<File>, ReadError> {
    open(path).map(Some)
}

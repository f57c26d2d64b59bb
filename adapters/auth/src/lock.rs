use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::private_file::{self, ReadError, private};

/// How long until the lock is tried again: about what a write takes.
const PAUSE: Duration = Duration::from_millis(5);
/// How often it is tried. 400 times, in two seconds: a write takes milliseconds, so whoever takes
/// longer is stuck, and waiting blocks a thread.
const TRIES: u32 = 400;

/// The right to change a file, as long as it is held here. It is lost with the process.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock that is the file at `path`. The file stays: were it removed, two processes
    /// could each hold one of that name.
    pub(crate) fn acquire(path: &Path) -> Result<Self, ReadError> {
        for _ in 0..TRIES {
            match try_lock(path)? {
                Some(file) => return Ok(Self { _file: file }),
                None => thread::sleep(PAUSE),
            }
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

// Of the standard library from 1.89 on.
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

/// A file that is shared with nobody cannot be opened twice.
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

/// Elsewhere the file is read again right before it is written, and that is all.
#[cfg(not(any(unix, windows)))]
fn try_lock(path: &Path) -> Result<Option<File>, ReadError> {
    open(path).map(Some)
}

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;

use async_io::Async;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::net::{Shutdown, shutdown};

/// A descriptor of a pipe or a socket, used without blocking, for one direction.
///
/// A file of the standard library does for both: `async-io` waits until the descriptor is ready,
/// then it calls `read` or `write`.
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// Of a duplicate: the original stays open and is of no interest here.
    file: Async<File>,
    is_socket: bool,
    /// Whether it was blocking before, to be so again.
    was_blocking: bool,
}

/// The standard input and output, each if it can be used without blocking.
pub(crate) fn open_standard() -> (Option<Descriptor>, Option<Descriptor>) {
    let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
    // Both are looked at before either is changed, as they may be one and the same socket.
    let input = Candidate::new(input.as_fd(), error.as_fd());
    let output = Candidate::new(output.as_fd(), error.as_fd());
    (input.and_then(|input| input.open().ok()), output.and_then(|output| output.open().ok()))
}

impl Descriptor {
    pub(crate) fn pin(&mut self) -> Pin<&mut Async<File>> {
        Pin::new(&mut self.file)
    }

    /// Tells the other side that nothing more comes, as far as can be told.
    pub(crate) fn close_output(&self) -> io::Result<()> {
        if self.is_socket {
            shutdown(&self.file, Shutdown::Write)?;
        }
        Ok(())
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.was_blocking {
            // There is nobody to tell, and the descriptor is as good as it was.
            let _ = set_blocking(self.file.as_fd(), true);
        }
    }
}

/// A descriptor that can be used without blocking.
struct Candidate {
    fd: OwnedFd,
    is_socket: bool,
    is_blocking: bool,
}

impl Candidate {
    /// `None` for files and terminals, which cannot be waited for; and for what is the standard
    /// error at the same time: whoever writes there expects it to block.
    fn new(fd: BorrowedFd<'_>, error: BorrowedFd<'_>) -> Option<Self> {
        let stat = fstat(fd).ok()?;
        let is_socket = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Socket => true,
            FileType::Fifo => false,
            _ => return None,
        };
        let is_blocking = !fcntl_getfl(fd).ok()?.contains(OFlags::NONBLOCK);
        let is_same =
            |error: rustix::fs::Stat| (error.st_dev, error.st_ino) == (stat.st_dev, stat.st_ino);
        if is_blocking && fstat(error).is_ok_and(is_same) {
            return None;
        }
        let fd = fd.try_clone_to_owned().ok()?;
        Some(Self { fd, is_socket, is_blocking })
    }

    fn open(self) -> io::Result<Descriptor> {
        let Self { fd, is_socket, is_blocking } = self;
        let descriptor = Descriptor {
            file: Async::new_nonblocking(File::from(fd))?,
            is_socket,
            was_blocking: is_blocking,
        };
        if is_blocking {
            set_blocking(descriptor.file.as_fd(), false)?;
        }
        Ok(descriptor)
    }
}

fn set_blocking(fd: BorrowedFd<'_>, blocking: bool) -> io::Result<()> {
    let mut flags = fcntl_getfl(fd)?;
    flags.set(OFlags::NONBLOCK, !blocking);
    Ok(fcntl_setfl(fd, flags)?)
}

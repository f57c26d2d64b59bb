//! Non-blocking standard streams, where they can be used without threads.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::net::{Shutdown, shutdown};
use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

/// A non-blocking descriptor of a pipe or a socket, used in one direction.
///
/// `P` is a runtime's type that waits until the descriptor is ready, then calls `read` or `write`,
/// which work on pipes and stream sockets.
#[derive(Debug)]
pub struct Descriptor<P: AsFd> {
    /// Holds a duplicate; the original stays open.
    pipe: P,
    is_socket: bool,
    /// Whether the descriptor was blocking before; restored on drop.
    was_blocking: bool,
}

/// Opens the standard input and output, each if it can be used without blocking; `register_input`
/// and `register_output` register them with a runtime.
pub fn open_standard<I: AsFd, O: AsFd>(
    register_input: impl FnOnce(OwnedFd) -> io::Result<I>,
    register_output: impl FnOnce(OwnedFd) -> io::Result<O>,
) -> (Option<Descriptor<I>>, Option<Descriptor<O>>) {
    let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
    // Inspect both before changing either, as they may be the same socket.
    let input = Candidate::new(input.as_fd(), error.as_fd());
    let output = Candidate::new(output.as_fd(), error.as_fd());
    (
        input.and_then(|input| input.open(register_input).ok()),
        output.and_then(|output| output.open(register_output).ok()),
    )
}

impl<P: AsFd> Descriptor<P> {
    /// Makes a pipe or a socket non-blocking, until this value is dropped.
    ///
    /// # Errors
    ///
    /// The system cannot do that, or `register` failed.
    pub fn new(fd: OwnedFd, register: impl FnOnce(OwnedFd) -> io::Result<P>) -> io::Result<Self> {
        let is_socket = FileType::from_raw_mode(fstat(&fd)?.st_mode) == FileType::Socket;
        let is_blocking = !fcntl_getfl(&fd)?.contains(OFlags::NONBLOCK);
        Candidate { fd, is_socket, is_blocking }.open(register)
    }

    /// Returns the pipe.
    pub const fn get(&self) -> &P {
        &self.pipe
    }
}

impl<P: AsFd + Unpin> Descriptor<P> {
    /// Pins the pipe for the runtime's own traits.
    pub fn pin(&mut self) -> Pin<&mut P> {
        Pin::new(&mut self.pipe)
    }

    /// Shuts down the write side, where the descriptor supports it.
    ///
    /// # Errors
    ///
    /// The output is broken.
    pub fn close_output(&self) -> io::Result<()> {
        if self.is_socket {
            shutdown(&self.pipe, Shutdown::Write)?;
        }
        Ok(())
    }
}

impl<P: AsFd> Drop for Descriptor<P> {
    fn drop(&mut self) {
        if self.was_blocking {
            // The error cannot be reported, and the descriptor keeps its mode.
            let _ = set_blocking(self.pipe.as_fd(), true);
        }
    }
}

/// A descriptor that can be made non-blocking.
struct Candidate {
    fd: OwnedFd,
    is_socket: bool,
    is_blocking: bool,
}

impl Candidate {
    /// Returns `None` for files and terminals, which do not support readiness, and for a descriptor
    /// that is also the standard error, whose writers expect it to block.
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

    fn open<P: AsFd>(
        self,
        register: impl FnOnce(OwnedFd) -> io::Result<P>,
    ) -> io::Result<Descriptor<P>> {
        let Self { fd, is_socket, is_blocking } = self;
        let descriptor = Descriptor { pipe: register(fd)?, is_socket, was_blocking: is_blocking };
        if is_blocking {
            set_blocking(descriptor.pipe.as_fd(), false)?;
        }
        Ok(descriptor)
    }
}

/// Redirects the standard streams for all other code of this process, and for the programs that it
/// starts: descriptor 0 reads nothing, and descriptor 1 writes to the standard error. Dropping it
/// restores both. Duplicates made before are not affected.
#[derive(Debug)]
pub struct StandardOutput {
    input: OwnedFd,
    output: OwnedFd,
}

impl StandardOutput {
    /// Redirects the streams.
    ///
    /// # Errors
    ///
    /// One of the three standard streams is closed, or the system is out of descriptors.
    // MCP 2026-07-28 basic/transports/stdio#stdio [STDIO-002]: nothing but messages on the standard
    // output.
    pub fn redirect() -> io::Result<Self> {
        let nothing = File::open("/dev/null")?;
        let kept =
            Self { input: stdin().try_clone_to_owned()?, output: stdout().try_clone_to_owned()? };
        // From here on, dropping it restores the descriptors.
        dup2_stdin(&nothing)?;
        dup2_stdout(stderr())?;
        // A partial line that was printed before would otherwise end up between the messages later.
        let _ = io::stdout().flush();
        Ok(kept)
    }
}

impl Drop for StandardOutput {
    fn drop(&mut self) {
        // Errors cannot be reported or handled here.
        let _ = io::stdout().flush();
        let _ = dup2_stdin(&self.input);
        let _ = dup2_stdout(&self.output);
    }
}

fn set_blocking(fd: BorrowedFd<'_>, blocking: bool) -> io::Result<()> {
    let mut flags = fcntl_getfl(fd)?;
    flags.set(OFlags::NONBLOCK, !blocking);
    Ok(fcntl_setfl(fd, flags)?)
}

#[cfg(unix)]
use std::fs::File;
#[cfg(unix)]
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::{fmt, io};

#[cfg(unix)]
use async_io::Async;
use blocking::Unblock;
use futures_io::{AsyncRead, AsyncWrite};

use crate::ByteStream;

#[cfg(unix)]
type Descriptor = crate::descriptor::Descriptor<Async<File>>;

/// The standard input and output of this process.
///
/// Pipes and sockets, which hosts normally use, are read and written without threads. Other
/// processes may share their open file descriptions, so dropping this value restores blocking mode
/// if it was set.
///
/// Files, terminals, and everything on Windows use threads of `blocking`. A pending read from a
/// terminal does not delay the exit of the process.
///
/// On Unix, output of `println!` and the like goes to the standard error meanwhile, and child
/// processes read nothing from the standard input, so that neither interferes with the messages. On
/// other systems the program itself must not print.
pub struct StandardStreams {
    input: Input,
    output: Output,
    /// Restores the streams after the others are dropped.
    #[cfg(unix)]
    _redirected: Option<crate::descriptor::StandardOutput>,
}

enum Input {
    #[cfg(unix)]
    Descriptor(Descriptor),
    Threaded(Unblock<Box<dyn io::Read + Send>>),
}

enum Output {
    #[cfg(unix)]
    Descriptor(Descriptor),
    Threaded(Unblock<Box<dyn io::Write + Send>>),
}

impl StandardStreams {
    /// Opens both streams. Only one instance may exist at a time.
    #[must_use]
    pub fn open() -> Self {
        #[cfg(unix)]
        let (input, output) = {
            let register = |fd| Async::new_nonblocking(File::from(fd));
            crate::descriptor::open_standard(register, register)
        };
        #[cfg(unix)]
        let (input, output) = (input.map(Input::Descriptor), output.map(Output::Descriptor));
        #[cfg(not(unix))]
        let (input, output) = (None, None);
        Self {
            input: input.unwrap_or_else(|| Input::Threaded(Unblock::new(stdin()))),
            output: output.unwrap_or_else(|| Output::Threaded(Unblock::new(stdout()))),
            // After the duplicates were made. It fails if the standard error is closed.
            #[cfg(unix)]
            _redirected: crate::descriptor::StandardOutput::redirect().ok(),
        }
    }
}

/// Returns the input. On Unix it is a duplicate: the descriptor of the process may be redirected
/// meanwhile.
fn stdin() -> Box<dyn io::Read + Send> {
    #[cfg(unix)]
    if let Ok(duplicate) = io::stdin().as_fd().try_clone_to_owned() {
        return Box::new(File::from(duplicate));
    }
    Box::new(io::stdin())
}

/// Like [`stdin`], for the output.
fn stdout() -> Box<dyn io::Write + Send> {
    #[cfg(unix)]
    if let Ok(duplicate) = io::stdout().as_fd().try_clone_to_owned() {
        return Box::new(File::from(duplicate));
    }
    Box::new(io::stdout())
}

impl ByteStream for StandardStreams {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match &mut self.input {
            #[cfg(unix)]
            Input::Descriptor(descriptor) => descriptor.pin().poll_read(cx, buffer),
            Input::Threaded(stdin) => Pin::new(stdin).poll_read(cx, buffer),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.output {
            #[cfg(unix)]
            Output::Descriptor(descriptor) => descriptor.pin().poll_write(cx, bytes),
            Output::Threaded(stdout) => Pin::new(stdout).poll_write(cx, bytes),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.output {
            #[cfg(unix)]
            Output::Descriptor(_) => Poll::Ready(Ok(())),
            Output::Threaded(stdout) => Pin::new(stdout).poll_flush(cx),
        }
    }

    /// Shuts down the write side of a socket. A pipe is closed when the process exits, as the
    /// standard output stays open until then.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.output {
            #[cfg(unix)]
            Output::Descriptor(descriptor) => Poll::Ready(descriptor.close_output()),
            Output::Threaded(stdout) => Pin::new(stdout).poll_flush(cx),
        }
    }
}

impl fmt::Debug for StandardStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threaded =
            (matches!(self.input, Input::Threaded(_)), matches!(self.output, Output::Threaded(_)));
        f.debug_struct("StandardStreams").field("threaded", &threaded).finish_non_exhaustive()
    }
}

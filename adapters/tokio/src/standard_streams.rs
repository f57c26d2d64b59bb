use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mcp_sansio_async::ByteStream;
#[cfg(unix)]
use mcp_sansio_async::descriptor::{Descriptor, StandardOutput, open_standard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, Stdin, Stdout};
#[cfg(unix)]
use tokio::net::unix::pipe::{Receiver, Sender};

/// The standard input and output of this process.
///
/// Pipes and sockets, which hosts normally use, are read and written without threads. Other
/// processes may share their open file descriptions, so dropping this value restores blocking mode
/// if it was set.
///
/// With them, output of `println!` and the like goes to the standard error meanwhile, and child
/// processes read nothing from the standard input, so that neither interferes with the messages.
/// With anything else the program itself must not print.
///
/// Files, terminals, and everything on Windows use tokio's threads. A pending read from a terminal
/// delays the shutdown of the runtime, unless it uses
/// [`shutdown_background`](tokio::runtime::Runtime::shutdown_background).
#[derive(Debug)]
pub struct StandardStreams {
    input: Input,
    output: Output,
    /// Restores the streams after the others are dropped.
    #[cfg(unix)]
    _redirected: Option<StandardOutput>,
}

#[derive(Debug)]
enum Input {
    #[cfg(unix)]
    Descriptor(Descriptor<Receiver>),
    Threaded(Stdin),
}

#[derive(Debug)]
enum Output {
    #[cfg(unix)]
    Descriptor(Descriptor<Sender>),
    Threaded(Stdout),
}

impl StandardStreams {
    /// Opens both streams. Only one instance may exist at a time.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O enabled.
    #[must_use]
    pub fn open() -> Self {
        #[cfg(unix)]
        let (input, output) =
            open_standard(Receiver::from_owned_fd_unchecked, Sender::from_owned_fd_unchecked);
        // The types of tokio use the descriptors themselves. It fails if the standard error is closed.
        #[cfg(unix)]
        let _redirected = match (&input, &output) {
            (Some(_), Some(_)) => StandardOutput::redirect().ok(),
            _ => None,
        };
        #[cfg(unix)]
        let (input, output) = (
            input.map_or_else(|| Input::Threaded(tokio::io::stdin()), Input::Descriptor),
            output.map_or_else(|| Output::Threaded(tokio::io::stdout()), Output::Descriptor),
        );
        #[cfg(not(unix))]
        let (input, output) =
            (Input::Threaded(tokio::io::stdin()), Output::Threaded(tokio::io::stdout()));
        Self {
            input,
            output,
            #[cfg(unix)]
            _redirected,
        }
    }
}

impl ByteStream for StandardStreams {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(match &mut self.input {
            #[cfg(unix)]
            Input::Descriptor(descriptor) => descriptor.pin().poll_read(cx, &mut buffer),
            Input::Threaded(stdin) => Pin::new(stdin).poll_read(cx, &mut buffer),
        })?;
        Poll::Ready(Ok(buffer.filled().len()))
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
            Output::Threaded(stdout) => Pin::new(stdout).poll_shutdown(cx),
        }
    }
}

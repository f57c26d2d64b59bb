//! Child processes of `async-process`.

use std::io::{self, Write};
use std::marker::PhantomData;
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::pin::Pin;
use std::process::{self, ExitStatus, Stdio};
use std::task::{Context, Poll};

use async_process::{Child, ChildStderr, ChildStdin, ChildStdout};
use blocking::unblock;
use futures_io::{AsyncRead, AsyncWrite};

use super::AsyncIo;
use crate::child::{Process, SpawnError};
use crate::futures::FuturesStream;

/// A child process managed by `async-process`.
#[derive(Debug)]
pub struct AsyncProcess<R>(Child, PhantomData<fn() -> R>);

/// A command of the standard library, converted for `async-process`.
#[derive(Debug)]
pub struct Command(async_process::Command);

impl From<process::Command> for Command {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has process groups"))]
    fn from(mut command: process::Command) -> Self {
        #[cfg(unix)]
        command.process_group(0);
        Self(command.into())
    }
}

impl<R: AsyncIo> Process for AsyncProcess<R> {
    type Runtime = R;
    type Command = Command;
    type Stream = FuturesStream<ChildStdout, ChildInput>;
    type Stderr = ChildStderr;

    fn start(
        Command(command): &mut Command,
    ) -> Result<(Self, Self::Stream, Self::Stderr), SpawnError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        let mut child = command.spawn().map_err(|source| {
            SpawnError::new(command.get_program(), command.get_current_dir(), source)
        })?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            unreachable!("all three are piped")
        };
        let stream = FuturesStream::new(stdout, ChildInput(Some(stdin)));
        Ok((Self(child, PhantomData), stream, stderr))
    }

    fn id(&self) -> Option<u32> {
        Some(self.0.id())
    }

    #[cfg(windows)]
    fn raw_handle(&self) -> Option<std::os::windows::io::RawHandle> {
        Some(std::os::windows::io::AsRawHandle::as_raw_handle(&self.0))
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.status().await
    }

    fn kill(&mut self) {
        // A failure means that it has exited.
        let _ = self.0.kill();
    }

    fn poll_stderr(
        stderr: &mut ChildStderr,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(stderr).poll_read(cx, buffer)
    }

    async fn forward(text: String) {
        // If the standard error of this process is closed, the text is lost.
        let _ = unblock(move || io::stderr().write_all(text.as_bytes())).await;
    }
}

/// The standard input of a child process. Dropping the pipe closes it.
#[derive(Debug)]
pub struct ChildInput(Option<ChildStdin>);

impl ChildInput {
    fn pipe(&mut self) -> io::Result<Pin<&mut ChildStdin>> {
        self.0.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl AsyncWrite for ChildInput {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.pipe()?.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pipe()?.poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = None;
        Poll::Ready(Ok(()))
    }
}

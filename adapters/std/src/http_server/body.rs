use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use httparse::Status;

use super::request::Framing;
use super::socket::Socket;

/// The longest chunk-size line, extensions included, in bytes.
const SIZE_LINE_MAX: usize = 1024;
/// The longest trailers, in bytes. They are discarded.
const TRAILERS_MAX: usize = 8 * 1024;
/// The interim response for a client that waits for it before it sends the body.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The streaming body of a request.
pub(super) struct RequestBody<'s, 'm> {
    socket: &'s SharedSocket<'m>,
    /// The rest of the interim response, to be written before reading.
    invitation: &'static [u8],
    next: Next,
    /// Set when the whole body was read.
    is_read: &'s AtomicBool,
}

/// A socket shared by the body and the task that watches for a disconnect while the request is
/// answered. Both run in one task.
pub(super) struct SharedSocket<'m>(pub(super) Mutex<&'m mut Socket>);

impl<'m> SharedSocket<'m> {
    pub(super) fn lock(&self) -> MutexGuard<'_, &'m mut Socket> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The expected part of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// So many bytes, up to the end of the body.
    Rest(u64),
    /// A chunk-size line,
    Size,
    /// so many bytes of its chunk,
    Chunk(u64),
    /// and the line ending after it.
    ChunkEnd,
    /// At most so many bytes of trailers.
    Trailers(usize),
}

impl<'s, 'm> RequestBody<'s, 'm> {
    pub(super) fn new(
        socket: &'s SharedSocket<'m>,
        framing: Framing,
        awaits_continue: bool,
        is_read: &'s AtomicBool,
    ) -> Self {
        let next = match framing {
            Framing::Length(length) => Next::Rest(length),
            Framing::Chunked => Next::Size,
        };
        let is_invited = awaits_continue && framing != Framing::Length(0);
        Self { socket, invitation: if is_invited { CONTINUE } else { b"" }, next, is_read }
    }

    /// Reads the next bytes; fails if the body is incomplete or its chunks are malformed.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        let socket = &mut **self.socket.lock();
        while !self.invitation.is_empty() {
            match ready!(socket.poll_write(cx, self.invitation))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.invitation = &self.invitation[count..],
            }
        }
        loop {
            match &mut self.next {
                Next::Rest(0) => {
                    self.is_read.store(true, Ordering::Relaxed);
                    return Poll::Ready(Ok(None));
                }
                Next::Size => {
                    self.next = match ready!(poll_size(socket, cx))? {
                        0 => Next::Trailers(TRAILERS_MAX),
                        size => Next::Chunk(size),
                    }
                }
                Next::Chunk(0) => self.next = Next::ChunkEnd,
                Next::ChunkEnd => {
                    let length = ready!(socket.poll_line(cx, 0, 2))?;
                    socket.skip(length);
                    self.next = Next::Size;
                }
                Next::Trailers(left) => {
                    let length = ready!(socket.poll_line(cx, 0, *left))?;
                    socket.skip(length);
                    match length {
                        2 => self.next = Next::Rest(0),
                        length => *left -= length,
                    }
                }
                Next::Rest(left) | Next::Chunk(left) => {
                    if socket.input().is_empty() {
                        ready!(socket.poll_fill(cx))?;
                    }
                    let there = socket.input().len();
                    let count = usize::try_from(*left).map_or(there, |left| left.min(there));
                    *left -= count as u64;
                    return Poll::Ready(Ok(Some(socket.take(count).into())));
                }
            }
        }
    }
}

impl Body for RequestBody<'_, '_> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let bytes = ready!(self.poll_bytes(cx));
        Poll::Ready(bytes.transpose().map(|bytes| bytes.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        match self.next {
            Next::Rest(length) => SizeHint::with_exact(length),
            _ => SizeHint::default(),
        }
    }
}

/// Reads a chunk-size line.
fn poll_size(socket: &mut Socket, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
    let length = ready!(socket.poll_line(cx, 0, SIZE_LINE_MAX))?;
    match httparse::parse_chunk_size(&socket.input()[..length]) {
        // A bare CR or LF before its end, which others could take for the end, is refused: the one
        // by `httparse`, the other by `poll_line`.
        Ok(Status::Complete((_, size))) => {
            socket.skip(length);
            Poll::Ready(Ok(size))
        }
        _ => Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
    }
}

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use mcp_sansio_async::http_server::{Due, SendBody, Unread};
use tokio::time::Instant;

use crate::clock::from_moment;

/// Whose turn it is on a connection: while it is the client's, it owes the head of a request.
#[derive(Debug)]
pub(super) struct Turn {
    whose: Mutex<Whose>,
    /// How long a head may take.
    head_time: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Whose {
    /// The client's, until then.
    Client(Instant),
    /// The client's, once it has taken what is there for it.
    Taking,
    /// The server's: a request is under way.
    Server,
}

impl Turn {
    /// The client's, who owes its first head until `deadline`, and any other for `head_time`.
    pub(super) const fn new(deadline: Instant, head_time: Duration) -> Self {
        Self { whose: Mutex::new(Whose::Client(deadline)), head_time }
    }

    /// A head has come: it is the server's turn until the response is complete.
    pub(super) fn begin(turn: &Arc<Self>) -> Answering {
        turn.set(Whose::Server);
        Answering(Arc::clone(turn))
    }

    /// It is the server's from here on.
    pub(super) fn never_ends(&self) {
        self.set(Whose::Server);
    }

    /// What is to be done about it.
    pub(super) fn due(&self) -> Due {
        let deadline = self.deadline();
        if deadline <= Instant::now() { Due::Close } else { Due::At(from_moment(deadline)) }
    }

    /// Until when nothing has to be done about it.
    fn deadline(&self) -> Instant {
        match self.whose() {
            Whose::Client(deadline) => deadline,
            // Its time has not even begun.
            Whose::Taking | Whose::Server => Instant::now() + self.head_time,
        }
    }

    /// All that there was for the client is on its way.
    fn taken(&self) {
        if matches!(self.whose(), Whose::Taking) {
            self.set(Whose::Client(Instant::now() + self.head_time));
        }
    }

    fn whose(&self) -> Whose {
        *self.whose.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, whose: Whose) {
        *self.whose.lock().unwrap_or_else(PoisonError::into_inner) = whose;
    }
}

/// A request that is under way, for as long as it is there.
#[derive(Debug)]
pub(super) struct Answering(Arc<Turn>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.set(Whose::Taking);
    }
}

/// The body of a response, which goes when all of it is in the hands of the connection.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) body: SendBody,
    pub(super) _answering: Option<Answering>,
}

impl Body for Answer {
    type Data = <SendBody as Body>::Data;
    type Error = Unread;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Unread>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection whose turns are taken note of.
#[derive(Debug)]
pub(super) struct Watched<S> {
    pub(super) socket: S,
    pub(super) turn: Arc<Turn>,
}

impl<S: Read + Unpin> Read for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, space)
    }
}

impl<S: Write + Unpin> Write for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    // hyper flushes whenever it has written all that it has, also where that was nothing.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(cx);
        if flushed.is_ready() {
            self.turn.taken();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // No head is awaited any more, and a socket parts in its own time.
        self.turn.never_ends();
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD_TIME: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_head_is_late_counted_from_the_end_of_the_last_response() {
        let first = Instant::now() + Duration::from_secs(7);
        let turn = Arc::new(Turn::new(first, HEAD_TIME));
        assert_eq!(turn.deadline(), first);
        let answering = Turn::begin(&turn);
        tokio::time::advance(Duration::from_secs(3600)).await;
        // A response takes the time that it takes, and what is there of it may be taken before,
        turn.taken();
        assert_eq!(turn.deadline(), Instant::now() + HEAD_TIME);
        tokio::time::advance(Duration::from_secs(3600)).await;
        drop(answering);
        // and so does its client.
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(turn.deadline(), Instant::now() + HEAD_TIME);
        turn.taken();
        let taken = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        turn.taken();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(turn.deadline(), taken + HEAD_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_parts_owes_nothing() {
        let turn = Turn::new(Instant::now(), HEAD_TIME);
        turn.never_ends();
        turn.taken();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(turn.deadline(), Instant::now() + HEAD_TIME);
    }
}

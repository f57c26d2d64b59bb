use alloc::boxed::Box;

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::http::{Response, ResponseHead};

/// One request and how far its response is.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The connection whose stream the response carries, as its only reader; none where the
    /// response stands alone.
    pub(super) connection: Option<Key>,
    pub(super) stream: u32,
    /// Whose share it takes from.
    pub(super) caller: Option<Key>,
    pub(super) state: State,
    /// The head of the response names the session of its connection.
    pub(super) opens_session: bool,
    /// Whether it is in the queue of those with something to send.
    pub(super) queued: bool,
    /// The connection is to be closed as soon as the head and what there is have left.
    pub(super) closes: bool,
    /// The connection may be closed before the stream ends.
    pub(super) polls: bool,
    /// The head of the response if it carries nothing but an error: what the application refused.
    pub(super) refusal: Option<Box<ResponseHead>>,
    /// It carries a request that did not get its answer at once.
    pub(super) asks: bool,
    /// When the right ends that its request was made with, where its stream ends with that.
    pub(super) expires: Option<Instant>,
    /// When the head left.
    pub(super) opened_at: Instant,
    /// When anything left.
    pub(super) sent_at: Instant,
    /// A comment is due, to show life.
    pub(super) comment_due: bool,
}

#[derive(Debug)]
pub(super) enum State {
    /// The whole response is there.
    Whole(Response),
    /// Nothing to send yet: the answer may still come as JSON.
    Waiting,
    /// The first stored events are looked up: the head waits for whether there are any.
    Reading,
    /// It is a stream of events whose head has not left.
    Opening,
    /// The stream of events is on its way.
    Streaming,
    /// The stream's connection is to be closed when all that is there has left; the stream itself
    /// goes on.
    Closing,
    /// The response ends here, in the middle if need be.
    Aborted,
}

impl Exchange {
    pub(super) const fn new(connection: Option<Key>, stream: u32, state: State) -> Self {
        Self {
            connection,
            stream,
            caller: None,
            state,
            opens_session: false,
            queued: false,
            closes: false,
            polls: false,
            refusal: None,
            asks: false,
            expires: None,
            opened_at: Instant::ZERO,
            sent_at: Instant::ZERO,
            comment_due: false,
        }
    }
}

/// What an adapter does next with an exchange.
#[derive(Debug, PartialEq, Eq)]
pub enum Transmit<'a> {
    /// Send this response and be done.
    Respond(Response),
    /// Send this head; the body follows.
    Open(ResponseHead),
    /// Send these bytes of the body.
    Chunk(&'a [u8]),
    /// The body is complete.
    Finish,
    /// Break the connection off: the client is too slow to be served.
    Abort,
}

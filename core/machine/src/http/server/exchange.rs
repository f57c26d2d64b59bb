use alloc::boxed::Box;

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::http::{Response, ResponseHead};

use super::callers::CallerHandle;

/// A request and the state of its response.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The connection whose stream the response carries, as its only reader; `None` if the response
    /// carries no stream.
    pub(super) connection: Option<Key>,
    pub(super) stream: u32,
    /// The caller that it counts against.
    pub(super) caller: Option<Key>,
    pub(super) state: State,
    /// Whether the head of the response carries the session id of its connection.
    pub(super) opens_session: bool,
    /// Whether it is in the queue of exchanges with something to send.
    pub(super) queued: bool,
    /// Whether to close the connection as soon as the head and the available events are sent.
    pub(super) closes: bool,
    /// Whether the connection may be closed before the stream ends.
    pub(super) polls: bool,
    /// The head of the response if it carries only an error: the application refused the request.
    pub(super) refusal: Option<Box<ResponseHead>>,
    /// Whether it carries a request that was not answered immediately.
    pub(super) asks: bool,
    /// The handlers that were admitted for its requests and do not run on their own yet: their
    /// number, and their caller.
    pub(super) admitted: (u32, CallerHandle),
    /// Whether it had its whole response from the start, so that it occupies nothing.
    pub(super) is_over: bool,
    /// The expiry of the request's authorization, if it ends the stream.
    pub(super) expires: Option<Instant>,
    /// The time at which the head was sent.
    pub(super) opened_at: Instant,
    /// The time of the last transmission.
    pub(super) sent_at: Instant,
    /// Whether a keep-alive comment is due.
    pub(super) comment_due: bool,
}

#[derive(Debug)]
pub(super) enum State {
    /// The complete response is available.
    Whole(Response),
    /// Nothing to send yet: the response may still be JSON.
    Waiting,
    /// The first stored events are being read; the head depends on whether there are any.
    Reading,
    /// It is an event stream whose head was not sent yet.
    Opening,
    /// It is an event stream whose head was sent.
    Streaming,
    /// The connection will be closed when all available events are sent; the stream itself
    /// continues.
    Closing,
    /// The response is aborted, even in the middle.
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
            admitted: (0, CallerHandle(None)),
            is_over: false,
            expires: None,
            opened_at: Instant::ZERO,
            sent_at: Instant::ZERO,
            comment_due: false,
        }
    }
}

/// The next action of an adapter for an exchange.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerTransmit<'a> {
    /// Send this response; the exchange ends.
    Respond(Response),
    /// Send this head; the body follows.
    Open(ResponseHead),
    /// Send these bytes of the body.
    Chunk(&'a [u8]),
    /// The body is complete.
    Finish,
    /// Abort the connection: the client reads too slowly.
    Abort,
}

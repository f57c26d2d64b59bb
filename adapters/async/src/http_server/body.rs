use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use mcp_sansio::http::ServerTransmit;

use super::budget::CallerName;
use super::exchange::ServerExchange;

/// The body of a response: JSON, or an event stream.
///
/// Dropping a stream before its end tells the server that the client has disconnected.
#[derive(Debug, Default)]
pub struct ServedBody {
    content: Content,
    /// The caller that it counts against, if it is not the peer of the connection.
    caller: Option<CallerName>,
}

#[derive(Debug, Default)]
enum Content {
    #[default]
    Empty,
    Whole(Bytes),
    Stream(ServerExchange),
}

/// The client did not read its response in time, so its connection is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client does not read its response fast enough")]
pub struct ResponseNotRead;

impl ServedBody {
    pub(super) fn whole(body: Vec<u8>) -> Self {
        if body.is_empty() { Self::default() } else { Content::Whole(body.into()).into() }
    }

    pub(super) fn stream(exchange: ServerExchange) -> Self {
        Content::Stream(exchange).into()
    }

    /// Counts it against a caller other than the peer of the connection.
    pub(super) fn set_caller(&mut self, caller: Option<CallerName>) {
        self.caller = caller;
    }

    /// Returns the caller that it counts against, if it is not the peer of the connection.
    pub(super) const fn caller(&self) -> Option<&CallerName> {
        self.caller.as_ref()
    }
}

impl From<Content> for ServedBody {
    fn from(content: Content) -> Self {
        Self { content, caller: None }
    }
}

impl Body for ServedBody {
    type Data = Bytes;
    type Error = ResponseNotRead;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseNotRead>>> {
        let content = &mut self.content;
        let frame = match content {
            Content::Empty => None,
            Content::Whole(bytes) => Some(Ok(Frame::data(std::mem::take(bytes)))),
            Content::Stream(exchange) => {
                let next = exchange.poll(cx, |transmit| match transmit {
                    ServerTransmit::Chunk(bytes) => {
                        Some(Ok(Frame::data(Bytes::copy_from_slice(bytes))))
                    }
                    ServerTransmit::Abort => Some(Err(ResponseNotRead)),
                    _ => None,
                });
                let frame = std::task::ready!(next);
                if matches!(frame, Some(Ok(_))) {
                    return Poll::Ready(frame);
                }
                frame
            }
        };
        *content = Content::Empty;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Empty => SizeHint::with_exact(0),
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

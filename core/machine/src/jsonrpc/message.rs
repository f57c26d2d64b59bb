//! Messages that may own their texts, and the frames that contain them.

use alloc::borrow::Cow;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::error::ErrorObject;
use super::id::RequestId;
use super::raw::RawJson;
use super::text::{replace_lone_surrogates, resolved};
use crate::envelope::ErrorCode;
use crate::envelope::MemberIndex;
use crate::envelope::{Defect, Reason, Shape};
use crate::envelope::{
    Envelope, EnvelopeBatch, Envelopes, ErrorRef, ParseLimits, parse_envelope,
    parse_recording_result,
};

/// The content of one frame.
#[derive(Clone, Debug)]
pub enum Frame<'a> {
    /// One message.
    Single(Message<'a>),
    /// A non-empty array of messages.
    // MCP 2025-03-26 basic/index#batching [BATCH-001]
    Batch(Batch<'a>),
}

/// Parses the envelope of a frame in one pass over its bytes and validates the JSON. Members that
/// JSON-RPC does not define are skipped.
///
/// The cost is linear in the length of `bytes`; the text is not copied.
///
/// # Errors
///
/// Fails if the frame is not a message, which is the peer's fault. [`Malformed::answer`] returns
/// the error response.
pub fn parse(bytes: &[u8], limits: ParseLimits) -> Result<Frame<'_>, Malformed> {
    match parse_envelope(bytes, limits) {
        Ok(envelopes) => Ok(envelopes.into()),
        Err(defect) => Err(defect.into()),
    }
}

/// See [`parse_recording_result`].
pub(crate) fn parse_noting_result<'a>(
    bytes: &'a [u8],
    limits: ParseLimits,
    unless: &str,
    index: &mut MemberIndex,
) -> Result<Frame<'a>, Malformed> {
    match parse_recording_result(bytes, limits, unless, index) {
        Ok(envelopes) => Ok(envelopes.into()),
        Err(defect) => Err(defect.into()),
    }
}

impl<'a> From<Envelopes<'a>> for Frame<'a> {
    #[inline]
    fn from(envelopes: Envelopes<'a>) -> Self {
        match envelopes {
            Envelopes::Single(envelope) => Self::Single(envelope.into()),
            Envelopes::Batch(batch) => Self::Batch(batch.into()),
        }
    }
}

/// The messages of a batch in order. The array is valid JSON within the limits; a malformed element
/// does not affect the others.
#[derive(Clone, Debug)]
pub struct Batch<'a>(EnvelopeBatch<'a>);

impl<'a> From<EnvelopeBatch<'a>> for Batch<'a> {
    fn from(batch: EnvelopeBatch<'a>) -> Self {
        Self(batch)
    }
}

impl<'a> Iterator for Batch<'a> {
    type Item = Result<Message<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map(Message::from).map_err(Malformed::from))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Batch<'_> {}

/// A frame, or an element of a batch, that is not a valid message. Always the peer's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
#[non_exhaustive]
pub struct Malformed {
    /// The defect.
    pub reason: Reason,
    /// The id, if one could be read. An id over the limit may be as long as the frame.
    pub id: Option<RequestId>,
    /// The apparent kind of message.
    pub shape: Shape,
}

impl Malformed {
    /// Refuses an array on a connection whose revision has no batches.
    // MCP 2025-06-18 basic/transports#sending-messages-to-the-server [BATCH-010]
    pub(crate) const fn batch_refused() -> Self {
        Self { reason: Reason::BatchRefused, id: None, shape: Shape::Unknown }
    }

    /// Refuses an element of such an array. Returns `None` for a notification, and for a message
    /// without an id.
    pub(crate) fn element_refused(element: Result<Message<'_>, Self>) -> Option<Self> {
        let refused = Self::batch_refused();
        let refused = match element {
            Ok(Message::Request(request)) => {
                Self { id: Some(request.id), shape: Shape::Request, ..refused }
            }
            Ok(Message::Response(response)) => {
                Self { id: response.id, shape: Shape::Response, ..refused }
            }
            Ok(Message::Notification(_)) => return None,
            Err(malformed) => malformed,
        };
        refused.id.is_some().then_some(refused)
    }

    /// Returns the message with U+FFFD in place of each half of a surrogate pair, or `None` if none is
    /// the defect. JavaScript writes half of a pair for a text that was cut within a character.
    pub(crate) fn repair(&self, text: &[u8]) -> Option<Vec<u8>> {
        if !matches!(self.reason, Reason::NotJson { .. }) {
            return None;
        }
        replace_lone_surrogates(text)
    }

    /// Returns the code of the error response.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        self.reason.code()
    }

    /// Returns the error response, to be sent under [`Malformed::id`], or `None` if the message
    /// must not be answered.
    #[must_use]
    pub fn answer(&self) -> Option<ErrorObject<'static>> {
        let is_answered = self.shape.is_answered();
        is_answered.then(|| ErrorObject::new(self.code(), self.reason.to_string()))
    }
}

impl From<Defect<'_>> for Malformed {
    #[cold]
    fn from(defect: Defect<'_>) -> Self {
        let Defect { reason, id, shape } = defect;
        Self { reason, id: id.map(RequestId::from), shape }
    }
}

/// A message with a valid envelope. Its parameters, result or error data are raw text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A request, which expects a response.
    Request(RequestMessage<'a>),
    /// A notification, which is never answered.
    Notification(NotificationMessage<'a>),
    /// A response.
    Response(ResponseMessage<'a>),
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestMessage<'a> {
    /// The id that the response must repeat.
    pub id: RequestId,
    /// The name of the method; borrowed from the frame unless it was written with escapes.
    pub method: Cow<'a, str>,
    /// The parameters, always an object.
    pub params: Option<RawJson<'a>>,
}

/// A notification.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotificationMessage<'a> {
    /// The name of the method; borrowed from the frame unless it was written with escapes.
    pub method: Cow<'a, str>,
    /// The parameters, always an object.
    pub params: Option<RawJson<'a>>,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseMessage<'a> {
    /// The id of the request. `None` only with an error whose sender could not read the id.
    pub id: Option<RequestId>,
    /// The `result`, always an object, or the `error`.
    pub outcome: Result<RawJson<'a>, ErrorObject<'a>>,
}

impl<'a> From<Envelope<'a>> for Message<'a> {
    // Inlined, because a message is large to pass by value.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn from(envelope: Envelope<'a>) -> Self {
        match envelope {
            Envelope::Request { id, method, params } => Self::Request(RequestMessage {
                id: id.into(),
                method: resolved(method),
                params: params.map(RawJson::from),
            }),
            Envelope::Notification { method, params } => Self::Notification(NotificationMessage {
                method: resolved(method),
                params: params.map(RawJson::from),
            }),
            Envelope::Response { id, outcome } => Self::Response(ResponseMessage {
                id: id.map(RequestId::from),
                outcome: outcome.map(RawJson::from).map_err(ErrorObject::from),
            }),
        }
    }
}

impl<'a> From<ErrorRef<'a>> for ErrorObject<'a> {
    fn from(error: ErrorRef<'a>) -> Self {
        let ErrorRef { code, message, data } = error;
        Self { code, message: resolved(message), data: data.map(RawJson::from) }
    }
}

#[cfg(test)]
mod tests;

use alloc::borrow::Cow;

use super::error::ErrorObject;
use super::id::RequestId;
use super::raw::RawJson;

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

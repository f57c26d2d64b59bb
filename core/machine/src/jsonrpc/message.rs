use alloc::borrow::Cow;

use super::error::ErrorObject;
use super::id::RequestId;
use super::raw::RawJson;

/// One message whose envelope is known to be right; what it carries is still text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Wants an answer.
    Request(RequestMessage<'a>),
    /// Wants none, and gets none.
    Notification(NotificationMessage<'a>),
    /// Is an answer.
    Response(ResponseMessage<'a>),
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestMessage<'a> {
    /// What the answer must repeat.
    pub id: RequestId,
    /// The name of the method; borrowed from the frame unless it was written with escapes.
    pub method: Cow<'a, str>,
    /// An object, when there.
    pub params: Option<RawJson<'a>>,
}

/// A notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationMessage<'a> {
    /// The name of the method; borrowed from the frame unless it was written with escapes.
    pub method: Cow<'a, str>,
    /// An object, when there.
    pub params: Option<RawJson<'a>>,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseMessage<'a> {
    /// The id of the request. `None` only beside an error: its author could not read the id.
    pub id: Option<RequestId>,
    /// The `result`, an object, or the `error`.
    pub outcome: Result<RawJson<'a>, ErrorObject<'a>>,
}

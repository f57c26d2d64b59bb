//! JSON-RPC 2.0 as used by MCP: ids, errors, envelopes and batches. Nested values stay text. Their
//! limits and defects are those of [`envelope`](crate::envelope), error codes are
//! [`crate::ErrorCode`].

mod deserializer;
mod error;
mod id;
mod json_error;
mod members;
mod message;
mod omission;
mod raw;
mod serializer;
mod text;
mod writer;

pub(crate) use crate::envelope::{
    ErrorCode, MemberIndex, PREFIX_IS_CACHED, ParseLimits, Reason, Shape, write_integer,
    write_string,
};
pub use deserializer::list as lossy_list;
pub(crate) use deserializer::{List, UNION, hint, list, list_of_hints, optional_list};
pub use error::ErrorObject;
pub(crate) use id::INLINE_LENGTH_MAX;
pub use id::{IdText, RequestId};
pub use json_error::JsonError;
pub use members::{Member, Members};
pub(crate) use message::parse_noting_result;
pub use message::{
    Batch, Frame, Malformed, Message, NotificationMessage, RequestMessage, ResponseMessage, parse,
};
pub(crate) use omission::excerpt;
pub use omission::{Omission, Omissions};
pub use raw::{Json, RawJson};
pub(crate) use text::resolved;
pub use writer::{AsJson, WriteError, WriteJson, to_shared_json};
pub(crate) use writer::{
    close_object_with, write_empty_result, write_error, write_id, write_notification,
    write_on_one_line, write_request, write_result,
};

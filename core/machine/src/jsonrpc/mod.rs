//! JSON-RPC 2.0 as used by MCP: ids, errors, envelopes and batches. Nested values stay text.

mod code;
mod deserializer;
mod envelope;
mod error;
mod id;
mod integer;
mod json_error;
mod malformed;
mod member_index;
mod members;
mod message;
mod omission;
mod raw;
mod scan;
mod serializer;
mod text;
mod unreadable;
mod writer;

pub use code::ErrorCode;
pub(crate) use deserializer::{UNION, list, list_or_default, optional_list};
pub use envelope::{Batch, Frame, ParseLimits, parse};
pub(crate) use envelope::{parse_noting, parse_noting_result};
pub use error::ErrorObject;
pub(crate) use id::INLINE_LENGTH_MAX;
pub use id::{IdText, RequestId};
pub use json_error::JsonError;
pub use malformed::{Malformed, Reason, Shape};
pub(crate) use member_index::MemberIndex;
pub use members::{Member, Members};
pub use message::{Message, NotificationMessage, RequestMessage, ResponseMessage};
pub use omission::{Omission, Omissions};
pub use raw::{Json, RawJson};
pub(crate) use scan::PREFIX_IS_CACHED;
pub(crate) use text::write_integer;
pub use text::write_string;
pub use writer::{AsJson, WriteError, WriteJson, to_shared_json};
pub(crate) use writer::{
    NO_PARAMS, close_object_with, write_empty_result, write_error, write_id, write_notification,
    write_on_one_line, write_request, write_result,
};

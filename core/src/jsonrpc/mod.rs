//! JSON-RPC 2.0 as MCP uses it: ids, errors, envelopes, batches; nested values stay text.

mod id;
mod raw;

pub use id::{ID_LENGTH_MAX, IdTooLong, RequestId};
pub use raw::{Json, RawJson};

//! The envelope of JSON-RPC messages, borrowed from the frame. Needs no allocator.
//!
//! A frame is checked and taken apart in one pass. Its strings, values and ids stay where they are:
//! [`Written`], [`JsonText`] and [`IdRef`] point at them. Messages are written to a [`Sink`].
//!
//! ```
//! use mcp_sansio::envelope::{Envelope, Envelopes, ParseLimits, parse_envelope};
//!
//! let frame = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}"#;
//! let parsed = parse_envelope(frame, ParseLimits::default());
//! let Ok(Envelopes::Single(Envelope::Request { method, params, .. })) = parsed else { panic!() };
//! assert!(method.is("tools/call"));
//! let name = params.and_then(|params| params.get_present("name")?.to_written());
//! assert!(name.is_some_and(|name| name.is("read")));
//! ```

pub(crate) mod integer;
pub(crate) mod malformed;
mod member_index;
mod parse;
pub(crate) mod scan;
mod sink;
mod written;

pub(crate) use malformed::ErrorCode;
pub use malformed::{Defect, Reason, Shape};
pub(crate) use member_index::MemberIndex;
pub use parse::{Envelope, EnvelopeBatch, Envelopes, ErrorRef, IdRef, ParseLimits, parse_envelope};
pub(crate) use parse::{parse_recording, parse_recording_result};
pub(crate) use scan::PREFIX_IS_CACHED;
pub(crate) use sink::write_integer;
pub use sink::{
    Sink, WriteId, write_error_head, write_escaped, write_head, write_string, write_written,
};
pub use written::{Entries, Entry, JsonText, Written};
pub(crate) use written::{is_escaped, unescape_one};

//! Server-Sent Events.

mod decoder;
mod encoder;
mod event;
mod field;
#[cfg(test)]
mod tests;

pub use decoder::SseDecoder;
pub use encoder::{SseFieldError, write_comment, write_event, write_event_id, write_retry};
pub use event::{SseError, SseEvent};

/// Maximum length of an event's type and of its id, in bytes. An id is sent back in a header, and
/// servers commonly accept 8 KiB for all headers together; the last id is kept as long as its
/// stream.
pub const SSE_FIELD_LENGTH_MAX: usize = 1024;

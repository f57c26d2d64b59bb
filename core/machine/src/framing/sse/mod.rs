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

/// The greatest length of an event's type and of its id, in bytes. An id goes back in a header,
/// where servers commonly take 8 KiB for all headers together, and the last one is kept for as long
/// as its stream.
pub const SSE_FIELD_LENGTH_MAX: usize = 1024;

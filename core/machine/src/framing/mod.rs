//! Message framing: lines and Server-Sent Events.

mod buffer;
mod line;
mod sse;

pub use line::{FrameError, LineDecoder};
pub use sse::{
    SSE_FIELD_LENGTH_MAX, SseDecoder, SseError, SseEvent, SseFieldError, write_comment,
    write_event, write_event_id, write_retry,
};

//! Message framing: lines, packets and Server-Sent Events.

mod buffer;
mod line;
#[cfg(feature = "alloc")]
mod memory;
mod packet;
#[cfg(feature = "alloc")]
mod sse;

pub use buffer::Storage;
pub use line::{FrameError, Lines};
#[cfg(feature = "alloc")]
pub use memory::{LineDecoder, Memory};
pub use packet::{PacketDecoder, PacketEncoder, PacketFraming};
#[cfg(feature = "alloc")]
pub use sse::{
    SSE_FIELD_LENGTH_MAX, SseDecoder, SseEvent, SseFieldError, write_comment, write_event,
    write_event_id, write_retry,
};

use core::str::{self, Utf8Error};
use core::time::Duration;

use super::SSE_FIELD_LENGTH_MAX;

/// An event, borrowing from the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The type: `message` where the stream names none. What is not UTF-8 in it is replaced.
    pub event: &'a str,
    /// The data, its lines joined with LF, byte for byte as they came. Empty where there were data
    /// fields without a value.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-010]: an event with empty data is no message.
    pub data: &'a [u8],
    /// The last id of the stream up to here, see [`SseDecoder::last_event_id`](super::SseDecoder::last_event_id).
    pub id: Option<&'a str>,
    /// The reconnection time, where this very event gives one.
    pub retry: Option<Duration>,
}

impl<'a> SseEvent<'a> {
    /// The data as text.
    ///
    /// # Errors
    ///
    /// Where it is not UTF-8. The HTML standard would replace what is at fault; in a message that
    /// would go unnoticed, so the choice is the caller's.
    pub const fn text(&self) -> Result<&'a str, Utf8Error> {
        str::from_utf8(self.data)
    }
}

/// What went wrong between two events. The peer's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event does not fit. Its data is skipped up to its end, and the stream goes on; an id or a
    /// reconnection time in it counts.
    #[error("an event is longer than {limit} bytes")]
    TooLong {
        /// The greatest length of a line and of the data before it, line ends included.
        limit: usize,
    },
    /// The type or the id of an event is longer than [`SSE_FIELD_LENGTH_MAX`]. It is not taken, and
    /// the event is skipped as one that is too long.
    #[error("the type or the id of an event is longer than {SSE_FIELD_LENGTH_MAX} bytes")]
    FieldTooLong,
    /// The input ended within an event, which is dropped.
    #[error("the input ended {length} bytes into an event")]
    Truncated {
        /// How much of its data and of its last line had come.
        length: usize,
    },
}

use alloc::string::ToString;

use super::code::ErrorCode;
use super::error::ErrorObject;
use super::id::RequestId;

/// A frame, or an element of a batch, that is not a valid message. Always the peer's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
#[non_exhaustive]
pub struct Malformed {
    /// The defect.
    pub reason: Reason,
    /// The id, if one could be read. An id over the limit may be as long as the frame.
    pub id: Option<RequestId>,
    /// The apparent kind of message.
    pub shape: Shape,
}

/// The apparent kind of a malformed message, judged by its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// The kind cannot be determined.
    Unknown,
    /// It has a `method` and an `id`.
    Request,
    /// It has a `method` and no `id`.
    Notification,
    /// It has a `result` or an `error` and no `method`.
    Response,
}

impl Malformed {
    /// Refuses an array on a connection whose revision has no batches.
    // MCP 2025-06-18 basic/transports#sending-messages-to-the-server [BATCH-010]
    pub(crate) const fn batch_refused() -> Self {
        Self { reason: Reason::BatchRefused, id: None, shape: Shape::Unknown }
    }

    /// Returns the code of the error response.
    // MCP 2026-07-28 schema.json#InvalidRequestError [RPC-017]: invalid JSON yields -32700, valid
    // JSON that is not a request yields -32600.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self.reason {
            Reason::NotUtf8 { .. } | Reason::NotJson { .. } | Reason::TooDeep { .. } => {
                ErrorCode::PARSE_ERROR
            }
            _ => ErrorCode::INVALID_REQUEST,
        }
    }

    /// Returns the error response, to be sent under [`Malformed::id`], or `None` if the message
    /// must not be answered.
    // MCP 2026-07-28 basic/index#notifications [RPC-013]: a notification is never answered, not
    // even with an error. Answering a malformed response could start an endless exchange of errors.
    #[must_use]
    pub fn answer(&self) -> Option<ErrorObject<'static>> {
        match self.shape {
            Shape::Notification | Shape::Response => None,
            Shape::Unknown | Shape::Request => {
                Some(ErrorObject::new(self.code(), self.reason.to_string()))
            }
        }
    }
}

impl From<Reason> for Malformed {
    /// Creates an error for a frame of unknown kind.
    fn from(reason: Reason) -> Self {
        Self { reason, id: None, shape: Shape::Unknown }
    }
}

/// Why a frame is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes are not UTF-8.
    // MCP 2026-07-28 basic/transports/index#messages [RPC-014]
    #[error("not UTF-8 at byte {at}")]
    NotUtf8 {
        /// Offset of the first invalid byte.
        at: usize,
    },
    /// The text is not one JSON value.
    #[error("not JSON at byte {at}")]
    NotJson {
        /// Offset of the first invalid byte, or the length if the text ends early.
        at: usize,
    },
    /// Arrays and objects are nested too deeply.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// The maximum accepted depth.
        limit: usize,
    },
    /// The message is JSON, but not an object.
    #[error("a message is an object")]
    NotAnObject,
    /// The `jsonrpc` member is missing.
    #[error("`jsonrpc` is missing")]
    JsonrpcMissing,
    /// `jsonrpc` is not `"2.0"`.
    #[error("`jsonrpc` is not \"2.0\"")]
    JsonrpcWrong,
    /// A member of the envelope occurs twice; receivers would disagree on which one counts.
    #[error("`{0}` occurs twice")]
    DuplicateMember(&'static str),
    /// The message has no `method`, `result` or `error`.
    #[error("neither `method` nor `result` nor `error`")]
    Purposeless,
    /// The message has both a `method` and a `result` or `error`.
    #[error("both `method` and an outcome")]
    MethodAndOutcome,
    /// `method` is not a string.
    #[error("`method` is not a string")]
    MethodNotString,
    /// `params` is not an object.
    #[error("`params` is not an object")]
    ParamsNotObject,
    /// A result has no `id`, so it matches no request.
    #[error("`id` is missing")]
    IdMissing,
    /// `id` is `null`.
    #[error("`id` is null")]
    IdNull,
    /// `id` is a number written with a fraction or an exponent.
    #[error("`id` is not an integer")]
    IdFractional,
    /// `id` is an integer of more than 64 bits.
    #[error("`id` is out of range: integers have 64 bits")]
    IdOutOfRange,
    /// `id` is a string longer than the limit.
    #[error("`id` is longer than {limit} bytes")]
    IdTooLong {
        /// The maximum accepted length, in bytes.
        limit: usize,
    },
    /// `id` is neither a string nor a number.
    #[error("`id` is neither a string nor an integer")]
    IdWrongType,
    /// The message has both a `result` and an `error`.
    #[error("both `result` and `error`")]
    ResultAndError,
    /// `result` is not an object.
    #[error("`result` is not an object")]
    ResultNotObject,
    /// `error` is not an object with an integer `code` and a string `message`.
    #[error("`error` has no integer `code` with a string `message`")]
    ErrorMalformed,
    /// The array has no elements.
    #[error("the batch is empty")]
    BatchEmpty,
    /// The array has more elements than the limit.
    #[error("the batch has more than {limit} messages")]
    BatchTooLong {
        /// The maximum accepted number.
        limit: usize,
    },
    /// Arrays are not accepted: the limit is zero.
    // MCP 2025-06-18 basic/transports#sending-messages-to-the-server [BATCH-010]
    #[error("batches are not accepted")]
    BatchRefused,
    /// An element of a batch is an array.
    #[error("a batch inside a batch")]
    BatchNested,
}

use alloc::string::ToString;
use core::fmt;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes are not UTF-8.
    // MCP 2026-07-28 basic/transports/index#messages [RPC-014]
    NotUtf8 {
        /// Offset of the first invalid byte.
        at: usize,
    },
    /// The text is not one JSON value.
    NotJson {
        /// Offset of the first invalid byte, or the length if the text ends early.
        at: usize,
    },
    /// Arrays and objects are nested too deeply.
    TooDeep {
        /// The maximum accepted depth.
        limit: usize,
    },
    /// The message is JSON, but not an object.
    NotAnObject,
    /// The `jsonrpc` member is missing.
    JsonrpcMissing,
    /// `jsonrpc` is not `"2.0"`.
    JsonrpcWrong,
    /// A member of the envelope occurs twice; receivers would disagree on which one counts.
    DuplicateMember(&'static str),
    /// The message has no `method`, `result` or `error`.
    Purposeless,
    /// The message has both a `method` and a `result` or `error`.
    MethodAndOutcome,
    /// `method` is not a string.
    MethodNotString,
    /// `params` is not an object.
    ParamsNotObject,
    /// A result has no `id`, so it matches no request.
    IdMissing,
    /// `id` is `null`.
    IdNull,
    /// `id` is a number written with a fraction or an exponent.
    IdFractional,
    /// `id` is an integer of more than 64 bits.
    IdOutOfRange,
    /// `id` is a string longer than the limit.
    IdTooLong {
        /// The maximum accepted length, in bytes.
        limit: usize,
    },
    /// `id` is neither a string nor a number.
    IdWrongType,
    /// The message has both a `result` and an `error`.
    ResultAndError,
    /// `result` is not an object.
    ResultNotObject,
    /// `error` is not an object with an integer `code` and a string `message`.
    ErrorMalformed,
    /// The array has no elements.
    BatchEmpty,
    /// The array has more elements than the limit.
    BatchTooLong {
        /// The maximum accepted number.
        limit: usize,
    },
    /// Arrays are not accepted: the limit is zero.
    // MCP 2025-06-18 basic/transports#sending-messages-to-the-server [BATCH-010]
    BatchRefused,
    /// An element of a batch is an array.
    BatchNested,
}

impl Reason {
    /// Returns the defect without its place and its limit.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotUtf8 { .. } => "not UTF-8",
            Self::NotJson { .. } => "not JSON",
            Self::TooDeep { .. } => "nested too deeply",
            Self::NotAnObject => "a message is an object",
            Self::JsonrpcMissing => "`jsonrpc` is missing",
            Self::JsonrpcWrong => "`jsonrpc` is not \"2.0\"",
            Self::DuplicateMember(_) => "a member occurs twice",
            Self::Purposeless => "neither `method` nor `result` nor `error`",
            Self::MethodAndOutcome => "both `method` and an outcome",
            Self::MethodNotString => "`method` is not a string",
            Self::ParamsNotObject => "`params` is not an object",
            Self::IdMissing => "`id` is missing",
            Self::IdNull => "`id` is null",
            Self::IdFractional => "`id` is not an integer",
            Self::IdOutOfRange => "`id` is out of range: integers have 64 bits",
            Self::IdTooLong { .. } => "`id` is too long",
            Self::IdWrongType => "`id` is neither a string nor an integer",
            Self::ResultAndError => "both `result` and `error`",
            Self::ResultNotObject => "`result` is not an object",
            Self::ErrorMalformed => "`error` has no integer `code` with a string `message`",
            Self::BatchEmpty => "the batch is empty",
            Self::BatchTooLong { .. } => "the batch is too long",
            Self::BatchRefused => "batches are not accepted",
            Self::BatchNested => "a batch inside a batch",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 { at } | Self::NotJson { at } => {
                write!(f, "{} at byte {at}", self.as_str())
            }
            Self::TooDeep { limit } => write!(f, "nested deeper than {limit} levels"),
            Self::DuplicateMember(name) => write!(f, "`{name}` occurs twice"),
            Self::IdTooLong { limit } => write!(f, "`id` is longer than {limit} bytes"),
            Self::BatchTooLong { limit } => write!(f, "the batch has more than {limit} messages"),
            other => f.write_str(other.as_str()),
        }
    }
}

impl core::error::Error for Reason {}

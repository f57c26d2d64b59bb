use alloc::string::ToString;

use super::code::ErrorCode;
use super::error::ErrorObject;
use super::id::RequestId;

/// A frame, or an element of a batch, that is not a message. Always the peer's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Malformed {
    /// What is wrong with it.
    pub reason: Reason,
    /// Its id, when one could be read: longer than the limit, it may be as long as the frame.
    pub id: Option<RequestId>,
    /// What it was going to be.
    pub shape: Shape,
}

/// What a malformed message was going to be, as far as its members tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// It cannot be told.
    Unknown,
    /// It has a `method` and an `id`.
    Request,
    /// It has a `method` and no `id`.
    Notification,
    /// It has a `result` or an `error` and no `method`.
    Response,
}

impl Malformed {
    /// An array, on a connection whose revision has no batches.
    // MCP 2025-06-18 basic/transports#sending-messages-to-the-server [BATCH-010]
    pub(crate) const fn batch_refused() -> Self {
        Self { reason: Reason::BatchRefused, id: None, shape: Shape::Unknown }
    }

    /// The code to answer with.
    // MCP 2026-07-28 schema.json#InvalidRequestError [RPC-017]: unparseable JSON yields -32700,
    // well-formed JSON that is not a request -32600.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self.reason {
            Reason::NotUtf8 { .. } | Reason::NotJson { .. } | Reason::TooDeep { .. } => {
                ErrorCode::PARSE_ERROR
            }
            _ => ErrorCode::INVALID_REQUEST,
        }
    }

    /// What to answer, under [`Malformed::id`]; `None` when it must not be answered.
    // MCP 2026-07-28 basic/index#notifications [RPC-013]: a notification is never answered, not
    // even with an error. An answer to a broken response could start a quarrel without end.
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
    /// A frame of which nothing else is known.
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
        /// The offset of the first byte that is wrong.
        at: usize,
    },
    /// The text is not one JSON value.
    #[error("not JSON at byte {at}")]
    NotJson {
        /// The offset of the first byte that is wrong, or the length if the text ends early.
        at: usize,
    },
    /// Arrays and objects are nested deeper than this side follows.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// The greatest depth that is accepted.
        limit: usize,
    },
    /// JSON, but no object.
    #[error("a message is an object")]
    NotAnObject,
    /// There is no `jsonrpc` member.
    #[error("`jsonrpc` is missing")]
    JsonrpcMissing,
    /// `jsonrpc` is not `"2.0"`.
    #[error("`jsonrpc` is not \"2.0\"")]
    JsonrpcWrong,
    /// A member of the envelope occurs twice; receivers would differ in which one they take.
    #[error("`{0}` occurs twice")]
    DuplicateMember(&'static str),
    /// There is no `method`, no `result` and no `error`.
    #[error("neither `method` nor `result` nor `error`")]
    Purposeless,
    /// `method` stands beside `result` or `error`.
    #[error("both `method` and an outcome")]
    MethodAndOutcome,
    /// `method` is not a string.
    #[error("`method` is not a string")]
    MethodNotString,
    /// `params` is not an object.
    #[error("`params` is not an object")]
    ParamsNotObject,
    /// A result without an `id` belongs to nothing.
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
    /// `id` is a string longer than this side accepts.
    #[error("`id` is longer than {limit} bytes")]
    IdTooLong {
        /// The greatest length that is accepted, in bytes.
        limit: usize,
    },
    /// `id` is neither a string nor a number.
    #[error("`id` is neither a string nor an integer")]
    IdWrongType,
    /// Both `result` and `error`.
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
    /// The array has more elements than this side accepts.
    #[error("the batch has more than {limit} messages")]
    BatchTooLong {
        /// The greatest number that is accepted.
        limit: usize,
    },
    /// Arrays are not accepted at all: the limit is zero.
    // MCP 2025-06-18 basic/transports#sending-messages-to-the-server [BATCH-010]
    #[error("batches are not accepted")]
    BatchRefused,
    /// An element of a batch is an array.
    #[error("a batch inside a batch")]
    BatchNested,
}

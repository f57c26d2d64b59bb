//! What is wrong with a frame that is not a valid message.

use core::fmt;
use serde::{Deserialize, Serialize};

use super::parse::{IdRef, read_id};
use super::scan::Scanner;

/// A frame, or an element of a batch, that is not a valid message. Always the peer's fault.
///
/// With the feature `alloc`, `Malformed` is the form that does not borrow from the frame.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Defect<'a> {
    /// The defect.
    pub reason: Reason,
    /// The id, if one could be read. An id over the limit may be as long as the frame.
    pub id: Option<IdRef<'a>>,
    /// The apparent kind of message.
    pub shape: Shape,
}

impl From<Reason> for Defect<'_> {
    /// Creates a defect of a frame of unknown kind.
    fn from(reason: Reason) -> Self {
        Self { reason, id: None, shape: Shape::Unknown }
    }
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

impl Shape {
    /// Returns whether a malformed message of this kind is answered.
    // MCP 2026-07-28 basic/index#notifications [RPC-013]: a notification is never answered, not
    // even with an error. Answering a malformed response could start an endless exchange of errors.
    #[must_use]
    pub const fn is_answered(self) -> bool {
        matches!(self, Self::Unknown | Self::Request)
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
    /// Returns the code of the error response.
    // MCP 2026-07-28 schema.json#InvalidRequestError [RPC-017]: invalid JSON yields -32700, valid
    // JSON that is not a request yields -32600.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::NotUtf8 { .. } | Self::NotJson { .. } | Self::TooDeep { .. } => {
                ErrorCode::PARSE_ERROR
            }
            _ => ErrorCode::INVALID_REQUEST,
        }
    }

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

/// The code of an error response. A peer may send any integer; codes that this side sends must
/// satisfy [`ErrorCode::is_emittable_at`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(pub i64);

impl ErrorCode {
    // MCP 2026-07-28 basic/index#error-codes [RPC-016]: general failures use the standard codes.
    /// The bytes are not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The message is JSON, but not a valid request.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The receiver does not implement the method.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The parameters are invalid for the method.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// The receiver failed internally.
    pub const INTERNAL_ERROR: Self = Self(-32603);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// The sender of a message that is not valid JSON waits for an answer, or its receiver for a result, and
// no other message will name the id again. Only the members of the message itself are looked at,
// never nested ones.

/// Describes a message that is not valid JSON or UTF-8, or is nested too deeply. Linear.
#[cold]
pub(super) fn unreadable(bytes: &[u8], reason: Reason) -> Defect<'_> {
    let mut members = Members::default();
    members.find(bytes);
    let id = members.id.filter(|_| !members.ambiguous).and_then(read);
    let shape = match (&id, members.method, members.outcome) {
        (Some(_), true, _) => Shape::Request,
        (_, false, true) => Shape::Response,
        _ => Shape::Unknown,
    };
    Defect { reason, id, shape }
}

/// The members that determine the kind of a message.
#[derive(Default)]
struct Members<'a> {
    id: Option<&'a [u8]>,
    ambiguous: bool,
    method: bool,
    outcome: bool,
}

impl<'a> Members<'a> {
    fn find(&mut self, bytes: &'a [u8]) {
        let (mut depth, mut at) = (0_usize, 0);
        // The last string that may be a key.
        let mut key = None;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    let end = string_end(bytes, at);
                    if depth == 1 {
                        key = bytes.get(at + 1..end - 1);
                    }
                    at = end;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth <= 1 => return,
                b'}' | b']' => depth -= 1,
                b':' if depth == 1 => {
                    let value = at + 1;
                    self.take(key.take(), bytes.get(value..).unwrap_or_default());
                }
                // A message is an object: nothing of other text is a member.
                _ if depth == 0 && !byte.is_ascii_whitespace() => return,
                _ => {}
            }
            at += 1;
        }
    }

    fn take(&mut self, key: Option<&[u8]>, rest: &'a [u8]) {
        match key {
            Some(b"id") => {
                let id = scalar(rest.trim_ascii_start());
                self.ambiguous |= self.id.is_some_and(|before| before != id);
                self.id = Some(id);
            }
            Some(b"method") => self.method = true,
            Some(b"result" | b"error") => self.outcome = true,
            _ => {}
        }
    }
}

/// Returns the position after the string that starts at `start`, or the end of the text.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    // After the quote that is missing.
    bytes.len() + 1
}

/// Returns the number or string at the start of `text`, or other text.
fn scalar(text: &[u8]) -> &[u8] {
    let end = match text.first() {
        Some(b'"') => string_end(text, 0),
        _ => {
            let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']');
            text.iter().position(ends).unwrap_or(text.len())
        }
    };
    text.get(..end).unwrap_or_default()
}

/// Reads an id. Returns `None` if the id itself is not valid JSON.
fn read(id: &[u8]) -> Option<IdRef<'_>> {
    let text = core::str::from_utf8(id).ok()?;
    let mut scanner = Scanner::new(text);
    scanner.value(0).ok()?;
    scanner.end().ok()?;
    read_id(text, usize::MAX).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::RequestId;

    fn found(bytes: &[u8]) -> (Shape, Option<RequestId>) {
        let defect = unreadable(bytes, Reason::NotAnObject);
        (defect.shape, defect.id.map(RequestId::from))
    }

    #[test]
    fn the_id_is_found_before_and_after_the_defect() {
        let seven = Some(RequestId::Number(7));
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"a":NaN}}"#,
            r#"{"jsonrpc":"2.0","result":{"a":[1,]}, "id" : 7 }"#,
            r#"{"result":{"id":8,"a":"\"}"},"id":7.0,}"#,
            r#"{"id":7,"result":{"a":"#,
            "{\"id\":7,\"error\":{\"message\":\"a\tb\"}}",
            r#"{"id":7,"id":7,"error":}"#,
        ] {
            assert_eq!(found(text.as_bytes()), (Shape::Response, seven.clone()), "{text}");
        }
        let text = b"{\"id\":\"a\",\"method\":\"m\",\"params\":{\"x\":\"\xff\"}}";
        assert_eq!(found(text), (Shape::Request, Some(RequestId::from("a"))));
        assert_eq!(found(br#"{"id":7,"x":NaN}"#), (Shape::Unknown, seven));
    }

    #[test]
    fn an_id_that_cannot_be_read_is_none() {
        for text in [
            r#"{"id":1,"id":2,"result":NaN}"#,
            r#"{"id":1.5,"result":NaN}"#,
            r#"{"id":null,"result":NaN}"#,
            r#"{"id":{"id":1},"result":NaN}"#,
            r#"{"x":{"id":1},"result":NaN}"#,
            r#"{"result":NaN}"#,
            // The ids themselves are not JSON.
            r#"{"id":"\u0061\é","result":1}"#,
            r#"{"id":"\x","result":1}"#,
            r#"{"id":"\ud800","result":1}"#,
            r#"{"id":"\u00g0","result":1}"#,
            "{\"id\":\"a\tb\",\"result\":1}",
            r#"{"id":01,"result":1}"#,
            r#"{"id":1.,"result":1}"#,
        ] {
            assert_eq!(found(text.as_bytes()).1, None, "{text}");
        }
        for text in [
            "",
            "x",
            r#"x{"id":1,"result":1}"#,
            r#""id":1"#,
            "{\"",
            "{\"id\"",
            "{\"id\":",
            "{\"id\":\"\\",
        ] {
            assert_eq!(found(text.as_bytes()), (Shape::Unknown, None), "{text}");
        }
        assert_eq!(found(br#"{"method":"m","params":NaN}"#), (Shape::Unknown, None));
    }
}

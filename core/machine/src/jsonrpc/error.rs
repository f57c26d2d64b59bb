use alloc::borrow::Cow;
use alloc::format;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{Panicked, Printable};

use super::raw::RawJson;
use crate::envelope::ErrorCode;

/// The `error` member of an error response.
///
/// ```
/// use mcp_sansio::ErrorCode;
/// use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
///
/// let error = ErrorObject::new(ErrorCode::INVALID_PARAMS, "unknown city")
///     .with_data(RawJson::parse(r#"{"city":"Olso"}"#)?);
/// assert_eq!(error.code, ErrorCode(-32602));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// MCP 2026-07-28 basic/index#error-responses [RPC-008]: at least an integer `code` and a string
// `message`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorObject<'a> {
    /// The kind of failure.
    pub code: ErrorCode,
    /// A short sentence for people.
    // MCP 2026-07-28 schema.json#Error [RPC-015]
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// Additional information of any JSON type.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson<'a>>,
}

impl<'a> ErrorObject<'a> {
    /// Creates an error without data.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'a, str>>) -> Self {
        Self::from_text(code, message.into())
    }

    // Not inlined, because errors are created in many places.
    #[inline(never)]
    const fn from_text(code: ErrorCode, message: Cow<'a, str>) -> Self {
        Self { code, message, data: None }
    }

    /// Adds `data` to the error.
    #[must_use]
    pub fn with_data(mut self, data: RawJson<'a>) -> Self {
        self.data = Some(data);
        self
    }

    /// `-32600`: the message is JSON, but not a valid request.
    pub fn invalid_request(message: impl Into<Cow<'a, str>>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, message)
    }

    /// `-32601`: the method is not implemented. The name is truncated to 64 characters.
    // MCP 2026-07-28 schema.json#MethodNotFoundError [RPC-018]
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        const SHOWN_MAX: usize = 64;
        let shown = method.char_indices().nth(SHOWN_MAX).map_or(method, |(end, _)| &method[..end]);
        Self::new(ErrorCode::METHOD_NOT_FOUND, format!("method not found: {shown}"))
    }

    /// `-32602`: the parameters are invalid for the method.
    pub fn invalid_params(message: impl Into<Cow<'a, str>>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    /// `-32603`: this side failed internally.
    pub fn internal(message: impl Into<Cow<'a, str>>) -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, message)
    }

    /// Converts the error to one that does not borrow from the frame.
    #[must_use]
    pub fn into_owned(self) -> ErrorObject<'static> {
        ErrorObject {
            code: self.code,
            message: Cow::Owned(self.message.into_owned()),
            data: self.data.map(RawJson::into_owned),
        }
    }
}

impl fmt::Display for ErrorObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A peer chose the text, and errors are printed.
        write!(f, "{} ({})", Printable::new(&self.message), self.code)
    }
}

impl core::error::Error for ErrorObject<'_> {}

/// The error response for an application function that panicked, without the text of the panic.
impl From<Panicked> for ErrorObject<'static> {
    fn from(_: Panicked) -> Self {
        Self::internal("a function of the application panicked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_unknown_method_is_cut() {
        // Rule: [RPC-015] [RPC-018].
        let error = ErrorObject::method_not_found("tools/x");
        assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND);
        assert_eq!(error.message, "method not found: tools/x");
        let long = "é".repeat(100_000);
        assert!(ErrorObject::method_not_found(&long).message.len() < 200);
    }

    #[test]
    fn an_error_reads_back_from_what_it_serializes_to() {
        // Rule: [RPC-008].
        let error = ErrorObject::new(ErrorCode(-1), "no").with_data(RawJson::trusted("[1]"));
        let text = serde_json::to_string(&error).expect("it serializes");
        assert_eq!(text, r#"{"code":-1,"message":"no","data":[1]}"#);
        let read: ErrorObject<'_> = serde_json::from_str(&text).expect("it reads back");
        assert!(matches!(read.message, Cow::Borrowed("no")));
        assert_eq!(read, error);
        assert_eq!(read.into_owned(), error);
    }
}

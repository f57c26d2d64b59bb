//! The answers of handlers.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::catalog::check_uri;
use mcp_sansio::jsonrpc::{ErrorObject, Json, JsonError, RawJson};
use mcp_sansio::peer::HttpRejection;
use mcp_sansio::protocol::{
    BlobResourceContents, CallToolResult, ContentBlock, CreateMessageResult, ElicitResult,
    GetPromptResult, ListRootsResult, Meta, PromptMessage, ReadResourceResult, ResourceContents,
    Root, SerializeAt, TextResourceContents, TextResult, ToolOutput,
};
use mcp_sansio::{Capability, ErrorCode, Panicked, Revision};
use serde::Serialize;
use serde::ser::Error as _;

use super::ask::InputRequired;

/// The outcome of a handler.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// A result.
    Result(ResultBody),
    /// A protocol error.
    Error(ErrorObject<'static>),
    /// The handler panicked: an internal error that names the handler. The text of the panic is
    /// shown to the [observers](crate::Server::observe) only.
    Panicked(Panicked),
    /// Input requests to the user or the host.
    InputRequired(InputRequired),
    /// A refusal with its HTTP status.
    Refused(Box<HttpRejection>),
}

/// A result of any type, serialized at the revision of its request.
#[derive(Debug)]
#[non_exhaustive]
pub enum ResultBody {
    /// The result of a tool.
    Tool(CallToolResult),
    /// The result of a tool that returned a single text.
    Text(String),
    /// The result of a resource read.
    Resource(ReadResourceResult),
    /// The result of a prompt, an argument, or a request to a host. Boxed, so that a program
    /// contains code only for the results that it creates.
    Boxed(Box<dyn AnyResult>),
    /// The result of another method: a JSON object as text.
    Other(Json),
}

impl ResultBody {
    /// Returns the result as JSON at a revision, for middleware that looks at it.
    ///
    /// # Errors
    ///
    /// The result cannot be serialized.
    pub fn to_json(&self, revision: Revision) -> Result<Json, JsonError> {
        match self {
            Self::Boxed(result) => result.json_at(revision),
            result => result.to_json_at(revision),
        }
    }

    /// Adds an entry to the `_meta` of the result, or replaces it. `revision` is that of the
    /// request.
    ///
    /// # Errors
    ///
    /// The value or the result cannot be serialized, or the key is invalid.
    pub fn insert_meta<T: Serialize + ?Sized>(
        self,
        key: &str,
        value: &T,
        revision: Revision,
    ) -> Result<Self, JsonError> {
        match self {
            // The machine validates results of tools, so they keep their type.
            Self::Tool(mut result) => {
                result.meta.get_or_insert_default().set(key, value)?;
                Ok(Self::Tool(result))
            }
            Self::Text(text) => {
                Self::Tool(CallToolResult::text(text)).insert_meta(key, value, revision)
            }
            result => {
                let json = result.to_json(revision)?;
                let json = json.as_raw();
                let meta = json.get("_meta").unwrap_or(RawJson::EMPTY_OBJECT);
                let meta = with_meta_entry(&meta, key, value)?;
                let json = with_member(&json, "_meta", Some(&meta));
                Ok(Self::boxed(Written(Json::from(json))))
            }
        }
    }

    /// Boxes a result of a type without a variant.
    #[must_use]
    pub fn boxed(result: impl AnyResult + 'static) -> Self {
        Self::Boxed(Box::new(result))
    }
}

/// A result as JSON, written at the revision of its request.
pub(crate) struct Written(pub(crate) Json);

impl SerializeAt for Written {
    fn serialize_at<S: serde::Serializer>(
        &self,
        _: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// A result of any type.
pub trait AnyResult: Send {
    /// Returns the JSON of the result at `revision`.
    ///
    /// # Errors
    ///
    /// The errors of [`SerializeAt::serialize_at`].
    fn json_at(&self, revision: Revision) -> Result<Json, JsonError>;
}

// Does not use the `Debug` of the type: every program with a result would contain the code of all
// of them.
impl fmt::Debug for dyn AnyResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyResult")
    }
}

impl<T: SerializeAt + Send> AnyResult for T {
    fn json_at(&self, revision: Revision) -> Result<Json, JsonError> {
        self.to_json_at(revision)
    }
}

impl SerializeAt for ResultBody {
    fn serialize_at<S: serde::Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tool(result) => result.serialize_at(revision, serializer),
            Self::Text(text) => TextResult(text).serialize_at(revision, serializer),
            Self::Resource(result) => result.serialize_at(revision, serializer),
            Self::Boxed(result) => {
                result.json_at(revision).map_err(S::Error::custom)?.serialize(serializer)
            }
            Self::Other(result) => result.serialize_at(revision, serializer),
        }
    }

    fn tool_output(&self) -> ToolOutput<'_> {
        match self {
            Self::Tool(result) => result.tool_output(),
            Self::Text(_) => ToolOutput::Unstructured,
            _ => ToolOutput::Unknown,
        }
    }

    fn is_plain_result(&self) -> bool {
        match self {
            Self::Tool(result) => result.meta.is_none(),
            Self::Text(_) => true,
            _ => false,
        }
    }
}

/// Why a handler has no result. `?` converts any [`core::error::Error`] into an
/// [internal](Self::Internal) one.
///
/// | Error | From a tool | From any other handler |
/// | --- | --- | --- |
/// | [`failed`](Self::failed) | a result with `isError`: the model reads the text | `-32603` with the text |
/// | `?` on another error | a result with `isError`: the model reads the text | `-32603` without the text |
/// | [`Protocol`](Self::Protocol), [`invalid_params`](Self::invalid_params) and others | the protocol error | the protocol error |
///
/// To return an error type of your own, wrap the handler with [`fallible`](super::fallible()).
///
/// ```
/// use mcp_sansio_handlers::{Call, HandlerError, Host, Server};
///
/// #[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
/// struct Text { text: String }
///
/// let server = Server::new("numbers", "1.0.0").tool("square", "A number", |call: Call<Text>| {
///     let number: i32 = call.arguments.text.parse()?; // The model sees the error.
///     let square = number.checked_mul(number).ok_or(HandlerError::failed("too large"))?;
///     Ok(square.to_string())
/// });
/// # let (client, mut pair) = mcp_sansio_test::connect(&server, &Host::new("demo", "1.0.0"));
/// # let result = pair.run(client.call_tool("square", &Text { text: "70000".into() }))?;
/// # assert_eq!((result.is_error, result.first_text()), (Some(true), Some("too large")));
/// # let result = pair.run(client.call_tool("square", &Text { text: "x".into() }))?;
/// # assert_eq!(result.is_error, Some(true));
/// # Ok::<(), mcp_sansio_handlers::ClientError>(())
/// ```
#[non_exhaustive]
pub enum HandlerError {
    /// The work failed, with a text for the client. A tool's failure is a result that the model
    /// sees, so that it can retry differently; elsewhere it is an internal error.
    // MCP 2025-11-25 schema.json#CallToolResult [TOOL-008]
    Failed(String),
    /// The work failed, with a text that was not written for the client: that of the error that `?`
    /// converted. From a tool, the model sees it all the same, because it may help it to retry.
    /// Elsewhere the client gets an internal error without the text.
    // MCP 2026-07-28 server/resources#error-handling [RSRC-010]
    // MCP 2026-07-28 server/prompts#error-handling [PRMT-006]
    Internal(String),
    /// A protocol error, with any code.
    Protocol(ErrorObject<'static>),
    /// The handler panicked, as its [middleware](crate::middleware) sees it: an internal error for
    /// the client, without the text of the panic.
    Panicked(Panicked),
    /// Not an error: the user or the host must provide input first. Built by
    /// [`InputRequired::into_result`].
    InputRequired(InputRequired),
    /// The request is refused, with an HTTP status. Returned by the scope check.
    Refused(Box<HttpRejection>),
    /// Not an error: the answer was already determined.
    #[doc(hidden)]
    Answered(Box<CallToolResult>),
}

impl HandlerError {
    /// Creates an error for failed work, with a message that the client sees.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// Creates an error for invalid parameters: `-32602`.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Protocol(ErrorObject::invalid_params(message))
    }

    /// Creates an error for an unknown resource, with the code of the request's revision.
    // MCP 2025-11-25 server/resources#error-handling [RSRC-009]
    // MCP 2026-07-28 server/resources#error-handling [RSRC-010] [RSRC-012]
    #[must_use]
    pub fn resource_not_found(uri: &str) -> Self {
        let data = RawJson::from_serialize(&UnknownResource { uri });
        let error = ErrorObject::new(ErrorCode::RESOURCE_NOT_FOUND, "resource not found");
        Self::Protocol(match data {
            Ok(data) => error.with_data(data),
            Err(_) => error,
        })
    }

    /// Creates an error for a client without task support: see
    /// [`require_task`](super::Context::require_task).
    // MCP 2026-07-28 ext-tasks:tasks#capability-negotiation [TASK-028]
    #[must_use]
    pub fn task_required() -> Self {
        Self::Protocol(Capability::TasksExtension.missing())
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        match self {
            Self::Failed(message) => Outcome::Error(ErrorObject::internal(message)),
            Self::Internal(_) => Outcome::Error(ErrorObject::internal("internal error")),
            Self::Protocol(error) => Outcome::Error(error),
            Self::Panicked(panicked) => Outcome::Panicked(panicked),
            Self::InputRequired(required) => Outcome::InputRequired(required),
            Self::Refused(refusal) => Outcome::Refused(refusal),
            Self::Answered(result) => Outcome::Result(ResultBody::Tool(*result)),
        }
    }
}

#[derive(Serialize)]
struct UnknownResource<'a> {
    uri: &'a str,
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) | Self::Internal(message) => f.write_str(message),
            Self::Protocol(error) => fmt::Display::fmt(error, f),
            // Without the text, because middleware may pass this one on to the client.
            Self::Panicked(_) => f.write_str("the handler panicked"),
            Self::InputRequired(_) => f.write_str("input required"),
            Self::Refused(refusal) => fmt::Display::fmt(&refusal.error, f),
            Self::Answered(_) => f.write_str("answered"),
        }
    }
}

impl<E: core::error::Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::Internal(error.to_string())
    }
}

/// A type that a handler can return, per kind of handler.
#[diagnostic::on_unimplemented(message = "`{Self}` is not an answer that this handler can return")]
pub trait IntoOutcome<Of> {
    /// Converts the value into an outcome.
    fn into_outcome(self) -> Outcome;
}

impl<T: IntoOutcome<CallToolResult>> IntoOutcome<CallToolResult> for Result<T, HandlerError> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(reply) => reply.into_outcome(),
            Err(HandlerError::Failed(message) | HandlerError::Internal(message)) => {
                Outcome::Result(ResultBody::Tool(CallToolResult::error(message)))
            }
            Err(error) => error.into_outcome(),
        }
    }
}

/// Lets handlers of these kinds return a `Result` whose error is the error of the request.
macro_rules! fallible {
    ($($of:ty),+) => { $(
        impl<T: IntoOutcome<$of>> IntoOutcome<$of> for Result<T, HandlerError> {
            fn into_outcome(self) -> Outcome {
                self.map_or_else(HandlerError::into_outcome, IntoOutcome::into_outcome)
            }
        }
    )+ };
}
pub(super) use fallible;

fallible!(
    GetPromptResult,
    ReadResourceResult,
    Json,
    ElicitResult,
    CreateMessageResult,
    ListRootsResult
);

/// Lets handlers of a kind return values of a type.
macro_rules! outcomes {
    ($($of:ty, $reply:ty, |$value:ident| $body:expr;)+) => { $(
        impl IntoOutcome<$of> for $reply {
            fn into_outcome(self) -> Outcome {
                let $value = self;
                Outcome::Result($body)
            }
        }
    )+ };
}
pub(super) use outcomes;

outcomes! {
    CallToolResult, CallToolResult, |result| ResultBody::Tool(result);
    CallToolResult, String, |text| ResultBody::Text(text);
    CallToolResult, &'static str, |text| ResultBody::Text(text.into());
    CallToolResult, ContentBlock, |block| ResultBody::Tool(CallToolResult::new([block]));
    CallToolResult, Vec<ContentBlock>, |blocks| ResultBody::Tool(CallToolResult::new(blocks));
    CallToolResult, (), |_nothing| ResultBody::Tool(CallToolResult::new([]));
    GetPromptResult, GetPromptResult, |result| ResultBody::boxed(result);
    GetPromptResult, Vec<PromptMessage>, |messages| ResultBody::boxed(GetPromptResult::new(messages));
    GetPromptResult, PromptMessage, |message| ResultBody::boxed(GetPromptResult::new([message]));
    GetPromptResult, String, |text| ResultBody::boxed(GetPromptResult::new([PromptMessage::user(text)]));
    ReadResourceResult, ReadResourceResult, |result| ResultBody::Resource(result);
    ReadResourceResult, ResourceContents, |one| ResultBody::Resource(ReadResourceResult::new([one]));
    ReadResourceResult, TextResourceContents, |one| ResultBody::Resource(ReadResourceResult::new([one.into()]));
    ReadResourceResult, BlobResourceContents, |one| ResultBody::Resource(ReadResourceResult::new([one.into()]));
    ReadResourceResult, Vec<ResourceContents>, |all| ResultBody::Resource(ReadResourceResult::new(all));
    Json, Json, |result| ResultBody::Other(result);
    ElicitResult, ElicitResult, |result| ResultBody::boxed(result);
    CreateMessageResult, CreateMessageResult, |result| ResultBody::boxed(result);
}

impl IntoOutcome<Self> for ListRootsResult {
    // MCP 2025-11-25 client/roots#root [ROOT-002]
    fn into_outcome(self) -> Outcome {
        match self.roots.iter().find(|root| !is_valid_root(root)) {
            None => Outcome::Result(ResultBody::boxed(self)),
            Some(root) => {
                let message = alloc::format!(
                    "the root {:?} is not a `file://` URI, percent-encoded and without `..`",
                    root.uri
                );
                Outcome::Error(ErrorObject::internal(message))
            }
        }
    }
}

// MCP 2025-11-25 client/roots#security-considerations [ROOT-006]: a server may resolve `..` to a
// directory outside of the root.
fn is_valid_root(root: &Root) -> bool {
    let path = root.uri.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let path = path.replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    root.is_file() && check_uri(&root.uri).is_ok() && path.split('/').all(|it| it != "..")
}

impl IntoOutcome<ListRootsResult> for Vec<Root> {
    fn into_outcome(self) -> Outcome {
        ListRootsResult::new(self).into_outcome()
    }
}

/// A tool's result as a typed value: it becomes structured content, and its JSON a text block for
/// clients without support for structured content.
///
/// ```
/// use mcp_sansio_handlers::{Call, Host, NoArguments, Server, Structured};
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Reading { celsius: f64 }
///
/// // The schema of the output is that of `Reading`.
/// let server = Server::new("thermometer", "1.0.0").structured_tool(
///     "read",
///     "The temperature",
///     |_: Call<NoArguments>| Structured(Reading { celsius: 21.5 }),
/// );
/// # let (client, mut pair) = mcp_sansio_test::connect(&server, &Host::new("demo", "1.0.0"));
/// # let result = pair.run(client.call_tool("read", &NoArguments {}))?;
/// # assert_eq!(result.first_text(), Some(r#"{"celsius":21.5}"#));
/// # Ok::<(), mcp_sansio_handlers::ClientError>(())
/// ```
// MCP 2025-06-18 server/tools#structured-content [TOOL-018]
#[derive(Clone, Copy, Debug)]
pub struct Structured<T>(pub T);

impl<T: Serialize> IntoOutcome<CallToolResult> for Structured<T> {
    fn into_outcome(self) -> Outcome {
        match Json::from_serialize(&self.0) {
            Ok(value) => {
                let text = CallToolResult::text(value.as_str());
                Outcome::Result(ResultBody::Tool(text.structured_content(value)))
            }
            Err(error) => Outcome::Error(ErrorObject::internal(error.to_string())),
        }
    }
}

// ------------------------------------------------------------------ JSON objects as text, with one member changed

/// Returns metadata with this entry in place of the one with its key.
///
/// # Errors
///
/// The value cannot be serialized, or the key is invalid.
pub(crate) fn with_meta_entry<T: Serialize + ?Sized>(
    meta: &RawJson<'_>,
    key: &str,
    value: &T,
) -> Result<RawJson<'static>, JsonError> {
    let mut entry = Meta::new();
    entry.set(key, value)?;
    Ok(with_member(meta, key, entry.get(key).as_ref()))
}

/// Returns an object with this member in place of the one with its name, or without it. The other
/// members keep their text and their order.
pub(crate) fn with_member(
    object: &RawJson<'_>,
    name: &str,
    value: Option<&RawJson<'_>>,
) -> RawJson<'static> {
    let mut out = String::from("{");
    let mut push = |name: &str, value: &RawJson<'_>| {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&string(name));
        out.push(':');
        out.push_str(value.as_str());
    };
    let mut new = value;
    for member in object.members() {
        if member.name() != name {
            push(&member.name(), &member.value);
        } else if let Some(value) = new.take() {
            push(name, value);
        }
    }
    if let Some(value) = new {
        push(name, value);
    }
    out.push('}');
    RawJson::trusted_string(out)
}

/// Returns whether an object is not empty.
pub(crate) fn has_members(object: &RawJson<'_>) -> bool {
    object.members().next().is_some()
}

/// Returns a JSON string.
fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_added_replaced_and_removed_and_the_others_keep_their_text() {
        let object = RawJson::parse(r#"{"a\n":1.00,"b":{"c":[]},"b":2}"#).unwrap();
        let value = RawJson::parse("true").unwrap();
        let with = |name, value| with_member(&object, name, value).as_str().replace('\n', "");
        assert_eq!(with("d", Some(&value)), r#"{"a\n":1.00,"b":{"c":[]},"b":2,"d":true}"#);
        assert_eq!(with("b", Some(&value)), r#"{"a\n":1.00,"b":true}"#);
        assert_eq!(with("a\n", None), r#"{"b":{"c":[]},"b":2}"#);
        let one = with_member(&RawJson::EMPTY_OBJECT, "x", Some(&value));
        assert!(has_members(&one) && !has_members(&with_member(&one, "x", None)));
    }
}

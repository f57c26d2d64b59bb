//! The items of the protocol that operations name.

use std::sync::Arc;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::Method;

/// The longest name of a tool or a prompt that is reported, in bytes. Names come from the peer.
const NAME_LENGTH_MAX: usize = 256;

/// The longest URI that is reported, in bytes.
const URI_LENGTH_MAX: usize = 2048;

/// The item that an operation names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Subject {
    #[default]
    None,
    Tool(Arc<str>),
    Prompt(Arc<str>),
    Resource(Arc<str>),
}

impl Subject {
    pub(crate) fn new(method: Option<Method>, params: &RawJson<'_>) -> Self {
        let found = match method {
            Some(Method::ToolsCall) => text(params, "name", NAME_LENGTH_MAX).map(Self::Tool),
            Some(Method::PromptsGet) => text(params, "name", NAME_LENGTH_MAX).map(Self::Prompt),
            Some(
                Method::ResourcesRead
                | Method::ResourcesSubscribe
                | Method::ResourcesUnsubscribe
                | Method::ResourcesUpdated,
            ) => text(params, "uri", URI_LENGTH_MAX).map(Self::Resource),
            Some(Method::CompletionComplete) => params.get("ref").and_then(|reference| {
                let prompt = text(&reference, "name", NAME_LENGTH_MAX).map(Self::Prompt);
                prompt.or_else(|| text(&reference, "uri", URI_LENGTH_MAX).map(Self::Resource))
            }),
            _ => None,
        };
        found.unwrap_or_default()
    }
}

/// Returns a member of an object, if it is a string, without what exceeds `length_max`.
fn text(object: &RawJson<'_>, name: &str, length_max: usize) -> Option<Arc<str>> {
    let value = object.get(name)?;
    Some(truncated(&value.to_text()?, length_max).into())
}

pub(crate) fn truncated(text: &str, length_max: usize) -> &str {
    let mut end = text.len().min(length_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

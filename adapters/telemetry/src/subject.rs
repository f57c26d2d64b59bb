//! The items of the protocol that operations name.

use std::sync::Arc;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::{Method, SubjectKind};

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
        let found = method.and_then(Method::subject).and_then(|subject| subject.find(params));
        match found {
            Some((SubjectKind::Tool, name)) => Self::Tool(shared(&name, NAME_LENGTH_MAX)),
            Some((SubjectKind::Prompt, name)) => Self::Prompt(shared(&name, NAME_LENGTH_MAX)),
            Some((SubjectKind::Resource, uri)) => Self::Resource(shared(&uri, URI_LENGTH_MAX)),
            _ => Self::None,
        }
    }
}

fn shared(text: &str, length_max: usize) -> Arc<str> {
    truncated(text, length_max).into()
}

pub(crate) fn truncated(text: &str, length_max: usize) -> &str {
    let mut end = text.len().min(length_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

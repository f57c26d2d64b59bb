use alloc::string::String;

use super::item::ItemKind;
use super::template::InvalidTemplate;
use super::uri::InvalidUri;
use crate::protocol::InvalidToolName;

/// A thing cannot be put into the catalog, which is as it was before. The caller's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// Clients may refuse a tool of this name: give it another one.
    #[error("tool {name:?}: {reason}")]
    InvalidToolName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: InvalidToolName,
    },
    /// There is no such item to say something of: offer it before.
    #[error("there is no {kind} {key:?}")]
    NoSuchItem {
        /// What it would be.
        kind: ItemKind,
        /// Its name, URI or URI template.
        key: String,
    },
    /// The key is taken: choose another one, or replace what has it.
    #[error("there is a {kind} {key:?} already; replace it, or choose another key")]
    Duplicate {
        /// What is there already.
        kind: ItemKind,
        /// Its name, URI or URI template.
        key: String,
    },
    /// The URI of a resource is not absolute or not well-formed: encode it as RFC 3986 says.
    #[error("resource {uri:?}: {reason}")]
    InvalidUri {
        /// The URI.
        uri: String,
        /// What is wrong with it.
        reason: InvalidUri,
    },
    /// The URI template of a resource template is not well-formed: write it as RFC 6570 says.
    #[error("resource template {template:?}: {reason}")]
    InvalidTemplate {
        /// The template.
        template: String,
        /// What is wrong with it.
        reason: InvalidTemplate,
    },
    /// A schema of a tool is not one, or the validator refuses it.
    #[error("tool {tool:?}: its {member} {reason}")]
    InvalidSchema {
        /// The tool.
        tool: String,
        /// `inputSchema` or `outputSchema`.
        member: &'static str,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// A prompt names an argument twice: a client could fill in only one of them.
    #[error("prompt {prompt:?}: its argument {argument:?} is there twice; rename one")]
    DuplicateArgument {
        /// The prompt.
        prompt: String,
        /// The argument.
        argument: String,
    },
}

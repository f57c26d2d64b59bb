use alloc::string::String;

use super::item::ItemKind;
use super::uri::InvalidUri;
use crate::{InvalidValue, protocol::Method};

/// An item or a handler cannot be added to a server, which is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// Clients may refuse a tool of this name: give it another one.
    #[error("tool {name:?}: {reason}")]
    InvalidToolName {
        /// The name.
        name: String,
        /// The reason.
        reason: InvalidValue,
    },
    /// The catalog does not contain the item: add it first.
    #[error("there is no {kind} {key:?}")]
    NoSuchItem {
        /// The kind of the missing item.
        kind: ItemKind,
        /// Its name, URI or URI template.
        key: String,
    },
    /// The key is taken: choose another one, or replace the existing item.
    #[error("there is a {kind} {key:?} already; replace it, or choose another key")]
    Duplicate {
        /// The kind of the existing item.
        kind: ItemKind,
        /// Its name, URI or URI template.
        key: String,
    },
    /// The URI of a resource is not absolute or not well-formed: encode it according to RFC 3986.
    #[error("resource {uri:?}: {reason}")]
    InvalidUri {
        /// The URI.
        uri: String,
        /// The error in the URI.
        reason: InvalidUri,
    },
    /// The URI template of a resource template is not well-formed: write it according to RFC 6570.
    #[error("resource template {template:?}: {reason}")]
    InvalidTemplate {
        /// The template.
        template: String,
        /// The error in the template.
        reason: InvalidValue,
    },
    /// A schema of a tool is invalid, or the validator refuses it.
    #[error("tool {tool:?}: its {member} {reason}")]
    InvalidSchema {
        /// The tool.
        tool: String,
        /// `inputSchema` or `outputSchema`.
        member: &'static str,
        /// The error in the schema, and how to correct it.
        reason: String,
    },
    /// A handler cannot be registered for a method of the protocol, which the server answers
    /// without it: register the items and the handlers of their arguments instead.
    #[error(
        "a handler for `{method}` would never be called: the server answers it from its tools, \
         prompts and resources and the handlers of their arguments; register those"
    )]
    ProtocolMethod {
        /// The method.
        method: Method,
    },
    /// A prompt has two arguments with the same name: clients could fill in only one of them.
    #[error("prompt {prompt:?}: the argument {argument:?} is repeated; rename one")]
    DuplicateArgument {
        /// The prompt.
        prompt: String,
        /// The argument.
        argument: String,
    },
    /// An argument of a prompt has a type that is not a string, although clients send strings only:
    /// take a string, and convert it in the handler.
    #[error(
        "prompt {prompt:?}: the argument {argument:?} must be a string; convert it in the handler"
    )]
    ArgumentNotString {
        /// The prompt.
        prompt: String,
        /// The argument.
        argument: String,
    },
    /// An option of an item names an argument that the item does not have: correct the name.
    #[error("the {kind} {key:?} has no argument {argument:?}")]
    NoSuchArgument {
        /// The kind of the item.
        kind: ItemKind,
        /// Its name or URI template.
        key: String,
        /// The argument, or the variable of the template.
        argument: String,
    },
    /// A handler takes a state that the server does not have: register a value of this type.
    #[error(
        "a handler takes `State<{state}>`, and the server has none of this type; register one with \
         `Server::state`"
    )]
    MissingState {
        /// The type of the state.
        state: &'static str,
    },
    /// An extension cannot be registered, or a requirement of it is unmet.
    #[error(transparent)]
    Extension(crate::protocol::ExtensionError),
}

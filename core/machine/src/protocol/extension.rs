//! Extensions of the protocol: mistakes in a registration, and the refusal of a request whose
//! client lacks one.

use alloc::string::String;
use core::fmt;

use crate::jsonrpc::{ErrorCode, ErrorObject, RawJson, write_string};
use crate::{Era, InvalidValue, Revision};

use super::Capability;
use super::TASKS_EXTENSION;
use super::capabilities::CapabilitySettings;

/// An extension cannot be registered, or a requirement of it is unmet: a mistake of the
/// application.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionError {
    /// The identifier is not `vendor/name`: see [`check_extension_id`](super::check_extension_id).
    #[error("extension {id:?}: {reason}")]
    InvalidId {
        /// The identifier.
        id: String,
        /// The error in it.
        reason: InvalidValue,
    },
    /// The settings do not serialize to a JSON object.
    #[error("extension {id:?}: its settings are not an object")]
    InvalidSettings {
        /// The identifier.
        id: String,
    },
    /// Another extension has this identifier.
    #[error("the extension {id:?} is registered already")]
    Duplicate {
        /// The identifier.
        id: String,
    },
    /// The name of a method is taken, by the protocol or by an earlier registration.
    #[error("extension {id:?}: the method {method:?} is taken")]
    MethodTaken {
        /// The identifier.
        id: String,
        /// The method.
        method: String,
    },
    /// A method belongs to another extension, or this side sends it and does not receive it.
    #[error("extension {id:?}: it does not handle the method {method:?} on this side")]
    ForeignMethod {
        /// The identifier.
        id: String,
        /// The method.
        method: String,
    },
    /// Middleware around the handlers of a host, which has message middleware only.
    #[error("extension {id:?}: a host has no middleware around handlers: use `message_middleware`")]
    HandlerMiddleware {
        /// The identifier.
        id: String,
    },
    /// A requirement is unmet: register the extension, or declare the capability.
    #[error("the extension {id:?} requires {requirement}")]
    Unmet {
        /// The identifier.
        id: String,
        /// The requirement.
        requirement: ExtensionRequirement,
    },
}

/// A requirement of an extension, met by the side that registers it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtensionRequirement {
    /// A capability of this side.
    Capability(Capability),
    /// Another extension of this side.
    Extension(String),
}

impl fmt::Display for ExtensionRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capability(capability) => write!(f, "the capability `{capability}`"),
            Self::Extension(id) => write!(f, "the extension {id:?}"),
        }
    }
}

/// Returns the error for a request that needs an extension which its client did not declare.
// MCP 2026-07-28 basic/index#_meta [EXT-015]
#[must_use]
pub fn missing_extension(id: &str) -> ErrorObject<'static> {
    let mut data = String::from(r#"{"requiredCapabilities":{"extensions":{"#);
    write_string(&mut data, id);
    data.push_str(":{}}}}");
    let message = alloc::format!("the request requires the extension `{id}`");
    ErrorObject::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, message)
        .with_data(RawJson::trusted_string(data))
}

/// Removes the extension for tasks from the declaration at a legacy revision, where it does not
/// exist.
// MCP 2025-11-25 ext-tasks:SEP-2663#backward-compatibility [TASK-044]
pub(crate) fn drop_tasks_extension(
    extensions: &mut Option<CapabilitySettings>,
    revision: Revision,
) {
    if let Some(declared) = extensions
        && revision.era() == Era::Legacy
    {
        declared.remove(TASKS_EXTENSION);
        if declared.is_empty() {
            *extensions = None;
        }
    }
}

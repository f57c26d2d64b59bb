use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

use mcp_sansio::jsonrpc::Json;
use mcp_sansio::peer::RequestHandle;
use mcp_sansio::protocol::LoggingLevel;

use super::catalog_edit::Edit;
use super::shares::{Coalesced, Cost, Metered, Sender};

/// A command to the connection from a handler or a [`ServerHandle`](super::ServerHandle).
pub(super) enum Command {
    Progress {
        request: RequestHandle,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    Log {
        request: Option<RequestHandle>,
        level: LoggingLevel,
        logger: Option<String>,
        data: Json,
    },
    /// A notification of an extension.
    Notify {
        request: RequestHandle,
        method: &'static str,
        params: Json,
    },
    ResourceUpdated {
        from: Sender,
        uri: String,
    },
    EditCatalog {
        from: Sender,
        edit: Box<Edit>,
    },
    /// Makes the next edit for all connections.
    TakeEdit(Box<Edit>),
    ReleaseConnection {
        request: RequestHandle,
        retry: Duration,
    },
    RunAsTask(RequestHandle),
    Close,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Progress { .. } => "Progress",
            Self::Log { .. } => "Log",
            Self::Notify { .. } => "Notify",
            Self::ResourceUpdated { .. } => "ResourceUpdated",
            Self::EditCatalog { .. } => "EditCatalog",
            Self::TakeEdit(_) => "TakeEdit",
            Self::ReleaseConnection { .. } => "ReleaseConnection",
            Self::RunAsTask(_) => "RunAsTask",
            Self::Close => "Close",
        })
    }
}

impl Metered for Command {
    fn cost(&self) -> Cost {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let bytes = size_of::<Self>()
            + match self {
                Self::Progress { message, .. } => length(message),
                Self::Log { logger, data, .. } => length(logger) + data.as_str().len(),
                Self::Notify { params, .. } => params.as_str().len(),
                Self::ResourceUpdated { uri, .. } => uri.len(),
                // Data that the closure holds by reference is not counted.
                Self::EditCatalog { edit, .. } => size_of_val(&**edit),
                Self::TakeEdit(_)
                | Self::ReleaseConnection { .. }
                | Self::RunAsTask(_)
                | Self::Close => 0,
            };
        match self {
            Self::Progress { request, .. } => Cost::Report(Some(*request), bytes),
            Self::Log { request, .. } => Cost::Report(*request, bytes),
            Self::Notify { request, .. } => Cost::Report(Some(*request), bytes),
            Self::ResourceUpdated { from, .. } | Self::EditCatalog { from, .. } => {
                Cost::Command(*from, bytes)
            }
            Self::TakeEdit(_) => Cost::Free,
            Self::ReleaseConnection { request, .. } => {
                Cost::Coalesced(Some(*request), Coalesced::ReleaseConnection)
            }
            Self::RunAsTask(request) => Cost::Coalesced(Some(*request), Coalesced::RunAsTask),
            Self::Close => Cost::Coalesced(None, Coalesced::Close),
        }
    }

    fn is_duplicate_of(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::ResourceUpdated { uri, .. }, Self::ResourceUpdated { uri: next, .. }) => {
                uri == next
            }
            _ => false,
        }
    }
}

//! The current operation, for handlers.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_sansio::Revision;
use opentelemetry::Context;

use crate::description::Description;

/// The request that is being handled. Handlers, and the functions that they call, get it from the
/// current context.
///
/// ```
/// use mcp_sansio_telemetry::OperationInfo;
///
/// fn statement() -> String {
///     let request = OperationInfo::current().and_then(|it| it.request_id().map(str::to_owned));
///     format!("SELECT 1 -- request {}", request.unwrap_or_default())
/// }
/// assert_eq!(statement(), "SELECT 1 -- request ");
/// ```
#[derive(Clone)]
pub struct OperationInfo {
    method: Cow<'static, str>,
    request_id: Option<Arc<str>>,
    session_id: Option<Arc<str>>,
    principal: Option<Arc<str>>,
    revision: Option<Revision>,
}

impl OperationInfo {
    pub(crate) fn new(description: &Description) -> Self {
        Self {
            method: description.method.clone(),
            request_id: description.request_id.clone(),
            session_id: description.transport.session_id.clone(),
            principal: description.principal.clone(),
            revision: description.revision,
        }
    }

    /// Returns the operation of the current context: in the handler of a request, and in everything
    /// that runs in its context.
    #[must_use]
    pub fn current() -> Option<Self> {
        Context::map_current(|context| context.get::<Self>().cloned())
    }

    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the JSON-RPC id of a request, which its sender has chosen.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// Returns the id of the session, at revisions and on transports with sessions.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// Returns the name of the authenticated sender, if there is one.
    #[must_use]
    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// Returns the revision that governs the operation.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }
}

mcp_sansio::partial_debug! {
    /// Omits the session and the principal, because logs have many readers.
    impl Debug for OperationInfo { method, request_id, .. }
}

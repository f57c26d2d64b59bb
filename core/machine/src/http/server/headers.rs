//! Checks the header fields of a modern request that repeat its body.

use alloc::format;

use crate::Revision;
use crate::http::RequestHead;
use crate::http::field_value;
use crate::http::header_params::HeaderParamMismatch;
use crate::jsonrpc::{ErrorCode, ErrorObject, RawJson};
use crate::peer::metadata::Metadata;
use crate::protocol::Method;

use super::Server;

impl Server {
    /// Compares the header fields of a modern request with its body.
    ///
    /// The revision comes first: the fields of an unsupported revision follow unknown rules, so
    /// they are ignored and the request is refused for its revision.
    // MCP 2026-07-28 basic/transports/streamable-http#server-validation [HSRV-023] [HDR-025]
    pub(super) fn check_headers(
        &self,
        head: &RequestHead<'_>,
        method: &str,
        params: &RawJson<'_>,
        metadata: &Metadata<'_>,
    ) -> Result<(), ErrorObject<'static>> {
        let (version, served) = match &self.declared {
            Some(declared) if metadata.prefix_matched => (declared.revision.as_str(), true),
            _ => {
                let version = metadata.protocol_version.as_deref().unwrap_or_default();
                let known = Revision::parse(version);
                (version, known.is_some_and(|revision| self.revisions.contains(revision)))
            }
        };
        // MCP 2026-07-28 basic/transports/streamable-http#protocol-version-header [HDR-004] [HDR-026]
        compare("MCP-Protocol-Version", head.protocol_version, version.as_bytes())?;
        if !served {
            return Ok(());
        }
        // MCP 2026-07-28 basic/transports/streamable-http#standard-request-headers [HDR-026]
        compare("Mcp-Method", head.mcp_method, method.as_bytes())?;
        let Some(method) = Method::parse(method) else { return Ok(()) };
        let named =
            matches!(method, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead);
        // MCP 2026-07-28 ext-tasks:tasks#streamable-http-routing-headers [TASK-039]: the header
        // that routes a request to its task must name that task. Clients that omit it are served
        // too.
        if matches!(method, Method::TasksGet | Method::TasksUpdate | Method::TasksCancel)
            && let Some(name) = head.mcp_name
        {
            let task = metadata.places(method).subject(params);
            let task = task.and_then(|task| task.to_text());
            let name = field_value::decode(name).map_err(|fault| unreadable("Mcp-Name", &fault))?;
            return if task.is_none_or(|task| task == name) {
                Ok(())
            } else {
                Err(differs("Mcp-Name"))
            };
        }
        let Some(subject) = metadata.subject(method).filter(|_| named) else { return Ok(()) };
        // MCP 2026-07-28 basic/transports/streamable-http#value-encoding [HDR-024]
        let Some(name) = head.mcp_name else { return Err(missing("Mcp-Name")) };
        let name = field_value::decode(name).map_err(|fault| unreadable("Mcp-Name", &fault))?;
        if name != subject {
            return Err(differs("Mcp-Name"));
        }
        if method != Method::ToolsCall {
            return Ok(());
        }
        // MCP 2026-07-28 basic/transports/streamable-http#server-behavior-for-custom-headers [HDR-027]
        // [HDR-028]
        // [HDR-009]
        let Some(header_params) = self.header_params.get(subject) else { return Ok(()) };
        let none = RawJson::EMPTY_OBJECT;
        let arguments = metadata.arguments.as_ref().unwrap_or(&none);
        header_params.check(arguments, &head.params).map_err(|mismatch| match mismatch {
            // It is undefined which of the values the header should repeat.
            HeaderParamMismatch::Repeated { .. } => {
                ErrorObject::invalid_params(format!("{mismatch}"))
            }
            _ => mismatch_error(format!("{mismatch}")),
        })
    }
}

fn compare(
    name: &str,
    received: Option<&[u8]>,
    expected: &[u8],
) -> Result<(), ErrorObject<'static>> {
    match received {
        None => Err(missing(name)),
        // MCP 2026-07-28 basic/transports/streamable-http#case-sensitivity [HDR-031]
        Some(received) if received == expected => Ok(()),
        Some(_) => Err(differs(name)),
    }
}

// MCP 2026-07-28 basic/transports/streamable-http#protocol-version-header [VER-031]
fn missing(name: &str) -> ErrorObject<'static> {
    mismatch_error(format!("the header field `{name}` is missing"))
}

fn differs(name: &str) -> ErrorObject<'static> {
    mismatch_error(format!("the header field `{name}` differs from the body"))
}

fn unreadable(name: &str, fault: &impl core::fmt::Display) -> ErrorObject<'static> {
    mismatch_error(format!("the header field `{name}` cannot be read: {fault}"))
}

fn mismatch_error(message: alloc::string::String) -> ErrorObject<'static> {
    ErrorObject::new(ErrorCode::HEADER_MISMATCH, message)
}

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::catalog::{Catalog, Invalid};
use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{Inputs, MethodName, Request};
use mcp_sansio::protocol::{CallToolResult, Capability, Method, ResourceTemplate};
use mcp_sansio::{Era, Revision};

use super::kind::Kind;
use super::reply::{Body, Outcome};
use super::sealing::Sealing;
use super::server::Handlers;

/// Finds the handler of a request, and checks what goes in and what comes out.
#[derive(Debug)]
pub(super) struct Dispatch<'h, K: Kind> {
    pub(super) handlers: &'h Handlers<K>,
    pub(super) catalog: &'h Catalog,
}

/// A handler, and the variables of the template that led to it.
pub(super) type Found<'h, K> = (&'h <K as Kind>::Function, Vec<(String, String)>);

impl<'h, K: Kind> Dispatch<'h, K> {
    /// The tool that a request calls, if its results have a schema; since 2025-06-18.
    pub(super) fn described_tool(&self, request: &Request<'_>) -> Option<String> {
        if request.method != Method::ToolsCall || request.revision < Revision::V2025_06_18 {
            return None;
        }
        let name = request.subject()?;
        let tool = self.catalog.tool(&name.to_text()?)?;
        tool.output_schema.is_some().then(|| tool.name.clone())
    }

    /// The handler of a request, with the variables of the template that led to it.
    pub(super) fn find(&self, request: &Request<'_>) -> Result<Found<'h, K>, Box<Outcome>> {
        let handlers = self.handlers;
        let subject = || request.subject().and_then(|text| text.to_text()).unwrap_or_default();
        let found = match &request.method {
            MethodName::Known(Method::ToolsCall) => {
                let name = subject();
                self.check_arguments(&name, request)?;
                handlers.tools.get(&name)
            }
            MethodName::Known(Method::PromptsGet) => handlers.prompts.get(&subject()),
            MethodName::Known(Method::ResourcesRead) => {
                let uri = subject();
                if let Some(function) = handlers.resources.get(&uri) {
                    Some(function)
                } else if let Some((template, variables)) = self.template_of(&uri)
                    && let Some(function) = handlers.templates.get(&template.uri_template)
                {
                    return Ok((function, variables));
                } else {
                    None
                }
            }
            MethodName::Known(Method::CompletionComplete) => handlers.completion.as_ref(),
            other => handlers.others.get(other.as_str()),
        };
        found.map(|function| (function, Vec::new())).ok_or_else(|| {
            Box::new(Outcome::Error(match &request.method {
                MethodName::Known(method) => {
                    let message = alloc::format!("the server has no handler for this `{method}`");
                    ErrorObject::internal(message)
                }
                // MCP 2026-07-28 schema.json#MethodNotFoundError [RPC-018]
                MethodName::Other(name) => ErrorObject::method_not_found(name),
            }))
        })
    }

    /// The template whose handler gets the reads of a URI, with its variables.
    pub(super) fn template_of(
        &self,
        uri: &str,
    ) -> Option<(&'h ResourceTemplate, Vec<(String, String)>)> {
        if self.handlers.resources.get(uri).is_some() {
            return None;
        }
        self.catalog.find_template(uri)
    }

    // MCP 2025-11-25 server/tools#security-considerations [TOOL-030]
    fn check_arguments(&self, tool: &str, request: &Request<'_>) -> Result<(), Box<Outcome>> {
        let arguments = request.arguments().unwrap_or(RawJson::EMPTY_OBJECT);
        self.catalog.validate_arguments(tool, &arguments, request.revision).map_err(|invalid| {
            Box::new(match invalid {
                Invalid::Protocol(error) => Outcome::Error(error),
                Invalid::Tool(message) => {
                    Outcome::Result(Body::Tool(CallToolResult::error(message)))
                }
            })
        })
    }

    // MCP 2025-06-18 server/tools#output-schema [TOOL-019]
    pub(super) fn check_output(&self, tool: &str, outcome: Outcome) -> Outcome {
        let Outcome::Result(body) = &outcome else { return outcome };
        let structured = match body {
            Body::Tool(result) => result.structured_content.as_ref(),
            Body::Text(_) => None,
            _ => return outcome,
        };
        let failed = matches!(body, Body::Tool(result) if result.is_error == Some(true));
        let checked = match structured {
            Some(structured) => self.catalog.validate_output(tool, &structured.as_raw()),
            // What went wrong is said in words.
            None if failed => Ok(()),
            None => {
                Err(alloc::format!("The tool {tool} has an output schema and no structured result"))
            }
        };
        match checked {
            Ok(()) => outcome,
            Err(reason) => Outcome::Error(ErrorObject::internal(reason)),
        }
    }
}

/// Frees a request from its frame. Its text is kept only where a further round would hand it to the
/// handler again, in a legacy session or as one of the `tasks` of this server; or where `sealing`
/// would bind a state to it.
pub(super) fn keep(mut request: Request<'_>, tasks: bool, sealing: &Sealing) -> Request<'static> {
    let rounds = matches!(request.method, MethodName::Known(m) if m.allows_input_rounds());
    let task = tasks && request.capabilities.contains(Capability::TasksExtension);
    if !(rounds && (task || request.revision.era() == Era::Legacy)) {
        request.inputs = Inputs::default();
        if !(rounds && sealing.is_on()) {
            request.forget_params();
        }
    }
    request.into_owned()
}

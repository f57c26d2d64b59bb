use crate::Revision;
use crate::jsonrpc::RawJson;
use crate::protocol::{Capabilities, Capability, Method};

/// What of a question goes beyond what its client declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnsupportedInput {
    /// A capability is missing.
    Capability(Capability),
    /// No client has it.
    UnknownMode,
}

impl UnsupportedInput {
    /// What the server is told.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Capability(Capability::ElicitationForm) => "this client shows no forms",
            Self::Capability(Capability::ElicitationUrl) => "this client opens no URLs",
            Self::Capability(_) => "this client samples without tools",
            Self::UnknownMode => "no such elicitation mode",
        }
    }
}

/// Looks over the parameters of a question that the gate lets through: sending and receiving ask
/// here.
pub(super) fn unsupported_input(
    method: Method,
    params: &RawJson<'_>,
    client: Capabilities,
    revision: Revision,
) -> Option<UnsupportedInput> {
    if revision < Revision::V2025_11_25 {
        return None;
    }
    let needed = match method {
        // MCP 2025-11-25 client/elicitation#error-handling [ELIC-004] [ELIC-006]
        Method::ElicitationCreate => match params.get("mode").as_ref().map(RawJson::as_str) {
            None | Some(r#""form""#) => Capability::ElicitationForm,
            Some(r#""url""#) => Capability::ElicitationUrl,
            Some(_) => return Some(UnsupportedInput::UnknownMode),
        },
        // MCP 2025-11-25 schema.json#CreateMessageRequestParams [SAMP-007]
        Method::SamplingCreateMessage
            if params.get("tools").is_some() || params.get("toolChoice").is_some() =>
        {
            Capability::SamplingTools
        }
        _ => return None,
    };
    (!client.contains(needed)).then_some(UnsupportedInput::Capability(needed))
}

use crate::Revision;
use crate::jsonrpc::RawJson;
use crate::protocol::{Capabilities, Capability, Method};

/// Why an input request exceeds the capabilities of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnsupportedInput {
    /// A capability is missing.
    Capability(Capability),
    /// The protocol defines no such mode.
    UnknownMode,
}

impl UnsupportedInput {
    /// Returns the error message for the server.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Capability(Capability::ElicitationForm) => {
                "this client does not support form elicitation"
            }
            Self::Capability(Capability::ElicitationUrl) => {
                "this client does not support URL elicitation"
            }
            Self::Capability(_) => "this client does not support tools in sampling",
            Self::UnknownMode => "unknown elicitation mode",
        }
    }
}

/// Checks the parameters of an input request that the capability gate allows. Sender and receiver
/// both use this check.
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
        Method::ElicitationCreate => match params.get_present("mode").as_ref().map(RawJson::as_str)
        {
            None | Some(r#""form""#) => Capability::ElicitationForm,
            Some(r#""url""#) => Capability::ElicitationUrl,
            Some(_) => return Some(UnsupportedInput::UnknownMode),
        },
        // MCP 2025-11-25 schema.json#CreateMessageRequestParams [SAMP-007]
        Method::SamplingCreateMessage
            if params.get_present("tools").is_some()
                || params.get_present("toolChoice").is_some() =>
        {
            Capability::SamplingTools
        }
        _ => return None,
    };
    (!client.contains(needed)).then_some(UnsupportedInput::Capability(needed))
}

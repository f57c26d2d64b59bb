//! The `data` of protocol errors.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::de::{Deserialize, Deserializer, Error as _};

use crate::gate::Refusal;
use crate::jsonrpc::{ErrorObject, RawJson};

use super::capabilities::ClientCapabilities;
use super::elicitation::ElicitUrlParams;
use super::message::message;

message! {
    /// The requested revision is not supported: `data` of -32022 since 2026-07-28, and of -32602 in
    /// response to `initialize` before.
    // MCP 2025-11-25 basic/lifecycle#error-handling [VER-009]
    // MCP 2026-07-28 basic/versioning#protocol-version-negotiation [VER-012]
    pub struct UnsupportedProtocolVersionData {
        required {
            /// The supported revisions.
            supported: Vec<String> = "supported" in ALL;
            /// The requested revision, as the peer spelled it.
            #[serde(default)]
            requested: String = "requested" in ALL;
        }
        defaulted {}
        optional {}
    }
}

message! {
    /// A request requires a capability that its client did not declare: `data` of -32021; since
    /// 2026-07-28.
    // MCP 2026-07-28 basic/index#_meta [CAP-022]
    pub struct MissingRequiredClientCapabilityData {
        required {
            /// The required capabilities.
            required_capabilities: ClientCapabilities = "requiredCapabilities" in ALL;
        }
        defaulted {}
        optional {}
    }
}

message! {
    /// The resource does not exist: `data` of -32002 until 2025-11-25, and of -32602 since.
    // MCP 2025-11-25 server/resources#error-handling [RSRC-009]
    pub struct ResourceNotFoundData {
        required {
            /// The requested resource.
            uri: String = "uri" in ALL;
        }
        defaulted {}
        optional {}
    }
}

message! {
    /// The user must first visit a URL: `data` of -32042; 2025-11-25 only.
    // MCP 2025-11-25 client/elicitation#url-elicitation-required-error [ELIC-020]
    pub struct UrlElicitationRequiredData {
        required {
            /// The URLs to open, each with an elicitation id. Others than those of the
            /// [web](ElicitUrlParams::check_url) are not read.
            #[serde(deserialize_with = "of_the_web")]
            elicitations: Vec<ElicitUrlParams> = "elicitations" in ALL;
        }
        defaulted {}
        optional {}
    }
}

fn of_the_web<'de, D: Deserializer<'de>>(data: D) -> Result<Vec<ElicitUrlParams>, D::Error> {
    let urls = Vec::<ElicitUrlParams>::deserialize(data)?;
    urls.iter().try_for_each(ElicitUrlParams::check_url).map_err(D::Error::custom)?;
    Ok(urls)
}

impl From<Refusal<'_>> for ErrorObject<'static> {
    fn from(refusal: Refusal<'_>) -> Self {
        let error = match refusal {
            Refusal::InvalidRequest(what)
            | Refusal::InvalidParams(what)
            | Refusal::Internal(what) => Self::new(refusal.code(), what),
            _ => Self::new(refusal.code(), refusal.to_string()),
        };
        if !refusal.has_data() {
            return error;
        }
        let mut data = String::new();
        refusal.write_data(&mut data);
        error.with_data(RawJson::trusted_string(data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    use crate::protocol::{Revision, SerializeAt};

    #[test]
    fn url_elicitation_errors_list_urls_and_ids() {
        // Rule: [ELIC-020].
        let address = ElicitUrlParams::new("Sign in", "https://example.com/in");
        let data = UrlElicitationRequiredData::new([address.clone().elicitation_id("e1")]);
        let text = r#"{"elicitations":[{"mode":"url","message":"Sign in","url":"https://example.com/in","elicitationId":"e1"}]}"#;
        assert_eq!(data.to_json_at(Revision::V2025_11_25).unwrap().as_str(), text);
        assert_eq!(serde_json::from_str::<UrlElicitationRequiredData>(text).unwrap(), data);
        let nameless = UrlElicitationRequiredData::new([address]);
        assert!(nameless.to_json_at(Revision::V2025_11_25).is_err());
        let form = r#"{"elicitations":[{"mode":"form","message":"m","requestedSchema":{}}]}"#;
        assert!(serde_json::from_str::<UrlElicitationRequiredData>(form).is_err());
    }

    #[test]
    fn a_url_that_browsers_do_not_open_is_refused_in_errors() {
        // Rule: [ELIC-014].
        for url in ["javascript:alert(1)", "file:///etc", "", "https:///x", "https://a b", "//a"] {
            let text = format!(
                r#"{{"elicitations":[{{"mode":"url","message":"m","url":"https://a.example/"}},{{"mode":"url","message":"m","url":"{url}"}}]}}"#
            );
            let error = serde_json::from_str::<UrlElicitationRequiredData>(&text).unwrap_err();
            assert!(error.to_string().contains("the URL of the elicitation"), "{url}: {error}");
        }
    }

    #[test]
    fn data_of_errors_is_read_leniently() {
        // Rule: [VER-009] [RSRC-009].
        let data: UnsupportedProtocolVersionData =
            serde_json::from_str(r#"{"supported":["2024-11-05"]}"#).unwrap();
        assert_eq!(data, UnsupportedProtocolVersionData::new([String::from("2024-11-05")], ""));
        let data = ResourceNotFoundData::new("file:///a");
        assert_eq!(
            data.to_json_at(Revision::V2025_11_25).unwrap().as_str(),
            r#"{"uri":"file:///a"}"#
        );
    }
}

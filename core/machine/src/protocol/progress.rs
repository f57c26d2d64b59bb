//! Progress of requests.

use alloc::string::String;
use core::fmt;

use serde::Deserialize;
use serde::ser::Serializer;

use super::Revision;
use super::message::message;
use super::meta::Meta;
use super::wire::SerializeAt;
use crate::jsonrpc::RequestId;

/// Identifies a request in progress notifications: a string or an integer.
// MCP 2025-11-25 basic/utilities/progress#progress-flow [PROG-001]
// MCP 2026-07-28 basic/patterns/progress#progress-flow [PROG-002]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ProgressToken {
    /// An integer token.
    Number(i64),
    /// A string token.
    Text(String),
}

impl From<i64> for ProgressToken {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for ProgressToken {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for ProgressToken {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<RequestId> for ProgressToken {
    fn from(id: RequestId) -> Self {
        match id {
            RequestId::Number(number) => Self::Number(number),
            RequestId::Text(text) => Self::Text(text.as_str().into()),
        }
    }
}

impl fmt::Display for ProgressToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl serde::Serialize for ProgressToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl SerializeAt for ProgressToken {
    fn serialize_at<S: Serializer>(&self, _: Revision, serializer: S) -> Result<S::Ok, S::Error> {
        serde::Serialize::serialize(self, serializer)
    }
}

message! {
    /// The parameters of `notifications/progress`.
    pub struct ProgressParams {
        required {
            /// The token from the request.
            progress_token: ProgressToken = "progressToken" in ALL;
            /// The progress so far, in any unit; it increases with every notification.
            // MCP 2026-07-28 basic/patterns/progress#behavior-requirements [PROG-004]: fractions
            // are allowed.
            progress: f64 = "progress" in ALL;
        }
        defaulted {}
        optional {
            /// The progress at the end, if known.
            total: f64 = "total" in ALL;
            /// A message for users; since 2025-03-26.
            // MCP 2025-03-26 basic/utilities/progress#progress-flow [PROG-009]
            message: String = "message" in SINCE_2025_03_26;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_keeps_its_type() {
        // Rule: [PROG-001] [PROG-002].
        let read = |text| serde_json::from_str::<ProgressToken>(text);
        assert_eq!(read("1").unwrap(), ProgressToken::Number(1));
        assert_eq!(read("\"1\"").unwrap(), ProgressToken::from("1"));
        assert!(read("1.5").is_err());
        assert!(read("null").is_err());
    }

    #[test]
    fn the_message_is_omitted_at_2024_11_05() {
        // Rule: [PROG-004] [PROG-009].
        let params = ProgressParams::new("t", 0.5).total(2.0).message("half");
        assert_eq!(
            params.to_json_at(Revision::V2024_11_05).unwrap().as_str(),
            r#"{"progressToken":"t","progress":0.5,"total":2}"#
        );
        let text = params.to_json_at(Revision::V2025_03_26).unwrap();
        assert!(text.as_str().contains(r#""message":"half""#));
    }
}

//! Elicitation: a server asks the user with a form, or directs the user to a URL.

use alloc::string::String;
use alloc::vec::Vec;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde::ser::{Error as _, Serializer};

use super::Revision;
use super::elicitation_schema::ElicitSchema;
use super::map::Map;
use super::message::{message, tagged, word};
use super::meta::Meta;
use super::task::TaskMetadata;
use super::wire::{NotExpressible, SerializeAt};
use crate::InvalidValue;
use crate::jsonrpc::{Json, JsonError};

tagged! {
    /// The parameters of `elicitation/create`; since 2025-06-18.
    // MCP 2025-11-25 client/elicitation#elicitation-requests [ELIC-004]: a missing mode is form
    // mode.
    pub enum ElicitParams by "mode" {
        /// Shows a form.
        Form(ElicitFormParams) = None | Some("form"),
        /// Directs the user to a URL; since 2025-11-25.
        Url(ElicitUrlParams) = Some("url"),
    }
}

impl SerializeAt for ElicitParams {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match self {
            Self::Form(params) => params.serialize_at(revision, serializer),
            Self::Url(params) => params.serialize_at(revision, serializer),
            Self::Unknown(json) => json.serialize_at(revision, serializer),
        }
    }
}

message! {
    /// Asks the user to fill in a form.
    // MCP 2025-06-18 client/elicitation#creating-elicitation-requests [ELIC-003]: no modes yet.
    pub struct ElicitFormParams {
        tag "mode" = "form" in SINCE_2025_11_25;
        required {
            /// The message shown to the user.
            message: String = "message" in ALL;
            /// The fields of the form.
            requested_schema: ElicitSchema = "requestedSchema" in ALL;
        }
        defaulted {}
        optional {
            /// Metadata; until 2025-11-25.
            meta: Meta = "_meta" in LEGACY;
        }
        last {
            /// Requests a task; 2025-11-25 only.
            task: TaskMetadata = "task" in ONLY_2025_11_25;
        }
    }
}

message! {
    /// Asks the user to open a URL; since 2025-11-25.
    pub struct ElicitUrlParams {
        check url_is_expressible;
        tag "mode" = "url" in ALL;
        required {
            /// The message shown to the user.
            message: String = "message" in ALL;
            /// The URL to open.
            url: String = "url" in ALL;
        }
        defaulted {}
        optional {
            /// The id for the notification of its end: required at 2025-11-25, and not used
            /// at any other revision.
            elicitation_id: String = "elicitationId" in ONLY_2025_11_25;
            /// Metadata; until 2025-11-25.
            meta: Meta = "_meta" in LEGACY;
        }
        last {
            /// Requests a task; 2025-11-25 only.
            task: TaskMetadata = "task" in ONLY_2025_11_25;
        }
    }
}

impl ElicitUrlParams {
    /// Checks that the URL is one that browsers open, so that a user who trusts it starts nothing
    /// else: `http` or `https`, a host, and only characters that URLs have.
    ///
    /// # Errors
    ///
    /// It is another URL, or none.
    // MCP 2025-11-25 client/elicitation#url-mode-elicitation-requests [ELIC-014]
    // MCP 2026-07-28 client/elicitation#url-mode-elicitation-requests [ELIC-015]
    pub fn check_url(&self) -> Result<(), InvalidValue> {
        let is_web = |(scheme, rest): (&str, &str)| {
            let known = ["https", "http"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
            known && !rest.is_empty() && !rest.starts_with(['/', '?', '#'])
        };
        let fits = |byte: u8| byte.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&byte);
        if self.url.bytes().all(fits) && self.url.split_once("://").is_some_and(is_web) {
            return Ok(());
        }
        Err(InvalidValue::new(
            "the URL of the elicitation must start with `https://` or `http://` and a host, and \
             have its other characters percent-encoded",
        ))
    }
}

// MCP 2025-11-25 client/elicitation#url-mode-elicitation-requests [ELIC-014]: with an id.
// MCP 2026-07-28 client/elicitation#url-mode-elicitation-requests [ELIC-015]: without.
fn url_is_expressible(params: &ElicitUrlParams, revision: Revision) -> Result<(), NotExpressible> {
    if revision < Revision::V2025_11_25 {
        Err(NotExpressible::new("elicitation by an address", revision))
    } else if revision == Revision::V2025_11_25 && params.elicitation_id.is_none() {
        Err(NotExpressible::new("elicitation by an address without an elicitation id", revision))
    } else {
        Ok(())
    }
}

message! {
    /// The result of `elicitation/create`.
    // MCP 2026-07-28 client/elicitation#response-actions [ELIC-002]
    pub struct ElicitResult {
        required {
            /// The user's choice.
            action: ElicitAction = "action" in ALL;
        }
        defaulted {}
        optional {
            /// The values of the form's fields: only with [`ElicitAction::Accept`] of a form.
            content: Map<ElicitValue> = "content" in ALL;
            /// Metadata; until 2025-11-25.
            meta: Meta = "_meta" in LEGACY;
        }
    }
}

impl ElicitResult {
    /// Creates the result of a submitted form.
    #[must_use]
    pub fn accept(content: Map<ElicitValue>) -> Self {
        Self::new(ElicitAction::Accept).content(content)
    }

    /// Creates the result of an accepted URL.
    // MCP 2026-07-28 client/elicitation#response-actions [ELIC-016]: no content.
    #[must_use]
    pub fn accept_url() -> Self {
        Self::new(ElicitAction::Accept)
    }

    /// Creates the result of a declined request.
    #[must_use]
    pub fn decline() -> Self {
        Self::new(ElicitAction::Decline)
    }

    /// Creates the result of a dismissed request.
    #[must_use]
    pub fn cancel() -> Self {
        Self::new(ElicitAction::Cancel)
    }

    /// Returns whether the user accepted.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.action == ElicitAction::Accept
    }

    /// Decodes the form's values into `T`. Missing content is treated as an empty object.
    ///
    /// # Errors
    ///
    /// The content does not have the shape of `T`.
    pub fn decode_content<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        self.content.clone().unwrap_or_default().to_json_at(Revision::LATEST)?.decode()
    }
}

word! {
    /// The choice of a user.
    pub enum ElicitAction {
        /// Accepted.
        Accept = "accept",
        /// Declined.
        Decline = "decline",
        /// Dismissed without a choice.
        Cancel = "cancel",
    }
}

/// The value of one field of a form.
// MCP 2026-07-28 schema.json#ElicitResult [ELIC-011]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ElicitValue {
    /// A text, or a single choice.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number. The specification allows fractions even if the schema says integer.
    Number(f64),
    /// A boolean.
    Boolean(bool),
    /// Multiple choices; since 2025-11-25.
    Choices(Vec<String>),
    /// Any other value, kept and written back unchanged.
    Unknown(Json),
}

impl From<&str> for ElicitValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for ElicitValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for ElicitValue {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<f64> for ElicitValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for ElicitValue {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<Vec<String>> for ElicitValue {
    fn from(choices: Vec<String>) -> Self {
        Self::Choices(choices)
    }
}

impl<'de> Deserialize<'de> for ElicitValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        let value = match json.as_str().trim_ascii_start().as_bytes().first() {
            Some(b'"') => json.decode().map(Self::Text).map_err(D::Error::custom)?,
            Some(b't' | b'f') => json.decode().map(Self::Boolean).map_err(D::Error::custom)?,
            Some(b'-' | b'0'..=b'9') => match json.decode() {
                Ok(number) => Self::Integer(number),
                Err(_) => json.decode().map(Self::Number).map_err(D::Error::custom)?,
            },
            _ => match json.decode() {
                Ok(choices) => Self::Choices(choices),
                Err(_) => Self::Unknown(json),
            },
        };
        Ok(value)
    }
}

impl SerializeAt for ElicitValue {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(value) => serializer.serialize_str(value),
            Self::Integer(value) => serializer.serialize_i64(*value),
            Self::Number(value) => value.serialize_at(revision, serializer),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Choices(_) if revision < Revision::V2025_11_25 => {
                Err(S::Error::custom(NotExpressible::new("a multiple choice", revision)))
            }
            Self::Choices(values) => values.serialize_at(revision, serializer),
            Self::Unknown(json) => json.serialize_at(revision, serializer),
        }
    }
}

message! {
    /// The parameters of `notifications/elicitation/complete`; 2025-11-25 only.
    // MCP 2025-11-25 client/elicitation#completion-notifications-for-url-mode-elicitation [ELIC-017]
    pub struct ElicitationCompleteParams {
        required {
            /// The elicitation that ended.
            elicitation_id: String = "elicitationId" in ALL;
        }
        defaulted {}
        optional {
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mode_is_form_mode_and_an_unknown_one_survives() {
        // Rule: [ELIC-004].
        let read = |text| serde_json::from_str::<ElicitParams>(text).unwrap();
        let fields = r#""requestedSchema":{"type":"object","properties":{}}"#;
        let bare = alloc::format!(r#"{{"message":"m",{fields}}}"#);
        assert!(matches!(read(&bare), ElicitParams::Form(_)));
        let voice = r#"{"mode":"voice","message":"m"}"#;
        assert!(matches!(read(voice), ElicitParams::Unknown(_)));
        assert_eq!(read(voice).to_json_at(Revision::LATEST).unwrap().as_str(), voice);
    }

    #[test]
    fn the_mode_is_written_since_2025_11_25() {
        // Rule: [ELIC-003].
        let params = ElicitParams::from(ElicitFormParams::new("m", ElicitSchema::new()));
        let has_mode =
            |revision| params.to_json_at(revision).unwrap().as_str().contains(r#""mode":"form""#);
        assert!(!has_mode(Revision::V2025_06_18));
        assert!(has_mode(Revision::V2025_11_25));
        assert!(has_mode(Revision::V2026_07_28));
    }

    #[test]
    fn a_url_elicitation_has_an_id_only_at_2025_11_25() {
        // Rule: [ELIC-014] [ELIC-015].
        let bare = ElicitUrlParams::new("m", "https://a.example/");
        assert!(bare.to_json_at(Revision::V2025_06_18).is_err());
        assert!(bare.to_json_at(Revision::V2025_11_25).is_err());
        let text = r#"{"mode":"url","message":"m","url":"https://a.example/"}"#;
        assert_eq!(bare.to_json_at(Revision::V2026_07_28).unwrap().as_str(), text);
        let named = bare.elicitation_id("e");
        assert_eq!(named.to_json_at(Revision::V2026_07_28).unwrap().as_str(), text);
        assert!(
            named.to_json_at(Revision::V2025_11_25).unwrap().as_str().contains("elicitationId")
        );
    }

    #[test]
    fn values_keep_their_types() {
        // Rule: [ELIC-011].
        let text = r#"{"a":"x","b":7,"c":0.5,"d":true,"e":["y"],"f":{"g":1}}"#;
        let values: Map<ElicitValue> = serde_json::from_str(text).unwrap();
        assert_eq!(values.get("b"), Some(&ElicitValue::Integer(7)));
        assert_eq!(values.get("c"), Some(&ElicitValue::Number(0.5)));
        assert!(matches!(values.get("f"), Some(ElicitValue::Unknown(_))));
        assert_eq!(values.to_json_at(Revision::LATEST).unwrap().as_str(), text);
        assert!(ElicitValue::Choices(Vec::new()).to_json_at(Revision::V2025_06_18).is_err());
    }

    #[test]
    fn content_decodes_into_a_caller_type() {
        // Rule: [ELIC-002] [ELIC-016].
        #[derive(serde::Deserialize)]
        struct Name {
            name: String,
        }
        let result = ElicitResult::accept(Map::new().with("name", "octocat"));
        assert_eq!(result.decode_content::<Name>().unwrap().name, "octocat");
        let opened = ElicitResult::accept_url();
        assert!(opened.decode_content::<Name>().is_err());
        assert_eq!(opened.to_json_at(Revision::LATEST).unwrap().as_str(), r#"{"action":"accept"}"#);
        assert!(!ElicitResult::decline().is_accepted());
    }
}

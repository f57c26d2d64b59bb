//! Hints on content: its audience, importance and age.

use alloc::string::String;
use alloc::vec::Vec;

use serde::ser::Serializer;

use super::Revision;
use super::message::{message, word};
use super::wire::SerializeAt;

message! {
    /// Hints for displaying or using content; none of them is binding.
    // MCP 2026-07-28 server/resources#annotations [RSRC-020]
    #[derive(Default)]
    pub struct Annotations {
        required {}
        defaulted {}
        optional {
            /// The intended audience.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            audience: Vec<Role> = "audience" in ALL;
            /// The importance.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            priority: Priority = "priority" in ALL;
            /// The time of the last change, as an ISO 8601 date and time; since 2025-06-18.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            last_modified: String = "lastModified" in SINCE_2025_06_18;
        }
    }
}

word! {
    /// The author or the audience of content.
    pub enum Role {
        /// The user.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }
}

/// A weight from 0 (least important) to 1 (effectively required).
///
/// A value out of range is kept when it is read, and written as the nearer bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, serde::Deserialize)]
#[serde(transparent)]
pub struct Priority(pub f64);

impl From<f64> for Priority {
    fn from(weight: f64) -> Self {
        Self(weight)
    }
}

impl SerializeAt for Priority {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        self.0.clamp(0.0, 1.0).serialize_at(revision, serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_have_audience_priority_and_last_modified() {
        // Rule: [RSRC-020].
        let hints = Annotations::new()
            .audience([Role::User, Role::Assistant])
            .priority(0.5)
            .last_modified("2025-01-12T15:00:58Z");
        let old = r#"{"audience":["user","assistant"],"priority":0.5}"#;
        let new = r#"{"audience":["user","assistant"],"priority":0.5,"lastModified":"2025-01-12T15:00:58Z"}"#;
        for revision in Revision::ALL {
            let expected = if revision < Revision::V2025_06_18 { old } else { new };
            assert_eq!(hints.to_json_at(revision).unwrap().as_str(), expected, "{revision}");
        }
        assert_eq!(serde_json::from_str::<Annotations>(new).unwrap(), hints);
    }

    #[test]
    fn a_priority_out_of_range_is_written_as_the_nearer_bound() {
        // Rule: [RSRC-020].
        for (weight, text) in [(7.5, "1"), (-1.0, "0"), (0.25, "0.25")] {
            assert_eq!(Priority(weight).to_json_at(Revision::LATEST).unwrap().as_str(), text);
        }
    }

    #[test]
    fn an_unknown_role_survives() {
        let annotations: Annotations =
            serde_json::from_str(r#"{"audience":["user","auditor"],"priority":null}"#).unwrap();
        assert_eq!(annotations.priority, None);
        assert_eq!(
            annotations.to_json_at(Revision::LATEST).unwrap().as_str(),
            r#"{"audience":["user","auditor"]}"#
        );
    }
}

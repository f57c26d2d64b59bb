//! Completion of arguments while a user types.

use alloc::string::String;
use alloc::vec::Vec;

use serde::ser::{SerializeMap, Serializer};

use super::Revision;
use super::map::Map;
use super::message::{forward_wire, message, tagged};
use super::meta::Meta;
use super::wire::SerializeAt;

/// The maximum number of values in one result.
// MCP 2026-07-28 server/utilities/completion#completion-results [COMP-003]
pub const COMPLETION_VALUES_MAX: usize = 100;

message! {
    /// The parameters of `completion/complete`.
    // MCP 2026-07-28 server/utilities/completion#requesting-completions [COMP-001]
    pub struct CompleteParams {
        required {
            /// The prompt or resource template of the argument.
            reference: CompletionReference = "ref" in ALL;
            /// The argument with the text typed so far.
            argument: CompletionArgument = "argument" in ALL;
        }
        defaulted {}
        optional {
            /// The other arguments; since 2025-06-18.
            // MCP 2025-06-18 server/utilities/completion#requesting-completions [COMP-002]
            context: CompletionContext = "context" in SINCE_2025_06_18;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

tagged! {
    /// The prompt or resource template that an argument belongs to.
    pub enum CompletionReference by "type" {
        /// A prompt.
        Prompt(PromptReference) = Some("ref/prompt"),
        /// A resource template.
        Resource(ResourceTemplateReference) = Some("ref/resource"),
    }
}

forward_wire!(CompletionReference { Prompt, Resource, Unknown });

message! {
    /// References a prompt.
    pub struct PromptReference {
        tag "type" = "ref/prompt" in ALL;
        required {
            /// The programmatic name.
            name: String = "name" in ALL;
        }
        defaulted {}
        optional {
            /// The display name; since 2025-06-18.
            title: String = "title" in SINCE_2025_06_18;
        }
    }
}

message! {
    /// References a resource or a resource template.
    pub struct ResourceTemplateReference {
        tag "type" = "ref/resource" in ALL;
        required {
            /// The URI or the URI template.
            uri: String = "uri" in ALL;
        }
        defaulted {}
        optional {}
    }
}

message! {
    /// An argument with the text typed so far.
    pub struct CompletionArgument {
        required {
            /// The name of the argument.
            name: String = "name" in ALL;
            /// The text typed so far.
            value: String = "value" in ALL;
        }
        defaulted {}
        optional {}
    }
}

message! {
    /// The context of a completion; since 2025-06-18.
    #[derive(Default)]
    pub struct CompletionContext {
        required {}
        defaulted {}
        optional {
            /// The arguments that are already filled in.
            arguments: Map<String> = "arguments" in ALL;
        }
    }
}

message! {
    /// The result of `completion/complete`.
    pub struct CompleteResult {
        tag "resultType" = "complete" in MODERN;
        required {
            /// The matching values.
            completion: Completion = "completion" in ALL;
        }
        defaulted {}
        optional {
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

/// The matching values, best first.
///
/// If there are more than [`COMPLETION_VALUES_MAX`] values, only the first ones are written, with
/// `hasMore` set.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[non_exhaustive]
pub struct Completion {
    /// The values.
    #[serde(deserialize_with = "crate::jsonrpc::list")]
    pub values: Vec<String>,
    /// The total number of matching values, if known.
    #[serde(default, deserialize_with = "crate::jsonrpc::hint")]
    pub total: Option<u64>,
    /// Whether there are more values than these.
    #[serde(default, rename = "hasMore", deserialize_with = "crate::jsonrpc::hint")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// Creates a completion with these values.
    #[must_use]
    pub fn new(values: impl Into<Vec<String>>) -> Self {
        Self { values: values.into(), ..Self::default() }
    }

    /// Sets [`Completion::total`].
    #[must_use]
    pub fn total(mut self, total: u64) -> Self {
        self.total = Some(total);
        self
    }

    /// Sets [`Completion::has_more`].
    #[must_use]
    pub fn has_more(mut self, has_more: bool) -> Self {
        self.has_more = Some(has_more);
        self
    }
}

impl SerializeAt for Completion {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        // MCP 2026-07-28 server/utilities/completion#completion-results [COMP-003]: at most 100.
        let cut = self.values.len() > COMPLETION_VALUES_MAX;
        let values = if cut { &self.values[..COMPLETION_VALUES_MAX] } else { &self.values };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("values", &values.at(revision))?;
        if let Some(total) = self.total {
            map.serialize_entry("total", &total)?;
        }
        if let Some(has_more) = if cut { Some(true) } else { self.has_more } {
            map.serialize_entry("hasMore", &has_more)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn excess_values_are_truncated_and_reported() {
        // Rule: [COMP-003].
        let written = |count: usize| {
            let values: Vec<String> = (0..count).map(|number| number.to_string()).collect();
            let json = Completion::new(values).to_json_at(Revision::LATEST).unwrap();
            json.decode::<Completion>().unwrap()
        };
        let (whole, cut) = (written(100), written(101));
        assert_eq!((whole.values.len(), whole.has_more), (100, None));
        assert_eq!((cut.values.len(), cut.has_more), (100, Some(true)));
        assert_eq!(cut.values[99], "99");
    }

    #[test]
    fn an_unknown_reference_survives() {
        let text = r#"{"type":"ref/tool","name":"t"}"#;
        let reference: CompletionReference = serde_json::from_str(text).unwrap();
        assert_eq!(reference.to_json_at(Revision::LATEST).unwrap().as_str(), text);
    }
}

//! Completion of what a user types into an argument.

use alloc::string::String;
use alloc::vec::Vec;

use serde::ser::{SerializeMap, Serializer};

use super::map::Map;
use super::message::{forward_wire, message, tagged};
use super::meta::Meta;
use super::revision::Revision;
use super::wire::SerializeAt;

/// The most values that one answer holds.
// MCP 2026-07-28 server/utilities/completion#completion-results [COMP-003]
pub const COMPLETION_VALUES_MAX: usize = 100;

message! {
    /// The parameters of `completion/complete`.
    // MCP 2026-07-28 server/utilities/completion#requesting-completions [COMP-001]
    pub struct CompleteParams {
        required {
            /// What the argument belongs to.
            reference: CompletionReference = "ref" in ALL;
            /// The argument, as far as it is typed.
            argument: CompletionArgument = "argument" in ALL;
        }
        defaulted {}
        optional {
            /// What is known besides; since 2025-06-18.
            // MCP 2025-06-18 server/utilities/completion#requesting-completions [COMP-002]
            context: CompletionContext = "context" in SINCE_2025_06_18;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

tagged! {
    /// What an argument belongs to.
    pub enum CompletionReference by "type" {
        /// A prompt.
        Prompt(PromptReference) = Some("ref/prompt"),
        /// A resource template.
        Resource(ResourceTemplateReference) = Some("ref/resource"),
    }
}

forward_wire!(CompletionReference { Prompt, Resource, Unknown });

message! {
    /// Names a prompt.
    pub struct PromptReference {
        tag "type" = "ref/prompt" in ALL;
        required {
            /// The name that programs know it by.
            name: String = "name" in ALL;
        }
        defaulted {}
        optional {
            /// The name that people are shown; since 2025-06-18.
            title: String = "title" in SINCE_2025_06_18;
        }
    }
}

message! {
    /// Names a resource or a family of them.
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
    /// An argument as far as it is typed.
    pub struct CompletionArgument {
        required {
            /// The name of the argument.
            name: String = "name" in ALL;
            /// What is typed so far.
            value: String = "value" in ALL;
        }
        defaulted {}
        optional {}
    }
}

message! {
    /// What is known besides the argument that is typed; since 2025-06-18.
    #[derive(Default)]
    pub struct CompletionContext {
        required {}
        defaulted {}
        optional {
            /// The arguments that are filled in already.
            arguments: Map<String> = "arguments" in ALL;
        }
    }
}

message! {
    /// The result of `completion/complete`.
    pub struct CompleteResult {
        tag "resultType" = "complete" in MODERN;
        required {
            /// The answer.
            completion: Completion = "completion" in ALL;
        }
        defaulted {}
        optional {
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

/// The values that fit, best first.
///
/// Of more than [`COMPLETION_VALUES_MAX`] values the first ones are written, with a note that there
/// are more.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
pub struct Completion {
    /// The values.
    pub values: Vec<String>,
    /// How many there are in all, if known.
    #[serde(default, deserialize_with = "super::wire::whole")]
    pub total: Option<u64>,
    /// Whether there are more than these.
    #[serde(default, rename = "hasMore")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// An answer with these values.
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
    fn more_values_than_allowed_are_cut_and_said_to_be_more() {
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

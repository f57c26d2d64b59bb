//! Prompts: messages that a server prepares for a user to send.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::annotations::Role;
use super::cache::{CacheScope, Ttl, cacheable};
use super::content::ContentBlock;
use super::implementation::Icon;
use super::map::Map;
use super::message::message;
use super::meta::Meta;
use crate::jsonrpc::RawJson;

message! {
    /// A prompt that a server offers.
    // MCP 2026-07-28 schema.json#Prompt [PRMT-001]
    pub struct Prompt {
        required {
            /// The programmatic name.
            name: String = "name" in ALL;
        }
        defaulted {}
        optional {
            /// The display name; since 2025-06-18.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            title: String = "title" in SINCE_2025_06_18;
            /// Its purpose.
            description: String = "description" in ALL;
            /// The arguments of the prompt.
            #[serde(deserialize_with = "crate::jsonrpc::optional_list")]
            arguments: Vec<PromptArgument> = "arguments" in ALL;
            /// Icons; since 2025-11-25.
            #[serde(deserialize_with = "crate::jsonrpc::list_of_hints")]
            icons: Vec<Icon> = "icons" in SINCE_2025_11_25;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

message! {
    /// An argument of a prompt.
    pub struct PromptArgument {
        required {
            /// The programmatic name.
            name: String = "name" in ALL;
        }
        defaulted {}
        optional {
            /// The display name; since 2025-06-18.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            title: String = "title" in SINCE_2025_06_18;
            /// A description of the expected value.
            description: String = "description" in ALL;
            /// Whether it is required; absent means false.
            required: bool = "required" in ALL;
        }
    }
}

message! {
    /// A message of a prompt.
    // MCP 2026-07-28 server/prompts#promptmessage [PRMT-003]
    pub struct PromptMessage {
        required {
            /// The author of the message.
            role: Role = "role" in ALL;
            /// The content of the message.
            content: ContentBlock = "content" in ALL;
        }
        defaulted {}
        optional {}
    }
}

impl PromptMessage {
    /// Creates a message of the user.
    #[must_use]
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a message of the model.
    #[must_use]
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

message! {
    /// The parameters of `prompts/get`. Reading them borrows from the frame.
    // MCP 2026-07-28 schema.json#GetPromptRequest [PRMT-002]
    pub struct GetPromptParams<'a> {
        required {
            /// The prompt.
            #[serde(borrow)]
            name: Cow<'a, str> = "name" in ALL;
        }
        defaulted {}
        optional {
            /// The arguments: an object of strings. Decodes to [`PromptArguments`].
            #[serde(borrow)]
            arguments: RawJson<'a> = "arguments" in ALL;
            /// Responses to the server's input requests; since 2026-07-28. Decodes to
            /// [`InputResponses`](super::InputResponses).
            #[serde(borrow)]
            input_responses: RawJson<'a> = "inputResponses" in MODERN;
            /// The state that was sent with those requests; since 2026-07-28.
            #[serde(borrow, deserialize_with = "super::wire::optional_text")]
            request_state: Cow<'a, str> = "requestState" in MODERN;
            /// Metadata. Decodes to [`Meta`].
            #[serde(borrow)]
            meta: RawJson<'a> = "_meta" in ALL;
        }
    }
}

impl GetPromptParams<'_> {
    /// Converts into parameters that own their data.
    #[must_use]
    pub fn into_owned(self) -> GetPromptParams<'static> {
        GetPromptParams {
            name: Cow::Owned(self.name.into_owned()),
            arguments: self.arguments.map(RawJson::into_owned),
            input_responses: self.input_responses.map(RawJson::into_owned),
            request_state: self.request_state.map(|state| Cow::Owned(state.into_owned())),
            meta: self.meta.map(RawJson::into_owned),
        }
    }
}

/// The arguments of a prompt by name: strings only.
pub type PromptArguments = Map<String>;

message! {
    /// The result of `prompts/get`.
    pub struct GetPromptResult {
        tag "resultType" = "complete" in MODERN;
        required {
            /// The messages.
            #[serde(deserialize_with = "crate::jsonrpc::list")]
            messages: Vec<PromptMessage> = "messages" in ALL;
        }
        defaulted {}
        optional {
            /// The purpose of the prompt.
            description: String = "description" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// The result of `prompts/list`.
    pub struct ListPromptsResult {
        tag "resultType" = "complete" in MODERN;
        required {
            /// This page of the prompts.
            #[serde(deserialize_with = "crate::jsonrpc::list")]
            prompts: Vec<Prompt> = "prompts" in ALL;
        }
        defaulted {
            /// How long the result stays fresh, in milliseconds; since 2026-07-28.
            ttl_ms: Ttl = "ttlMs" in MODERN;
            /// Whether it may be shared between users; since 2026-07-28.
            cache_scope: CacheScope = "cacheScope" in MODERN;
        }
        optional {
            /// The cursor of the next page; `None` on the last page.
            next_cursor: String = "nextCursor" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

cacheable!(ListPromptsResult);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Revision, SerializeAt};

    #[test]
    fn a_prompt_message_supports_each_kind_of_content() {
        // Rule: [PRMT-003].
        let kinds = [
            r#"{"type":"text","text":"t"}"#,
            r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#,
            r#"{"type":"audio","data":"AA==","mimeType":"audio/wav"}"#,
            r#"{"type":"resource_link","uri":"a:b","name":"n"}"#,
            r#"{"type":"resource","resource":{"uri":"a:b","text":"t"}}"#,
        ];
        for content in kinds {
            let text = alloc::format!(r#"{{"role":"user","content":{content}}}"#);
            let message: PromptMessage = serde_json::from_str(&text).unwrap();
            assert!(!matches!(message.content, ContentBlock::Unknown(_)), "{content}");
            for revision in Revision::ALL.into_iter().filter(|r| *r >= Revision::V2025_06_18) {
                assert_eq!(message.to_json_at(revision).unwrap().as_str(), text, "{revision}");
            }
        }
    }

    #[test]
    fn a_prompt_has_the_fields_of_its_revision() {
        // Rule: [PRMT-001].
        let argument = PromptArgument::new("n").title("N").description("e").required(true);
        let full = Prompt::new("p")
            .title("t")
            .description("d")
            .arguments([argument])
            .icons([Icon::new("data:,")]);
        let text = |title, named, icons| {
            alloc::format!(
                r#"{{"name":"p"{title},"description":"d","arguments":[{{"name":"n"{named},"description":"e","required":true}}]{icons}}}"#
            )
        };
        let (title, named) = (r#","title":"t""#, r#","title":"N""#);
        let icons = r#","icons":[{"src":"data:,"}]"#;
        for (revision, expected) in [
            (Revision::V2024_11_05, text("", "", "")),
            (Revision::V2025_03_26, text("", "", "")),
            (Revision::V2025_06_18, text(title, named, "")),
            (Revision::V2025_11_25, text(title, named, icons)),
            (Revision::V2026_07_28, text(title, named, icons)),
        ] {
            assert_eq!(full.to_json_at(revision).unwrap().as_str(), expected, "{revision}");
        }
        assert_eq!(serde_json::from_str::<Prompt>(&text(title, named, icons)).unwrap(), full);
        assert_eq!(serde_json::from_str::<Prompt>(r#"{"name":"p"}"#).unwrap(), Prompt::new("p"));
        assert!(serde_json::from_str::<Prompt>(r#"{"description":"d"}"#).is_err());
    }

    #[test]
    fn arguments_are_strings_only() {
        // Rule: [PRMT-002].
        let params: GetPromptParams<'_> =
            serde_json::from_str(r#"{"name":"p","arguments":{"b":"1","a":"2"}}"#).unwrap();
        assert_eq!(params.clone().into_owned(), params);
        let arguments: PromptArguments = params.arguments.unwrap().decode().unwrap();
        assert!(arguments.iter().eq([("b", &"1".into()), ("a", &"2".into())]));
        assert!(serde_json::from_str::<PromptArguments>(r#"{"n":1}"#).is_err());
    }
}

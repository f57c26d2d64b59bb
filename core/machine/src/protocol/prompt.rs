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
            /// The name that programs know it by.
            name: String = "name" in ALL;
        }
        defaulted {}
        optional {
            /// The name that people are shown; since 2025-06-18.
            title: String = "title" in SINCE_2025_06_18;
            /// What it is for.
            description: String = "description" in ALL;
            /// What can be filled in.
            arguments: Vec<PromptArgument> = "arguments" in ALL;
            /// Pictures to show; since 2025-11-25.
            icons: Vec<Icon> = "icons" in SINCE_2025_11_25;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

message! {
    /// Something to fill in.
    pub struct PromptArgument {
        required {
            /// The name that programs know it by.
            name: String = "name" in ALL;
        }
        defaulted {}
        optional {
            /// The name that people are shown; since 2025-06-18.
            title: String = "title" in SINCE_2025_06_18;
            /// What to fill in.
            description: String = "description" in ALL;
            /// Whether it must be filled in; absent means false.
            required: bool = "required" in ALL;
        }
    }
}

message! {
    /// One message of a prompt.
    // MCP 2026-07-28 server/prompts#promptmessage [PRMT-003]
    pub struct PromptMessage {
        required {
            /// Who says it.
            role: Role = "role" in ALL;
            /// What is said.
            content: ContentBlock = "content" in ALL;
        }
        defaulted {}
        optional {}
    }
}

impl PromptMessage {
    /// A message of the user.
    #[must_use]
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::User, content)
    }

    /// A message of the model.
    #[must_use]
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

message! {
    /// The parameters of `prompts/get`; reading them borrows from the frame.
    // MCP 2026-07-28 schema.json#GetPromptRequest [PRMT-002]
    pub struct GetPromptParams<'a> {
        required {
            /// The prompt.
            #[serde(borrow)]
            name: Cow<'a, str> = "name" in ALL;
        }
        defaulted {}
        optional {
            /// What is filled in: an object of strings. Decodes to [`PromptArguments`].
            #[serde(borrow)]
            arguments: RawJson<'a> = "arguments" in ALL;
            /// Answers to what the server asked for; since 2026-07-28. Decodes to
            /// [`InputResponses`](super::InputResponses).
            #[serde(borrow)]
            input_responses: RawJson<'a> = "inputResponses" in MODERN;
            /// The state that came with those questions; since 2026-07-28.
            #[serde(borrow, deserialize_with = "super::wire::optional_text")]
            request_state: Cow<'a, str> = "requestState" in MODERN;
            /// Metadata. Decodes to [`Meta`].
            #[serde(borrow)]
            meta: RawJson<'a> = "_meta" in ALL;
        }
    }
}

impl GetPromptParams<'_> {
    /// The same, free of the frame's lifetime.
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

/// What is filled in, by the name of the argument: strings only.
pub type PromptArguments = Map<String>;

message! {
    /// The result of `prompts/get`.
    pub struct GetPromptResult {
        tag "resultType" = "complete" in MODERN;
        required {
            /// The messages.
            messages: Vec<PromptMessage> = "messages" in ALL;
        }
        defaulted {}
        optional {
            /// What the prompt is for.
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
            prompts: Vec<Prompt> = "prompts" in ALL;
        }
        defaulted {
            /// How long the result stays fresh, in milliseconds; since 2026-07-28.
            ttl_ms: Ttl = "ttlMs" in MODERN;
            /// Who may share it; since 2026-07-28.
            cache_scope: CacheScope = "cacheScope" in MODERN;
        }
        optional {
            /// Where the next page starts; `None` on the last one.
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
    fn a_message_holds_each_kind_of_content_that_its_revision_knows() {
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
            .icons([Icon::new("i:j")]);
        let text = |title, named, icons| {
            alloc::format!(
                r#"{{"name":"p"{title},"description":"d","arguments":[{{"name":"n"{named},"description":"e","required":true}}]{icons}}}"#
            )
        };
        let (title, named) = (r#","title":"t""#, r#","title":"N""#);
        let icons = r#","icons":[{"src":"i:j"}]"#;
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

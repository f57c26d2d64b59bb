//! The capabilities of clients and servers, as each revision spells them.

use alloc::boxed::Box;

use serde::de::Error as _;

use super::Revision;
use super::map::Map;
use super::message::message;
use super::{Capabilities, Capability, TASKS_EXTENSION};
use crate::envelope::JsonText;
use crate::gate::{InvalidDeclaration, Refusal};
use crate::jsonrpc::{ErrorObject, Json, JsonError, RawJson};

/// An open object of settings. Its presence declares the capability, even if it is empty.
// MCP 2026-07-28 schema.json#ServerCapabilities [CAP-017]: capability objects are open.
pub type CapabilitySettings = Map<Json>;

message! {
    /// The capabilities of a client.
    #[derive(Default)]
    pub struct ClientCapabilities {
        required {}
        defaulted {}
        optional {
            /// Capabilities outside the protocol, by name.
            experimental: CapabilitySettings = "experimental" in ALL;
            /// It can list its roots.
            roots: RootsCapability = "roots" in ALL;
            /// It can call a model.
            sampling: SamplingCapability = "sampling" in ALL;
            /// It can ask the user; since 2025-06-18.
            elicitation: ElicitationCapability = "elicitation" in SINCE_2025_06_18,
                when elicitation_is_expressible;
            /// It accepts requests as tasks; 2025-11-25 only.
            tasks: Box<TasksCapability> = "tasks" in ONLY_2025_11_25;
            /// Extensions by identifier, with their settings; since 2025-06-18, although the
            /// published schemas have had them since 2026-07-28. An empty object declares support
            /// without settings.
            // MCP 2026-07-28 extensions:SEP-2133#negotiation [EXT-006]
            extensions: CapabilitySettings = "extensions" in EXTENSIONS;
        }
    }
}

message! {
    /// Details of [`ClientCapabilities::roots`].
    // MCP 2025-11-25 client/roots#capabilities [CAP-007]
    #[derive(Default)]
    pub struct RootsCapability {
        required {}
        defaulted {}
        optional {
            /// It sends notifications when the list changes; until 2025-11-25.
            // MCP 2026-07-28 client/roots#capabilities [CAP-008]: an empty object.
            list_changed: bool = "listChanged" in LEGACY;
        }
    }
}

message! {
    /// Details of [`ClientCapabilities::sampling`]; since 2025-11-25.
    #[derive(Default)]
    pub struct SamplingCapability {
        required {}
        defaulted {}
        optional {
            /// It can add context from servers to the prompt.
            // MCP 2025-11-25 client/sampling#capabilities [CAP-015]
            context: CapabilitySettings = "context" in SINCE_2025_11_25;
            /// It accepts tools in a request.
            // MCP 2025-11-25 client/sampling#tools-in-sampling [CAP-014]
            tools: CapabilitySettings = "tools" in SINCE_2025_11_25;
        }
    }
}

message! {
    /// Details of [`ClientCapabilities::elicitation`]; since 2025-11-25. An empty object means form
    /// mode only.
    #[derive(Default)]
    pub struct ElicitationCapability {
        required {}
        defaulted {}
        optional {
            /// It can show a form.
            form: CapabilitySettings = "form" in SINCE_2025_11_25;
            /// It can direct the user to a URL.
            url: CapabilitySettings = "url" in SINCE_2025_11_25;
        }
    }
}

impl ElicitationCapability {
    /// Returns whether the client can show forms.
    // MCP 2025-11-25 client/elicitation#capabilities [CAP-013]: empty means form only.
    #[must_use]
    pub const fn has_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }

    /// Returns whether the client can direct the user to a URL.
    #[must_use]
    pub const fn has_url(&self) -> bool {
        self.url.is_some()
    }
}

/// At 2025-06-18 the capability always promises forms, so a client with URL mode only must not
/// declare it.
fn elicitation_is_expressible(elicitation: &ElicitationCapability, revision: Revision) -> bool {
    revision != Revision::V2025_06_18 || elicitation.has_form()
}

message! {
    /// Details of [`ClientCapabilities::tasks`] and [`ServerCapabilities::tasks`]; 2025-11-25 only.
    // MCP 2025-11-25 basic/utilities/tasks#capabilities [CAP-016]
    #[derive(Default)]
    pub struct TasksCapability {
        required {}
        defaulted {}
        optional {
            /// The side can list its tasks.
            list: CapabilitySettings = "list" in ALL;
            /// It can cancel its tasks.
            cancel: CapabilitySettings = "cancel" in ALL;
            /// The requests that it accepts as tasks.
            requests: TaskRequests = "requests" in ALL;
        }
    }
}

message! {
    /// The requests that a side accepts as tasks, by the first part of their methods.
    #[derive(Default)]
    pub struct TaskRequests {
        required {}
        defaulted {}
        optional {
            /// Tool requests, of a server.
            tools: TaskMethods = "tools" in ALL;
            /// Sampling requests, of a client.
            sampling: TaskMethods = "sampling" in ALL;
            /// Elicitation requests, of a client.
            elicitation: TaskMethods = "elicitation" in ALL;
        }
    }
}

message! {
    /// The requests of a kind that a side accepts as tasks, by the last part of their methods.
    #[derive(Default)]
    pub struct TaskMethods {
        required {}
        defaulted {}
        optional {
            /// `tools/call`.
            call: CapabilitySettings = "call" in ALL;
            /// `sampling/createMessage`.
            create_message: CapabilitySettings = "createMessage" in ALL;
            /// `elicitation/create`.
            create: CapabilitySettings = "create" in ALL;
        }
    }
}

message! {
    /// The capabilities of a server.
    #[derive(Default)]
    pub struct ServerCapabilities {
        required {}
        defaulted {}
        optional {
            /// Capabilities outside the protocol, by name.
            experimental: CapabilitySettings = "experimental" in ALL;
            /// It sends log messages.
            logging: CapabilitySettings = "logging" in ALL;
            /// It completes arguments; declared since 2025-03-26.
            completions: CapabilitySettings = "completions" in SINCE_2025_03_26;
            /// It has prompts.
            prompts: PromptsCapability = "prompts" in ALL;
            /// It has resources.
            resources: ResourcesCapability = "resources" in ALL;
            /// It has tools.
            tools: ToolsCapability = "tools" in ALL;
            /// It accepts requests as tasks; 2025-11-25 only.
            tasks: Box<TasksCapability> = "tasks" in ONLY_2025_11_25;
            /// Extensions by identifier, with their settings; since 2025-06-18, although the
            /// published schemas have had them since 2026-07-28. An empty object declares support
            /// without settings.
            // MCP 2026-07-28 extensions:SEP-2133#negotiation [EXT-006]
            extensions: CapabilitySettings = "extensions" in EXTENSIONS;
        }
    }
}

message! {
    /// Details of [`ServerCapabilities::prompts`].
    // MCP 2026-07-28 server/prompts#capabilities [CAP-003]
    #[derive(Default)]
    pub struct PromptsCapability {
        required {}
        defaulted {}
        optional {
            /// It sends notifications when the list changes.
            list_changed: bool = "listChanged" in ALL;
        }
    }
}

message! {
    /// Details of [`ServerCapabilities::resources`].
    // MCP 2026-07-28 server/resources#capabilities [CAP-002]
    #[derive(Default)]
    pub struct ResourcesCapability {
        required {}
        defaulted {}
        optional {
            /// It sends notifications when a resource changes.
            subscribe: bool = "subscribe" in ALL;
            /// It sends notifications when the list changes.
            list_changed: bool = "listChanged" in ALL;
        }
    }
}

message! {
    /// Details of [`ServerCapabilities::tools`].
    // MCP 2026-07-28 server/tools#capabilities [CAP-001]
    #[derive(Default)]
    pub struct ToolsCapability {
        required {}
        defaulted {}
        optional {
            /// It sends notifications when the list changes.
            list_changed: bool = "listChanged" in ALL;
        }
    }
}

impl Capabilities {
    /// Parses a `ClientCapabilities` object according to the rules of `revision`.
    ///
    /// # Errors
    ///
    /// The text is not an object, or a member has the wrong type.
    pub fn from_client_json(text: &str, revision: Revision) -> Result<Self, JsonError> {
        Ok(Self::from_client(JsonText::from(&RawJson::parse(text)?), revision)?)
    }

    /// Parses a `ServerCapabilities` object according to the rules of `revision`.
    ///
    /// # Errors
    ///
    /// The text is not an object, or a member has the wrong type.
    pub fn from_server_json(text: &str, revision: Revision) -> Result<Self, JsonError> {
        Ok(Self::from_server(JsonText::from(&RawJson::parse(text)?), revision)?)
    }

    /// Returns the capabilities that a server declares at `revision` with this object.
    // The same as parsing what the object is written as.
    pub(crate) fn of_server(declared: &ServerCapabilities, revision: Revision) -> Self {
        let ServerCapabilities { tools, prompts, resources, tasks, extensions, .. } = declared;
        let set = |flag: Option<bool>| flag == Some(true);
        let mut all = Self::NONE
            .with(Capability::Logging, declared.logging.is_some())
            // MCP 2025-03-26 server/utilities/completion#capabilities [CAP-005]
            .with(
                Capability::Completions,
                declared.completions.is_some() && revision >= Revision::V2025_03_26,
            );
        if let Some(tools) = tools {
            all = all
                .with(Capability::Tools, true)
                .with(Capability::ToolsListChanged, set(tools.list_changed));
        }
        if let Some(prompts) = prompts {
            all = all
                .with(Capability::Prompts, true)
                .with(Capability::PromptsListChanged, set(prompts.list_changed));
        }
        if let Some(resources) = resources {
            all = all
                .with(Capability::Resources, true)
                .with(Capability::ResourcesListChanged, set(resources.list_changed))
                .with(Capability::ResourcesSubscribe, set(resources.subscribe));
        }
        if let Some(tasks) = tasks
            && revision == Revision::V2025_11_25
        {
            let tools = tasks.requests.as_ref().and_then(|requests| requests.tools.as_ref());
            all = all
                .with(Capability::Tasks, true)
                .with(Capability::TasksList, tasks.list.is_some())
                .with(Capability::TasksCancel, tasks.cancel.is_some())
                .with(Capability::TasksToolsCall, tools.is_some_and(|tools| tools.call.is_some()));
        }
        if let Some(extensions) = extensions
            && revision >= Revision::V2026_07_28
        {
            let settings = extensions.get(TASKS_EXTENSION);
            let declared = settings.is_some_and(|settings| settings.as_str() != "null");
            all = all.with(Capability::TasksExtension, declared);
        }
        all
    }
}

impl From<InvalidDeclaration> for JsonError {
    fn from(invalid: InvalidDeclaration) -> Self {
        Self::custom(invalid)
    }
}

impl Capability {
    /// Returns the error for a request whose client lacks the capability.
    #[must_use]
    pub fn missing(self) -> ErrorObject<'static> {
        Refusal::MissingCapability(self).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Capabilities, Capability, SerializeAt};

    #[test]
    fn a_client_with_url_mode_only_does_not_declare_elicitation_at_2025_06_18() {
        // Rule: [CAP-013].
        let url_only = ClientCapabilities::new()
            .elicitation(ElicitationCapability::new().url(CapabilitySettings::new()));
        let text = |revision| url_only.to_json_at(revision).unwrap();
        assert_eq!(text(Revision::V2025_06_18).as_str(), "{}");
        assert_eq!(text(Revision::V2025_11_25).as_str(), r#"{"elicitation":{"url":{}}}"#);
        assert!(ElicitationCapability::new().has_form());
        assert!(!url_only.elicitation.unwrap().has_form());
    }

    #[test]
    fn the_context_capability_is_declared_since_2025_11_25() {
        // Rule: [CAP-015].
        let context = SamplingCapability::new().context(CapabilitySettings::new());
        let declared = ClientCapabilities::new().sampling(context);
        let newest = r#"{"sampling":{"context":{}}}"#;
        for revision in Revision::ALL {
            let known = revision >= Revision::V2025_11_25;
            let text = declared.to_json_at(revision).unwrap();
            assert_eq!(text.as_str(), if known { newest } else { r#"{"sampling":{}}"# });
            let read = |text| Capabilities::from_client_json(text, revision).unwrap();
            assert_eq!(read(newest).contains(Capability::SamplingContext), known, "{revision}");
            assert!(!read(r#"{"sampling":{}}"#).contains(Capability::SamplingContext));
        }
    }

    #[test]
    fn unknown_members_are_tolerated() {
        // Rule: [CAP-017].
        let read: ServerCapabilities =
            serde_json::from_str(r#"{"tools":{"x":1},"novel":{},"logging":{"y":[2]}}"#).unwrap();
        assert_eq!(read.tools, Some(ToolsCapability::new()));
        assert_eq!(
            read.to_json_at(Revision::LATEST).unwrap().as_str(),
            r#"{"logging":{"y":[2]},"tools":{}}"#
        );
    }
}

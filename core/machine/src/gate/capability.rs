//! Declared capabilities as a set of flags, as the capability checks need them.

use core::fmt;

use crate::envelope::JsonText;

use super::declaration::{Declared, InvalidDeclaration};
use super::revision::Revision;

/// The identifier of the extension for tasks since 2026-07-28.
// MCP 2026-07-28 ext-tasks:tasks#capability-negotiation [TASK-024]
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// One side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The side that opens the connection and calls tools.
    Client,
    /// The side that provides tools, resources and prompts.
    Server,
}

impl Side {
    /// Returns the other side.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Returns `client` or `server`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A capability, or one of its flags, that a message requires. The side that declares it is
/// specified separately, because some capabilities, such as tasks, can be declared by either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Server: `tools`.
    Tools,
    /// Server: `tools.listChanged`.
    ToolsListChanged,
    /// Server: `resources`.
    Resources,
    /// Server: `resources.subscribe`.
    ResourcesSubscribe,
    /// Server: `resources.listChanged`.
    ResourcesListChanged,
    /// Server: `prompts`.
    Prompts,
    /// Server: `prompts.listChanged`.
    PromptsListChanged,
    /// Server: `logging`.
    Logging,
    /// Server: `completions`.
    Completions,
    /// Client: `roots`.
    Roots,
    /// Client: `roots.listChanged`.
    RootsListChanged,
    /// Client: `sampling`.
    Sampling,
    /// Client: `sampling.tools`.
    SamplingTools,
    /// Client: `sampling.context`.
    SamplingContext,
    /// Client: `elicitation`, in any mode.
    Elicitation,
    /// Client: `elicitation.form`, which an empty `elicitation` also declares.
    ElicitationForm,
    /// Client: `elicitation.url`.
    ElicitationUrl,
    /// Either: `tasks`.
    Tasks,
    /// Either: `tasks.list`.
    TasksList,
    /// Either: `tasks.cancel`.
    TasksCancel,
    /// Server: `tasks.requests.tools.call`.
    TasksToolsCall,
    /// Client: `tasks.requests.sampling.createMessage`.
    TasksSampling,
    /// Client: `tasks.requests.elicitation.create`.
    TasksElicitation,
    /// Either: the extension `io.modelcontextprotocol/tasks`.
    TasksExtension,
}

impl Capability {
    /// Every capability, in the order of declaration.
    pub const ALL: [Self; 24] = [
        Self::Tools,
        Self::ToolsListChanged,
        Self::Resources,
        Self::ResourcesSubscribe,
        Self::ResourcesListChanged,
        Self::Prompts,
        Self::PromptsListChanged,
        Self::Logging,
        Self::Completions,
        Self::Roots,
        Self::RootsListChanged,
        Self::Sampling,
        Self::SamplingTools,
        Self::SamplingContext,
        Self::Elicitation,
        Self::ElicitationForm,
        Self::ElicitationUrl,
        Self::Tasks,
        Self::TasksList,
        Self::TasksCancel,
        Self::TasksToolsCall,
        Self::TasksSampling,
        Self::TasksElicitation,
        Self::TasksExtension,
    ];

    /// Returns the path in the capabilities object, for display.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::ToolsListChanged => "tools.listChanged",
            Self::Resources => "resources",
            Self::ResourcesSubscribe => "resources.subscribe",
            Self::ResourcesListChanged => "resources.listChanged",
            Self::Prompts => "prompts",
            Self::PromptsListChanged => "prompts.listChanged",
            Self::Logging => "logging",
            Self::Completions => "completions",
            Self::Roots => "roots",
            Self::RootsListChanged => "roots.listChanged",
            Self::Sampling => "sampling",
            Self::SamplingTools => "sampling.tools",
            Self::SamplingContext => "sampling.context",
            Self::Elicitation => "elicitation",
            Self::ElicitationForm => "elicitation.form",
            Self::ElicitationUrl => "elicitation.url",
            Self::Tasks => "tasks",
            Self::TasksList => "tasks.list",
            Self::TasksCancel => "tasks.cancel",
            Self::TasksToolsCall => "tasks.requests.tools.call",
            Self::TasksSampling => "tasks.requests.sampling.createMessage",
            Self::TasksElicitation => "tasks.requests.elicitation.create",
            Self::TasksExtension => "extensions.io.modelcontextprotocol/tasks",
        }
    }

    /// Returns the smallest object that declares the capability: the `data.requiredCapabilities` of
    /// a `MissingRequiredClientCapability` error.
    // MCP 2026-07-28 basic/index#_meta [CAP-022]
    #[must_use]
    pub const fn as_required(self) -> &'static str {
        match self {
            Self::Roots => r#"{"roots":{}}"#,
            Self::Sampling => r#"{"sampling":{}}"#,
            Self::SamplingTools => r#"{"sampling":{"tools":{}}}"#,
            Self::SamplingContext => r#"{"sampling":{"context":{}}}"#,
            Self::Elicitation => r#"{"elicitation":{}}"#,
            Self::ElicitationForm => r#"{"elicitation":{"form":{}}}"#,
            Self::ElicitationUrl => r#"{"elicitation":{"url":{}}}"#,
            Self::TasksExtension => r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
            _ => "{}",
        }
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path())
    }
}

/// The set of capabilities that one side declared.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities(u32);

impl Capabilities {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Returns whether `capability` was declared.
    #[must_use]
    pub const fn contains(self, capability: Capability) -> bool {
        self.0 & capability.bit() != 0
    }

    /// Adds `capability` to the set if `declared` is true.
    #[must_use]
    pub const fn with(self, capability: Capability, declared: bool) -> Self {
        if declared { Self(self.0 | capability.bit()) } else { self }
    }

    /// Removes `capability` from the set.
    #[must_use]
    pub const fn without(self, capability: Capability) -> Self {
        Self(self.0 & !capability.bit())
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the members, in the order of [`Capability::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.into_iter().filter(move |capability| self.contains(*capability))
    }

    /// Reads a `ClientCapabilities` object, which was checked to be JSON, according to the rules of
    /// `revision`.
    ///
    /// # Errors
    ///
    /// The value is not an object, a member has the wrong type, or one is repeated.
    // MCP 2025-11-25 schema.json#ServerCapabilities [CAP-017],
    // MCP 2025-11-25 basic/lifecycle#capability-negotiation [CAP-018]: unknown members are ignored;
    // missing and false members are not declared.
    pub fn from_client(
        declared: JsonText<'_>,
        revision: Revision,
    ) -> Result<Self, InvalidDeclaration> {
        Self::read_client(&Declared::checked(declared.as_str())?, revision)
    }

    fn read_client(
        declared: &Declared<'_>,
        revision: Revision,
    ) -> Result<Self, InvalidDeclaration> {
        let modes = revision >= Revision::V2025_11_25;
        let tasks = revision == Revision::V2025_11_25;
        let modern = revision >= Revision::V2026_07_28;
        // The members of `experimental` are unknown, but it must not be repeated.
        let [_experimental, roots, sampling, elicitation, declared_tasks, extensions] = declared
            .get(["experimental", "roots", "sampling", "elicitation", "tasks", "extensions"])?;
        let mut set = Self::NONE;
        if let Some(roots) = roots.object("roots")? {
            let [changed] = roots.get(["listChanged"])?;
            set = set
                .with(Capability::Roots, true)
                .with(Capability::RootsListChanged, changed.flag("listChanged")? && !modern);
        }
        if let Some(sampling) = sampling.object("sampling")? {
            let [tools, context] = sampling.get(["tools", "context"])?;
            set = set
                .with(Capability::Sampling, true)
                .with(Capability::SamplingTools, tools.is_there() && modes)
                .with(Capability::SamplingContext, context.is_there() && modes);
        }
        if revision >= Revision::V2025_06_18
            && let Some(elicitation) = elicitation.object("elicitation")?
        {
            // MCP 2025-11-25 client/elicitation#capabilities [CAP-013]: an empty object means form
            // mode only.
            let [form, url] = elicitation.get(["form", "url"])?;
            let url = url.is_there() && modes;
            set = set
                .with(Capability::Elicitation, true)
                .with(Capability::ElicitationForm, form.is_there() || !url)
                .with(Capability::ElicitationUrl, url);
        }
        if tasks && let Some(declared) = declared_tasks.object("tasks")? {
            set = set.union(task_capabilities(&declared)?);
        }
        if modern && let Some(extensions) = extensions.object("extensions")? {
            let [tasks] = extensions.get([TASKS_EXTENSION])?;
            set = set.with(Capability::TasksExtension, tasks.is_there());
        }
        Ok(set)
    }

    /// Reads a `ServerCapabilities` object, which was checked to be JSON, according to the rules of
    /// `revision`.
    ///
    /// # Errors
    ///
    /// The value is not an object, a member has the wrong type, or one is repeated.
    pub fn from_server(
        declared: JsonText<'_>,
        revision: Revision,
    ) -> Result<Self, InvalidDeclaration> {
        Self::read_server(&Declared::checked(declared.as_str())?, revision)
    }

    fn read_server(
        declared: &Declared<'_>,
        revision: Revision,
    ) -> Result<Self, InvalidDeclaration> {
        let modern = revision >= Revision::V2026_07_28;
        let [logging, completions, tools, prompts, resources, tasks, extensions] =
            declared.get([
                "logging",
                "completions",
                "tools",
                "prompts",
                "resources",
                "tasks",
                "extensions",
            ])?;
        let mut set = Self::NONE
            .with(Capability::Logging, logging.is_there())
            // MCP 2025-03-26 server/utilities/completion#capabilities [CAP-005]
            .with(
                Capability::Completions,
                completions.is_there() && revision >= Revision::V2025_03_26,
            );
        if let Some(tools) = tools.object("tools")? {
            let [changed] = tools.get(["listChanged"])?;
            set = set
                .with(Capability::Tools, true)
                .with(Capability::ToolsListChanged, changed.flag("listChanged")?);
        }
        if let Some(prompts) = prompts.object("prompts")? {
            let [changed] = prompts.get(["listChanged"])?;
            set = set
                .with(Capability::Prompts, true)
                .with(Capability::PromptsListChanged, changed.flag("listChanged")?);
        }
        if let Some(resources) = resources.object("resources")? {
            let [changed, subscribe] = resources.get(["listChanged", "subscribe"])?;
            set = set
                .with(Capability::Resources, true)
                .with(Capability::ResourcesListChanged, changed.flag("listChanged")?)
                .with(Capability::ResourcesSubscribe, subscribe.flag("subscribe")?);
        }
        if revision == Revision::V2025_11_25
            && let Some(declared) = tasks.object("tasks")?
        {
            set = set.union(task_capabilities(&declared)?);
        }
        if modern && let Some(extensions) = extensions.object("extensions")? {
            let [tasks] = extensions.get([TASKS_EXTENSION])?;
            set = set.with(Capability::TasksExtension, tasks.is_there());
        }
        Ok(set)
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Capability::path)).finish()
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(iter: I) -> Self {
        iter.into_iter().fold(Self::NONE, |set, capability| set.with(capability, true))
    }
}

// MCP 2025-11-25 basic/utilities/tasks#capabilities [CAP-016]
fn task_capabilities(declared: &Declared<'_>) -> Result<Capabilities, InvalidDeclaration> {
    let [list, cancel, requests] = declared.get(["list", "cancel", "requests"])?;
    let mut set = Capabilities::NONE
        .with(Capability::Tasks, true)
        .with(Capability::TasksList, list.is_there())
        .with(Capability::TasksCancel, cancel.is_there());
    if let Some(requests) = requests.object("requests")? {
        let groups = requests.get(["tools", "sampling", "elicitation"])?;
        for (group, (method, capability)) in groups.into_iter().zip([
            ("call", Capability::TasksToolsCall),
            ("createMessage", Capability::TasksSampling),
            ("create", Capability::TasksElicitation),
        ]) {
            if let Some(methods) = group.object("requests")? {
                let [declared] = methods.get([method])?;
                set = set.with(capability, declared.is_there());
            }
        }
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{SerializeAt, ServerCapabilities};

    fn client(text: &str, revision: Revision) -> Capabilities {
        Capabilities::from_client_json(text, revision).unwrap()
    }

    #[test]
    fn an_empty_elicitation_means_form_mode_only() {
        // Rule: [CAP-013].
        let set = client(r#"{"elicitation":{}}"#, Revision::V2025_11_25);
        assert!(set.contains(Capability::ElicitationForm));
        assert!(!set.contains(Capability::ElicitationUrl));
        let url = client(r#"{"elicitation":{"url":{}}}"#, Revision::V2025_11_25);
        assert!(
            !url.contains(Capability::ElicitationForm) && url.contains(Capability::ElicitationUrl)
        );
    }

    #[test]
    fn flags_that_are_absent_or_false_are_not_negotiated() {
        // Rule: [CAP-018].
        let text = r#"{"tools":{"listChanged":false},"resources":{},"x":[1],"prompts":null}"#;
        let set = Capabilities::from_server_json(text, Revision::V2025_06_18).unwrap();
        assert!(set.iter().eq([Capability::Tools, Capability::Resources]));
    }

    #[test]
    fn a_capability_of_another_revision_has_no_effect() {
        // Rule: [TASK-040] [TASK-044].
        let tasks = r#"{"tasks":{"list":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
        let modern = client(tasks, Revision::V2026_07_28);
        assert!(modern.iter().eq([Capability::TasksExtension]));
        let legacy = client(tasks, Revision::V2025_11_25);
        assert!(legacy.iter().eq([Capability::Tasks, Capability::TasksList]));
        let roots = client(r#"{"roots":{"listChanged":true}}"#, Revision::V2026_07_28);
        assert!(!roots.contains(Capability::RootsListChanged));
    }

    #[test]
    fn a_server_has_the_capabilities_that_it_declares() {
        let everything = r#"{"experimental":{"x":{}},"logging":{},"completions":{},
            "tools":{"listChanged":true},"prompts":{"listChanged":true},
            "resources":{"subscribe":true,"listChanged":true},
            "tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},
            "extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
        let little = r#"{"tools":{"listChanged":false},"prompts":{},"resources":{},
            "tasks":{"requests":{"tools":{}}},
            "extensions":{"a/b":{},"io.modelcontextprotocol/tasks":null}}"#;
        for text in [everything, little, r#"{"tasks":{"requests":{}}}"#, "{}"] {
            let declared: ServerCapabilities = serde_json::from_str(text).unwrap();
            for revision in Revision::ALL {
                let written = declared.to_json_at(revision).unwrap();
                let read = Capabilities::from_server_json(written.as_str(), revision).unwrap();
                assert_eq!(Capabilities::of_server(&declared, revision), read, "{revision} {text}");
            }
        }
    }

    #[test]
    fn every_capability_has_a_bit_of_its_own() {
        let all: Capabilities = Capability::ALL.into_iter().collect();
        assert!(all.iter().eq(Capability::ALL));
    }
}

//! The table of methods: their direction, revisions, phase and required capabilities. Sending and
//! receiving use the same row.

use core::fmt;

use crate::envelope::Written;

use super::capability::{Capabilities, Capability, Side};
use super::revision::{Revision, Revisions};

macro_rules! methods {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal,)*) => {
        /// A method of the protocol, of any revision.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Method {
            /// Every method, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the spelling on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the method with this name, as a message has it.
            #[must_use]
            pub fn read(name: Written<'_>) -> Option<Self> {
                /// The length of the longest name.
                const LENGTH_MAX: usize = 48;
                $(const { assert!($name.len() <= LENGTH_MAX) };)*
                Self::parse(name.resolve_in(&mut [0; LENGTH_MAX])?)
            }

            /// Returns the method with this name.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

methods! {
    /// `initialize`: opens a legacy session.
    Initialize = "initialize",
    /// `server/discover`: asks a server for its revisions and capabilities.
    Discover = "server/discover",
    /// `ping`: checks whether the peer is alive.
    Ping = "ping",
    /// `tools/list`: lists tools.
    ToolsList = "tools/list",
    /// `tools/call`: calls a tool.
    ToolsCall = "tools/call",
    /// `resources/list`: lists resources.
    ResourcesList = "resources/list",
    /// `resources/templates/list`: lists resource templates.
    ResourcesTemplatesList = "resources/templates/list",
    /// `resources/read`: reads a resource.
    ResourcesRead = "resources/read",
    /// `resources/subscribe`: subscribes to updates of a resource.
    ResourcesSubscribe = "resources/subscribe",
    /// `resources/unsubscribe`: unsubscribes from updates of a resource.
    ResourcesUnsubscribe = "resources/unsubscribe",
    /// `prompts/list`: lists prompts.
    PromptsList = "prompts/list",
    /// `prompts/get`: fills in a prompt.
    PromptsGet = "prompts/get",
    /// `completion/complete`: completes an argument.
    CompletionComplete = "completion/complete",
    /// `logging/setLevel`: sets the minimum level of log messages.
    LoggingSetLevel = "logging/setLevel",
    /// `subscriptions/listen`: opens a stream of change notifications.
    SubscriptionsListen = "subscriptions/listen",
    /// `sampling/createMessage`: requests a message from the host's model.
    SamplingCreateMessage = "sampling/createMessage",
    /// `roots/list`: lists the host's roots.
    RootsList = "roots/list",
    /// `elicitation/create`: asks the user.
    ElicitationCreate = "elicitation/create",
    /// `tasks/get`: gets the state of a task.
    TasksGet = "tasks/get",
    /// `tasks/result`: waits for the result of a task.
    TasksResult = "tasks/result",
    /// `tasks/list`: lists tasks.
    TasksList = "tasks/list",
    /// `tasks/cancel`: cancels a task.
    TasksCancel = "tasks/cancel",
    /// `tasks/update`: answers input requests of a task.
    TasksUpdate = "tasks/update",
    /// `notifications/initialized`: the client is ready for operation.
    Initialized = "notifications/initialized",
    /// `notifications/cancelled`: cancels a request of the sender.
    Cancelled = "notifications/cancelled",
    /// `notifications/progress`: reports progress of a request that has a progress token.
    Progress = "notifications/progress",
    /// `notifications/message`: a log message.
    Message = "notifications/message",
    /// `notifications/tools/list_changed`: the list of tools changed.
    ToolsListChanged = "notifications/tools/list_changed",
    /// `notifications/prompts/list_changed`: the list of prompts changed.
    PromptsListChanged = "notifications/prompts/list_changed",
    /// `notifications/resources/list_changed`: the list of resources changed.
    ResourcesListChanged = "notifications/resources/list_changed",
    /// `notifications/resources/updated`: a resource changed.
    ResourcesUpdated = "notifications/resources/updated",
    /// `notifications/roots/list_changed`: the host's roots changed.
    RootsListChanged = "notifications/roots/list_changed",
    /// `notifications/elicitation/complete`: a URL elicitation ended.
    ElicitationComplete = "notifications/elicitation/complete",
    /// `notifications/tasks/status`: the state of a task changed.
    TasksStatus = "notifications/tasks/status",
    /// `notifications/subscriptions/acknowledged`: a listen stream is open.
    SubscriptionsAcknowledged = "notifications/subscriptions/acknowledged",
    /// `notifications/tasks`: the state of a task changed (extension).
    Tasks = "notifications/tasks",
}

impl Method {
    /// Returns the row of the table.
    #[must_use]
    pub const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Returns whether a server may respond with input requests, after which the client must retry.
    // MCP 2026-07-28 basic/patterns/mrtr#supported-requests [MRTR-002]
    #[must_use]
    pub const fn allows_input_rounds(self) -> bool {
        matches!(self, Self::ToolsCall | Self::PromptsGet | Self::ResourcesRead)
    }

    /// Returns whether complete results carry caching hints at 2026-07-28.
    // MCP 2026-07-28 server/utilities/caching#cacheable-results [CACHE-001]
    #[must_use]
    pub const fn is_cacheable(self) -> bool {
        matches!(
            self,
            Self::Discover
                | Self::ToolsList
                | Self::PromptsList
                | Self::ResourcesList
                | Self::ResourcesTemplatesList
                | Self::ResourcesRead
        )
    }

    /// Returns whether a server changes nothing for any request of the method. Of a tool, only its
    /// definition says so.
    #[must_use]
    pub const fn is_read(self) -> bool {
        self.is_cacheable()
            || matches!(self, Self::PromptsGet | Self::CompletionComplete | Self::Ping)
    }

    /// Returns what the parameters of the method name.
    #[must_use]
    pub const fn subject(self) -> Option<SubjectKind> {
        Some(match self {
            Self::ToolsCall => SubjectKind::Tool,
            Self::PromptsGet => SubjectKind::Prompt,
            Self::ResourcesRead
            | Self::ResourcesSubscribe
            | Self::ResourcesUnsubscribe
            | Self::ResourcesUpdated => SubjectKind::Resource,
            Self::CompletionComplete => SubjectKind::Reference,
            Self::TasksGet | Self::TasksResult | Self::TasksCancel | Self::TasksUpdate => {
                SubjectKind::Task
            }
            _ => return None,
        })
    }
}

/// What the parameters of a method name, and in which member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubjectKind {
    /// A tool, in `name`.
    Tool,
    /// A prompt, in `name`.
    Prompt,
    /// A resource, in `uri`. In a reference it may be a resource template.
    Resource,
    /// A task, in `taskId`.
    Task,
    /// A prompt or a resource template, in `ref`: an object with a `name` or a `uri`.
    Reference,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a method is a request or a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// It has an id and is answered.
    Request,
    /// It has no id and is never answered.
    Notification,
}

/// The phases of a legacy session in which a method may be sent. The modern era has no phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Only as the first message.
    Opening,
    /// At any time, even before initialization is complete.
    Always,
    /// After the response to `initialize`.
    Operating,
}

/// A capability that must have been declared for a message to be sent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Gate {
    /// The side that declares it.
    pub declared_by: Side,
    /// The required capability.
    pub capability: Capability,
    /// The revisions at which it is required.
    pub revisions: Revisions,
}

impl Gate {
    const fn new(declared_by: Side, capability: Capability, revisions: Revisions) -> Self {
        Self { declared_by, capability, revisions }
    }
}

/// The rules for sending a method from one side.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Allowance {
    /// The revisions at which this side may send it.
    pub revisions: Revisions,
    /// The phase of a legacy session in which it may be sent.
    pub phase: Phase,
    /// The required capabilities: all gates for the revision must be satisfied.
    pub gates: &'static [Gate],
}

impl Allowance {
    /// A side that never sends the method.
    pub const NEVER: Self =
        Self { revisions: Revisions::NONE, phase: Phase::Operating, gates: &[] };
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Row {
    /// The method.
    pub method: Method,
    /// Whether it is a request or a notification.
    pub kind: MethodKind,
    /// The rules for a client.
    pub client: Allowance,
    /// The rules for a server.
    pub server: Allowance,
}

impl Row {
    /// Returns the rules for `sender`.
    #[must_use]
    pub const fn side(&self, sender: Side) -> &Allowance {
        match sender {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// Returns a note for the printed table. It is not a field, so that it is linked only into
    /// programs that print it.
    #[must_use]
    pub const fn note(&self) -> &'static str {
        match self.method {
            Method::Initialize => "first message; never in a batch; never cancelled",
            Method::Discover => "optional for a client; also the probe on a byte stream",
            Method::ToolsList
            | Method::ResourcesList
            | Method::ResourcesTemplatesList
            | Method::PromptsList
            | Method::TasksList => "paginated",
            Method::ToolsCall | Method::ResourcesRead | Method::PromptsGet => {
                "2026-07-28: may be input_required"
            }
            Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
                "2026-07-28: subscriptions/listen"
            }
            Method::CompletionComplete => "2024-11-05 has no capability for it",
            Method::LoggingSetLevel => "2026-07-28: `_meta` of each request",
            Method::SubscriptionsListen => {
                "unsupported filters are left out of the acknowledgement"
            }
            Method::SamplingCreateMessage => {
                "2026-07-28: an input request; tools need `sampling.tools`"
            }
            Method::RootsList => "2026-07-28: an input request",
            Method::ElicitationCreate => {
                "2026-07-28: an input request; each mode requires its flag"
            }
            Method::TasksGet | Method::TasksCancel => "2026-07-28: extension",
            Method::TasksUpdate => "extension",
            Method::Cancelled => {
                "2026-07-28: byte streams only; from a server only to end a listen stream"
            }
            Method::Progress => "requires the token of a pending request",
            Method::Message => "2026-07-28: only where the request has a log level",
            Method::ToolsListChanged
            | Method::PromptsListChanged
            | Method::ResourcesListChanged => "2026-07-28: only on a listen stream",
            Method::ResourcesUpdated => "after a subscription to it",
            Method::SubscriptionsAcknowledged => "first message of each subscription",
            Method::Tasks => "extension; only on a listen stream with `taskIds`",
            _ => "",
        }
    }

    /// Returns whether `sender` may send the method at `revision`, given the capabilities of both
    /// sides.
    ///
    /// # Errors
    ///
    /// Returns the violated rule. For an outgoing message this is the caller's error and nothing is
    /// sent; for an incoming one it is the peer's error, and a request is answered with it.
    // MCP 2025-11-25 basic/lifecycle#operation [LIFE-007] [CAP-018]
    // MCP 2025-03-26 basic/lifecycle#operation [LIFE-006]
    // MCP 2026-07-28 schema.json#MethodNotFoundError [CAP-026]
    pub fn check(
        &self,
        sender: Side,
        revision: Revision,
        client: Capabilities,
        server: Capabilities,
    ) -> Result<(), GateError> {
        let side = self.side(sender);
        if !side.revisions.contains(revision) {
            return Err(if self.side(sender.peer()).revisions.contains(revision) {
                GateError::WrongDirection { method: self.method, sender }
            } else {
                GateError::NotAtRevision { method: self.method, revision }
            });
        }
        for gate in side.gates {
            let declared = match gate.declared_by {
                Side::Client => client,
                Side::Server => server,
            };
            if gate.revisions.contains(revision) && !declared.contains(gate.capability) {
                return Err(GateError::NotDeclared {
                    method: self.method,
                    declared_by: gate.declared_by,
                    capability: gate.capability,
                });
            }
        }
        Ok(())
    }
}

/// The reason why a message must not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// The method does not exist at the revision.
    #[error("`{method}` does not exist at revision {revision}")]
    NotAtRevision {
        /// The method.
        method: Method,
        /// The revision that governs the message.
        revision: Revision,
    },
    /// Only the other side may send the method.
    #[error("a {sender} must not send `{method}`")]
    WrongDirection {
        /// The method.
        method: Method,
        /// The side that tried to send it.
        sender: Side,
    },
    /// A required capability was not declared.
    #[error(
        "`{method}` requires the {declared_by} capability `{capability}`, which was not declared"
    )]
    NotDeclared {
        /// The method.
        method: Method,
        /// The side that would have to declare it.
        declared_by: Side,
        /// The missing capability.
        capability: Capability,
    },
}

/// Every method, in the order of [`Method::ALL`].
// MCP 2026-07-28 basic/transports/index#messages [LIFE-017]: servers no longer send requests.
// MCP 2026-07-28 basic/transports/stdio#receiving-messages [STDIO-012]
// MCP 2026-07-28 client/elicitation#error-handling [ELIC-027]
// MCP 2026-07-28 client/sampling#error-handling [SAMP-019]
// MCP 2026-07-28 changelog#major-changes [LOG-006] [PING-005]
// MCP 2026-07-28 changelog#minor-changes [ELIC-021]
// MCP 2024-11-05 server/utilities/completion#protocol-messages [CAP-006]: no capability at the
// oldest revision.
#[rustfmt::skip]
pub static TABLE: [Row; Method::ALL.len()] = [
    Row { method: Method::Initialize, kind: MethodKind::Request, client: Allowance { revisions: Revisions::LEGACY, phase: Phase::Opening, gates: &[] }, server: Allowance::NEVER },
    Row { method: Method::Discover, kind: MethodKind::Request, client: Allowance { revisions: Revisions::MODERN, phase: Phase::Always, gates: &[] }, server: Allowance::NEVER },
    Row { method: Method::Ping, kind: MethodKind::Request, client: Allowance { revisions: Revisions::LEGACY, phase: Phase::Always, gates: &[] }, server: Allowance { revisions: Revisions::LEGACY, phase: Phase::Always, gates: &[] } },
    Row { method: Method::ToolsList, kind: MethodKind::Request, client: Allowance { revisions: Revisions::ALL, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::Tools, Revisions::ALL)] }, server: Allowance::NEVER },
    Row { method: Method::ToolsCall, kind: MethodKind::Request, client: Allowance { revisions: Revisions::ALL, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::Tools, Revisions::ALL)] }, server: Allowance::NEVER },
    Row { method: Method::ResourcesList, kind: MethodKind::Request, client: Allowance { revisions: Revisions::ALL, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::Resources, Revisions::ALL)] }, server: Allowance::NEVER },
    Row { method: Method::ResourcesTemplatesList, kind: MethodKind::Request, client: Allowance { revisions: Revisions::ALL, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::Resources, Revisions::ALL)] }, server: Allowance::NEVER },
    Row { method: Method::ResourcesRead, kind: MethodKind::Request, client: Allowance { revisions: Revisions::ALL, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::Resources, Revisions::ALL)] }, server: Allowance::NEVER },
    Row { method: Method::ResourcesSubscribe, kind: MethodKind::Request, client: Allowance { revisions: Revisions::LEGACY, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::ResourcesSubscribe, Revisions::LEGACY)] }, server: Allowance::NEVER },
    Row { method: Method::ResourcesUnsubscribe, kind: MethodKind::Request, client: Allowance { revisions: Revisions::LEGACY, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::ResourcesSubscribe, Revisions::LEGACY)] }, server: Allowance::NEVER },
    Row { method: Method::PromptsList, kind: MethodKind::Request, client: Allowance { revisions: Revisions::ALL, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::Prompts, Revisions::ALL)] }, server: Allowance::NEVER },
    Row { method: Method::PromptsGet, kind: MethodKind::Request, client: Allowance { revisions: Revisions::ALL, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::Prompts, Revisions::ALL)] }, server: Allowance::NEVER },
    Row { method: Method::CompletionComplete, kind: MethodKind::Request, client: Allowance { revisions: Revisions::ALL, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::Completions, Revisions::since(Revision::V2025_03_26))] }, server: Allowance::NEVER },
    Row { method: Method::LoggingSetLevel, kind: MethodKind::Request, client: Allowance { revisions: Revisions::LEGACY, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::Logging, Revisions::LEGACY)] }, server: Allowance::NEVER },
    Row { method: Method::SubscriptionsListen, kind: MethodKind::Request, client: Allowance { revisions: Revisions::MODERN, phase: Phase::Operating, gates: &[] }, server: Allowance::NEVER },
    Row { method: Method::SamplingCreateMessage, kind: MethodKind::Request, client: Allowance::NEVER, server: Allowance { revisions: Revisions::LEGACY, phase: Phase::Operating, gates: &[Gate::new(Side::Client, Capability::Sampling, Revisions::LEGACY)] } },
    Row { method: Method::RootsList, kind: MethodKind::Request, client: Allowance::NEVER, server: Allowance { revisions: Revisions::LEGACY, phase: Phase::Operating, gates: &[Gate::new(Side::Client, Capability::Roots, Revisions::LEGACY)] } },
    Row { method: Method::ElicitationCreate, kind: MethodKind::Request, client: Allowance::NEVER, server: Allowance { revisions: Revisions::range(Revision::V2025_06_18, Revision::V2025_11_25), phase: Phase::Operating, gates: &[Gate::new(Side::Client, Capability::Elicitation, Revisions::range(Revision::V2025_06_18, Revision::V2025_11_25))] } },
    Row { method: Method::TasksGet, kind: MethodKind::Request, client: Allowance { revisions: Revisions::since(Revision::V2025_11_25), phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::Tasks, Revisions::only(Revision::V2025_11_25)), Gate::new(Side::Server, Capability::TasksExtension, Revisions::MODERN), Gate::new(Side::Client, Capability::TasksExtension, Revisions::MODERN)] }, server: Allowance { revisions: Revisions::only(Revision::V2025_11_25), phase: Phase::Operating, gates: &[Gate::new(Side::Client, Capability::Tasks, Revisions::only(Revision::V2025_11_25))] } },
    Row { method: Method::TasksResult, kind: MethodKind::Request, client: Allowance { revisions: Revisions::only(Revision::V2025_11_25), phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::Tasks, Revisions::only(Revision::V2025_11_25))] }, server: Allowance { revisions: Revisions::only(Revision::V2025_11_25), phase: Phase::Operating, gates: &[Gate::new(Side::Client, Capability::Tasks, Revisions::only(Revision::V2025_11_25))] } },
    Row { method: Method::TasksList, kind: MethodKind::Request, client: Allowance { revisions: Revisions::only(Revision::V2025_11_25), phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::TasksList, Revisions::only(Revision::V2025_11_25))] }, server: Allowance { revisions: Revisions::only(Revision::V2025_11_25), phase: Phase::Operating, gates: &[Gate::new(Side::Client, Capability::TasksList, Revisions::only(Revision::V2025_11_25))] } },
    Row { method: Method::TasksCancel, kind: MethodKind::Request, client: Allowance { revisions: Revisions::since(Revision::V2025_11_25), phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::TasksCancel, Revisions::only(Revision::V2025_11_25)), Gate::new(Side::Server, Capability::TasksExtension, Revisions::MODERN), Gate::new(Side::Client, Capability::TasksExtension, Revisions::MODERN)] }, server: Allowance { revisions: Revisions::only(Revision::V2025_11_25), phase: Phase::Operating, gates: &[Gate::new(Side::Client, Capability::TasksCancel, Revisions::only(Revision::V2025_11_25))] } },
    Row { method: Method::TasksUpdate, kind: MethodKind::Request, client: Allowance { revisions: Revisions::MODERN, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::TasksExtension, Revisions::MODERN), Gate::new(Side::Client, Capability::TasksExtension, Revisions::MODERN)] }, server: Allowance::NEVER },
    Row { method: Method::Initialized, kind: MethodKind::Notification, client: Allowance { revisions: Revisions::LEGACY, phase: Phase::Always, gates: &[] }, server: Allowance::NEVER },
    Row { method: Method::Cancelled, kind: MethodKind::Notification, client: Allowance { revisions: Revisions::ALL, phase: Phase::Always, gates: &[] }, server: Allowance { revisions: Revisions::ALL, phase: Phase::Always, gates: &[] } },
    Row { method: Method::Progress, kind: MethodKind::Notification, client: Allowance { revisions: Revisions::LEGACY, phase: Phase::Operating, gates: &[] }, server: Allowance { revisions: Revisions::ALL, phase: Phase::Operating, gates: &[] } },
    Row { method: Method::Message, kind: MethodKind::Notification, client: Allowance::NEVER, server: Allowance { revisions: Revisions::ALL, phase: Phase::Always, gates: &[Gate::new(Side::Server, Capability::Logging, Revisions::ALL)] } },
    Row { method: Method::ToolsListChanged, kind: MethodKind::Notification, client: Allowance::NEVER, server: Allowance { revisions: Revisions::ALL, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::ToolsListChanged, Revisions::ALL)] } },
    Row { method: Method::PromptsListChanged, kind: MethodKind::Notification, client: Allowance::NEVER, server: Allowance { revisions: Revisions::ALL, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::PromptsListChanged, Revisions::ALL)] } },
    Row { method: Method::ResourcesListChanged, kind: MethodKind::Notification, client: Allowance::NEVER, server: Allowance { revisions: Revisions::ALL, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::ResourcesListChanged, Revisions::ALL)] } },
    Row { method: Method::ResourcesUpdated, kind: MethodKind::Notification, client: Allowance::NEVER, server: Allowance { revisions: Revisions::ALL, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::ResourcesSubscribe, Revisions::ALL)] } },
    Row { method: Method::RootsListChanged, kind: MethodKind::Notification, client: Allowance { revisions: Revisions::LEGACY, phase: Phase::Operating, gates: &[Gate::new(Side::Client, Capability::RootsListChanged, Revisions::LEGACY)] }, server: Allowance::NEVER },
    Row { method: Method::ElicitationComplete, kind: MethodKind::Notification, client: Allowance::NEVER, server: Allowance { revisions: Revisions::only(Revision::V2025_11_25), phase: Phase::Operating, gates: &[Gate::new(Side::Client, Capability::ElicitationUrl, Revisions::only(Revision::V2025_11_25))] } },
    Row { method: Method::TasksStatus, kind: MethodKind::Notification, client: Allowance { revisions: Revisions::only(Revision::V2025_11_25), phase: Phase::Operating, gates: &[Gate::new(Side::Client, Capability::Tasks, Revisions::only(Revision::V2025_11_25))] }, server: Allowance { revisions: Revisions::only(Revision::V2025_11_25), phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::Tasks, Revisions::only(Revision::V2025_11_25))] } },
    Row { method: Method::SubscriptionsAcknowledged, kind: MethodKind::Notification, client: Allowance::NEVER, server: Allowance { revisions: Revisions::MODERN, phase: Phase::Operating, gates: &[] } },
    Row { method: Method::Tasks, kind: MethodKind::Notification, client: Allowance::NEVER, server: Allowance { revisions: Revisions::MODERN, phase: Phase::Operating, gates: &[Gate::new(Side::Server, Capability::TasksExtension, Revisions::MODERN), Gate::new(Side::Client, Capability::TasksExtension, Revisions::MODERN)] } },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_methods() {
        for (method, row) in Method::ALL.iter().zip(&TABLE) {
            assert_eq!(*method, row.method);
            assert_eq!(Method::parse(method.as_str()), Some(*method));
        }
    }

    #[test]
    fn the_revision_of_a_method_is_checked_before_its_capabilities() {
        let row = Method::LoggingSetLevel.row();
        let none = Capabilities::NONE;
        // Rule: [LOG-006].
        assert!(matches!(
            row.check(Side::Client, Revision::V2026_07_28, none, none),
            Err(GateError::NotAtRevision { .. })
        ));
        // Rule: [CAP-018].
        assert!(matches!(
            row.check(Side::Client, Revision::V2025_11_25, none, none),
            Err(GateError::NotDeclared { capability: Capability::Logging, .. })
        ));
    }

    #[test]
    fn completion_requires_no_capability_at_2024_11_05() {
        // Rule: [CAP-006].
        let row = Method::CompletionComplete.row();
        let none = Capabilities::NONE;
        assert_eq!(row.check(Side::Client, Revision::V2024_11_05, none, none), Ok(()));
        assert!(row.check(Side::Client, Revision::V2025_03_26, none, none).is_err());
    }

    #[test]
    fn a_modern_server_sends_no_request() {
        // Rule: [RPC-030] [MRTR-001].
        for row in &TABLE {
            let sends = row.server.revisions.contains(Revision::V2026_07_28);
            assert!(!(sends && row.kind == MethodKind::Request), "{}", row.method);
        }
    }
}

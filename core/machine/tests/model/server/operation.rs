//! Operations on a server, and how often they occur.

use std::fmt;

use mcp_sansio::peer::{Limits, Policy, Reaction, ServerOptions};
use mcp_sansio::protocol::{Implementation, ServerCapabilities};
use mcp_sansio::{Revision, Revisions};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::capabilities::{self, Capabilities};
use crate::gate;
use crate::question::{Question, question};

/// Ids that the client uses, as JSON: only a few, so that they repeat. A number differs from the
/// string of its digits.
pub(super) const IDS: [&str; 5] = ["1", "2", "3", "\"1\"", "\"a\""];

/// The options of the server.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) versions: Vec<&'static str>,
    pub(super) offers: Capabilities,
    /// Whether it closes the connection on a violation.
    pub(super) strict: bool,
    /// The limit of input rounds of a request.
    pub(super) rounds: u32,
}

/// The metadata of a modern request.
#[derive(Clone, Debug)]
pub(super) struct Metadata {
    pub(super) version: &'static str,
    pub(super) capabilities: Option<Capabilities>,
}

/// An operation. The number of a request or a call is taken modulo how many there have been.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Initialize {
        id: &'static str,
        version: Option<&'static str>,
        client: Capabilities,
    },
    Initialized,
    Request {
        id: &'static str,
        method: &'static str,
        modern: Option<Metadata>,
        again: bool,
    },
    Notify(&'static str),
    Cancel(&'static str),
    /// Responds to the server's request that precedes the next one by `back`.
    Answer {
        back: i64,
        well: bool,
    },
    NotJson,
    NoMessage(&'static str),
    Wait(u64),
    EndOfInput,
    Respond(usize),
    Reject(usize),
    Ask {
        request: usize,
        questions: Vec<Question>,
        state: bool,
    },
    Progress(usize),
    Call(&'static str),
    Tell(&'static str),
    GiveUp(usize),
    Announce,
    Close,
}

impl Setting {
    pub(super) fn options(&self) -> ServerOptions {
        let versions =
            self.versions.iter().map(|version| Revision::parse(version).expect("a revision"));
        let revisions =
            versions.fold(Revisions::NONE, |set, version| set.union(Revisions::only(version)));
        let offers = capabilities::to_json_with_false(&self.offers);
        let offers: ServerCapabilities = serde_json::from_value(offers).expect("a declaration");
        let mut limits = Limits::default();
        limits.rounds_max = self.rounds;
        ServerOptions::new(Implementation::new("s", "1"))
            .revisions(revisions)
            .capabilities(offers)
            .limits(limits)
            .policy(policy(self.strict))
    }
}

impl Operation {
    /// Returns whether the client sends a message.
    pub(super) const fn is_message(&self) -> bool {
        matches!(
            self,
            Self::Initialize { .. }
                | Self::Initialized
                | Self::Request { .. }
                | Self::Notify(_)
                | Self::Cancel(_)
                | Self::Answer { .. }
                | Self::NotJson
                | Self::NoMessage(_)
        )
    }
}

/// Returns a policy that closes the connection on every violation, or on none.
pub(crate) fn policy(strict: bool) -> Policy {
    let mut policy = Policy::default();
    if strict {
        policy.malformed = Reaction::Close;
        policy.duplicate_id = Reaction::Close;
        policy.unknown_response = Reaction::Close;
        policy.forbidden = Reaction::Close;
    }
    policy
}

pub(super) fn setting() -> impl Strategy<Value = Setting> {
    let versions =
        prop_oneof![Just(gate::VERSIONS.to_vec()), subsequence(&gate::VERSIONS[..], 1..5)];
    let strict = prop_oneof![9 => Just(false), 1 => Just(true)];
    (versions, capabilities::of_server(), strict, 1..3_u32).prop_map(
        |(versions, offers, strict, rounds)| Setting {
            versions,
            offers: capabilities::complete(&offers),
            strict,
            rounds,
        },
    )
}

/// Returns a session with any messages in both directions.
pub(super) fn traffic() -> impl Strategy<Value = Vec<Operation>> {
    let message =
        (0..4_usize, select(&IDS[..]), select(gate::methods())).prop_map(|(kind, id, method)| {
            match kind {
                0 => Operation::Request { id, method, modern: None, again: false },
                1 => Operation::Notify(method),
                2 => Operation::Call(method),
                _ => Operation::Tell(method),
            }
        });
    let opening = (select(&gate::VERSIONS[..4]), client()).prop_map(|(version, client)| {
        let version = Some(version);
        vec![Operation::Initialize { id: "0", version, client }, Operation::Initialized]
    });
    (opening, vec(message, 1..60)).prop_map(|(opening, messages)| [opening, messages].concat())
}

fn client() -> impl Strategy<Value = Capabilities> {
    capabilities::of_client().prop_map(|declared| capabilities::complete(&declared))
}

fn metadata() -> impl Strategy<Value = Option<Metadata>> {
    let version = prop_oneof![
        12 => Just(gate::MODERN),
        1 => select(vec!["2025-11-25", "1999-01-01", "x"]),
    ];
    let capabilities = prop_oneof![8 => client().prop_map(Some), 1 => Just(None)];
    let modern = (version, capabilities)
        .prop_map(|(version, capabilities)| Some(Metadata { version, capabilities }));
    prop_oneof![Just(None), modern]
}

fn request() -> impl Strategy<Value = Operation> {
    // Methods that reach the application are more frequent than all others together.
    let leading = vec!["tools/call", "prompts/get", "resources/read", "subscriptions/listen"];
    let method = prop_oneof![
        8 => select(leading),
        1 => Just("tasks/result"),
        4 => select(gate::methods_and_others()),
    ];
    (select(&IDS[..]), method, metadata(), any::<bool>())
        .prop_map(|(id, method, modern, again)| Operation::Request { id, method, modern, again })
}

fn initialize() -> impl Strategy<Value = Operation> {
    let odd = select(vec![None, Some("2026-07-28"), Some("1999-01-01"), Some("x")]);
    let version = prop_oneof![8 => select(&gate::VERSIONS[..4]).prop_map(Some), 1 => odd];
    (select(&IDS[..]), version, client()).prop_map(|(id, version, client)| Operation::Initialize {
        id,
        version,
        client,
    })
}

pub(super) fn operation() -> impl Strategy<Value = Operation> {
    let questions = || vec(question(), 0..3);
    let ask = (0..8_usize, questions(), any::<bool>())
        .prop_map(|(request, questions, state)| Operation::Ask { request, questions, state });
    prop_oneof![
        3 => initialize(),
        3 => Just(Operation::Initialized),
        8 => request(),
        2 => select(gate::methods_and_others()).prop_map(Operation::Notify),
        3 => select(&IDS[..]).prop_map(Operation::Cancel),
        5 => (0..4_i64, any::<bool>()).prop_map(|(back, well)| Operation::Answer { back, well }),
        1 => Just(Operation::NotJson),
        1 => select(&IDS[..]).prop_map(Operation::NoMessage),
        2 => select(vec![1_u64, 30, 60, 600]).prop_map(Operation::Wait),
        3 => (0..8_usize).prop_map(Operation::Respond),
        1 => (0..8_usize).prop_map(Operation::Reject),
        5 => ask,
        2 => (0..8_usize).prop_map(Operation::Progress),
        2 => select(gate::methods()).prop_map(Operation::Call),
        2 => select(vec!["ping", "roots/list", "sampling/createMessage", "elicitation/create"])
            .prop_map(Operation::Call),
        1 => select(gate::methods()).prop_map(Operation::Tell),
        1 => (0..4_usize).prop_map(Operation::GiveUp),
        1 => Just(Operation::Announce),
        1 => prop_oneof![Just(Operation::EndOfInput), Just(Operation::Close)],
    ]
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let strict = if self.strict { ", strict" } else { "" };
        write!(f, "a server of {:?} that offers {:?}{strict}", self.versions, self.offers)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Initialize { id, version, client } => {
                let version = version.unwrap_or("no version");
                write!(f, "→ initialize {id} {version}, declaring {client:?}")
            }
            Self::Initialized => write!(f, "→ notifications/initialized"),
            Self::Request { id, method, modern, again } => {
                write!(f, "→ {method} {id}")?;
                if let Some(Metadata { version, capabilities }) = modern {
                    write!(f, " of {version}, declaring {capabilities:?}")?;
                }
                if *again { write!(f, ", with answers and state") } else { Ok(()) }
            }
            Self::Notify(method) => write!(f, "→ {method} without an id"),
            Self::Cancel(id) => write!(f, "→ notifications/cancelled of {id}"),
            Self::Answer { back, well } => {
                let what = if *well { "result" } else { "error" };
                write!(f, "→ {what} for the request {back} before the next")
            }
            Self::NotJson => write!(f, "→ something that is not JSON"),
            Self::NoMessage(id) => write!(f, "→ an object with the id {id} that is no message"),
            Self::Wait(seconds) => write!(f, "{seconds} s pass"),
            Self::EndOfInput => write!(f, "→ end of input"),
            Self::Respond(request) => write!(f, "respond to request {request}"),
            Self::Reject(request) => write!(f, "reject request {request}"),
            Self::Ask { request, questions, state } => {
                let state = if *state { " and a state" } else { "" };
                write!(f, "require input for request {request}: {questions:?}{state}")
            }
            Self::Progress(request) => write!(f, "progress of request {request}"),
            Self::Call(method) => write!(f, "call {method}"),
            Self::Tell(method) => write!(f, "notify {method}"),
            Self::GiveUp(call) => write!(f, "cancel call {call}"),
            Self::Announce => write!(f, "the tools changed"),
            Self::Close => write!(f, "close"),
        }
    }
}

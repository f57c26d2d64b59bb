//! Operations on a client, and how often they occur.

use std::fmt;

use mcp_sansio::peer::{ClientOptions, Limits};
use mcp_sansio::protocol::{ClientCapabilities, Implementation};
use mcp_sansio::{Era, Revision, Revisions};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::capabilities::{self, Capabilities};
use crate::gate::{self, MODERN, VERSIONS};
use crate::question::{Question, question};
use crate::server::policy;

/// Ids that the server uses, as JSON.
const IDS: [&str; 4] = ["1", "2", "\"1\"", "\"a\""];

/// The limit of input rounds of a call in these tests.
pub(super) const ROUNDS_MAX: u32 = 2;

/// The options of the client.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) versions: Vec<&'static str>,
    /// Whether it assumes a legacy server.
    pub(super) guesses_legacy: bool,
    pub(super) offers: Capabilities,
    /// Whether it closes the connection on a violation.
    pub(super) strict: bool,
}

/// A response of the server, to the opening or to a call, valid or not.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Discovered {
        versions: Vec<&'static str>,
        server: Capabilities,
    },
    Initialized {
        version: &'static str,
        server: Capabilities,
    },
    Error(i64),
    /// The error with a list of versions, in the modern or in the legacy form.
    Unsupported {
        code: i64,
        versions: Vec<&'static str>,
    },
    Result,
    InputRequired {
        questions: Vec<Question>,
        state: bool,
    },
    OddResult,
}

/// An operation. The number of a call or an input request is taken modulo how many there have been.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// Responds to the client's request that precedes the next one by `back`.
    Answer {
        back: i64,
        with: Reply,
    },
    Request {
        id: &'static str,
        method: &'static str,
    },
    Notify(&'static str),
    Cancel(&'static str),
    NotJson,
    Wait(u64),
    EndOfInput,
    Call(&'static str),
    Tell(&'static str),
    GiveUp(usize),
    AnswerInput(usize),
    RefuseInput(usize),
    Respond(usize),
    Reject(usize),
    Close,
}

impl Setting {
    pub(super) fn options(&self) -> ClientOptions {
        let versions =
            self.versions.iter().map(|version| Revision::parse(version).expect("a revision"));
        let revisions =
            versions.fold(Revisions::NONE, |set, version| set.union(Revisions::only(version)));
        let offers = capabilities::to_json(&self.offers);
        let offers: ClientCapabilities = serde_json::from_value(offers).expect("a declaration");
        let mut limits = Limits::default();
        limits.rounds_max = ROUNDS_MAX;
        let options = ClientOptions::new(Implementation::new("c", "1"))
            .revisions(revisions)
            .capabilities(offers)
            .limits(limits)
            .policy(policy(self.strict));
        if self.guesses_legacy { options.known_era(Era::Legacy) } else { options }
    }
}

pub(super) fn setting() -> impl Strategy<Value = Setting> {
    let versions = prop_oneof![Just(VERSIONS.to_vec()), subsequence(&VERSIONS[..], 1..5)];
    let guesses = prop_oneof![3 => Just(false), 1 => Just(true)];
    let strict = prop_oneof![9 => Just(false), 1 => Just(true)];
    (versions, guesses, capabilities::of_client(), strict).prop_map(
        |(versions, guesses_legacy, offers, strict)| Setting {
            versions,
            guesses_legacy,
            offers: capabilities::complete(&offers),
            strict,
        },
    )
}

fn server() -> impl Strategy<Value = Capabilities> {
    capabilities::of_server().prop_map(|declared| capabilities::complete(&declared))
}

/// Returns responses that mostly open the connection, in one of the two eras.
pub(super) fn opening(setting: &Setting) -> impl Strategy<Value = Vec<Operation>> + use<> {
    let legacy: Vec<_> = setting.versions.iter().copied().filter(|it| *it != MODERN).collect();
    let newest_first = setting.versions.contains(&MODERN) && !setting.guesses_legacy;
    let with = |with| Operation::Answer { back: 1, with };
    let modern = server()
        .prop_map(move |server| vec![with(Reply::Discovered { versions: vec![MODERN], server })]);
    let version = select(if legacy.is_empty() { vec!["2025-11-25"] } else { legacy });
    let session = (version, server()).prop_map(move |(version, server)| {
        let refused = newest_first.then(|| with(Reply::Error(-32601)));
        refused.into_iter().chain([with(Reply::Initialized { version, server })]).collect()
    });
    let any = reply().prop_map(move |reply| vec![with(reply)]);
    prop_oneof![5 => modern, 4 => session, 1 => any]
}

fn reply() -> impl Strategy<Value = Reply> {
    let versions = || subsequence(&VERSIONS[..], 0..=5);
    let version = prop_oneof![select(&VERSIONS[..]), Just("1999-01-01")];
    let discovered = (versions(), server())
        .prop_map(|(versions, server)| Reply::Discovered { versions, server });
    let initialized =
        (version, server()).prop_map(|(version, server)| Reply::Initialized { version, server });
    let unsupported = (select(vec![-32022_i64, -32602]), versions())
        .prop_map(|(code, versions)| Reply::Unsupported { code, versions });
    let required = (vec(question(), 0..3), any::<bool>())
        .prop_map(|(questions, state)| Reply::InputRequired { questions, state });
    prop_oneof![
        1 => discovered,
        1 => initialized,
        3 => select(vec![-32601_i64, -32602, -32022, -32021, -1]).prop_map(Reply::Error),
        1 => unsupported,
        3 => Just(Reply::Result),
        7 => required,
        1 => Just(Reply::OddResult),
    ]
}

pub(super) fn operation() -> impl Strategy<Value = Operation> {
    let back = prop_oneof![6 => Just(1_i64), 4 => 0..5_i64];
    let answer = (back, reply()).prop_map(|(back, with)| Operation::Answer { back, with });
    let asks = vec!["roots/list", "sampling/createMessage", "elicitation/create", "tasks/get"];
    let method = prop_oneof![2 => select(asks), 1 => select(gate::methods_and_others())];
    let request =
        (select(&IDS[..]), method).prop_map(|(id, method)| Operation::Request { id, method });
    let calls = vec!["tools/call", "prompts/get", "resources/read", "tools/list"];
    let call = prop_oneof![3 => select(calls), 1 => select(gate::methods())];
    prop_oneof![
        8 => answer,
        5 => request,
        2 => select(gate::methods_and_others()).prop_map(Operation::Notify),
        2 => select(&IDS[..]).prop_map(Operation::Cancel),
        1 => Just(Operation::NotJson),
        2 => select(vec![1_u64, 5, 30, 60, 600]).prop_map(Operation::Wait),
        7 => call.prop_map(Operation::Call),
        2 => select(gate::methods()).prop_map(Operation::Tell),
        2 => (0..8_usize).prop_map(Operation::GiveUp),
        6 => (0..8_usize).prop_map(Operation::AnswerInput),
        1 => (0..8_usize).prop_map(Operation::RefuseInput),
        1 => (0..4_usize).prop_map(Operation::Respond),
        1 => (0..4_usize).prop_map(Operation::Reject),
        1 => prop_oneof![Just(Operation::EndOfInput), Just(Operation::Close)],
    ]
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guess = if self.guesses_legacy { ", sure of a legacy server" } else { "" };
        let strict = if self.strict { ", strict" } else { "" };
        write!(f, "a client of {:?} that offers {:?}{guess}{strict}", self.versions, self.offers)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer { back, with } => {
                write!(f, "→ {with:?} for the request {back} before the next")
            }
            Self::Request { id, method } => write!(f, "→ {method} {id}"),
            Self::Notify(method) => write!(f, "→ {method} without an id"),
            Self::Cancel(id) => write!(f, "→ notifications/cancelled of {id}"),
            Self::NotJson => write!(f, "→ something that is not JSON"),
            Self::Wait(seconds) => write!(f, "{seconds} s pass"),
            Self::EndOfInput => write!(f, "→ end of input"),
            Self::Call(method) => write!(f, "call {method}"),
            Self::Tell(method) => write!(f, "notify {method}"),
            Self::GiveUp(call) => write!(f, "cancel call {call}"),
            Self::AnswerInput(input) => write!(f, "answer input {input}"),
            Self::RefuseInput(input) => write!(f, "refuse input {input}"),
            Self::Respond(request) => write!(f, "respond to request {request}"),
            Self::Reject(request) => write!(f, "reject request {request}"),
            Self::Close => write!(f, "close"),
        }
    }
}

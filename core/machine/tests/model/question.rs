//! The input requests of a server.

use mcp_sansio::protocol::{InputRequest, InputRequiredResult, Map};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::capabilities::Capabilities;
use crate::gate::{VERSIONS, offers_forms};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Roots,
    Sampling,
    SamplingWithTools,
    Form,
    Url,
}

/// The keys of input requests in a round, in order.
pub(crate) const KEYS: [&str; 3] = ["a", "b", "c"];

pub(crate) fn question() -> impl Strategy<Value = Question> {
    proptest::sample::select(vec![
        Question::Form,
        Question::Roots,
        Question::Sampling,
        Question::SamplingWithTools,
        Question::Url,
    ])
}

impl Question {
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Roots => "roots/list",
            Self::Sampling | Self::SamplingWithTools => "sampling/createMessage",
            Self::Form | Self::Url => "elicitation/create",
        }
    }

    /// Returns the capability that a client with the capabilities `client` lacks for this request
    /// at `version`.
    // [ROOT-001] [SAMP-001] [SAMP-006] [ELIC-001] [ELIC-005] [MRTR-005] [CAP-021].
    pub(crate) fn lacks(self, client: &Capabilities, version: &str) -> Option<&'static str> {
        let lacks = |path: &'static str| (!client.contains(path)).then_some(path);
        let (elicits, has_modes) = (version >= VERSIONS[2], version >= VERSIONS[3]);
        match self {
            Self::Roots => lacks("roots"),
            Self::Sampling => lacks("sampling"),
            Self::SamplingWithTools if has_modes => {
                lacks("sampling").or_else(|| lacks("sampling.tools"))
            }
            Self::SamplingWithTools => lacks("sampling"),
            Self::Form | Self::Url if !elicits => Some("elicitation"),
            Self::Form if has_modes && !offers_forms(client) => {
                lacks("elicitation").or(Some("elicitation.form"))
            }
            Self::Form => lacks("elicitation"),
            // Before there were modes, a client could not declare support for URLs.
            Self::Url if has_modes => lacks("elicitation").or_else(|| lacks("elicitation.url")),
            Self::Url => lacks("elicitation").or(Some("elicitation.url")),
        }
    }

    pub(crate) fn params(self) -> Value {
        let form = json!({ "type": "object", "properties": {} });
        match self {
            Self::Roots => json!({}),
            Self::Sampling => json!({ "messages": [], "maxTokens": 1 }),
            Self::SamplingWithTools => json!({ "messages": [], "maxTokens": 1, "tools": [] }),
            Self::Form => json!({ "message": "?", "requestedSchema": form }),
            Self::Url => {
                json!({ "mode": "url", "message": "?", "url": "a:b", "elicitationId": "e" })
            }
        }
    }
}

/// Returns the input requests of a round by key, as JSON.
pub(crate) fn input_requests(questions: &[Question]) -> Value {
    let entry = |(key, question): (&&str, &Question)| {
        ((*key).to_owned(), json!({ "method": question.method(), "params": question.params() }))
    };
    KEYS.iter().zip(questions).map(entry).collect::<serde_json::Map<_, _>>().into()
}

/// Returns the result of a server application that requires this input.
pub(crate) fn input_required(questions: &[Question], state: bool) -> InputRequiredResult {
    let mut requests: Map<InputRequest> = Map::default();
    for (key, question) in KEYS.iter().zip(questions) {
        let entry = json!({ "method": question.method(), "params": question.params() });
        let entry: InputRequest = serde_json::from_value(entry).expect("a question");
        requests.insert(*key, entry);
    }
    let required = InputRequiredResult::new();
    let required = if questions.is_empty() { required } else { required.input_requests(requests) };
    if state { required.request_state("s") } else { required }
}

/// Describes the keys and outcomes of answers, as in a repeated request.
pub(crate) fn spell_inputs(answers: &[(&str, &str)], state: bool) -> String {
    let answers: Vec<_> = answers.iter().map(|(key, answer)| format!("{key}={answer}")).collect();
    let mut text = String::new();
    if !answers.is_empty() {
        text += &format!(" with {}", answers.join(","));
    }
    if state {
        text += " and s";
    }
    text
}

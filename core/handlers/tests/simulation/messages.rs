//! Messages between the two applications. Each one identifies the call and run that it belongs to.

use std::time::Duration;

use mcp_sansio::Method;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{Event, Request, Timeouts};
use mcp_sansio::protocol::{
    ElicitFormParams, ElicitParams, ElicitSchema, InputRequest, InputRequiredResult,
    ListRootsParams, Map,
};
use serde::Deserialize;

use crate::scene::Scene;

/// The only resource that changes.
pub(crate) const RESOURCE: &str = "work:changing";

/// The default timeout of a call.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(40);

/// Returns the timeouts of a client, some with keep-alive pings.
pub(crate) fn timeouts(keep_alive: Option<Duration>) -> Timeouts {
    let mut timeouts = Timeouts::default();
    timeouts.call = CALL_TIMEOUT;
    timeouts.call_hard = 3 * CALL_TIMEOUT;
    timeouts.keep_alive = keep_alive;
    timeouts
}

/// Returns random text, mostly short, sometimes longer than any buffer.
pub(crate) fn padding(scene: &mut Scene) -> String {
    let length = match scene.random.below(30) {
        0 => scene.random.index(30_000),
        1..=6 => scene.random.index(1_500),
        _ => scene.random.index(30),
    };
    "~".repeat(length)
}

/// Returns the parameters of the call with this serial number.
pub(crate) fn params(method: Method, serial: u64, scene: &mut Scene) -> RawJson<'static> {
    let text = match method {
        Method::ToolsCall => {
            let padding = padding(scene);
            format!(r#"{{"name":"work","arguments":{{"n":{serial},"padding":"{padding}"}}}}"#)
        }
        Method::PromptsGet => format!(r#"{{"name":"work","arguments":{{"n":"{serial}"}}}}"#),
        Method::ResourcesRead => format!(r#"{{"uri":"work:{serial}"}}"#),
        _ => "{}".to_owned(),
    };
    RawJson::parse(&text).expect("valid JSON").into_owned()
}

/// Returns the serial number of a call that reached the server.
pub(crate) fn serial_of(request: &Request<'_>) -> Option<u64> {
    let text = |member: RawJson<'_>| member.to_text().map(String::from);
    if let Some(uri) = request.params.get("uri") {
        return text(uri)?.strip_prefix("work:")?.parse().ok();
    }
    let arguments = request.params.get("arguments")?;
    let number = arguments.get("n")?;
    text(number.clone()).unwrap_or_else(|| number.as_str().to_owned()).parse().ok()
}

/// Encodes the run and step of a progress notification. Runs count up, and so do the steps of each.
pub(crate) fn progress_at(run: u64, step: u64) -> f64 {
    (run * 1000 + step) as f64
}

pub(crate) fn run_and_step(progress: f64) -> (u64, u64) {
    let number = progress as u64;
    (number / 1000, number % 1000)
}

/// The result of a run, with the number of messages that precede it.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Answer {
    pub(crate) n: u64,
    pub(crate) run: u64,
    pub(crate) progress: u64,
    pub(crate) logs: u64,
}

impl Answer {
    /// Returns a result that is valid for any of the methods.
    pub(crate) fn write(self, scene: &mut Scene) -> RawJson<'static> {
        let Self { n, run, progress, logs } = self;
        let padding = padding(scene);
        let text = format!(
            r#"{{"content":[],"contents":[],"messages":[],"n":{n},"run":{run},"progress":{progress},"logs":{logs},"padding":"{padding}"}}"#
        );
        RawJson::parse(&text).expect("valid JSON").into_owned()
    }

    pub(crate) fn read(result: &RawJson<'_>) -> Option<Self> {
        result.decode().ok()
    }
}

/// The data of a log message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Note {
    /// A broadcast: a number that grows, and its index among the broadcasts of its server.
    Broadcast {
        number: u64,
        index: u64,
    },
    OfRun {
        n: u64,
        run: u64,
        step: u64,
    },
}

impl Note {
    pub(crate) fn write(self, scene: &mut Scene) -> RawJson<'static> {
        let text = match self {
            Self::Broadcast { number, index } => {
                format!(r#"{{"broadcast":{number},"index":{index}}}"#)
            }
            Self::OfRun { n, run, step } => {
                let padding = padding(scene);
                format!(r#"{{"n":{n},"run":{run},"step":{step},"padding":"{padding}"}}"#)
            }
        };
        RawJson::parse(&text).expect("valid JSON").into_owned()
    }

    pub(crate) fn read(params: &RawJson<'_>) -> Self {
        let data = params.get("data").expect("a log message has data");
        let number = |name| data.get(name).and_then(|member| member.decode().ok());
        let needed = |name| number(name).expect("a number that was written by `Note::write`");
        if let Some(number) = number("broadcast") {
            return Self::Broadcast { number, index: needed("index") };
        }
        Self::OfRun { n: needed("n"), run: needed("run"), step: needed("step") }
    }
}

/// Returns some input requests, or only a state.
pub(crate) fn questions(scene: &mut Scene) -> InputRequiredResult {
    let mut questions: Map<InputRequest> = Map::default();
    let count = scene.random.index(3);
    for key in ["a", "b"].iter().take(count) {
        let form = ElicitParams::from(ElicitFormParams::new("?", ElicitSchema::new()));
        let question: InputRequest =
            if scene.random.once_in(2) { form.into() } else { ListRootsParams::new().into() };
        questions.insert(*key, question);
    }
    let required = InputRequiredResult::new().input_requests(questions);
    if count == 0 || scene.random.once_in(2) { required.request_state("s") } else { required }
}

/// Returns the answer of a host to an input request.
pub(crate) fn answer_to(method: Method) -> RawJson<'static> {
    let text = match method {
        Method::RootsList => r#"{"roots":[]}"#,
        Method::ElicitationCreate => r#"{"action":"decline"}"#,
        other => panic!("{other} is not an input request"),
    };
    RawJson::parse(text).expect("valid JSON")
}

/// Describes an event in one line, without handles and padding.
pub(crate) fn describe(event: &Event<'_>) -> String {
    match event {
        Event::Opened(opened) => format!("that it is open at {}", opened.revision),
        Event::Request(request) => {
            format!("a request: {} {}", request.method, short(request.params.as_str()))
        }
        Event::Notification(notification) => {
            format!("{} {}", notification.method, short(notification.params.as_str()))
        }
        Event::Progress(progress) => format!("of progress {}", progress.progress),
        Event::Ended(ended) => match &ended.outcome {
            Ok(result) => format!("a result: {}", short(result.as_str())),
            Err(failure) => format!("that a call failed: {failure}"),
        },
        Event::InputRequested(input) => format!("an input request: {}", input.method),
        Event::Cancelled(cancelled) => format!("of an end: {:?}", cancelled.reason),
        Event::Subscribed(_) => "that a subscription is acknowledged".to_owned(),
        Event::Violation(violation) => format!("of a violation: {violation}"),
        Event::Closed(reason) => format!("of the end: {reason}"),
        other => format!("{other:?}"),
    }
}

/// Returns the beginning of a text.
pub(crate) fn short(text: &str) -> &str {
    const LENGTH: usize = 160;
    let end = (0..=LENGTH.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}

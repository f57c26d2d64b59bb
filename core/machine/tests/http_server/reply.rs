//! A response as received by its client.

use mcp_sansio::http::{Response, ResponseHead};
use serde_json::Value;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    UnderWay,
    Complete,
    Aborted,
    Disconnected,
}

/// The response as received so far.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: Option<u16>,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) state: State,
    /// Whether the client reads the response.
    pub(crate) reads: bool,
    /// The conversation of its messages: a session or a modern request.
    pub(crate) conversation: String,
    /// The refusal of the request by admission.
    pub(crate) refused: Option<Response>,
    /// Bytes of the body that were checked.
    pub(crate) seen: usize,
}

/// A Server-Sent Event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sse {
    pub(crate) kind: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) data: String,
    pub(crate) comment: bool,
    /// It has data, even if empty, so that a reader dispatches it.
    pub(crate) dispatched: bool,
}

impl Reply {
    pub(crate) fn head(&mut self, head: &ResponseHead) {
        self.status = Some(head.status.0);
        self.fields = head.fields().map(|(name, value)| (name.into(), value.into())).collect();
    }

    pub(crate) const fn is_over(&self) -> bool {
        !matches!(self.state, State::UnderWay)
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn status(&self) -> u16 {
        self.status.expect("a head")
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.field("content-type") == Some("text/event-stream")
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    /// Returns the body of a complete JSON response.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.field("content-type"), Some("application/json"), "{self:?}");
        assert_eq!(self.state, State::Complete);
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// Returns the events of a stream.
    pub(crate) fn events(&self) -> Vec<Sse> {
        parse(self.text())
    }

    /// Returns the messages of a stream.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let events = self.events().into_iter().filter(|event| !event.data.is_empty());
        events.map(|event| serde_json::from_str(&event.data).expect("JSON")).collect()
    }

    /// Returns the id of the last complete event with an id in the first `length` bytes.
    pub(crate) fn last_id_at(&self, length: usize) -> Option<String> {
        parse(&String::from_utf8_lossy(&self.body[..length]))
            .into_iter()
            .rev()
            .find_map(|event| event.id)
    }

    pub(crate) fn last_id(&self) -> Option<String> {
        self.last_id_at(self.body.len())
    }

    /// Describes the response: status, media type, and each message or the body.
    pub(crate) fn transcript(&self) -> String {
        let mut lines = vec![match (self.status, self.field("content-type")) {
            (Some(status), Some(content)) => format!("{status} {content}"),
            (Some(status), None) => format!("{status}"),
            (None, _) => "waiting".into(),
        }];
        if self.is_stream() {
            for event in self.events() {
                let part = |name: &str, value: &Option<String>| match value {
                    Some(value) => format!("{name}={value} "),
                    None => String::new(),
                };
                let comment = if event.comment { ":" } else { "" };
                let alone = if event.id.is_some() && !event.dispatched { "alone" } else { "" };
                lines.push(format!(
                    "{}{}{}{comment}{alone}{}",
                    part("event", &event.kind),
                    part("id", &event.id),
                    part("retry", &event.retry),
                    event.data
                ));
            }
            match self.state {
                State::Complete => lines.push("end".into()),
                State::UnderWay => lines.push("...".into()),
                other => lines.push(format!("{other:?}")),
            }
        } else {
            lines.push(self.text().into());
        }
        lines.join("\n")
    }

    /// Returns the events, or the JSON body, that were not checked yet.
    pub(crate) fn take_new_events(&mut self) -> Vec<Sse> {
        if !self.is_stream() {
            let data = String::from_utf8(self.body.clone()).expect("UTF-8");
            return vec![Sse { data, ..Sse::default() }];
        }
        let fresh = String::from_utf8_lossy(&self.body[self.seen..]).into_owned();
        let whole = fresh.rfind("\n\n").map_or(0, |end| end + 2);
        self.seen += whole;
        parse(&fresh[..whole])
    }
}

/// Parses complete events only: an event that is cut was not received.
fn parse(text: &str) -> Vec<Sse> {
    let mut events = Vec::new();
    let mut rest = text;
    while let Some((block, after)) = rest.split_once("\n\n") {
        rest = after;
        let mut event = Sse::default();
        for line in block.split('\n') {
            match line.split_once(": ") {
                Some(("event", value)) => event.kind = Some(value.into()),
                Some(("id", value)) => event.id = Some(value.into()),
                Some(("retry", value)) => event.retry = Some(value.into()),
                Some(("data", value)) => {
                    event.dispatched = true;
                    event.data.push_str(value);
                }
                _ if line.starts_with(':') => event.comment = true,
                _ => panic!("unknown line {line:?} in {text}"),
            }
        }
        events.push(event);
    }
    events
}

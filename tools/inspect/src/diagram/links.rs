//! Converts the lines of a recording to rows, and links each row to its request.

use std::collections::BTreeMap;

use serde_json::Value;

use super::exchanges::Exchanges;
use super::json::{Message, brief, indented, messages};
use super::line::{Line, Start};
use super::{Diagram, Kind, Row, Side};

/// The state while a recording is read.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) recorded: Side,
    pub(super) at: Option<u64>,
    pub(super) rows: Vec<Row>,
    /// Requests by scope, sender and progress token.
    tokens: BTreeMap<(String, Side, String), String>,
    pub(super) exchanges: Exchanges,
    http: bool,
    /// The incomplete line at the end of the last byte stream input.
    rest: Vec<u8>,
}

impl Reader {
    pub(super) fn new(start: &Start) -> Self {
        Self {
            recorded: start.recorded,
            at: start.at,
            rows: Vec::new(),
            tokens: BTreeMap::new(),
            exchanges: Exchanges::default(),
            http: start.http,
            rest: Vec::new(),
        }
    }

    pub(super) fn finish(self, start: &Start) -> Diagram {
        let Self { recorded, rows, exchanges, .. } = self;
        let last = rows.len().saturating_sub(1);
        Diagram { recorded, name: start.name.clone(), exchanges: exchanges.finish(last), rows }
    }

    pub(super) fn take(&mut self, line: &Line<'_>, number: usize) {
        self.at = line.said.at.max(self.at);
        if self.http {
            self.take_exchange(line, number);
        } else {
            self.take_stream(line, number);
        }
        let own = self.recorded;
        match line.verb.as_str() {
            "end_of_input" => self.push(number, own, Kind::Cut, "end of input", ""),
            "frame_error" => {
                let error = line.said.error.map_or("", |error| error.get());
                self.push(number, own.other(), Kind::Cut, "no message", error);
            }
            _ if line.said.command.is_some_and(|command| command.get() == "\"close\"") => {
                self.push(number, own, Kind::Note, "closes", "");
            }
            _ => {}
        }
        if let Some(event) = &line.said.event {
            let told = ["opened", "violation", "closed"];
            if told.iter().any(|start| event.starts_with(start)) {
                self.note(number, event, event);
            }
        }
    }

    fn take_stream(&mut self, line: &Line<'_>, number: usize) {
        let (own, other) = (self.recorded, self.recorded.other());
        match (line.verb.as_str(), &line.said.frame, &line.said.bytes) {
            ("message", Some(frame), _) => {
                for text in frame.texts() {
                    self.message(number, other, &text, "", None);
                }
            }
            ("transmit" | "sent", _, Some(bytes)) => {
                self.rest.extend_from_slice(&bytes.bytes());
                while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                    let text: Vec<u8> = self.rest.drain(..=end).collect();
                    let text = String::from_utf8_lossy(&text);
                    self.message(number, own, text.trim_end(), "", None);
                }
            }
            _ => {}
        }
    }

    /// Adds rows for the messages in a text.
    pub(super) fn message(
        &mut self,
        line: usize,
        from: Side,
        text: &str,
        scope: &str,
        exchange: Option<usize>,
    ) {
        for text in messages(text) {
            let detail = indented(text);
            let message: Message<'_> = match serde_json::from_str(text) {
                Ok(message) => message,
                Err(_) => {
                    self.push_on(line, from, Kind::Cut, "no message", detail, None, exchange);
                    continue;
                }
            };
            let (kind, label, link) = self.read(&message, from, scope);
            self.push_on(line, from, kind, label, detail, link, exchange);
        }
    }

    fn read(
        &mut self,
        message: &Message<'_>,
        from: Side,
        scope: &str,
    ) -> (Kind, String, Option<String>) {
        let name = |of: Side, id: &Value| format!("{scope}|{of:?}|{id}");
        let params = message.params.as_ref();
        let Some(method) = &message.method else {
            let link = message.id.as_ref().map(|id| name(from.other(), id));
            let id = message.id.as_ref().map(brief).unwrap_or_default();
            return match &message.error {
                Some(error) => {
                    let (code, text) = (brief(&error.code), brief(&error.message));
                    (Kind::Error, format!("error {code} {text} ({id})"), link)
                }
                None if message.result.is_some() => (Kind::Result, format!("result ({id})"), link),
                None => (Kind::Cut, "no message".into(), None),
            };
        };
        let subject = params.and_then(|it| it.name.as_ref().or(it.uri.as_ref()));
        let mut label = match subject {
            Some(subject) => format!("{method} {}", brief(subject)),
            None => method.to_string(),
        };
        if let Some(id) = &message.id {
            let link = name(from, id);
            let meta = params.and_then(|params| params.meta.as_ref());
            if let Some(token) = meta.and_then(|meta| meta.progress_token.as_ref()) {
                let key = (scope.to_owned(), from, token.to_string());
                self.tokens.insert(key, link.clone());
            }
            return (Kind::Request, format!("{label} ({})", brief(id)), Some(link));
        }
        let link = params.and_then(|params| {
            if let Some(id) = &params.request_id {
                label = format!("{label} ({})", brief(id));
                return Some(name(from, id));
            }
            if let Some(token) = &params.progress_token {
                if let Some(progress) = &params.progress {
                    label = format!("{label} {}", brief(progress));
                }
                let key = (scope.to_owned(), from.other(), token.to_string());
                return self.tokens.get(&key).cloned();
            }
            let subscription = params.meta.as_ref()?.subscription.as_ref()?;
            Some(name(from.other(), subscription))
        });
        (Kind::Notification, label, link)
    }

    /// Adds a note about an event on the recorded side.
    pub(super) fn note(&mut self, line: usize, label: &str, detail: &str) {
        self.push(line, self.recorded, Kind::Note, label, detail);
    }

    pub(super) fn push(
        &mut self,
        line: usize,
        from: Side,
        kind: Kind,
        label: impl Into<String>,
        detail: impl Into<String>,
    ) {
        self.push_on(line, from, kind, label, detail, None, None);
    }

    #[expect(clippy::too_many_arguments, reason = "the columns of a row")]
    pub(super) fn push_on(
        &mut self,
        line: usize,
        from: Side,
        kind: Kind,
        label: impl Into<String>,
        detail: impl Into<String>,
        link: Option<String>,
        exchange: Option<usize>,
    ) {
        let (label, detail, at) = (label.into(), detail.into(), self.at);
        if let Some(exchange) = exchange {
            self.exchanges.touch(exchange, self.rows.len());
        }
        self.rows.push(Row { line, at, from, kind, label, detail, link, exchange });
    }
}

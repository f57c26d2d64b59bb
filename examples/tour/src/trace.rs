//! Summaries of the messages between a client and a server.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_sansio::peer::Progress;
use mcp_sansio_cli::exchanges::ExchangeEvent;
use mcp_sansio_cli::wire::Direction;
use serde_json::Value;

/// Everything a connection has transferred so far. Clones share the trace.
#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    messages: Vec<String>,
    /// Indexed by number, because responses may arrive in another order.
    exchanges: BTreeMap<usize, String>,
}

impl Trace {
    pub(crate) fn message(&self, direction: Direction, line: &str) {
        let arrow = match direction {
            Direction::Out => "→",
            Direction::In => "←",
        };
        self.lock().messages.push(format!("{arrow} {}", in_short(line.as_bytes())));
    }

    pub(crate) fn exchange(&self, number: usize, event: &ExchangeEvent<'_>) {
        let exchanges = &mut self.lock().exchanges;
        if let ExchangeEvent::Request(request) = event {
            let mut words = request.method.to_owned();
            let path = request.url().path_and_query().split('?').next().unwrap_or_default();
            match &*in_short(&request.body) {
                // A request without a message goes to an authorization server or fetches metadata,
                // so show its path.
                UNKNOWN if path.starts_with("/.well-known/") || !request.body.is_empty() => {
                    words = format!("{words} {path}");
                }
                UNKNOWN => {}
                message => words = format!("{words} {message}"),
            }
            if let Some((_, id)) = request.fields().find(|(name, _)| *name == "last-event-id") {
                // Writing to a string cannot fail.
                let _ = write!(words, " with Last-Event-ID {id}");
            }
            exchanges.insert(number, words);
        } else if let Some(words) = exchanges.get_mut(&number) {
            // Writing to a string cannot fail.
            let _ = match event {
                ExchangeEvent::Head(head) => write!(words, " → {}", head.status().0),
                ExchangeEvent::Failed(_) => write!(words, ", cut off"),
                _ => Ok(()),
            };
        }
    }

    /// Returns the messages since the last call.
    pub(crate) fn take(&self) -> String {
        mem::take(&mut self.lock().messages).join("  ")
    }

    /// Returns the exchanges since [`clear`](Self::clear).
    pub(crate) fn exchanges(&self) -> Vec<String> {
        self.lock().exchanges.values().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        *self.lock() = Seen::default();
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The progress notifications of a call.
#[derive(Clone, Default)]
pub(crate) struct Steps(Arc<Mutex<Vec<String>>>);

impl Steps {
    /// Returns a callback that records progress notifications.
    pub(crate) fn counter(&self) -> impl FnMut(&Progress<'_>) + Send + 'static {
        let Self(steps) = self.clone();
        move |progress| {
            let step = format!("{} of {}", progress.progress, progress.total.unwrap_or(0.0));
            steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
        }
    }

    pub(crate) fn take(&self) -> Vec<String> {
        mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The summary of a body that is not a message.
const UNKNOWN: &str = "?";

/// Summarizes a message in a few words.
fn in_short(message: &[u8]) -> String {
    let message: Value = serde_json::from_slice(message).unwrap_or_default();
    match (&message["method"], &message["result"], &message["error"]) {
        (Value::String(method), _, _) => method.trim_start_matches("notifications/").to_owned(),
        (_, result, _) if result["resultType"] == "input_required" => "input required".into(),
        (_, Value::Object(_), _) => "result".into(),
        (_, _, Value::Object(error)) => format!("error {}", error["code"]),
        _ => UNKNOWN.into(),
    }
}

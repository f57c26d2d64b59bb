//! The observable outcome of an operation.

use std::fmt;

/// Expected by a model, or observed from a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Messages that are sent, in order.
    pub(crate) sent: Vec<String>,
    /// Events, in order.
    pub(crate) told: Vec<String>,
    /// Why the operation was refused.
    pub(crate) refused: Option<&'static str>,
    /// Whether there is a deadline.
    pub(crate) waits: bool,
    /// Whether the order of the messages and events does not matter.
    pub(crate) unordered: bool,
}

impl Outcome {
    pub(crate) fn request(&mut self, id: i64, method: &str, detail: &str) {
        self.sent.push(format!("{method} {id}{detail}"));
    }

    pub(crate) fn notification(&mut self, method: &str, detail: &str) {
        self.sent.push(format!("{method}{detail}"));
    }

    /// Cancels a request of this side.
    pub(crate) fn cancels(&mut self, id: impl fmt::Display) {
        self.notification("notifications/cancelled", &format!(" of {id}"));
    }

    pub(crate) fn result(&mut self, id: &str, detail: &str) {
        self.sent.push(format!("result {id}{detail}"));
    }

    pub(crate) fn error(&mut self, id: &str, code: i64, detail: &str) {
        self.sent.push(format!("error {id} {code}{detail}"));
    }

    pub(crate) fn tell(&mut self, event: impl Into<String>) {
        self.told.push(event.into());
    }

    pub(crate) fn refuse(&mut self, why: &'static str) {
        self.refused = Some(why);
    }

    /// Sorts messages and events whose order does not matter; `closed` remains last.
    pub(crate) fn sort(&mut self) {
        self.sent.sort_unstable();
        let last = |line: &String| line.starts_with("closed");
        self.told.sort_unstable_by(|a, b| (last(a), a).cmp(&(last(b), b)));
        self.unordered = true;
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sent.iter().try_for_each(|line| writeln!(f, "    ← {line}"))?;
        self.told.iter().try_for_each(|line| writeln!(f, "    · {line}"))?;
        self.refused.iter().try_for_each(|why| writeln!(f, "    refused: {why}"))?;
        if self.waits { writeln!(f, "    (a deadline)") } else { Ok(()) }
    }
}

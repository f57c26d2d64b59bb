//! Calls and notifications of the application.

use mcp_sansio::Side;

use crate::gate::{self, MODERN, Verdict};
use crate::outcome::Outcome;

use super::{ANSWER, CALL, Call, Model, Opening, Purpose, Session, Source, State};

impl Model {
    pub(super) fn call(&mut self, method: &'static str, out: &mut Outcome) {
        let version = match self.allowed(method, true) {
            Ok(version) => version,
            Err(refusal) => return out.refuse(refusal),
        };
        let number = self.calls.len();
        let id = self.sent.draw(Purpose::Call(number), self.now + ANSWER);
        let (until, state) = (self.now + CALL, State::Sent(id));
        self.calls.push(Call { method, until, rounds: 0, state });
        // [META-008] [VER-011].
        let detail = if version == MODERN { format!(" at {MODERN}") } else { String::new() };
        out.request(id, method, &detail);
    }

    /// Returns the revision at which the application may send a message, or why it may not.
    pub(super) fn allowed(
        &self,
        method: &str,
        request: bool,
    ) -> Result<&'static str, &'static str> {
        // Sent by the machine, or with another command.
        let own = [
            "initialize",
            "subscriptions/listen",
            "notifications/initialized",
            "notifications/cancelled",
            "notifications/progress",
            "notifications/subscriptions/acknowledged",
        ];
        if own.contains(&method) || gate::is_notification(method) == request {
            return Err("out of place");
        }
        if self.closed {
            return Err("closed");
        }
        // [LIFE-004].
        let Some(Session { version, server }) = &self.session else { return Err("not open") };
        // [CAP-018] [CAP-027] [LIFE-006] [LIFE-007] [LOG-006] [PING-005] [ROOT-005].
        let offers = self.offers(version);
        match gate::judge(Side::Client, method, version, server, &offers) {
            Verdict::Open => Ok(version),
            _ => Err("forbidden"),
        }
    }

    /// Cancels a call: a request that was sent is cancelled, and input requests are withdrawn.
    // [CANC-001] [CANC-002] [CANC-013] [CANC-014] [CANC-018] [TIME-002] [TIME-003].
    pub(super) fn give_up(&mut self, number: usize, how: &str, out: &mut Outcome) {
        match self.calls[number].state {
            State::Over => return,
            State::Asking { .. } => self.withdraw_inputs(number, out),
            State::Sent(id) => {
                self.sent.give_up(id, self.now);
                out.cancels(id);
            }
        }
        self.calls[number].state = State::Over;
        out.tell(format!("ended {number}: {how}"));
    }

    pub(super) fn settle_input(&mut self, number: usize, well: bool, out: &mut Outcome) {
        match self.inputs[number].take() {
            None => out.refuse("not due"),
            Some(Source::Request(id)) if well => out.result(id, ""),
            // [SAMP-012].
            Some(Source::Request(id)) => out.error(id, -1, ""),
            Some(Source::Round { call, index }) if well => {
                if let State::Asking { answered, .. } = &mut self.calls[call].state {
                    answered[index] = true;
                }
                self.look_at_round(call, out);
            }
            // [SAMP-019] [ELIC-027]: no request of the server to respond to.
            Some(Source::Round { call, .. }) => self.give_up(call, "input refused", out),
        }
    }

    pub(super) fn respond(&mut self, number: usize, well: bool, out: &mut Outcome) {
        match self.requests[number].take() {
            None => out.refuse("not due"),
            Some(id) if well => out.result(id, ""),
            Some(id) => out.error(id, -32603, ""),
        }
    }

    // [TIME-001] [TIME-003] [TIME-006] [VER-022] [LIFE-008] [CANC-002].
    pub(super) fn pass(&mut self, seconds: u64, out: &mut Outcome) {
        self.now += seconds;
        out.unordered = true;
        let late = |call: &Call, now: u64| match call.state {
            State::Asking { .. } => call.until <= now,
            _ => false,
        };
        for number in 0..self.calls.len() {
            if late(&self.calls[number], self.now) {
                self.give_up(number, "timed out", out);
            }
        }
        while let Some(id) = self.sent.expired(self.now) {
            match self.sent.give_up(id, self.now) {
                Some(Purpose::Call(number)) => self.give_up(number, "timed out", out),
                _ if matches!(self.opening, Some(Opening::Probing)) => match self.newest_legacy() {
                    Some(_) => self.fall_back(true, out),
                    None => self.end("opening", out),
                },
                _ => self.end("opening", out),
            }
        }
    }

    pub(super) fn waits(&self) -> bool {
        let asking = |call: &Call| matches!(call.state, State::Asking { .. });
        !self.sent.is_empty() || self.calls.iter().any(asking)
    }
}

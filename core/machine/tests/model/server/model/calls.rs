//! Calls and notifications of the application.

use mcp_sansio::Side;

use crate::gate::{self, VERSIONS, Verdict};
use crate::ids::Answered;
use crate::outcome::Outcome;

use super::{CALL, Model, Purpose, Session, State};

impl Model {
    pub(super) fn call(&mut self, method: &'static str, out: &mut Outcome) {
        if let Some(refusal) = self.refusal(method, true) {
            return out.refuse(refusal);
        }
        let number = self.made.len();
        let id = self.calls.draw(Purpose::Call(number), self.now + CALL);
        self.made.push(id);
        out.request(id, method, "");
    }

    pub(super) fn tell(&self, method: &'static str, out: &mut Outcome) {
        match self.refusal(method, false) {
            Some(refusal) => out.refuse(refusal),
            None => out.notification(method, ""),
        }
    }

    /// Returns why the application may not send a message.
    pub(super) fn refusal(&self, method: &str, request: bool) -> Option<&'static str> {
        // Sent by the machine, or with another command.
        let own = [
            "initialize",
            "subscriptions/listen",
            "notifications/initialized",
            "notifications/cancelled",
            "notifications/progress",
            "notifications/message",
            "notifications/resources/updated",
            "notifications/subscriptions/acknowledged",
        ];
        if self.closed {
            return Some("closed");
        }
        if own.contains(&method) || gate::is_notification(method) == request {
            return Some("out of place");
        }
        // [LIFE-005] [RPC-030].
        let Some(session) = &self.session else { return Some("not open") };
        if !session.confirmed && method != "ping" {
            return Some("not open");
        }
        // [CAP-018] [CAP-027] [LIFE-006] [LIFE-007] [ELIC-001] [SAMP-001] [ROOT-001].
        let Session { version, client, .. } = session;
        let verdict = gate::judge(Side::Server, method, version, &self.offers, client);
        // [ELIC-005].
        let form = method == "elicitation/create" && *version >= VERSIONS[3];
        let shown = !form || gate::offers_forms(client);
        (verdict != Verdict::Open || !shown).then_some("forbidden")
    }

    // [CANC-001] [CANC-010].
    pub(super) fn give_up(&mut self, number: usize, out: &mut Outcome) {
        let id = self.made[number];
        if self.calls.give_up(id, self.now).is_some() {
            out.cancels(id);
            out.tell(format!("ended {number}: cancelled"));
        }
    }

    // [RPC-006] [CANC-005] [CANC-006].
    pub(super) fn answered(&mut self, id: i64, well: bool, out: &mut Outcome) {
        match self.calls.answered(id, self.now) {
            Answered::Open(Purpose::Call(number)) => {
                let outcome = if well { "ok" } else { "refused" };
                out.tell(format!("ended {number}: {outcome}"));
            }
            Answered::Open(Purpose::Question { request, index }) => {
                self.question_settled(request, index, well, out);
            }
            Answered::Late => {}
            Answered::Unknown => self.violated(out),
        }
    }

    pub(super) fn question_settled(
        &mut self,
        number: usize,
        index: usize,
        well: bool,
        out: &mut Outcome,
    ) {
        if let State::Asking { answers, .. } = &mut self.requests[number].state {
            answers[index] = Some(well);
        }
        self.look_at_round(number, out);
    }

    // [TIME-001] [TIME-002].
    pub(super) fn pass(&mut self, seconds: u64, out: &mut Outcome) {
        self.now += seconds;
        out.unordered = true;
        while let Some(id) = self.calls.expired(self.now) {
            out.cancels(id);
            match self.calls.give_up(id, self.now) {
                Some(Purpose::Call(number)) => out.tell(format!("ended {number}: timed out")),
                Some(Purpose::Question { request, index }) => {
                    self.question_settled(request, index, false, out);
                }
                None => unreachable!("it was open"),
            }
        }
    }

    // [TOOL-005] [TOOL-006] [SUBS-002] [SUBS-006].
    pub(super) fn announce(&self, out: &mut Outcome) {
        const CHANGED: &str = "notifications/tools/list_changed";
        if self.closed || !self.offers.contains("tools.listChanged") {
            return;
        }
        if self.session.as_ref().is_some_and(|session| session.confirmed) {
            out.notification(CHANGED, "");
        }
        for id in &self.listening {
            out.notification(CHANGED, &format!(" on {id}"));
        }
        out.unordered = true;
    }
}

//! Responses to calls, and input rounds before them.

use crate::gate::MODERN;
use crate::ids::Answered;
use crate::outcome::Outcome;
use crate::question::{KEYS, Question};

use super::super::operation::{ROUNDS_MAX, Reply};
use super::{ANSWER, Model, Purpose, Source, State};

impl Model {
    // [RPC-006] [CANC-005] [CANC-006].
    pub(super) fn answered(&mut self, id: i64, reply: &Reply, out: &mut Outcome) {
        match self.sent.answered(id, self.now) {
            Answered::Open(Purpose::Opening) => self.opening_answered(reply, out),
            Answered::Open(Purpose::Call(number)) => self.call_answered(number, reply, out),
            Answered::Late => {}
            Answered::Unknown => self.violated(out),
        }
    }

    pub(super) fn call_answered(&mut self, number: usize, reply: &Reply, out: &mut Outcome) {
        let modern = self.session.as_ref().is_some_and(|session| session.version == MODERN);
        self.calls[number].state = State::Over;
        let how = match reply {
            Reply::Error(_) | Reply::Unsupported { .. } => "refused",
            Reply::InputRequired { questions, state } if modern => {
                match self.input_required(number, questions, *state, out) {
                    None => return,
                    Some(failure) => failure,
                }
            }
            // [RPC-021].
            Reply::OddResult if modern => "invalid",
            // [RPC-020].
            _ => "ok",
        };
        out.tell(format!("ended {number}: {how}"));
    }

    /// Handles a result with input requests. Returns why the call fails, if it does.
    // [MRTR-003] [MRTR-005] [MRTR-009] [MRTR-010] [MRTR-011].
    pub(super) fn input_required(
        &mut self,
        number: usize,
        questions: &[Question],
        state: bool,
        out: &mut Outcome,
    ) -> Option<&'static str> {
        let call = &mut self.calls[number];
        let takes_input = matches!(call.method, "tools/call" | "prompts/get" | "resources/read");
        if !takes_input || (questions.is_empty() && !state) {
            return Some("invalid");
        }
        call.rounds += 1;
        if call.rounds > ROUNDS_MAX {
            return Some("too many rounds");
        }
        if questions.iter().any(|question| question.lacks(&self.own, MODERN).is_some()) {
            return Some("invalid");
        }
        call.state = State::Asking { answered: vec![false; questions.len()], state };
        for (question, index) in questions.iter().zip(0..) {
            out.tell(format!("input {} {}", self.inputs.len(), question.method()));
            self.inputs.push(Some(Source::Round { call: number, index }));
        }
        self.look_at_round(number, out);
        None
    }

    /// Sends the call again, as a new request, when all input requests are answered.
    // [MRTR-010] [MRTR-012] [MRTR-013] [MRTR-014].
    pub(super) fn look_at_round(&mut self, number: usize, out: &mut Outcome) {
        let call = &mut self.calls[number];
        let State::Asking { answered, state } = &call.state else { return };
        if answered.contains(&false) {
            return;
        }
        let (count, state) = (answered.len(), *state);
        let mut detail = format!(" at {MODERN}");
        if count > 0 {
            detail += &format!(" with {}", KEYS[..count].join(","));
        }
        if state {
            detail += " and s";
        }
        let deadline = call.until.min(self.now + ANSWER);
        let id = self.sent.draw(Purpose::Call(number), deadline);
        call.state = State::Sent(id);
        out.request(id, call.method, &detail);
    }

    /// Withdraws the input requests of a call.
    pub(super) fn withdraw_inputs(&mut self, number: usize, out: &mut Outcome) {
        for (input, at) in self.inputs.iter_mut().zip(0..) {
            if matches!(input, Some(Source::Round { call, .. }) if *call == number) {
                *input = None;
                out.tell(format!("cancelled input {at}"));
            }
        }
    }
}

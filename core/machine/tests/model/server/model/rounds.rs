//! Responses to a client, and input rounds before them.

use crate::gate::MODERN;
use crate::outcome::Outcome;
use crate::question::{KEYS, Question, spell_inputs};

use super::{HOST, Model, Purpose, State, required, takes_input};

impl Model {
    pub(super) fn respond(&mut self, number: usize, well: bool, out: &mut Outcome) {
        let request = &mut self.requests[number];
        if !matches!(request.state, State::Working) {
            return out.refuse("not due");
        }
        request.state = State::Over;
        match well {
            true => {
                out.result(request.id, if request.version == MODERN { " complete" } else { "" })
            }
            false => out.error(request.id, -32603, ""),
        }
    }

    // [MRTR-001] [MRTR-002] [MRTR-003] [MRTR-009].
    pub(super) fn ask(
        &mut self,
        number: usize,
        questions: &[Question],
        state: bool,
        out: &mut Outcome,
    ) {
        let closed = self.closed;
        // [LIFE-005].
        let confirmed = self.session.as_ref().is_some_and(|session| session.confirmed);
        let can_ask = !closed && (confirmed || questions.is_empty());
        let request = &mut self.requests[number];
        if !matches!(request.state, State::Working) {
            return out.refuse("not due");
        }
        let legacy = request.version != MODERN;
        let empty = questions.is_empty() && !state;
        let too_often = request.rounds >= self.rounds_max;
        request.state = State::Over;
        if !takes_input(request.method) || empty || too_often || (legacy && !can_ask) {
            out.error(request.id, -32603, "");
            return out.refuse("not allowed");
        }
        let mut lacking = questions.iter();
        let lacking = lacking.find_map(|it| it.lacks(&request.client, request.version));
        if let Some(path) = lacking {
            match (legacy, request.method) {
                (false, _) => out.error(request.id, -32021, &required(path)),
                // [TOOL-008].
                (true, "tools/call") => out.result(request.id, ""),
                (true, _) => out.error(request.id, -32603, ""),
            }
            return out.refuse("not declared");
        }
        if !legacy {
            return out.result(request.id, " input_required");
        }
        request.rounds += 1;
        request.state = State::Asking { answers: vec![None; questions.len()], state };
        for (question, index) in questions.iter().zip(0..) {
            let purpose = Purpose::Question { request: number, index };
            let id = self.calls.draw(purpose, self.now + HOST);
            out.request(id, question.method(), "");
        }
        self.look_at_round(number, out);
    }

    /// Delivers the request again when the last answer of a round is received.
    pub(super) fn look_at_round(&mut self, number: usize, out: &mut Outcome) {
        let request = &mut self.requests[number];
        let State::Asking { answers, state } = &request.state else { return };
        let Some(answers) = answers.iter().copied().collect::<Option<Vec<bool>>>() else { return };
        let outcome = |well: &bool| if *well { "ok" } else { "refused" };
        let answers: Vec<_> =
            KEYS.iter().zip(&answers).map(|(key, well)| (*key, outcome(well))).collect();
        let inputs = spell_inputs(&answers, *state);
        out.tell(format!("request {number} {}{inputs}", request.method));
        request.state = State::Working;
    }

    // [PROG-005] [PROG-006]: every request of these tests has a progress token.
    pub(super) fn progress(&self, number: usize, out: &mut Outcome) {
        let request = &self.requests[number];
        if !matches!(request.state, State::Over) {
            out.notification("notifications/progress", &format!(" for {}", request.id));
        }
    }
}

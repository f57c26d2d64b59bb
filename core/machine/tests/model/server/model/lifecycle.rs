//! How a session opens and how the connection ends.

use crate::capabilities::Capabilities;
use crate::gate::MODERN;
use crate::outcome::Outcome;

use super::{Model, Purpose, Session, State};

impl Model {
    /// Returns whether the server supports sessions.
    pub(super) fn is_legacy(&self) -> bool {
        self.versions.iter().any(|version| *version != MODERN)
    }

    pub(super) fn is_modern(&self) -> bool {
        self.versions.contains(&MODERN)
    }

    /// Returns the supported revisions, newest first.
    // [DISC-004] [VER-012] [VER-017].
    pub(super) fn spelled_versions(&self) -> String {
        self.versions.iter().rev().copied().collect::<Vec<_>>().join(",")
    }

    // [LIFE-001] [LIFE-002] [VER-003] [VER-004] [VER-005] [VER-007] [VER-010] [VER-016].
    pub(super) fn initialize(
        &mut self,
        id: &'static str,
        version: Option<&'static str>,
        client: &Capabilities,
        out: &mut Outcome,
    ) {
        let legacy = self.versions.iter().copied().filter(|version| *version != MODERN);
        let Some(newest) = legacy.clone().next_back() else {
            // [LIFE-020] [VER-017].
            return out.error(id, -32601, &format!(" {}", self.spelled_versions()));
        };
        let Some(version) = version else {
            out.error(id, -32602, "");
            return self.violated(out);
        };
        let version = legacy.clone().find(|known| *known == version).unwrap_or(newest);
        self.end_session(out);
        self.session = Some(Session { version, client: client.clone(), confirmed: false });
        out.result(id, &format!(" at {version}"));
    }

    /// Ends the session with its calls and requests, because the client opens another.
    fn end_session(&mut self, out: &mut Outcome) {
        if self.session.take().is_none() {
            return;
        }
        for (_, call) in self.open_calls() {
            out.tell(format!("ended {call}: lost"));
        }
        self.calls.clear();
        for (request, number) in self.requests.iter_mut().zip(0_usize..) {
            if request.version != MODERN && !matches!(request.state, State::Over) {
                request.state = State::Over;
                out.tell(format!("cancelled request {number}"));
            }
        }
        out.unordered = true;
    }

    // [LIFE-003].
    pub(super) fn initialized(&mut self, out: &mut Outcome) {
        match &mut self.session {
            Some(session) if !session.confirmed => {
                session.confirmed = true;
                out.tell(format!("opened at {}", session.version));
            }
            // A repeated notification has no effect.
            Some(_) => {}
            None => self.violated(out),
        }
    }

    /// Handles a violation by the client.
    pub(super) fn violated(&mut self, out: &mut Outcome) {
        if self.strict {
            self.end("violation", out);
            out.refuse("closed");
        } else {
            out.tell("violation");
        }
    }

    /// Ends the connection: pending requests of the client are dropped, and pending calls are
    /// reported as lost.
    // [SUBS-008] [CANC-019] [CANC-020].
    pub(super) fn end(&mut self, why: &str, out: &mut Outcome) {
        if !self.closed {
            for (_, call) in self.open_calls() {
                out.tell(format!("ended {call}: lost"));
            }
            out.tell(format!("closed: {why}"));
            self.closed = true;
        }
        for id in std::mem::take(&mut self.listening) {
            out.cancels(id);
            out.result(id, " complete");
        }
        self.calls.clear();
        for request in &mut self.requests {
            if why == "local" {
                request.state = State::Over;
            } else if matches!(request.state, State::Asking { .. }) {
                request.state = State::Over;
                out.error(request.id, -32603, "");
            }
        }
        out.unordered = true;
    }

    pub(super) fn open_calls(&self) -> Vec<(i64, usize)> {
        let open = self.calls.find(|purpose| matches!(purpose, Purpose::Call(_)));
        let number = |id: &i64| self.made.iter().position(|made| made == id);
        open.iter().map(|id| (*id, number(id).expect("a call that was made"))).collect()
    }
}

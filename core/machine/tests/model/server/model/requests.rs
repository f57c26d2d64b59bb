//! Requests, notifications and cancellations of a client.

use mcp_sansio::Side;

use crate::capabilities::Capabilities;
use crate::gate::{self, MODERN, VERSIONS, Verdict};
use crate::outcome::Outcome;
use crate::question::spell_inputs;

use super::super::operation::Metadata;
use super::{Model, Request, Session, State, is_question_of, required, takes_input};

impl Model {
    pub(super) fn is_in_flight(&self, id: &str) -> bool {
        let open = |it: &Request| it.id == id && !matches!(it.state, State::Over);
        self.listening.contains(id) || self.requests.iter().any(open)
    }

    /// Returns whether a pending request ends when the client opens another session.
    pub(super) fn ends_with_session(&self, id: &str) -> bool {
        let mut requests = self.requests.iter();
        requests.any(|it| it.id == id && it.version != MODERN && !matches!(it.state, State::Over))
    }

    pub(super) fn request(
        &mut self,
        id: &'static str,
        method: &'static str,
        metadata: Option<&Metadata>,
        again: bool,
        out: &mut Outcome,
    ) {
        // [RPC-004] [RPC-005] [RPC-006].
        let reopens = method == "initialize" && metadata.is_none() && self.ends_with_session(id);
        if self.is_in_flight(id) && !reopens {
            out.error(id, -32600, "");
            return self.violated(out);
        }
        // [VER-016]: the metadata of the request determines its era.
        let modern = metadata.filter(|_| self.is_modern());
        // [PING-001]: at any time.
        if method == "ping" && modern.is_none() && self.is_legacy() {
            return out.result(id, "");
        }
        // [LIFE-009] [CAP-020]: a modern request is checked by its own metadata only.
        let (version, client) = match (modern, &self.session) {
            // [VER-012].
            (Some(metadata), _) if metadata.version != MODERN => {
                return out.error(id, -32022, &format!(" {}", self.spelled_versions()));
            }
            (Some(Metadata { capabilities: Some(client), .. }), _) => (MODERN, client.clone()),
            // [META-009] [CAP-019].
            (Some(_), _) => {
                out.error(id, -32602, "");
                // A violation names its method.
                if gate::is_known(method) {
                    self.violated(out);
                }
                return;
            }
            (None, _) if method == "initialize" => {
                return self.initialize(id, None, &Capabilities::new(), out);
            }
            (None, Some(session)) => (session.version, session.client.clone()),
            // [META-009]: an existing method lacks its metadata, or its session.
            (None, None) => {
                let mut versions = self.versions.iter();
                let exists = versions.any(|version| gate::exists(Side::Client, method, version));
                out.error(id, if exists { -32602 } else { -32601 }, "");
                // The probe of a client of both eras is answered, and breaks no rule.
                if method != "server/discover" || self.is_modern() {
                    self.violated(out);
                }
                return;
            }
        };
        // [RPC-018].
        if !gate::is_known(method) {
            return out.error(id, -32601, "");
        }
        let verdict = gate::judge(Side::Client, method, version, &self.offers, &client);
        match verdict {
            // [RPC-012].
            _ if gate::is_notification(method) => out.error(id, -32601, ""),
            // [CAP-022].
            Verdict::Lacks(Side::Client, path) if version == MODERN => {
                out.error(id, -32021, &required(path));
            }
            // [CAP-026] [CAP-027] [LOG-006] [PING-005].
            Verdict::Absent | Verdict::Lacks(..) => out.error(id, -32601, ""),
            Verdict::Open => {
                return self.accepted(id, method, version, client, again, out);
            }
        }
        self.violated(out);
    }

    /// Handles a valid request.
    pub(super) fn accepted(
        &mut self,
        id: &'static str,
        method: &'static str,
        version: &'static str,
        client: Capabilities,
        again: bool,
        out: &mut Outcome,
    ) {
        match method {
            // [DISC-001] [DISC-002].
            "server/discover" => out.result(id, &format!(" complete {}", self.spelled_versions())),
            // [LOG-003] [RPC-019].
            "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
                out.result(id, "");
            }
            // [SUBS-003] [SUBS-006].
            "subscriptions/listen" => {
                self.listening.insert(id);
                out.notification("notifications/subscriptions/acknowledged", &format!(" on {id}"));
            }
            _ => {
                let inputs = again && version == MODERN && takes_input(method);
                let answers: &[_] = if inputs { &[("a", "ok")] } else { &[] };
                let inputs = spell_inputs(answers, inputs);
                out.tell(format!("request {} {method}{inputs}", self.requests.len()));
                let state = State::Working;
                self.requests.push(Request { id, method, version, client, state, rounds: 0 });
            }
        }
    }

    // [RPC-013]: notifications are never answered.
    pub(super) fn notified(&mut self, method: &'static str, out: &mut Outcome) {
        match (method, &self.session) {
            ("notifications/initialized", _) => self.initialized(out),
            // [CANC-007] [PROG-005]: unknown requests and tokens.
            ("notifications/cancelled", _) => {}
            _ if !gate::is_known(method) => {}
            (_, Some(session)) if gate::is_notification(method) => {
                let Session { version, client, .. } = session;
                match gate::judge(Side::Client, method, version, &self.offers, client) {
                    Verdict::Open if method == "notifications/progress" => {}
                    Verdict::Open => out.tell(format!("notification {method}")),
                    _ => self.violated(out),
                }
            }
            _ => self.violated(out),
        }
    }

    // [CANC-003] [CANC-004] [CANC-006] [CANC-007] [CANC-016] [SUBS-010].
    pub(super) fn cancelled(&mut self, id: &str, out: &mut Outcome) {
        // Some clients write a number as a string here.
        let id = if self.is_in_flight(id) { id } else { id.trim_matches('"') };
        if self.listening.remove(id) {
            return;
        }
        let open = |it: &Request| it.id == id && !matches!(it.state, State::Over);
        if let Some(number) = self.requests.iter().position(open) {
            self.requests[number].state = State::Over;
            // [CANC-001]: the input requests of the cancelled request are cancelled.
            for question in self.calls.find(|it| is_question_of(it, number)) {
                self.calls.give_up(question, self.now);
                out.cancels(question);
            }
            out.tell(format!("cancelled request {number}"));
        }
    }

    pub(super) fn malformed(&mut self, id: Option<&str>, code: i64, out: &mut Outcome) {
        // [RPC-009]: only the newer revisions allow an error without an id.
        let old = self.session.as_ref().is_some_and(|session| session.version < VERSIONS[3]);
        out.error(id.unwrap_or(if old { "null" } else { "none" }), code, "");
        self.violated(out);
    }
}

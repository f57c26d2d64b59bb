//! Requests, notifications and cancellations of a server.

use mcp_sansio::Side;

use crate::gate::{self, MODERN, VERSIONS, Verdict};
use crate::outcome::Outcome;

use super::{Model, Session, Source};

impl Model {
    pub(super) fn request(&mut self, id: &'static str, method: &'static str, out: &mut Outcome) {
        // [RPC-030] [RPC-031]: a modern server sends no requests, so there is no response.
        let modern = match &self.session {
            Some(session) => session.version == MODERN,
            None => self.newest_legacy().is_none(),
        };
        if modern {
            return self.violated(out);
        }
        // [RPC-004] [RPC-006].
        let of_input = |it: &Option<Source>| matches!(it, Some(Source::Request(by)) if *by == id);
        if self.inputs.iter().any(of_input) || self.requests.contains(&Some(id)) {
            out.error(id, -32600, "");
            return self.violated(out);
        }
        // [PING-001].
        if method == "ping" {
            return out.result(id, "");
        }
        let Some(Session { version, server }) = &self.session else {
            // [LIFE-005].
            out.error(id, -32600, "");
            return self.violated(out);
        };
        // [RPC-018].
        if !gate::is_known(method) {
            return out.error(id, -32601, "");
        }
        let offers = self.offers(version);
        let verdict = gate::judge(Side::Server, method, version, server, &offers);
        // [CAP-027] [ROOT-004] [RPC-012].
        if gate::is_notification(method) || verdict != Verdict::Open {
            out.error(id, -32601, "");
            return self.violated(out);
        }
        // [ELIC-006].
        let has_modes = *version >= VERSIONS[3];
        if method == "elicitation/create" && has_modes && !gate::offers_forms(&offers) {
            out.error(id, -32602, "");
            return self.violated(out);
        }
        if matches!(method, "roots/list" | "sampling/createMessage" | "elicitation/create") {
            out.tell(format!("input {} {method}", self.inputs.len()));
            self.inputs.push(Some(Source::Request(id)));
        } else {
            out.tell(format!("request {} {method}", self.requests.len()));
            self.requests.push(Some(id));
        }
    }

    // [RPC-013]: notifications are never answered.
    pub(super) fn notified(&mut self, method: &'static str, out: &mut Outcome) {
        match (method, &self.session) {
            _ if !gate::is_known(method) => {}
            _ if !gate::is_notification(method) => self.violated(out),
            // [LIFE-005]: these are allowed at any time.
            ("notifications/cancelled" | "notifications/message", None) => {}
            (_, None) => self.violated(out),
            (_, Some(Session { version, server })) => {
                let offers = self.offers(version);
                match gate::judge(Side::Server, method, version, server, &offers) {
                    // [CANC-007] [PROG-005]: unknown requests and tokens.
                    Verdict::Open
                        if matches!(
                            method,
                            "notifications/cancelled" | "notifications/progress"
                        ) => {}
                    // [SUBS-003]: it names no subscription.
                    Verdict::Open if method == "notifications/subscriptions/acknowledged" => {
                        self.violated(out);
                    }
                    Verdict::Open => out.tell(format!("notification {method}")),
                    _ => self.violated(out),
                }
            }
        }
    }

    // [CANC-003] [CANC-004] [CANC-006] [CANC-007].
    pub(super) fn cancelled(&mut self, id: &str, out: &mut Outcome) {
        let of_input = |it: &Option<Source>| matches!(it, Some(Source::Request(by)) if *by == id);
        if let Some(number) = self.inputs.iter().position(of_input) {
            self.inputs[number] = None;
            out.tell(format!("cancelled input {number}"));
        } else if let Some(number) = self.requests.iter().position(|it| *it == Some(id)) {
            self.requests[number] = None;
            out.tell(format!("cancelled request {number}"));
        }
    }
}

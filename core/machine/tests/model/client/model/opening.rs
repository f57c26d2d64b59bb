//! How a client detects the era of its server, and how the connection ends.

use crate::capabilities::Capabilities;
use crate::gate::{self, MODERN, VERSIONS};
use crate::outcome::Outcome;

use super::super::operation::Reply;
use super::{ANSWER, Model, Opening, PROBE, Purpose, Session, State};

impl Model {
    pub(super) fn newest_legacy(&self) -> Option<&'static str> {
        self.versions.iter().copied().rfind(|version| *version != MODERN)
    }

    pub(super) fn is_modern(&self) -> bool {
        self.versions.contains(&MODERN)
    }

    // [VER-018] [VER-019] [VER-024].
    pub(super) fn open(&mut self, out: &mut Outcome) {
        match self.newest_legacy() {
            Some(version) if self.guesses_legacy || !self.is_modern() => {
                self.initialize(version, self.is_modern(), false, out);
            }
            _ => self.probe(out),
        }
    }

    // [VER-011] [VER-019].
    pub(super) fn probe(&mut self, out: &mut Outcome) {
        self.opening = Some(Opening::Probing);
        let patience = if self.newest_legacy().is_some() { PROBE } else { ANSWER };
        let id = self.sent.draw(Purpose::Opening, self.now + patience);
        out.request(id, "server/discover", &format!(" at {MODERN}"));
    }

    // [LIFE-001] [VER-001] [VER-002].
    pub(super) fn initialize(
        &mut self,
        version: &'static str,
        guessed: bool,
        told: bool,
        out: &mut Outcome,
    ) {
        self.opening = Some(Opening::Initializing { version, guessed, told });
        let id = self.sent.draw(Purpose::Opening, self.now + ANSWER);
        out.request(id, "initialize", &format!(" at {version}"));
    }

    /// Opens a session with a legacy server.
    // [VER-022] [VER-023] [VER-029].
    pub(super) fn fall_back(&mut self, guessed: bool, out: &mut Outcome) {
        match self.newest_legacy() {
            Some(version) => self.initialize(version, guessed, false, out),
            None => self.end("opening", out),
        }
    }

    /// Selects a legacy revision from those that the server lists.
    pub(super) fn choose_legacy(&mut self, listed: &[&'static str], out: &mut Outcome) {
        match self.common(listed).into_iter().rfind(|version| *version != MODERN) {
            Some(version) => self.initialize(version, false, true, out),
            None => self.end("opening", out),
        }
    }

    pub(super) fn common(&self, listed: &[&'static str]) -> Vec<&'static str> {
        self.versions.iter().copied().filter(|version| listed.contains(version)).collect()
    }

    pub(super) fn opening_answered(&mut self, reply: &Reply, out: &mut Outcome) {
        match (self.opening.expect("the connection is opening"), reply) {
            // [VER-020] [DISC-003].
            (Opening::Probing, Reply::Discovered { versions, server }) => {
                if self.common(versions).contains(&MODERN) {
                    self.opened(MODERN, server, out);
                } else {
                    self.choose_legacy(versions, out);
                }
            }
            // [VER-013] [VER-021]: another request for the same revision would be refused again.
            (Opening::Probing, Reply::Unsupported { code: -32022, versions })
                if !self.common(versions).contains(&MODERN) =>
            {
                self.choose_legacy(versions, out);
            }
            (
                Opening::Probing,
                Reply::Error(-32022 | -32021) | Reply::Unsupported { code: -32022, .. },
            ) => self.end("opening", out),
            (Opening::Probing, _) => self.fall_back(false, out),
            // [LIFE-003] [VER-006] [VER-007].
            (Opening::Initializing { .. }, Reply::Initialized { version, server })
                if *version != MODERN && self.versions.contains(version) =>
            {
                out.notification("notifications/initialized", "");
                self.opened(version, server, out);
            }
            // [VER-009] [VER-018].
            (
                Opening::Initializing { version, guessed, told },
                Reply::Error(_) | Reply::Unsupported { .. },
            ) => {
                let listed = match reply {
                    Reply::Unsupported { versions, .. } => self.common(versions),
                    _ => Vec::new(),
                };
                let legacy = listed.into_iter().rfind(|it| *it != MODERN);
                match legacy {
                    Some(other) if !told && other != version => {
                        self.initialize(other, guessed, true, out);
                    }
                    _ if guessed => {
                        self.versions = vec![MODERN];
                        self.probe(out);
                    }
                    _ => self.end("opening", out),
                }
            }
            (Opening::Initializing { .. }, _) => self.end("opening", out),
        }
    }

    pub(super) fn opened(
        &mut self,
        version: &'static str,
        server: &Capabilities,
        out: &mut Outcome,
    ) {
        self.opening = None;
        self.session = Some(Session { version, server: server.clone() });
        out.tell(format!("opened at {version}"));
    }

    /// Returns the capabilities that this client declares at a revision.
    pub(super) fn offers(&self, version: &str) -> Capabilities {
        let mut offers = self.own.clone();
        // [ELIC-003]: before there were modes, a declaration promised forms.
        if version == VERSIONS[2] && !gate::offers_forms(&offers) {
            offers.remove("elicitation");
        }
        offers
    }

    /// Handles a violation by the server.
    pub(super) fn violated(&mut self, out: &mut Outcome) {
        if self.strict {
            self.end("violation", out);
            out.refuse("closed");
        } else {
            out.tell("violation");
        }
    }

    // [RPC-029]: the loss is detected by the client, and reported as such.
    pub(super) fn end(&mut self, why: &str, out: &mut Outcome) {
        if self.closed {
            return;
        }
        self.closed = true;
        for (call, number) in self.calls.iter_mut().zip(0..) {
            if !matches!(call.state, State::Over) {
                call.state = State::Over;
                out.tell(format!("ended {number}: lost"));
            }
        }
        out.tell(format!("closed: {why}"));
        self.sent.clear();
        self.inputs.fill(None);
        self.requests.fill(None);
        out.unordered = true;
    }
}

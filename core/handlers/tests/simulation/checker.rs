//! Checks every message on the wire against the table of methods: direction, revision, phase,
//! capabilities, ids, progress and responses.

use std::collections::{BTreeMap, BTreeSet};

use mcp_sansio::gate::{MethodKind, Phase};
use mcp_sansio::{Capabilities, Era, Method, Revision, Side};
use serde_json::Value;

/// The state of one connection: of a byte stream, of a session over HTTP, or of a modern request.
#[derive(Clone, Debug)]
pub(crate) struct Checker {
    name: String,
    revision: Option<Revision>,
    initialized: bool,
    /// Whether the client has sent `initialize`.
    opens: bool,
    client: Capabilities,
    /// Capabilities of the server, or `None` if they are unknown.
    server: Option<Capabilities>,
    asked: BTreeMap<(Side, String), Asked>,
    used: BTreeSet<(Side, String)>,
    /// Ids of requests that were not executed, which may be sent again.
    again: BTreeSet<(Side, String)>,
    /// Requests with a response, which may be sent again if the peer has not handled it.
    answered: BTreeMap<(Side, String), Asked>,
    /// Whether requests, and so responses, can be repeated.
    pub(crate) copies: bool,
    /// Whether the negotiated revision and capabilities are unknown.
    blind: bool,
}

/// A request without a response.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    revision: Option<Revision>,
    token: Option<String>,
    progress: f64,
}

const fn at(side: Side, id: String) -> (Side, String) {
    (side, id)
}

impl Checker {
    pub(crate) const fn new(name: String) -> Self {
        Self {
            name,
            revision: None,
            initialized: false,
            opens: false,
            client: Capabilities::NONE,
            server: None,
            asked: BTreeMap::new(),
            used: BTreeSet::new(),
            again: BTreeSet::new(),
            answered: BTreeMap::new(),
            copies: false,
            blind: false,
        }
    }

    /// Sets up the checker for one modern request.
    pub(crate) const fn is_modern(&mut self) {
        self.revision = Some(Revision::V2026_07_28);
        self.initialized = true;
    }

    /// Disables the checks, for a conversation whose beginning was not observed.
    pub(crate) const fn knows_nothing(&mut self) {
        self.copies = true;
        self.blind = true;
    }

    /// Panics if `sender` may not send this message now.
    pub(crate) fn examine(&mut self, sender: Side, text: &str) {
        if self.blind {
            return;
        }
        let value: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
        if let Some(fault) = self.fault(sender, &value) {
            panic!("{}: {fault}: the {sender} sends {text}", self.name);
        }
    }

    /// Permits a request or response that was not handled to be sent again.
    pub(crate) fn not_executed(&mut self, sender: Side, text: &str) {
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        let Some(id) = message.get("id").map(Value::to_string) else { return };
        if message.get("method").is_some() {
            self.again.insert(at(sender, id));
        } else if let Some(asked) = self.answered.remove(&at(sender.peer(), id.clone())) {
            self.asked.insert(at(sender.peer(), id), asked);
        }
    }

    fn fault(&mut self, sender: Side, message: &Value) -> Option<String> {
        if message["jsonrpc"] != "2.0" {
            return Some("no message".into());
        }
        let id = message.get("id").map(Value::to_string);
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) => self.request(sender, method, id, message),
            (Some(method), None) => self.notification(sender, method, message),
            (None, id) => self.response(sender, id, message),
        }
    }

    fn gate(
        &self,
        sender: Side,
        method: &str,
        kind: MethodKind,
        message: &Value,
    ) -> Result<Option<Revision>, String> {
        let Some(known) = Method::parse(method) else { return Ok(None) };
        let row = known.row();
        if row.kind != kind {
            return Err(format!("`{method}` is not a {kind:?}"));
        }
        let meta = &message["params"]["_meta"];
        let modern = meta["io.modelcontextprotocol/protocolVersion"].as_str();
        let revision = modern.and_then(Revision::parse).or(self.revision);
        if known == Method::Initialize && sender == Side::Client {
            // The late response to a probe has no effect.
            return Ok(None);
        }
        let Some(revision) = revision else {
            // No revision has been negotiated yet.
            let opening = matches!(row.side(sender).phase, Phase::Opening | Phase::Always);
            let of_opening = known == Method::Cancelled && sender == Side::Client;
            return if opening || of_opening {
                Ok(None)
            } else {
                Err("the session is not open yet".into())
            };
        };
        let mut client = self.client;
        if revision.era() == Era::Modern {
            if kind == MethodKind::Request && sender == Side::Server {
                return Err("a modern server sends a request".into());
            }
            let declared = meta["io.modelcontextprotocol/clientCapabilities"].to_string();
            client =
                Capabilities::from_client_json(&declared, revision).unwrap_or(Capabilities::NONE);
        } else if row.side(sender).phase == Phase::Operating
            && !self.initialized
            && !matches!(known, Method::Initialized | Method::Cancelled)
        {
            return Err("sent before the session is open".into());
        }
        let server = self.server.unwrap_or_else(|| all_for(known));
        let checked = row.check(sender, revision, client, server);
        checked.map(|()| Some(revision)).map_err(|refusal| refusal.to_string())
    }

    fn request(
        &mut self,
        sender: Side,
        method: &str,
        id: String,
        message: &Value,
    ) -> Option<String> {
        let revision = match self.gate(sender, method, MethodKind::Request, message) {
            Ok(revision) => revision,
            Err(fault) => return Some(fault),
        };
        let is_new = self.used.insert(at(sender, id.clone()));
        if !is_new && !self.again.remove(&at(sender, id.clone())) && !self.copies {
            return Some("a request id is used twice".into());
        }
        if method == "initialize" {
            self.opens = true;
            self.revision = None;
            self.initialized = false;
            let declared = message["params"]["capabilities"].to_string();
            let wanted = message["params"]["protocolVersion"].as_str().and_then(Revision::parse);
            let wanted = wanted.unwrap_or(Revision::LATEST_LEGACY);
            self.client =
                Capabilities::from_client_json(&declared, wanted).unwrap_or(Capabilities::NONE);
        }
        let token = message["params"]["_meta"].get("progressToken").map(Value::to_string);
        let asked = Asked { method: method.to_owned(), revision, token, progress: f64::MIN };
        self.asked.insert(at(sender, id), asked);
        None
    }

    fn notification(&mut self, sender: Side, method: &str, message: &Value) -> Option<String> {
        if let Err(fault) = self.gate(sender, method, MethodKind::Notification, message) {
            return Some(fault);
        }
        let params = &message["params"];
        match method {
            "notifications/initialized" => {
                if self.revision.is_none() {
                    return Some("`notifications/initialized` precedes the response".into());
                }
                self.initialized = true;
                None
            }
            "notifications/progress" => {
                let token = params["progressToken"].to_string();
                let found = self.asked.iter_mut().find(|((asker, _), asked)| {
                    *asker == sender.peer() && asked.token.as_ref() == Some(&token)
                });
                let Some((_, asked)) = found else {
                    return (!self.copies)
                        .then(|| "progress without a request, or after its response".to_owned());
                };
                let progress = params["progress"].as_f64().unwrap_or(f64::NAN);
                let grows = progress > asked.progress;
                asked.progress = progress;
                (!grows && !self.copies).then(|| "progress does not increase".to_owned())
            }
            "notifications/cancelled" => {
                let id = params["requestId"].to_string();
                let key = at(sender, id.clone());
                let opens = self.asked.get(&key).is_some_and(|it| it.method == "initialize");
                if opens {
                    return Some("`initialize` is cancelled".into());
                }
                // A server ends a subscription with the same notification.
                let known = self.used.contains(&key) || self.used.contains(&at(sender.peer(), id));
                (!known).then(|| "the cancelled request does not exist".to_owned())
            }
            _ => None,
        }
    }

    fn response(&mut self, sender: Side, id: Option<String>, message: &Value) -> Option<String> {
        if message.get("result").is_some() == message.get("error").is_some() {
            return Some("a response has either a result or an error".into());
        }
        let id = id.filter(|id| id != "null")?;
        let key = at(sender.peer(), id);
        let Some(asked) = self.asked.remove(&key) else {
            return (!self.copies)
                .then(|| "a response without a request, or a second one".to_owned());
        };
        if sender == Side::Client {
            self.answered.insert(key, asked.clone());
        }
        let result = message.get("result")?;
        if asked.method == "initialize" {
            let version = result["protocolVersion"].as_str().and_then(Revision::parse)?;
            self.revision = Some(version);
            let declared = result["capabilities"].to_string();
            self.server = Capabilities::from_server_json(&declared, version).ok();
        } else if asked.method == "server/discover" && !self.opens {
            self.revision = asked.revision;
            self.initialized = true;
            let declared = result["capabilities"].to_string();
            let revision = Revision::V2026_07_28;
            self.server = Capabilities::from_server_json(&declared, revision).ok();
        }
        let modern = asked.revision.is_some_and(|revision| revision.era() == Era::Modern);
        (modern != result.get("resultType").is_some()).then(|| "`resultType`".to_owned())
    }
}

/// Returns the capabilities that a method requires, for a side whose capabilities are unknown.
fn all_for(method: Method) -> Capabilities {
    let row = method.row();
    let gates = row.client.gates.iter().chain(row.server.gates);
    gates.map(|gate| gate.capability).collect()
}

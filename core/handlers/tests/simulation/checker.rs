//! Reads what leaves a machine, as somebody would who sits on the wire, and holds it against the table
//! of methods: direction, revision, phase, capabilities, ids, progress and its answer.

use std::collections::{BTreeMap, BTreeSet};

use mcp_sansio::protocol::{Capabilities, Method, MethodKind, Phase, Side};
use mcp_sansio::{Era, Revision};
use serde_json::Value;

/// What is known of one connection: of a byte stream, of a session over HTTP, of a modern request.
#[derive(Clone, Debug)]
pub(crate) struct Checker {
    name: String,
    revision: Option<Revision>,
    initialized: bool,
    /// The client has begun the handshake of a session.
    opens: bool,
    client: Capabilities,
    /// `None`: what the server has is not known here.
    server: Option<Capabilities>,
    asked: BTreeMap<(Side, String), Asked>,
    used: BTreeSet<(Side, String)>,
    /// Requests may come more than once, and so may their answers.
    pub(crate) copies: bool,
    /// Nothing is known of what was agreed.
    blind: bool,
}

/// A request without an answer.
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
            copies: false,
            blind: false,
        }
    }

    /// It reads one modern request.
    pub(crate) const fn is_modern(&mut self) {
        self.revision = Some(Revision::V2026_07_28);
        self.initialized = true;
    }

    /// It comes to a conversation of which it has not heard the beginning.
    pub(crate) const fn knows_nothing(&mut self) {
        self.copies = true;
        self.blind = true;
    }

    /// Panics if `sender` may not say this now.
    pub(crate) fn examine(&mut self, sender: Side, text: &str) {
        if self.blind {
            return;
        }
        let value: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
        if let Some(fault) = self.fault(sender, &value) {
            panic!("{}: {fault}: the {sender} sends {text}", self.name);
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
            return Err(format!("`{method}` is no {kind:?}"));
        }
        let meta = &message["params"]["_meta"];
        let modern = meta["io.modelcontextprotocol/protocolVersion"].as_str();
        let revision = modern.and_then(Revision::parse).or(self.revision);
        if known == Method::Initialize && sender == Side::Client {
            // A probe whose answer comes late says nothing any more.
            return Ok(None);
        }
        let Some(revision) = revision else {
            // Nothing is agreed yet.
            let opening = matches!(row.side(sender).phase, Phase::Opening | Phase::Always);
            let of_opening = known == Method::Cancelled && sender == Side::Client;
            return if opening || of_opening { Ok(None) } else { Err("not open yet".into()) };
        };
        let mut client = self.client;
        if revision.era() == Era::Modern {
            if kind == MethodKind::Request && sender == Side::Server {
                return Err("a modern server asks".into());
            }
            let declared = meta["io.modelcontextprotocol/clientCapabilities"].to_string();
            client =
                Capabilities::from_client_json(&declared, revision).unwrap_or(Capabilities::NONE);
        } else if row.side(sender).phase == Phase::Operating
            && !self.initialized
            && !matches!(known, Method::Initialized | Method::Cancelled)
        {
            return Err("before the session is open".into());
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
        if !self.used.insert(at(sender, id.clone())) && !self.copies {
            return Some("an id is used again".into());
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
                    return Some("initialized before the answer".into());
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
                        .then(|| "progress of nothing, or after the answer".to_owned());
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
                // A server ends a subscription so as well.
                let known = self.used.contains(&key) || self.used.contains(&at(sender.peer(), id));
                (!known).then(|| "a request is cancelled that never was".to_owned())
            }
            _ => None,
        }
    }

    fn response(&mut self, sender: Side, id: Option<String>, message: &Value) -> Option<String> {
        if message.get("result").is_some() == message.get("error").is_some() {
            return Some("one of result and error".into());
        }
        let id = id.filter(|id| id != "null")?;
        let Some(asked) = self.asked.remove(&at(sender.peer(), id)) else {
            return (!self.copies).then(|| "an answer to nothing, or a second one".to_owned());
        };
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

/// What somebody has of whom nothing is known: all that the method needs.
fn all_for(method: Method) -> Capabilities {
    let row = method.row();
    let gates = row.client.gates.iter().chain(row.server.gates);
    gates.map(|gate| gate.capability).collect()
}

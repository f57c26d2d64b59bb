use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;
use bytestring::ByteString;

use crate::http::backoff::Attempts;
use crate::http::field_value;
use crate::http::mirrors::{Mirrors, UnmirrorableArgument};
use crate::jsonrpc::RawJson;
use crate::peer::PROTOCOL_VERSION;
use crate::protocol::Method;
use crate::{Era, Revision};

use super::transmit::Field;

/// A message of this side on its way.
pub(super) struct Message {
    pub(super) what: What,
    pub(super) body: Bytes,
    /// The revision that its `_meta` names: it is a modern request.
    pub(super) revision: Option<Revision>,
    /// Times that it was sent again because its session had ended.
    pub(super) resends: u32,
    /// Its headers were corrected once already.
    pub(super) corrected: bool,
    /// Of a listen stream that stood before: the attempts to open it again.
    pub(super) attempts: Option<Attempts>,
}

/// What a message is to HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Request(i64, Asks),
    /// `notifications/initialized`.
    Initialized,
    /// `notifications/cancelled` for the request with this id.
    Cancellation(i64),
    Notification(String),
    /// The answer to a request of the server.
    Answer,
}

/// What a request asks for, as far as HTTP cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    Discover,
    Initialize,
    ListTools,
    CallTool,
    Listen,
    Other,
}

impl Message {
    /// Reads a message that this side wrote.
    pub(super) fn read(body: Vec<u8>) -> Self {
        let (what, revision) = match core::str::from_utf8(&body) {
            Ok(text) => read(&RawJson::trusted(text)),
            Err(_) => (What::Answer, None),
        };
        Self { what, body: body.into(), revision, resends: 0, corrected: false, attempts: None }
    }

    /// The id and the purpose of a request.
    pub(super) const fn request(&self) -> Option<(i64, Asks)> {
        match self.what {
            What::Request(id, asks) => Some((id, asks)),
            _ => None,
        }
    }

    /// Whether it must not wait for calls to end: a call may wait for it.
    pub(super) const fn is_control(&self) -> bool {
        !matches!(self.what, What::Request(..))
    }

    /// Whether it opens the connection or belongs to the opening.
    pub(super) const fn opens(&self) -> bool {
        matches!(self.what, What::Request(_, Asks::Discover | Asks::Initialize) | What::Initialized)
    }

    fn json(&self) -> RawJson<'_> {
        RawJson::trusted(core::str::from_utf8(&self.body).unwrap_or("{}"))
    }

    /// The fields that say a second time what is in the body of a modern message. `revision` is
    /// that of the session.
    // MCP 2026-07-28 basic/transports/streamable-http#request-metadata [HCLI-013]
    pub(super) fn mirrored_fields(
        &self,
        session: Option<Revision>,
        mirrors: Option<&Mirrors>,
        fields: &mut Vec<Field>,
    ) -> Result<(), UnmirrorableArgument> {
        let modern = session.filter(|revision| revision.era() == Era::Modern);
        let revision = match self.request() {
            // MCP 2026-07-28 basic/transports/streamable-http#protocol-version-header [HDR-003]
            Some(_) => self.revision,
            None => modern,
        };
        let Some(revision) = revision else { return Ok(()) };
        fields.push((VERSION.into(), ByteString::from_static(revision.as_str())));
        let message = self.json();
        let Some(method) = message.get("method").and_then(|method| text(&method)) else {
            return Ok(());
        };
        // MCP 2026-07-28 basic/transports/streamable-http#standard-request-headers [HDR-005]: on
        // notifications nothing is said of it; there it does no harm.
        fields.push(("mcp-method".into(), encoded(&method)));
        let Some(params) = message.get("params") else { return Ok(()) };
        // MCP 2026-07-28 basic/transports/streamable-http#standard-request-headers [HDR-006]
        let key = match Method::parse(&method) {
            Some(Method::ToolsCall | Method::PromptsGet) => "name",
            Some(Method::ResourcesRead) => "uri",
            // MCP 2026-07-28 extensions/tasks: tasks are routed by their id.
            Some(Method::TasksGet | Method::TasksUpdate | Method::TasksCancel) => "taskId",
            _ => return Ok(()),
        };
        if let Some(name) = params.get(key).and_then(|name| text(&name)) {
            fields.push(("mcp-name".into(), encoded(&name)));
        }
        // MCP 2026-07-28 basic/transports/streamable-http#client-behavior [HDR-008]
        if let Some(mirrors) = mirrors {
            let arguments = params.get("arguments").unwrap_or(RawJson::EMPTY_OBJECT);
            for (name, value) in mirrors.fields(&arguments)? {
                let value = ByteString::from(value.into_owned());
                fields.push((name.to_ascii_lowercase().into(), value));
            }
        }
        Ok(())
    }

    /// The tool that a modern `tools/call` calls.
    pub(super) fn tool_if_called(&self) -> Option<String> {
        if self.revision.is_none() || !matches!(self.what, What::Request(_, Asks::CallTool)) {
            return None;
        }
        let message = self.json();
        text(&message.get("params")?.get("name")?)
    }
}

impl fmt::Debug for Message {
    /// Leaves the body out: logs are read by many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("what", &self.what).finish_non_exhaustive()
    }
}

/// The field that names the revision.
pub(super) const VERSION: &str = "mcp-protocol-version";

fn read(message: &RawJson<'_>) -> (What, Option<Revision>) {
    let (mut id, mut method, mut params) = (None, None, None);
    for member in message.members() {
        match member.key {
            "id" => id = member.value.decode::<i64>().ok(),
            "method" => method = text(&member.value),
            "params" => params = Some(member.value),
            _ => {}
        }
    }
    let Some(method) = method else { return (What::Answer, None) };
    let member = |key| params.as_ref().and_then(|params| params.get(key));
    let known = Method::parse(&method);
    let Some(id) = id else {
        let what = match known {
            Some(Method::Initialized) => What::Initialized,
            Some(Method::Cancelled) => {
                let of = member("requestId").and_then(|id| id.decode().ok());
                of.map_or(What::Notification(method), What::Cancellation)
            }
            _ => What::Notification(method),
        };
        return (what, None);
    };
    let asks = match known {
        Some(Method::Discover) => Asks::Discover,
        Some(Method::Initialize) => Asks::Initialize,
        Some(Method::ToolsList) => Asks::ListTools,
        Some(Method::ToolsCall) => Asks::CallTool,
        Some(Method::SubscriptionsListen) => Asks::Listen,
        _ => Asks::Other,
    };
    let revision = member("_meta")
        .and_then(|meta| text(&meta.get(PROTOCOL_VERSION)?))
        .and_then(|revision| Revision::parse(&revision));
    (What::Request(id, asks), revision)
}

fn text(value: &RawJson<'_>) -> Option<String> {
    value.to_text().map(alloc::borrow::Cow::into_owned)
}

fn encoded(text: &str) -> ByteString {
    ByteString::from(field_value::encode(text).into_owned())
}

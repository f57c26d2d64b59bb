use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use bytestring::ByteString;

use crate::binding::Field;
use crate::http::field_value;
use crate::http::header_params::{HeaderParams, UnsendableCall};
use crate::jsonrpc::{Members, RawJson};
use crate::peer::outbox::Part;
use crate::protocol::Method;
use crate::{Attempts, Era, Revision};

use super::tools::Tools;

/// A message to the server.
pub(super) struct Message {
    pub(super) kind: MessageKind,
    /// Its method, if it is a known one.
    method: Option<Method>,
    pub(super) text: ByteString,
    /// The revision in its `_meta`, if it is a modern request.
    pub(super) revision: Option<Revision>,
    /// The offset of the parameters that follow `_meta` in a request.
    members: u32,
    /// Times that it was sent again because its session had ended, or its revision was refused.
    pub(super) resends: u32,
    /// The list of tools has been read since its headers were refused.
    pub(super) corrected: bool,
    /// The list of tools has been read before it was sent.
    pub(super) looked_up: bool,
    /// It was sent with the header fields that a list declares for its tool.
    pub(super) mirrored: bool,
    /// The attempts to send it again, or for a listen stream that was open before, to open it again.
    pub(super) attempts: Option<Attempts>,
}

/// The kind of a message, as far as HTTP is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Request(i64, RequestKind),
    /// `notifications/initialized`.
    Initialized,
    /// `notifications/cancelled` for the request with this id.
    Cancellation(i64),
    /// Another notification, with its method if the protocol defines it.
    Notification(Option<Method>),
    /// The response to a request of the server.
    Answer,
}

/// The kind of a request, as far as HTTP is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Discover,
    Initialize,
    ListTools,
    CallTool,
    Listen,
    Other,
}

impl Message {
    /// Creates a message from one that the peer wrote.
    pub(super) fn new(part: Part, text: String) -> Self {
        let (mut method, mut revision, mut members) = (None, None, 0);
        let kind = match part {
            Part::Request(sent) => {
                (method, revision, members) = (sent.method, sent.revision, sent.members);
                MessageKind::Request(sent.id, RequestKind::from_method(sent.method))
            }
            Part::Notification(sent) => {
                method = sent.method;
                match (sent.method, sent.cancelled) {
                    (Some(Method::Initialized), _) => MessageKind::Initialized,
                    (Some(Method::Cancelled), Some(id)) => MessageKind::Cancellation(id),
                    (method, _) => MessageKind::Notification(method),
                }
            }
            _ => MessageKind::Answer,
        };
        let text = text.into();
        Self {
            kind,
            method,
            text,
            revision,
            members,
            resends: 0,
            corrected: false,
            looked_up: false,
            mirrored: false,
            attempts: None,
        }
    }

    /// Returns the id and the kind of a request.
    pub(super) const fn request(&self) -> Option<(i64, RequestKind)> {
        match self.kind {
            MessageKind::Request(id, asks) => Some((id, asks)),
            _ => None,
        }
    }

    /// Returns whether it asks for the era of the server.
    pub(super) const fn is_probe(&self) -> bool {
        matches!(self.kind, MessageKind::Request(_, RequestKind::Discover))
    }

    /// Returns whether it must not wait for calls, because a call may depend on it.
    pub(super) const fn is_control(&self) -> bool {
        !matches!(self.kind, MessageKind::Request(..))
    }

    /// Returns whether it is a control message that has a meaning only in its session.
    pub(super) const fn is_of_session(&self) -> bool {
        matches!(
            self.kind,
            MessageKind::Answer | MessageKind::Cancellation(_) | MessageKind::Initialized
        )
    }

    /// Returns whether it belongs to the opening of the connection.
    pub(super) const fn opens(&self) -> bool {
        matches!(
            self.kind,
            MessageKind::Request(_, RequestKind::Discover | RequestKind::Initialize)
                | MessageKind::Initialized
        )
    }

    /// Returns the member `key` of the parameters, which names the target of a request, and the
    /// arguments.
    fn subject(&self, key: &str) -> (Option<Cow<'_, str>>, Option<RawJson<'_>>) {
        let (mut subject, mut arguments) = (None, None);
        let mut members =
            Members::after(self.text.get(self.members as usize..).unwrap_or_default());
        while let Some(member) = members.next_after("") {
            if subject.is_none() && member.is_named(key) {
                subject = member.value.to_text();
            } else if arguments.is_none() && member.is_named("arguments") {
                arguments = Some(member.value);
            }
        }
        (subject, arguments)
    }

    /// Adds the fields that mirror the body of a modern message. `session` is the revision of the
    /// session.
    // MCP 2026-07-28 basic/transports/streamable-http#request-metadata [HCLI-013]
    pub(super) fn metadata_fields(
        &self,
        session: Option<Revision>,
        tools: &Tools,
        fields: &mut Vec<Field>,
    ) -> Result<(), UnsendableCall> {
        let modern = session.filter(|revision| revision.era() == Era::Modern);
        let revision = match self.request() {
            // MCP 2026-07-28 basic/transports/streamable-http#protocol-version-header [HDR-003]
            Some(_) => self.revision,
            None => modern,
        };
        let Some(revision) = revision else {
            return if tools.is_mirrored_in_sessions { self.mirror(tools, fields) } else { Ok(()) };
        };
        fields.push((VERSION.into(), ByteString::from_static(revision.as_str())));
        let name = match (self.method, &self.kind) {
            (Some(method), _) => ByteString::from_static(method.as_str()),
            (None, MessageKind::Request(..)) => {
                let message = RawJson::trusted(&self.text);
                let method = message.get("method");
                encoded(
                    &method
                        .and_then(|method| method.to_text().map(Cow::into_owned))
                        .unwrap_or_default(),
                )
            }
            _ => return Ok(()),
        };
        // MCP 2026-07-28 basic/transports/streamable-http#standard-request-headers [HDR-005]: the
        // rule does not cover notifications, where the field does no harm.
        fields.push(("mcp-method".into(), name));
        // MCP 2026-07-28 basic/transports/streamable-http#standard-request-headers [HDR-006]
        let key = match self.method {
            Some(Method::ToolsCall | Method::PromptsGet) => "name",
            Some(Method::ResourcesRead) => "uri",
            // MCP 2026-07-28 extensions/tasks: tasks are routed by their id.
            Some(Method::TasksGet | Method::TasksUpdate | Method::TasksCancel) => "taskId",
            _ => return Ok(()),
        };
        let (subject, arguments) = self.subject(key);
        let Some(subject) = subject else { return Ok(()) };
        fields.push(("mcp-name".into(), encoded(&subject)));
        if self.method != Some(Method::ToolsCall) {
            return Ok(());
        }
        // MCP 2026-07-28 basic/transports/streamable-http#client-behavior [HDR-008]
        match tools.header_params(&subject) {
            Some(Ok(header_params)) => push_mirrored(header_params, arguments, fields)?,
            // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-016]
            Some(Err(reason)) if self.corrected || self.looked_up => {
                let (tool, reason) = (subject.into_owned(), reason.clone());
                return Err(UnsendableCall::Rejected { tool, reason });
            }
            None if self.corrected || self.looked_up => {}
            // It may have been defined again since it was listed as invalid.
            _ => return Err(UnsendableCall::Unlisted { tool: subject.into_owned() }),
        }
        Ok(())
    }

    /// Adds the fields that mirror the arguments of a call in a session, if the tool was listed.
    fn mirror(&self, tools: &Tools, fields: &mut Vec<Field>) -> Result<(), UnsendableCall> {
        if !matches!(self.kind, MessageKind::Request(_, RequestKind::CallTool)) {
            return Ok(());
        }
        let (subject, arguments) = self.subject("name");
        match subject.and_then(|tool| tools.header_params(&tool)) {
            Some(Ok(header_params)) => push_mirrored(header_params, arguments, fields),
            _ => Ok(()),
        }
    }

    /// Returns the tool that a `tools/call` calls.
    pub(super) fn tool_if_called(&self) -> Option<String> {
        let calls = matches!(self.kind, MessageKind::Request(_, RequestKind::CallTool));
        let (subject, _) = calls.then(|| self.subject("name"))?;
        subject.map(Cow::into_owned)
    }
}

fn push_mirrored(
    header_params: &HeaderParams,
    arguments: Option<RawJson<'_>>,
    fields: &mut Vec<Field>,
) -> Result<(), UnsendableCall> {
    if header_params.is_empty() {
        return Ok(());
    }
    let arguments = arguments.unwrap_or(RawJson::EMPTY_OBJECT);
    for (name, value) in header_params.fields(&arguments)? {
        let value = ByteString::from(value.into_owned());
        fields.push((name.to_ascii_lowercase().into(), value));
    }
    Ok(())
}

impl RequestKind {
    const fn from_method(method: Option<Method>) -> Self {
        match method {
            Some(Method::Discover) => Self::Discover,
            Some(Method::Initialize) => Self::Initialize,
            Some(Method::ToolsList) => Self::ListTools,
            Some(Method::ToolsCall) => Self::CallTool,
            Some(Method::SubscriptionsListen) => Self::Listen,
            _ => Self::Other,
        }
    }
}

crate::partial_debug! {
    /// Omits the body, because logs have many readers.
    impl Debug for Message { kind, .. }
}

/// The field with the protocol revision.
pub(super) const VERSION: &str = "mcp-protocol-version";

fn encoded(text: &str) -> ByteString {
    ByteString::from(field_value::encode(text).into_owned())
}

#[cfg(test)]
impl Message {
    /// Creates a legacy request without parameters.
    pub(super) fn new_request(id: i64, method: Method) -> Self {
        let sent = crate::peer::outbox::SentRequest {
            id,
            method: Some(method),
            revision: None,
            members: 0,
        };
        Self::new(Part::Request(sent), String::new())
    }
}

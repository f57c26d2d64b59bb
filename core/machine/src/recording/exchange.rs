//! HTTP exchanges, as a recording stores them.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use core::str;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::http::{
    EventPosition, ReadId, RemoteAddress, Response, ResponseHead, ServerTransmit, SessionId,
    StoreAction as Action, StoredEvent,
};
use crate::jsonrpc::ErrorObject;
use crate::peer::TransportFailure;
use crate::peer::{HttpRejection, Status};
use crate::{Principal, SessionKey};

use super::call::{Payload, Unperformable};
use super::handle::Handle;

/// Stand-ins that replace confidential values in a recording.
///
/// Equal values have equal stand-ins, so that sessions can still be told apart in a recording.
// MCP 2025-11-25 basic/transports#session-management [SESS-005]
#[derive(Clone, Copy)]
pub(crate) struct StandIns {
    /// Drawn with the machine's secrets. `None` in a replay, which has nothing to hide.
    key: Option<[u8; 32]>,
}

crate::partial_debug! { impl Debug for StandIns(..) }

impl StandIns {
    /// Writes all values unchanged.
    pub(crate) const NONE: Self = Self { key: None };

    pub(crate) const fn keyed(key: [u8; 32]) -> Self {
        Self { key: Some(key) }
    }

    /// Returns whether values are replaced.
    pub(crate) const fn is_on(self) -> bool {
        self.key.is_some()
    }

    fn digits(self, kind: &str, value: &[u8]) -> Option<String> {
        let hash = Sha256::new().chain_update(self.key?).chain_update(kind).chain_update(value);
        let hash: [u8; 32] = hash.finalize().into();
        Some(hash[..16].iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the stand-in for a session id of this side.
    pub(crate) fn session(self, id: &SessionId) -> String {
        let text = id.as_str();
        self.digits("session", text.as_bytes()).unwrap_or_else(|| text.into())
    }

    /// Returns the key that stands for `session`, whose id is `id`.
    pub(crate) fn key_of(self, id: &SessionId, session: SessionKey) -> SessionKey {
        let stand_in = SessionId::parse(self.session(id).as_bytes());
        session.with_first(stand_in.as_ref().unwrap_or(id).key())
    }

    /// Returns the stand-in for a received session id. An invalid id stays invalid.
    pub(crate) fn named_session(self, id: &[u8]) -> Vec<u8> {
        match (SessionId::parse(id), self.digits("session", id)) {
            (_, None) => id.to_vec(),
            (Some(_), Some(digits)) => digits.into_bytes(),
            (None, Some(_)) => b"-".to_vec(),
        }
    }

    /// Returns the stand-in for a session id of the peer, which may have at most `length_max`
    /// bytes.
    pub(crate) fn foreign_session(self, id: &[u8], length_max: usize) -> Vec<u8> {
        let is_one = !id.is_empty()
            && id.len() <= length_max
            && id.iter().all(|byte| (0x21..=0x7E).contains(byte));
        match self.digits("session", id) {
            None => id.to_vec(),
            Some(digits) if is_one => digits.into_bytes().into_iter().take(length_max).collect(),
            // An invalid id stays invalid.
            Some(_) => b"\x7F".to_vec(),
        }
    }

    pub(crate) fn principal(self, principal: &Principal) -> String {
        let text = principal.as_str();
        self.digits("principal", text.as_bytes()).unwrap_or_else(|| text.into())
    }

    /// Returns the stand-in for a remote address: a unique local address (RFC 4193) with the same
    /// number of significant bits.
    pub(crate) fn address(self, address: RemoteAddress) -> IpAddr {
        let Some(digits) = self.digits("address", format!("{}", address.ip()).as_bytes()) else {
            return address.ip();
        };
        let segment = |at: usize| u16::from_str_radix(&digits[at..at + 4], 16).unwrap_or_default();
        let first = 0xFD00 | (segment(0) & 0xFF);
        IpAddr::V6(Ipv6Addr::new(first, segment(4), segment(8), segment(12), 0, 0, 0, 0))
    }

    /// Replaces a session id inside a text.
    pub(crate) fn within<'a>(self, text: &'a [u8], id: Option<&SessionId>) -> Cow<'a, [u8]> {
        let Some((id, text_str)) = id.zip(str::from_utf8(text).ok()) else { return text.into() };
        if self.key.is_none() || !text_str.contains(id.as_str()) {
            return text.into();
        }
        text_str.replace(id.as_str(), &self.session(id)).into_bytes().into()
    }

    /// Replaces a session id of the peer where a stream has it as the id of an event. `begun` is the
    /// unfinished last line of the earlier pieces, if it may become such a line: of that only the
    /// name of the field is recorded before the rest is known, which is the same to a decoder.
    pub(crate) fn within_events<'a>(
        self,
        piece: &'a [u8],
        begun: &mut Vec<u8>,
        id: &[u8],
        length_max: usize,
    ) -> Cow<'a, [u8]> {
        const NAME: &[u8] = b"id:";
        if !self.is_on() || id.is_empty() {
            return piece.into();
        }
        let lines = [[NAME, id].concat(), [NAME, &b" "[..], id].concat()];
        let recorded = begun.len().min(NAME.len());
        let text = [&begun[..], piece].concat();
        let is_line_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let last = text.rsplit(is_line_end).next().unwrap_or_default();
        let may_name_session =
            lines.iter().any(|line| last.len() < line.len() && line.starts_with(last));
        *begun = if may_name_session { last.to_vec() } else { Vec::new() };
        let known = text.len() - begun.len().saturating_sub(NAME.len());
        let stand_in = [&b"id: "[..], &self.foreign_session(id, length_max)].concat();
        let mut replaced = Vec::with_capacity(text.len());
        for line in text[..known].split_inclusive(is_line_end) {
            let is_ended = line.last().is_some_and(is_line_end);
            let (line, end) = line.split_at(line.len() - usize::from(is_ended));
            let is_session = lines.iter().any(|it| it == line);
            replaced.extend_from_slice(if is_session { &stand_in } else { line });
            replaced.extend_from_slice(end);
        }
        replaced.drain(..recorded);
        replaced.into()
    }

    /// Returns the URL without its query.
    pub(crate) fn url(self, url: &str) -> &str {
        match self.key {
            Some(_) => url.split('?').next().unwrap_or(url),
            None => url,
        }
    }
}

/// A header field: its lowercase name and its value.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Field<'a>(pub(crate) Cow<'a, str>, #[serde(borrow)] pub(crate) Value<'a>);

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Value<'a> {
    Text(Cow<'a, str>),
    Bytes { base64: Cow<'a, str> },
}

impl<'a> Field<'a> {
    pub(crate) fn new(name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, [u8]>>) -> Self {
        let value = match value.into() {
            Cow::Borrowed(value) => {
                str::from_utf8(value).map(Cow::Borrowed).map_err(|_| value.to_vec())
            }
            Cow::Owned(value) => {
                String::from_utf8(value).map(Cow::Owned).map_err(|error| error.into_bytes())
            }
        };
        let value = value.map_or_else(
            |bytes| match Payload::from_bytes(&bytes) {
                Payload::Base64(text) => Value::Bytes { base64: text.into_owned().into() },
                _ => Value::Text("".into()),
            },
            Value::Text,
        );
        Self(name.into(), value)
    }

    pub(crate) fn value(&self) -> Result<Cow<'_, [u8]>, Unperformable> {
        match &self.1 {
            Value::Text(text) => Ok(text.as_bytes().into()),
            Value::Bytes { base64 } => {
                let payload = Payload::Base64(Cow::Borrowed(base64));
                let bytes = payload.bytes()?.into_owned();
                Ok(bytes.into())
            }
        }
    }
}

/// A refusal by the layer above.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refused<'a> {
    status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    challenge: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dpop_nonce: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<u32>,
    #[serde(borrow)]
    error: ErrorObject<'a>,
}

impl<'a> Refused<'a> {
    pub(crate) fn from_rejection(refusal: &'a HttpRejection) -> Self {
        Self {
            status: refusal.status.0,
            challenge: refusal.challenge.as_deref().map(Cow::Borrowed),
            dpop_nonce: refusal.nonce().map(Cow::Borrowed),
            retry_after: refusal.retry_after,
            error: refusal.error.clone(),
        }
    }

    pub(crate) fn to_rejection(&self) -> HttpRejection {
        let mut refusal = HttpRejection::new(Status(self.status), self.error.clone().into_owned());
        refusal.challenge = self.challenge.as_deref().map(Into::into);
        refusal.retry_after = self.retry_after;
        match self.dpop_nonce.as_deref() {
            Some(nonce) => refusal.dpop_nonce(nonce),
            None => refusal,
        }
    }
}

/// An output of an exchange.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Transmitted<'a> {
    Respond {
        status: u16,
        #[serde(borrow)]
        fields: Vec<Field<'a>>,
        #[serde(borrow)]
        body: Payload<'a>,
    },
    Open {
        status: u16,
        #[serde(borrow)]
        fields: Vec<Field<'a>>,
    },
    Chunk {
        #[serde(borrow)]
        bytes: Payload<'a>,
    },
    Finish {},
    Abort {},
}

/// An output with stand-ins in place of session ids.
pub(crate) enum RecordedTransmit<'a> {
    Respond(&'a Response),
    Open(&'a ResponseHead),
    Chunk(Cow<'a, [u8]>),
    Finish,
    Abort,
}

impl<'a> RecordedTransmit<'a> {
    pub(crate) fn from_transmit(
        transmit: &'a ServerTransmit<'_>,
        stand_ins: StandIns,
        session: Option<&SessionId>,
    ) -> Self {
        match transmit {
            ServerTransmit::Respond(response) => Self::Respond(response),
            ServerTransmit::Open(head) => Self::Open(head),
            ServerTransmit::Chunk(bytes) => Self::Chunk(stand_ins.within(bytes, session)),
            ServerTransmit::Finish => Self::Finish,
            ServerTransmit::Abort => Self::Abort,
        }
    }

    pub(crate) fn noted(&'a self, stand_ins: StandIns) -> Transmitted<'a> {
        let fields = |head: &'a ResponseHead| {
            let fields = head.fields().map(|(name, value)| match &head.session {
                Some(id) if name == "mcp-session-id" => {
                    Field::new(name, stand_ins.session(id).into_bytes())
                }
                _ => Field::new(name, value.into_owned().into_bytes()),
            });
            (head.status.0, fields.collect())
        };
        match self {
            Self::Respond(response) => {
                let (status, fields) = fields(&response.head);
                Transmitted::Respond { status, fields, body: Payload::from_bytes(&response.body) }
            }
            Self::Open(head) => {
                let (status, fields) = fields(head);
                Transmitted::Open { status, fields }
            }
            Self::Chunk(bytes) => Transmitted::Chunk { bytes: Payload::from_bytes(bytes) },
            Self::Finish => Transmitted::Finish {},
            Self::Abort => Transmitted::Abort {},
        }
    }
}

/// The position of an event in the store.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place<'a> {
    session: Cow<'a, str>,
    stream: u32,
    sequence: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    principal: Option<Cow<'a, str>>,
}

impl Place<'_> {
    fn from_position(place: &EventPosition, stand_ins: StandIns) -> Self {
        let principal = place.principal.as_ref();
        Self {
            session: stand_ins.session(&place.session).into(),
            stream: place.stream,
            sequence: place.sequence,
            principal: principal.map(|it| stand_ins.principal(it).into()),
        }
    }

    fn to_place(&self) -> Result<EventPosition, Unperformable> {
        Ok(EventPosition {
            session: session_of(&self.session)?,
            stream: self.stream,
            sequence: self.sequence,
            principal: self.principal.as_deref().map(Principal::new),
        })
    }
}

pub(crate) fn session_of(text: &str) -> Result<SessionId, Unperformable> {
    SessionId::parse(text.as_bytes()).ok_or(Unperformable("the session id is malformed"))
}

/// An event in the store.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored<'a> {
    #[serde(borrow)]
    place: Place<'a>,
    #[serde(borrow)]
    message: Payload<'a>,
}

impl<'a> Stored<'a> {
    pub(crate) fn from_event(event: &'a StoredEvent, stand_ins: StandIns) -> Self {
        Self {
            place: Place::from_position(&event.position, stand_ins),
            message: Payload::from_bytes(&event.message),
        }
    }

    pub(crate) fn to_event(&self) -> Result<StoredEvent, Unperformable> {
        let message = self.message.bytes()?.into_owned();
        Ok(StoredEvent::new(self.place.to_place()?, message))
    }
}

/// Identifies a read of the store: its connection, its stream and its number.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Read(Handle, u32, u64);

impl Read {
    pub(crate) const fn from_id(read: ReadId) -> Self {
        Self(Handle::from_key(read.connection), read.stream, read.number)
    }

    pub(crate) const fn to_id(self) -> ReadId {
        ReadId { connection: self.0.key(), stream: self.1, number: self.2 }
    }
}

/// An action for the event store.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum StoreAction<'a> {
    Append(#[serde(borrow)] Stored<'a>),
    Read {
        read: Read,
        #[serde(borrow)]
        from: Place<'a>,
        events_max: usize,
        bytes_max: usize,
    },
    Forget {
        session: Cow<'a, str>,
        stream: Option<u32>,
        principal: Option<Cow<'a, str>>,
    },
}

impl<'a> StoreAction<'a> {
    /// Returns `None` for an action of a shared store, which is not recorded.
    pub(crate) fn from_action(action: &'a Action, stand_ins: StandIns) -> Option<Self> {
        Some(match action {
            Action::Append { event } => Self::Append(Stored::from_event(event, stand_ins)),
            Action::Read { read, from, events_max, bytes_max } => Self::Read {
                read: Read::from_id(*read),
                from: Place::from_position(from, stand_ins),
                events_max: *events_max,
                bytes_max: *bytes_max,
            },
            Action::Forget { session, stream, principal } => Self::Forget {
                session: stand_ins.session(session).into(),
                stream: *stream,
                principal: principal.as_ref().map(|it| stand_ins.principal(it).into()),
            },
            _ => return None,
        })
    }
}

/// The reason why an exchange of a client failed, if the driver or the application found it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Cause<'a> {
    NotSent,
    Broken,
    Unauthorized {
        status: u16,
        challenge: Option<Cow<'a, str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Cow<'a, str>>,
    },
    AuthorizationFailed {
        reason: Cow<'a, str>,
    },
}

impl<'a> Cause<'a> {
    pub(crate) fn from_failure(failure: &'a TransportFailure) -> Self {
        match failure {
            TransportFailure::NotSent => Self::NotSent,
            TransportFailure::Broken => Self::Broken,
            TransportFailure::Unauthorized { status, challenge, body } => Self::Unauthorized {
                status: *status,
                challenge: challenge.as_deref().map(Cow::Borrowed),
                body: body.as_deref().map(Cow::Borrowed),
            },
            TransportFailure::AuthorizationFailed { reason } => {
                Self::AuthorizationFailed { reason: reason.into() }
            }
            other => Self::AuthorizationFailed { reason: other.to_string().into() },
        }
    }

    pub(crate) fn to_failure(&self) -> TransportFailure {
        match self {
            Self::NotSent => TransportFailure::NotSent,
            Self::Broken => TransportFailure::Broken,
            Self::Unauthorized { status, challenge, body } => TransportFailure::Unauthorized {
                status: *status,
                challenge: challenge.as_deref().map(Into::into),
                body: body.as_deref().map(Into::into),
            },
            Self::AuthorizationFailed { reason } => {
                TransportFailure::AuthorizationFailed { reason: (&**reason).into() }
            }
        }
    }
}

//! The calls of a machine, one on each line of a recording.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str;
use core::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use super::exchange::{Cause, Field, Read, Refused, StoreAction, Stored, Transmitted};
use super::handle::{Handle, InputName};
use super::settings::{RestrictedChange, State};
use crate::Instant;
use crate::catalog::Changes;
use crate::framing::FrameError;
use crate::jsonrpc::RawJson;
use crate::peer::{
    ClientCommand, ConnectionClosed, Event, Failure, RequestHandle, ServerCommand, Subject,
};
use crate::protocol::SerializeAt;

/// A call: its input and its output.
///
/// Times are those of the machine's clock, in nanoseconds; calls that take no time have no time.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Call<'a> {
    // ------------------------------------------------------------------ from the peer
    Message {
        at: u64,
        #[serde(borrow)]
        frame: Payload<'a>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<Cow<'a, str>>,
    },
    FrameError {
        error: Misframed,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<Cow<'a, str>>,
    },
    EndOfInput {},
    Restart {
        at: u64,
    },
    /// The process of the server ended, and another one is to follow.
    Suspend {},
    /// The connection continues with the new process.
    Reopen {
        at: u64,
    },
    Timeout {
        at: u64,
    },

    // ------------------------------------------------------------------ from the application
    /// A command to a client machine.
    ClientCommand {
        at: u64,
        #[serde(borrow)]
        command: ClientCommand<'a>,
    },
    /// A command to a server machine.
    ServerCommand {
        at: u64,
        #[serde(borrow)]
        command: ServerCommand<'a>,
    },
    Catalog {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        #[serde(borrow)]
        catalog: State<'a>,
        /// The lists whose changes clients are notified of.
        #[serde(default)]
        changed: Changes,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_for: Vec<RestrictedChange>,
    },
    // ------------------------------------------------------------------ outputs
    /// A chunk was polled and removed.
    Transmit {
        #[serde(borrow)]
        bytes: Payload<'a>,
    },
    /// A chunk was polled and stays in the queue. It is the next chunk from here on.
    Peek {},
    /// The first bytes of the chunk were removed.
    Sent {
        #[serde(borrow)]
        bytes: Payload<'a>,
    },
    Event {
        event: Cow<'a, str>,
    },

    // ------------------------------------------------------------------ HTTP server
    Request {
        at: u64,
        method: Cow<'a, str>,
        target: Cow<'a, str>,
        #[serde(borrow)]
        fields: Vec<Field<'a>>,
        /// A field that was repeated with different values.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contradictory: Option<Cow<'a, str>>,
        #[serde(borrow)]
        body: Payload<'a>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<Cow<'a, str>>,
        /// The scopes of the sender, as far as items of the catalog require them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        scopes: Vec<Cow<'a, str>>,
        /// The stand-in for the remote address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<core::net::IpAddr>,
        /// The refusal by a layer above.
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        refused: Option<Refused<'a>>,
        /// The stand-in for the session that the request opened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<Cow<'a, str>>,
        exchange: Handle,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<Cow<'a, str>>,
    },
    Disconnect {
        at: u64,
        exchange: Handle,
    },
    Refuse {
        at: u64,
        request: RequestHandle,
        #[serde(borrow)]
        refusal: Refused<'a>,
    },
    /// The deadline after which the authorization of an exchange ends.
    Expiry {
        exchange: Handle,
        until: u64,
    },
    Release {
        request: RequestHandle,
        retry: Duration,
    },
    Stored {
        at: u64,
        read: Read,
        #[serde(borrow)]
        events: Option<Vec<Stored<'a>>>,
    },
    ReadFailed {
        at: u64,
        read: Read,
    },
    /// `None`: those that waited were dropped.
    Store {
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        action: Option<StoreAction<'a>>,
    },
    Ready {
        exchange: Handle,
    },
    Poll {
        at: u64,
        exchange: Handle,
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        transmit: Option<Transmitted<'a>>,
    },

    // ------------------------------------------------------------------ HTTP client
    Response {
        at: u64,
        exchange: Handle,
        status: u16,
        #[serde(borrow)]
        fields: Vec<Field<'a>>,
    },
    Body {
        at: u64,
        exchange: Handle,
        #[serde(borrow)]
        bytes: Payload<'a>,
    },
    BodyEnd {
        at: u64,
        exchange: Handle,
    },
    ExchangeFailed {
        at: u64,
        exchange: Handle,
        #[serde(borrow)]
        failure: Cause<'a>,
    },
    Pause {
        at: u64,
        exchange: Handle,
    },
    Resume {
        at: u64,
        exchange: Handle,
    },
    Send {
        exchange: Handle,
        method: Cow<'a, str>,
        url: Cow<'a, str>,
        #[serde(borrow)]
        fields: Vec<Field<'a>>,
        #[serde(borrow)]
        body: Payload<'a>,
    },
    Abort {
        exchange: Handle,
    },
}

impl Call<'_> {
    /// Returns the time of the call, if it has one.
    pub(crate) fn at(&self) -> Option<Instant> {
        let nanos = match self {
            Self::Message { at, .. }
            | Self::Timeout { at }
            | Self::ClientCommand { at, .. }
            | Self::ServerCommand { at, .. } => Some(*at),
            Self::Request { at, .. }
            | Self::Disconnect { at, .. }
            | Self::Refuse { at, .. }
            | Self::Stored { at, .. }
            | Self::ReadFailed { at, .. }
            | Self::Poll { at, .. }
            | Self::Response { at, .. }
            | Self::Body { at, .. }
            | Self::BodyEnd { at, .. }
            | Self::ExchangeFailed { at, .. }
            | Self::Pause { at, .. }
            | Self::Resume { at, .. } => Some(*at),
            Self::Catalog { at, .. } => *at,
            _ => None,
        };
        nanos.map(Instant::from_nanos)
    }

    /// Returns whether the call is an input, and not only an output that was taken.
    pub(crate) const fn is_input(&self) -> bool {
        !matches!(
            self,
            Self::Transmit { .. }
                | Self::Peek {}
                | Self::Sent { .. }
                | Self::Event { .. }
                | Self::Store { .. }
                | Self::Ready { .. }
                | Self::Poll { .. }
                | Self::Send { .. }
                | Self::Abort { .. }
        )
    }
}

/// Describes the outcome of a frame.
pub(super) fn outcome<'a>(
    taken: &Result<Option<Event<'_>>, ConnectionClosed>,
) -> Option<Cow<'a, str>> {
    match taken {
        Ok(event) => event.as_ref().map(|event| describe(event).into()),
        Err(closed) => Some(alloc::format!("closed: {closed}").into()),
    }
}

/// Describes an event in one line: its kind, its subject and its outcome.
pub(crate) fn describe(event: &Event<'_>) -> String {
    let mut text = summary(event);
    // The query of a URL may contain secrets, so it is left out of recordings.
    if let Some(start) = text.find("redirects to `")
        && let Some(query) = text[start..].find('?').map(|at| start + at)
        && let Some(end) = text[query..].find('`').map(|at| query + at)
    {
        text.replace_range(query..end, "");
    }
    text
}

fn summary(event: &Event<'_>) -> String {
    match event {
        Event::Opened(opened) => format!("opened {}", opened.revision),
        Event::Request(request) => {
            let round = if request.inputs.is_empty() { "" } else { " with inputs" };
            format!("request {} {}{round}", Handle::from(request.handle), request.method)
        }
        Event::Notification(notification) => {
            let mut text = format!("notification {}", notification.method);
            for (call, number) in notification.subscriptions.iter().zip(0_usize..) {
                text.push_str(if number == 0 { " of " } else { ", " });
                text.push_str(&Handle::from(*call).to_string());
            }
            text
        }
        Event::Progress(progress) => {
            format!("progress {} {}", Handle::from(progress.call), progress.progress)
        }
        Event::Ended(ended) => {
            let outcome = match &ended.outcome {
                Ok(_) => "result".to_string(),
                Err(failure @ Failure::Refused(error)) => format!("{} {failure}", error.code.0),
                Err(failure) => failure.to_string(),
            };
            format!("ended {}: {outcome}", Handle::from(ended.call))
        }
        Event::InputRequested(input) => {
            format!("input {} {}", InputName::from(input.handle), input.method.as_str())
        }
        Event::Cancelled(cancelled) => match cancelled.subject {
            Subject::Request(handle) => format!("cancelled {}", Handle::from(handle)),
            Subject::Input(handle) => {
                format!("cancelled input {}", InputName::from(handle))
            }
        },
        Event::Subscribed(subscribed) => {
            let honoured = subscribed.honoured.to_json_at(crate::Revision::LATEST);
            let honoured = honoured.as_ref().map_or("", |json| json.as_str());
            format!("subscribed {} {honoured}", Handle::from(subscribed.subscription))
        }
        Event::Violation(violation) => format!("violation: {violation}"),
        // The next two were violations when the format was defined, so they are still written as
        // such: the lines of older recordings are compared with these.
        Event::DeliveryFailed(failed) => format!("violation: {failed}"),
        Event::EventStreamLost(failure) => {
            format!("violation: the server's event stream was lost: {failure}")
        }
        // Not an output of a machine.
        Event::HandlerPanicked(panicked) => panicked.to_string(),
        Event::Closed(reason) => format!("closed: {reason}"),
    }
}

/// A framing error.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Misframed {
    TooLong { limit: usize },
    Truncated { length: usize },
}

impl From<FrameError> for Misframed {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::TooLong { limit } => Self::TooLong { limit },
            FrameError::Truncated { length } => Self::Truncated { length },
        }
    }
}

impl From<Misframed> for FrameError {
    fn from(error: Misframed) -> Self {
        match error {
            Misframed::TooLong { limit } => Self::TooLong { limit },
            Misframed::Truncated { length } => Self::Truncated { length },
        }
    }
}

/// A line asks for something that cannot be done. The recording is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unperformable(pub(crate) &'static str);

impl From<NotBase64> for Unperformable {
    fn from(_: NotBase64) -> Self {
        Self("the bytes are not valid base64")
    }
}

/// The line is a call that this kind of machine does not have.
pub(crate) const MISPLACED: Unperformable =
    Unperformable("this kind of machine does not have this call");

pub(crate) fn decoded<'a, T: Deserialize<'a>>(json: &'a RawJson<'_>) -> Result<T, Unperformable> {
    json.decode().map_err(|_| Unperformable("the value is malformed"))
}

/// Bytes, as a line of a recording stores them: without loss, and as readable as possible.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Payload<'a> {
    /// One JSON text, unchanged.
    Json(#[serde(borrow)] RawJson<'a>),
    /// JSON texts, each ended by a newline.
    Lines(#[serde(borrow)] Vec<RawJson<'a>>),
    /// Any other text.
    Text(#[serde(borrow)] Cow<'a, str>),
    /// Bytes that are not UTF-8.
    Base64(#[serde(borrow)] Cow<'a, str>),
}

/// The text cannot be decoded to bytes. The recording is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotBase64;

impl<'a> Payload<'a> {
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Self {
        let Ok(text) = str::from_utf8(bytes) else {
            return Self::Base64(BASE64_STANDARD.encode(bytes).into());
        };
        if let Some(json) = json(text) {
            return Self::Json(json);
        }
        let lines = text.strip_suffix('\n').map(|lines| lines.split('\n').map(json).collect());
        match lines {
            Some(Some(lines)) => Self::Lines(lines),
            _ => Self::Text(text.into()),
        }
    }

    pub(crate) fn bytes(&self) -> Result<Cow<'_, [u8]>, NotBase64> {
        Ok(match self {
            Self::Json(json) => Cow::Borrowed(json.as_str().as_bytes()),
            Self::Lines(lines) => {
                let ended = |line: &RawJson<'_>| [line.as_str(), "\n"].concat();
                Cow::Owned(lines.iter().map(ended).collect::<String>().into_bytes())
            }
            Self::Text(text) => Cow::Borrowed(text.as_bytes()),
            Self::Base64(text) => {
                Cow::Owned(BASE64_STANDARD.decode(&**text).map_err(|_| NotBase64)?)
            }
        })
    }
}

/// Returns the text as JSON, if reading it from a line gives back the same text.
fn json(text: &str) -> Option<RawJson<'_>> {
    let whole = text.trim_ascii().len() == text.len() && !text.contains(['\n', '\r']);
    if whole { RawJson::parse(text).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::peer::{DeliveryFailed, TransportFailure};
    use crate::protocol::Method;

    fn written(bytes: &[u8]) -> String {
        serde_json::to_string(&Payload::from_bytes(bytes)).unwrap()
    }

    #[test]
    fn readable_payloads_are_written_as_text() {
        assert_eq!(written(br#"{"a": 1.50}"#), r#"{"json":{"a": 1.50}}"#);
        assert_eq!(written(b"{}\n[ ]\n"), r#"{"lines":[{},[ ]]}"#);
        assert_eq!(written(b"{}\nx\n"), r#"{"text":"{}\nx\n"}"#);
        assert_eq!(written(b" {}"), r#"{"text":" {}"}"#);
        assert_eq!(written(b""), r#"{"text":""}"#);
        assert_eq!(written(b"\xFF"), r#"{"base64":"/w=="}"#);
    }

    #[test]
    fn failures_of_the_transport_are_described_as_in_older_recordings() {
        let failure = TransportFailure::SessionLost;
        let lost = describe(&Event::EventStreamLost(failure.clone()));
        assert_eq!(lost, format!("violation: the server's event stream was lost: {failure}"));
        let failed = |method| {
            describe(&Event::DeliveryFailed(DeliveryFailed { method, failure: failure.clone() }))
        };
        let expected = |what| format!("violation: `{what}` could not be delivered: {failure}");
        assert_eq!(failed(None), expected("response"));
        assert_eq!(failed(Some(Method::Initialized)), expected("notifications/initialized"));
    }

    proptest! {
        #[test]
        fn any_bytes_round_trip(bytes: Vec<u8>, text in r#"[{}\[\]",: 0-9a\n\r\\]{0,20}"#) {
            for bytes in [&bytes[..], text.as_bytes()] {
                let line = written(bytes);
                let read: Payload<'_> = serde_json::from_str(&line).unwrap();
                prop_assert_eq!(&*read.bytes().unwrap(), bytes);
            }
        }
    }
}

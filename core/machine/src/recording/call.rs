//! The calls of a machine: what a recording holds, one on each line.

use alloc::borrow::Cow;
#[cfg(feature = "http")]
use alloc::vec::Vec;
#[cfg(feature = "http")]
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::catalog::{Kinds, State};
use crate::Instant;
use crate::framing::FrameError;
use crate::jsonrpc::{ErrorObject, RawJson};
use crate::peer::{ConnectionClosed, Event};

use super::arguments::{Misframed, Options, is_false};
use super::event::describe;
#[cfg(feature = "http")]
use super::exchange::{Cause, Field, Read, Refused, StoreAction, Stored, Transmitted};
use super::handle::{Handle, InputName};
use super::payload::Payload;

/// One call: what went in, and what came out of it.
///
/// Times are those of the machine's clock, in nanoseconds; calls that take no time have none.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Call<'a> {
    // ------------------------------------------------------------------ from the other side
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
    Timeout {
        at: u64,
    },

    // ------------------------------------------------------------------ from the application
    #[serde(rename = "call")]
    Started {
        at: u64,
        method: Cow<'a, str>,
        #[serde(borrow)]
        params: Option<RawJson<'a>>,
        #[serde(borrow, default, skip_serializing_if = "Options::is_default")]
        options: Options<'a>,
        /// Of no method of the protocol.
        #[serde(default, skip_serializing_if = "is_false")]
        other: bool,
    },
    Cancel {
        at: u64,
        call: Handle,
        reason: Cow<'a, str>,
    },
    Notify {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        method: Cow<'a, str>,
        #[serde(borrow)]
        params: Option<RawJson<'a>>,
    },
    SetLogLevel {
        at: u64,
        level: Cow<'a, str>,
    },
    Subscribe {
        at: u64,
        #[serde(borrow)]
        filter: RawJson<'a>,
    },
    AnswerInput {
        at: u64,
        input: InputName,
        #[serde(borrow)]
        result: Option<RawJson<'a>>,
    },
    RefuseInput {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        input: InputName,
        #[serde(borrow)]
        error: ErrorObject<'a>,
    },
    Respond {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        request: Handle,
        #[serde(borrow)]
        result: Option<RawJson<'a>>,
    },
    Reject {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        request: Handle,
        #[serde(borrow)]
        error: ErrorObject<'a>,
    },
    RequireInput {
        at: u64,
        request: Handle,
        method: Cow<'a, str>,
        #[serde(borrow)]
        required: RawJson<'a>,
    },
    WithdrawInput {
        at: u64,
        request: Handle,
    },
    TaskProgress {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        request: Handle,
        #[serde(borrow)]
        params: Option<RawJson<'a>>,
    },
    Progress {
        at: u64,
        request: Handle,
        /// Decimal text, as that comes back as the very same number.
        progress: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<Cow<'a, str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Cow<'a, str>>,
    },
    Log {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Handle>,
        level: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        logger: Option<Cow<'a, str>>,
        #[serde(borrow)]
        data: RawJson<'a>,
    },
    ResourceUpdated {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        uri: Cow<'a, str>,
    },
    TaskChanged {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        #[serde(borrow)]
        status: RawJson<'a>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<Cow<'a, str>>,
    },
    Announce {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        changed: Kinds,
    },
    Catalog {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        #[serde(borrow)]
        catalog: State<'a>,
        /// What clients are told of, where that is not a call of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changed: Option<Kinds>,
    },
    Close {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
    },

    // ------------------------------------------------------------------ what came out, of any
    /// A chunk was asked for and is gone.
    Transmit {
        #[serde(borrow)]
        bytes: Payload<'a>,
    },
    /// A chunk was asked for and stays: from here on it is the next one.
    Peek {},
    /// The first bytes of the chunk have gone.
    Sent {
        #[serde(borrow)]
        bytes: Payload<'a>,
    },
    Event {
        event: Cow<'a, str>,
    },

    // ------------------------------------------------------------------ a server on HTTP
    #[cfg(feature = "http")]
    Request {
        at: u64,
        method: Cow<'a, str>,
        target: Cow<'a, str>,
        #[serde(borrow)]
        fields: Vec<Field<'a>>,
        /// A field that came with different values.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contradictory: Option<Cow<'a, str>>,
        #[serde(borrow)]
        body: Payload<'a>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<Cow<'a, str>>,
        /// Where it came from, by its stand-in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<core::net::IpAddr>,
        /// What the layer above had against it.
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        refused: Option<Refused<'a>>,
        /// The session that it opened, by its stand-in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<Cow<'a, str>>,
        exchange: Handle,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<Cow<'a, str>>,
    },
    #[cfg(feature = "http")]
    Disconnect {
        at: u64,
        exchange: Handle,
    },
    #[cfg(feature = "http")]
    Refuse {
        at: u64,
        request: Handle,
        #[serde(borrow)]
        refusal: Refused<'a>,
    },
    /// The right of an exchange ends then.
    #[cfg(feature = "http")]
    Expiry {
        exchange: Handle,
        until: u64,
    },
    #[cfg(feature = "http")]
    Release {
        request: Handle,
        retry: Duration,
    },
    #[cfg(feature = "http")]
    Stored {
        at: u64,
        read: Read,
        #[serde(borrow)]
        events: Option<Vec<Stored<'a>>>,
    },
    #[cfg(feature = "http")]
    Store {
        #[serde(borrow)]
        action: StoreAction<'a>,
    },
    #[cfg(feature = "http")]
    Ready {
        exchange: Handle,
    },
    #[cfg(feature = "http")]
    Poll {
        at: u64,
        exchange: Handle,
        #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
        transmit: Option<Transmitted<'a>>,
    },

    // ------------------------------------------------------------------ a client on HTTP
    #[cfg(feature = "http")]
    Response {
        at: u64,
        exchange: Handle,
        status: u16,
        #[serde(borrow)]
        fields: Vec<Field<'a>>,
    },
    #[cfg(feature = "http")]
    Body {
        at: u64,
        exchange: Handle,
        #[serde(borrow)]
        bytes: Payload<'a>,
    },
    #[cfg(feature = "http")]
    BodyEnd {
        at: u64,
        exchange: Handle,
    },
    #[cfg(feature = "http")]
    ExchangeFailed {
        at: u64,
        exchange: Handle,
        #[serde(borrow)]
        failure: Cause<'a>,
    },
    #[cfg(feature = "http")]
    Pause {
        at: u64,
        exchange: Handle,
    },
    #[cfg(feature = "http")]
    Resume {
        at: u64,
        exchange: Handle,
    },
    #[cfg(feature = "http")]
    Send {
        exchange: Handle,
        method: Cow<'a, str>,
        url: Cow<'a, str>,
        #[serde(borrow)]
        fields: Vec<Field<'a>>,
        #[serde(borrow)]
        body: Payload<'a>,
    },
    #[cfg(feature = "http")]
    Abort {
        exchange: Handle,
    },
}

impl Call<'_> {
    /// When it was made, where it says so.
    pub(crate) fn at(&self) -> Option<Instant> {
        let nanos = match self {
            Self::Message { at, .. }
            | Self::Timeout { at }
            | Self::Started { at, .. }
            | Self::Cancel { at, .. }
            | Self::SetLogLevel { at, .. }
            | Self::Subscribe { at, .. }
            | Self::AnswerInput { at, .. }
            | Self::RequireInput { at, .. }
            | Self::WithdrawInput { at, .. }
            | Self::Progress { at, .. } => Some(*at),
            #[cfg(feature = "http")]
            Self::Request { at, .. }
            | Self::Disconnect { at, .. }
            | Self::Refuse { at, .. }
            | Self::Stored { at, .. }
            | Self::Poll { at, .. }
            | Self::Response { at, .. }
            | Self::Body { at, .. }
            | Self::BodyEnd { at, .. }
            | Self::ExchangeFailed { at, .. }
            | Self::Pause { at, .. }
            | Self::Resume { at, .. } => Some(*at),
            Self::Notify { at, .. }
            | Self::RefuseInput { at, .. }
            | Self::Respond { at, .. }
            | Self::Reject { at, .. }
            | Self::Log { at, .. }
            | Self::ResourceUpdated { at, .. }
            | Self::TaskChanged { at, .. }
            | Self::TaskProgress { at, .. }
            | Self::Announce { at, .. }
            | Self::Catalog { at, .. }
            | Self::Close { at } => *at,
            _ => None,
        };
        nanos.map(Instant::from_nanos)
    }

    /// Whether something was asked of the machine, and not only taken from it.
    pub(crate) const fn is_input(&self) -> bool {
        match self {
            Self::Transmit { .. } | Self::Peek {} | Self::Sent { .. } | Self::Event { .. } => false,
            #[cfg(feature = "http")]
            Self::Store { .. }
            | Self::Ready { .. }
            | Self::Poll { .. }
            | Self::Send { .. }
            | Self::Abort { .. } => false,
            _ => true,
        }
    }
}

impl<'a> Call<'a> {
    pub(super) fn message(
        frame: &'a [u8],
        now: Instant,
        taken: &Result<Option<Event<'_>>, ConnectionClosed>,
    ) -> Self {
        Self::Message { at: now.as_nanos(), frame: Payload::from_bytes(frame), event: told(taken) }
    }

    pub(super) fn frame_error(
        error: FrameError,
        taken: &Result<Option<Event<'_>>, ConnectionClosed>,
    ) -> Self {
        Self::FrameError { error: error.into(), event: told(taken) }
    }
}

/// What came of a frame.
fn told<'a>(taken: &Result<Option<Event<'_>>, ConnectionClosed>) -> Option<Cow<'a, str>> {
    match taken {
        Ok(event) => event.as_ref().map(|event| describe(event).into()),
        Err(closed) => Some(alloc::format!("closed: {closed}").into()),
    }
}

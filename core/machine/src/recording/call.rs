//! The calls of a machine, one on each line of a recording.

use alloc::borrow::Cow;
use alloc::vec::Vec;
#[cfg(feature = "http")]
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::catalog::{RestrictedChange, State};
use crate::Instant;
use crate::catalog::Changes;
use crate::framing::FrameError;
#[cfg(feature = "http")]
use crate::peer::RequestHandle;
use crate::peer::{ClientCommand, ConnectionClosed, Event, ServerCommand};

use super::arguments::Misframed;
use super::event::describe;
#[cfg(feature = "http")]
use super::exchange::{Cause, Field, Read, Refused, StoreAction, Stored, Transmitted};
#[cfg(feature = "http")]
use super::handle::Handle;
use super::payload::Payload;

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
    #[cfg(feature = "http")]
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
    #[cfg(feature = "http")]
    Disconnect {
        at: u64,
        exchange: Handle,
    },
    #[cfg(feature = "http")]
    Refuse {
        at: u64,
        request: RequestHandle,
        #[serde(borrow)]
        refusal: Refused<'a>,
    },
    /// The deadline after which the authorization of an exchange ends.
    #[cfg(feature = "http")]
    Expiry {
        exchange: Handle,
        until: u64,
    },
    #[cfg(feature = "http")]
    Release {
        request: RequestHandle,
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

    // ------------------------------------------------------------------ HTTP client
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
    /// Returns the time of the call, if it has one.
    pub(crate) fn at(&self) -> Option<Instant> {
        let nanos = match self {
            Self::Message { at, .. }
            | Self::Timeout { at }
            | Self::ClientCommand { at, .. }
            | Self::ServerCommand { at, .. } => Some(*at),
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
            Self::Catalog { at, .. } => *at,
            _ => None,
        };
        nanos.map(Instant::from_nanos)
    }

    /// Returns whether the call is an input, and not only an output that was taken.
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
        Self::Message {
            at: now.as_nanos(),
            frame: Payload::from_bytes(frame),
            event: outcome(taken),
        }
    }

    pub(super) fn frame_error(
        error: FrameError,
        taken: &Result<Option<Event<'_>>, ConnectionClosed>,
    ) -> Self {
        Self::FrameError { error: error.into(), event: outcome(taken) }
    }
}

/// Describes the outcome of a frame.
fn outcome<'a>(taken: &Result<Option<Event<'_>>, ConnectionClosed>) -> Option<Cow<'a, str>> {
    match taken {
        Ok(event) => event.as_ref().map(|event| describe(event).into()),
        Err(closed) => Some(alloc::format!("closed: {closed}").into()),
    }
}

//! The binding of a connection: its capabilities and its failures, as values.

use alloc::string::String;

mod failure;
mod header_fields;
mod rejection;

#[cfg(feature = "http")]
pub(crate) use failure::After;
pub use failure::TransportFailure;
#[cfg(feature = "http")]
pub(crate) use header_fields::is_allowed;
#[cfg(feature = "http")]
pub use header_fields::{Field, is_token_byte};
pub use header_fields::{HeaderFields, InvalidHeader};
#[cfg(feature = "http")]
pub(crate) use rejection::DpopNonce;
pub use rejection::{HttpRejection, Status};

/// The kind of transport, and the rules that depend on it. The machines query this value only and
/// know no concrete transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// One byte stream in each direction. Once it ends, the connection ends.
    ByteStream,
    /// One channel per request: it carries the response, and either side can close it.
    #[cfg(any(feature = "http", test))]
    ChannelPerRequest,
}

impl Binding {
    /// Returns whether each request has its own channel.
    pub(crate) const fn has_channels(self) -> bool {
        match self {
            Self::ByteStream => false,
            #[cfg(any(feature = "http", test))]
            Self::ChannelPerRequest => true,
        }
    }

    /// Returns whether a modern request is cancelled by closing its channel, not by a notification.
    // MCP 2026-07-28 basic/transports/streamable-http#cancellation [CANC-017]
    // MCP 2026-07-28 basic/transports/stdio#cancellation [CANC-014]
    pub(crate) const fn cancels_by_closing(self) -> bool {
        self.has_channels()
    }

    /// Returns whether a server that does not answer a probe counts as a legacy server. The
    /// specification says so for standard streams only; on a channel, a server answers or cannot be
    /// reached.
    // MCP 2026-07-28 basic/transports/stdio#backward-compatibility [VER-022]
    pub(crate) const fn silence_means_legacy(self) -> bool {
        !self.has_channels()
    }

    /// Returns whether opening can start again on a new stream after the previous one has ended.
    pub(crate) const fn can_reopen(self) -> bool {
        !self.has_channels()
    }

    /// Returns whether two requests may reach different servers, so that a refusal is worth one
    /// retry and a listen stream may have to be reopened.
    pub(crate) const fn requests_may_diverge(self) -> bool {
        self.has_channels()
    }

    /// Returns whether all messages share one queue, which one slow reader can fill. Otherwise each
    /// channel has its own bounds.
    pub(crate) const fn has_one_queue(self) -> bool {
        !self.has_channels()
    }
}

/// The connection of an operation, for its observer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationTransport {
    /// The protocol that carries the messages, in lower case: `http`, or `None` for a byte stream.
    pub protocol_name: Option<&'static str>,
    /// The version of that protocol, such as `1.1` or `2`, if the adapter knows it.
    pub protocol_version: Option<&'static str>,
    /// The id of the session, for messages that belong to one. It is a secret unless the server
    /// authenticates its clients.
    pub session_id: Option<String>,
    /// The address of the other side: the host of the server's URL, or the address of the client.
    pub peer_address: Option<String>,
    /// The port of the other side.
    pub peer_port: Option<u16>,
    /// The header field `traceparent` of the request that carried a received message.
    pub traceparent: Option<String>,
    /// The header field `tracestate` of that request.
    pub tracestate: Option<String>,
}

impl Binding {
    /// Returns the name of the protocol that carries the messages.
    pub(crate) const fn protocol_name(self) -> Option<&'static str> {
        if self.has_channels() { Some("http") } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_streams_and_channels_differ_in_each_of_these_rules() {
        // Rule: [CANC-014] [CANC-017] [VER-022].
        let rules = [
            Binding::cancels_by_closing,
            Binding::silence_means_legacy,
            Binding::can_reopen,
            Binding::requests_may_diverge,
            Binding::has_one_queue,
        ];
        let of = |binding| rules.map(|rule| rule(binding));
        assert_eq!(of(Binding::ByteStream), [false, true, true, false, true]);
        assert_eq!(of(Binding::ChannelPerRequest), [true, false, false, true, false]);
    }
}

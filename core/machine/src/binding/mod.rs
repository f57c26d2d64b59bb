//! What carries the messages of a connection, as a value: what it can do, and how it fails.

mod failure;

pub use failure::TransportFailure;

/// What carries a machine's messages, and which rules differ by it. The machines ask this value
/// alone, and know no transport by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// One stream of bytes each way, which ends once and for all.
    ByteStream,
    /// A channel for each request: the answer comes on it, and either side can close it.
    #[cfg(any(feature = "http", test))]
    ChannelPerRequest,
}

impl Binding {
    /// Whether each request has a channel of its own.
    pub(crate) const fn has_channels(self) -> bool {
        match self {
            Self::ByteStream => false,
            #[cfg(any(feature = "http", test))]
            Self::ChannelPerRequest => true,
        }
    }

    /// Whether a modern request is cancelled by closing its channel, not by a notification.
    // MCP 2026-07-28 basic/transports/streamable-http#cancellation [CANC-017]
    // MCP 2026-07-28 basic/transports/stdio#cancellation [CANC-014]
    pub(crate) const fn cancels_by_closing(self) -> bool {
        self.has_channels()
    }

    /// Whether a server that does not answer a probe is taken for one of the legacy era. On a
    /// channel a server answers or cannot be reached; the pages take silence for an answer on
    /// standard streams only.
    // MCP 2026-07-28 basic/transports/stdio#backward-compatibility [VER-022]
    pub(crate) const fn silence_tells_the_era(self) -> bool {
        !self.has_channels()
    }

    /// Whether the opening may begin again on another stream, the one before having ended.
    pub(crate) const fn opens_anew(self) -> bool {
        !self.has_channels()
    }

    /// Whether two requests may reach different servers, so that a refusal is worth one more try, and
    /// a listen stream may have to be opened again.
    pub(crate) const fn requests_may_part(self) -> bool {
        self.has_channels()
    }

    /// Whether all messages wait in one queue, which one slow reader fills for everything. Else each
    /// channel has bounds of its own.
    pub(crate) const fn has_one_queue(self) -> bool {
        !self.has_channels()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_of_bytes_and_channels_differ_in_each_of_these_rules() {
        // Rule: [CANC-014] [CANC-017] [VER-022].
        let rules = [
            Binding::cancels_by_closing,
            Binding::silence_tells_the_era,
            Binding::opens_anew,
            Binding::requests_may_part,
            Binding::has_one_queue,
        ];
        let of = |binding| rules.map(|rule| rule(binding));
        assert_eq!(of(Binding::ByteStream), [false, true, true, false, true]);
        assert_eq!(of(Binding::ChannelPerRequest), [true, false, false, true, false]);
    }
}

use embedded_io::{Error, ErrorKind};

/// What broke a connection, `R` and `W` being the errors of its halves. The stream's fault or the
/// other side's, never the endpoint's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum DriveError<R: Error, W: Error> {
    /// The input failed, more than [once in a row](crate::Settings::read_errors_max). To the
    /// endpoint it has ended.
    #[error("reading from the other side failed: {0}")]
    Read(#[source] R),
    /// The output failed, and not because the other side has gone. What waited to be sent is lost.
    #[error("writing to the other side failed: {0}")]
    Write(#[source] W),
    /// The output took nothing, against the contract of `embedded-io`.
    #[error("writing to the other side failed: it takes no bytes")]
    WriteZero,
}

/// Whether an error says no more than that the other side has left, as it may at any time.
// MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-018]: a server may close its output and
// exit.
pub(crate) fn is_gone(error: &impl Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected)
}

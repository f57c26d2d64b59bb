use embedded_io::{Error, ErrorKind};
use mcp_sansio::stream::Fault;

/// What broke a connection, `R` and `W` being the errors of its halves. The stream's fault or the
/// other side's, never the endpoint's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum DriveError<R: Error, W: Error> {
    /// The input failed, more often in a row than [allowed](crate::Settings::read_errors_max). To
    /// the endpoint it has ended.
    #[error("reading from the other side failed: {0}")]
    Read(#[source] R),
    /// The output failed, and not because the other side has gone. What waited to be sent is lost.
    #[error("writing to the other side failed: {0}")]
    Write(#[source] W),
    /// The output took nothing, against the contract of `embedded-io`.
    #[error("writing to the other side failed: it takes no bytes")]
    WriteZero,
}

/// What a connection has to know of an error.
pub(crate) fn fault<T: Error, X>(error: T, broken: fn(T) -> X) -> Fault<X> {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    match error.kind() {
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected => Fault::Gone,
        _ => Fault::Broken(broken(error)),
    }
}

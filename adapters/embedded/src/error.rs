use embedded_io::{Error, ErrorKind};
use mcp_sansio::stream::Fault;

/// Why a connection broke: a fault of the stream or the peer, never of the endpoint. `R` and `W`
/// are the errors of the two halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum DriveError<R: Error, W: Error> {
    /// Reading failed more often in a row than [allowed](crate::StreamSettings::read_errors_max).
    /// The endpoint treats the input as ended.
    #[error("reading from the other side failed: {0}")]
    Read(#[source] R),
    /// Writing failed, other than by a disconnect. Unsent output is lost.
    #[error("writing to the other side failed: {0}")]
    Write(#[source] W),
    /// The writer accepted no bytes, which violates the contract of `embedded-io`.
    #[error("writing to the other side failed: it accepts no bytes")]
    WriteZero,
}

/// Classifies an error for the connection.
pub(crate) fn fault<T: Error, X>(error: T, broken: fn(T) -> X) -> Fault<X> {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    match error.kind() {
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected => Fault::Gone,
        _ => Fault::Broken(broken(error)),
    }
}

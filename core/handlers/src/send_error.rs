use super::mailbox::SendFailure;

/// Why a command to a connection was not accepted. The command has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The command queue of the driver is full: see
    /// [`Limits::commands_max`](mcp_sansio::peer::Limits::commands_max). Retry later.
    #[error("too many commands wait for the driver of the connection")]
    Full,
    /// The connection is closed.
    #[error("the connection is over")]
    Closed,
}

impl<C> From<SendFailure<C>> for SendError {
    fn from(refused: SendFailure<C>) -> Self {
        match refused {
            SendFailure::Closed(_) => Self::Closed,
            SendFailure::Full(_) => Self::Full,
        }
    }
}

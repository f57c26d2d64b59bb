//! Why a command came to nothing, in words.

use mcp_sansio::handler::ClientError;
use mcp_sansio::peer::{CloseReason, Failure as CallFailure};

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection is gone: the end of the server says more.
    Lost,
    /// No answer came in time.
    Silent,
    /// Anything else, in words.
    Other(String),
}

impl From<CloseReason> for Failure {
    fn from(reason: CloseReason) -> Self {
        use mcp_sansio::peer::OpeningFailure;
        match reason {
            CloseReason::EndOfInput => Self::Lost,
            CloseReason::OpeningFailed(OpeningFailure::TimedOut) => Self::Silent,
            reason => Self::Other(reason.to_string()),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Closed(reason) => reason.into(),
            ClientError::Failed(CallFailure::ConnectionLost) => Self::Lost,
            ClientError::Failed(CallFailure::TimedOut { .. }) => Self::Silent,
            ClientError::Failed(CallFailure::Refused(error)) => {
                Self::Other(format!("the server answered with an error: {error}"))
            }
            error => Self::Other(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Other(error.to_string())
    }
}

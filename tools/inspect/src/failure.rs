//! Failures of a command and their descriptions.

use std::fmt;

use mcp_sansio::jsonrpc::{ErrorObject, JsonError};
use mcp_sansio::peer::{CloseReason, Failure as CallFailure, OpeningFailure, TransportFailure};
use mcp_sansio::protocol::{ElicitUrlParams, UrlElicitationRequiredData};
use mcp_sansio::{Era, ErrorCode, Revision};
use mcp_sansio_handlers::ClientError;

/// The reason for a failed command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection was lost. The exit of the server explains more.
    Lost,
    /// No response arrived in time.
    Silent,
    /// The connection could not be opened.
    Unopened(OpeningFailure),
    /// The transport of one call failed. The network error explains more.
    Transport(TransportFailure),
    /// A signal, which leads to this exit status.
    Interrupted(u8),
    /// Any other failure, as text.
    Other(String),
}

/// What servers write when a handler needs the client and cannot ask it: the code of a missing
/// capability, names of methods and words of SDKs.
const ASKING: [&str; 6] =
    ["(-32021)", "elicit", "sampling", "roots/list", "back-channel", "server-initiated"];

impl Failure {
    /// Suggests another revision if the server seems to need the client: since 2026-07-28 a server
    /// cannot send a request while it handles a call, and handlers written for the older revisions
    /// fail.
    pub(crate) fn with_advice(self, revision: Revision) -> Self {
        let Self::Other(message) = self else { return self };
        let text = message.to_lowercase();
        if revision.era() == Era::Legacy || !ASKING.iter().any(|word| text.contains(word)) {
            return Self::Other(message);
        }
        let other = Revision::V2025_11_25;
        Self::Other(format!(
            "{message}; the server may be able to ask its client at an older revision: try \
             `--revision {other}`"
        ))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the connection was lost"),
            Self::Silent => f.write_str("the server did not answer in time"),
            Self::Interrupted(_) => f.write_str("interrupted"),
            Self::Unopened(failure) => {
                write!(f, "could not open the connection: {failure}{}", opening_details(failure))
            }
            Self::Transport(failure) => failure.fmt(f),
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl From<CloseReason> for Failure {
    fn from(reason: CloseReason) -> Self {
        match reason {
            CloseReason::EndOfInput => Self::Lost,
            CloseReason::OpeningFailed(OpeningFailure::TimedOut) => Self::Silent,
            CloseReason::OpeningFailed(failure) => Self::Unopened(failure),
            CloseReason::Transport(failure) => Self::Transport(failure),
            reason => Self::Other(reason.to_string()),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Closed(reason) => reason.into(),
            ClientError::Failed(CallFailure::ConnectionLost) => Self::Lost,
            ClientError::TimedOut { .. } => Self::Silent,
            ClientError::Failed(CallFailure::Transport(failure)) => Self::Transport(failure),
            ClientError::Failed(CallFailure::Refused(error)) => {
                let details = details(&error);
                // The message may be empty.
                let error = error.to_string();
                Self::Other(format!(
                    "the server answered with an error: {}{details}",
                    error.trim_start()
                ))
            }
            error => Self::Other(error.to_string()),
        }
    }
}

/// The maximum length of an error's data in a message, in characters.
const DATA_LENGTH_MAX: usize = 400;

/// Describes the data of the error with which the server refused the opening request.
pub(crate) fn opening_details(failure: &OpeningFailure) -> String {
    match failure {
        OpeningFailure::Refused(error) => details(error),
        _ => String::new(),
    }
}

/// Describes the data of an error: the URLs that the user must visit first, or the text.
fn details(error: &ErrorObject<'_>) -> String {
    let advice = advice(error);
    let Some(data) = &error.data else { return advice };
    let urls = data.decode::<UrlElicitationRequiredData>();
    if let Ok(urls) = urls
        && error.code == ErrorCode::URL_ELICITATION_REQUIRED
    {
        let open = |url: &ElicitUrlParams| format!("; to go on, open {}: {}", url.url, url.message);
        return urls.elicitations.iter().map(open).collect();
    }
    let text = data.to_text().unwrap_or_else(|| data.as_str().into());
    let mut shown: String = text.chars().take(DATA_LENGTH_MAX).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("; data: {shown}{advice}")
}

/// Names the probable cause if a server misses a header that this client sends with each request.
fn advice(error: &ErrorObject<'_>) -> String {
    let message = error.message.to_lowercase();
    let is_routing = message.contains("mcp-method") || message.contains("mcp-name");
    if error.code != ErrorCode::HEADER_MISMATCH || !is_routing || !message.contains("missing") {
        return String::new();
    }
    let other = Revision::V2025_11_25;
    format!(
        "; this client sends it, so something on the way may remove it: let it pass, or try \
         `--revision {other}`, which does without"
    )
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Other(error.to_string())
    }
}

impl From<JsonError> for Failure {
    fn from(error: JsonError) -> Self {
        Self::Other(error.to_string())
    }
}

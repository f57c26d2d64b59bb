use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

use crate::Printable;
use crate::jsonrpc::{ErrorObject, excerpt};

/// Why a binding with one channel per request could not deliver a message.
///
/// These failures do not occur on a byte stream, which works or is lost as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportFailure {
    /// The message was not sent: no route, name resolution, connection or TLS session. The request
    /// did not run, so it can be retried.
    #[error("the server could not be reached")]
    NotSent,
    /// The exchange broke before the response arrived. Whether the request ran is unknown.
    #[error("the exchange broke before the answer")]
    Broken,
    /// The stream ended before the response. It cannot be resumed, because it sent no event id or
    /// because its revision has no resumption. Whether the request ran is unknown.
    #[error("the stream ended before the answer and cannot be resumed")]
    StreamEnded,
    /// The stream was lost, and all attempts to resume it failed.
    #[error("the stream was lost; {attempts} attempts to resume it failed")]
    StreamLost {
        /// Number of attempts since the last event on the stream.
        attempts: u32,
    },
    /// The server refused to resume the stream.
    #[error("the server refused to resume the stream, with HTTP status {status}")]
    NotResumed {
        /// The status code.
        status: u16,
    },
    /// The server ended the session and with it the call.
    // MCP 2025-11-25 basic/transports#session-management [SESS-008]
    #[error("the server ended the session")]
    SessionLost,
    /// The server refused with an HTTP status and without a JSON-RPC error for this request.
    #[error("the server refused with HTTP status {status}{}", After(body.as_deref()))]
    Status {
        /// The status code.
        status: u16,
        /// When to retry, as the server wrote it.
        retry_after: Option<Duration>,
        /// The JSON-RPC error in the body, if the body is one without an id.
        error: Option<ErrorObject<'static>>,
        /// The start of the body, if it is text: see [`excerpt`](Self::excerpt).
        body: Option<Box<str>>,
    },
    /// The server requires authorization, or denies access to the authorized client.
    #[error("{}", DisplayRefusal(*status, challenge.as_deref(), body.as_deref()))]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// The value of `WWW-Authenticate`.
        challenge: Option<String>,
        /// The start of the body, if it is text: see [`excerpt`](Self::excerpt).
        body: Option<Box<str>>,
    },
    /// The server requires authorization, and the client's authorization flow failed.
    #[error("the authorization failed: {reason}")]
    AuthorizationFailed {
        /// The reason, for the user. It contains no secrets.
        reason: String,
    },
    /// The server redirects to a place that the client does not follow: another origin, a status
    /// that would change the method, or one redirect too many.
    #[error("the server redirects to `{target}`, which is not followed: {reason}")]
    Redirected {
        /// The target, as far as it could be read.
        target: String,
        /// Why it is not followed.
        reason: &'static str,
    },
    /// An argument of the call cannot be represented in the header that the tool asks for. The call
    /// was not sent.
    // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-014]
    #[error("the call cannot be put into headers: {what}")]
    Unmirrorable {
        /// The argument, and the reason.
        what: String,
    },
    /// The server's response is not valid on this transport.
    #[error("the server's response is not valid: {0}")]
    InvalidResponse(Cow<'static, str>),
    /// The server's response exceeds a limit.
    #[error("the server's response is longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

/// Says why a server has refused this client, and what to do. The challenge, which says for example
/// which scope a token lacks, is shown up to [`TransportFailure::EXCERPT_MAX`] bytes of it.
struct DisplayRefusal<'a>(u16, Option<&'a str>, Option<&'a str>);

impl fmt::Display for DisplayRefusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(status, challenge, body) = *self;
        let (refuses, hint) = match (status, challenge) {
            // Some servers mean 401.
            (403, Some(_)) => {
                ("denies access", "sign in, or ask its operator for the permission or the scope")
            }
            (403, None) => ("denies access", "ask its operator for the permission or the scope"),
            _ => ("requires authorization", "sign in, or check the token"),
        };
        let challenge =
            challenge.map(|it| Printable::new(excerpt(it, TransportFailure::EXCERPT_MAX)));
        let (challenge, body) = (After(challenge), After(body));
        write!(f, "the server {refuses}, with HTTP status {status}{challenge}{body}; {hint}")
    }
}

/// Writes an excerpt.
pub(crate) struct After<T>(pub(crate) Option<T>);

impl<T: fmt::Display> fmt::Display for After<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(excerpt) => write!(f, ": {excerpt}"),
            None => Ok(()),
        }
    }
}

impl TransportFailure {
    /// Returns `Some(false)` if the request was certainly not executed, so that it can be sent
    /// again, and `None` if that is unknown: see [`Failure::executed`](crate::peer::Failure::executed).
    #[must_use]
    pub const fn executed(&self) -> Option<bool> {
        match self {
            Self::NotSent
            | Self::Unauthorized { .. }
            | Self::AuthorizationFailed { .. }
            | Self::Redirected { .. }
            | Self::Unmirrorable { .. }
            // A server refuses what it does not begin, and says when it will.
            | Self::Status { status: 400..=499, .. }
            | Self::Status { status: 503, retry_after: Some(_), .. } => Some(false),
            _ => None,
        }
    }

    /// Returns how long to wait before the request is sent again, if the server has said so.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The maximum length of an [`excerpt`](Self::excerpt), in bytes. 512: a sentence or a small
    /// JSON object with the reason, and only the start of an HTML page.
    pub const EXCERPT_MAX: usize = 512;

    /// Returns the start of a response body, for an error message: at most
    /// [`EXCERPT_MAX`](Self::EXCERPT_MAX) bytes, on one line, with control and bidirectional
    /// formatting characters escaped. `None` if the body is empty or not UTF-8.
    #[must_use]
    pub fn excerpt(body: &[u8]) -> Option<Box<str>> {
        let text = core::str::from_utf8(body).ok()?.trim_start_matches('\u{feff}');
        let mut excerpt = String::new();
        for word in text.split_whitespace() {
            for (at, char) in word.char_indices() {
                let space = at == 0 && !excerpt.is_empty();
                let escaped = char.is_control() || is_formatting(char);
                // An escape has at most ten bytes.
                let length = if escaped { 10 } else { char.len_utf8() };
                if excerpt.len() + length + usize::from(space) + ELLIPSIS.len() > Self::EXCERPT_MAX
                {
                    excerpt.push_str(ELLIPSIS);
                    return Some(excerpt.into_boxed_str());
                }
                if space {
                    excerpt.push(' ');
                }
                if escaped {
                    excerpt.extend(char.escape_default());
                } else {
                    excerpt.push(char);
                }
            }
        }
        (!excerpt.is_empty()).then(|| excerpt.into_boxed_str())
    }
}

const ELLIPSIS: &str = "...";

/// Returns whether the character changes the direction of the text around it or is invisible.
const fn is_formatting(char: char) -> bool {
    matches!(char, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(feature = "http")]
impl TransportFailure {
    /// Returns whether the request was not executed and may be, if it is sent again.
    pub(crate) const fn is_postponement(&self) -> bool {
        matches!(self, Self::NotSent | Self::Status { status: 429 | 503, retry_after: Some(_), .. })
    }

    /// Returns whether the failure concerns authorization only.
    pub(crate) const fn is_authorization_failure(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::AuthorizationFailed { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_client_learns_what_to_do_in_a_text_that_is_safe_to_print() {
        let text = |status, challenge: &str| {
            let challenge = Some(challenge.repeat(1_000));
            let failure = TransportFailure::Unauthorized { status, challenge, body: None };
            alloc::string::ToString::to_string(&failure)
        };
        let denied = text(403, "Bearer \u{1b}]52;");
        assert!(denied.contains("HTTP status 403: Bearer "), "{denied}");
        let hint = "; sign in, or ask its operator for the permission or the scope";
        assert!(denied.ends_with(hint), "{denied}");
        assert!(denied.contains("\\u001b]52;") && !denied.contains('\u{1b}'), "{denied}");
        assert!(denied.len() < 2 * TransportFailure::EXCERPT_MAX, "{denied}");
        assert!(text(401, "Bearer").ends_with("; sign in, or check the token"));
    }

    #[test]
    fn an_excerpt_is_short_and_safe_to_print() {
        let excerpt = |body: &str| TransportFailure::excerpt(body.as_bytes());
        assert_eq!(excerpt(" a\r\n\tb  c "), Some("a b c".into()));
        assert_eq!(excerpt("\u{feff}{\"error\":\"no\"}"), Some("{\"error\":\"no\"}".into()));
        assert_eq!(
            excerpt("\u{1b}]52;\u{7}\u{9b}\u{202e}é"),
            Some("\\u{1b}]52;\\u{7}\\u{9b}\\u{202e}é".into())
        );
        for body in ["x".repeat(10_000), "é ".repeat(10_000), "\u{1}".repeat(10_000)] {
            let text = excerpt(&body).expect("text");
            assert!(text.len() <= TransportFailure::EXCERPT_MAX && text.ends_with("..."), "{text}");
        }
        assert_eq!(excerpt(&"x".repeat(509)).map(|text| text.len()), Some(509));
        assert_eq!(excerpt(" \n"), None);
        assert_eq!(TransportFailure::excerpt(&[0x1f, 0x8b, 0xff]), None);
    }
}

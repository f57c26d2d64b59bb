use alloc::vec::Vec;

use crate::http::Status;
use crate::http::media::Media;

use super::transmit::SESSION_ID;

/// The head of a response, reduced to the fields that the protocol uses. Create it with
/// [`new`](Self::new), then call [`field`](Self::field) for every header field.
#[derive(Clone, Debug)]
pub struct IncomingResponse<'a> {
    pub(crate) status: Status,
    pub(super) content_type: Option<&'a [u8]>,
    pub(super) content_encoding: Option<&'a [u8]>,
    pub(super) session_id: Option<Hidden<'a>>,
    pub(crate) location: Option<&'a [u8]>,
    pub(super) retry_after: Option<&'a [u8]>,
    /// All values: a server may offer several authentication schemes.
    pub(crate) challenges: Vec<&'a [u8]>,
    /// The nonce for the next DPoP proof (RFC 9449, section 8).
    pub(crate) dpop_nonce: Option<&'a [u8]>,
}

/// A value that is hidden in debug output.
// MCP 2025-11-25 basic/transports#session-management [SESS-005]
#[derive(Clone, Copy)]
pub(super) struct Hidden<'a>(pub(super) &'a [u8]);

impl core::fmt::Debug for Hidden<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("..")
    }
}

impl<'a> IncomingResponse<'a> {
    /// Creates a response head with this status and no fields.
    #[must_use]
    pub const fn new(status: Status) -> Self {
        Self {
            status,
            content_type: None,
            content_encoding: None,
            session_id: None,
            location: None,
            retry_after: None,
            challenges: Vec::new(),
            dpop_nonce: None,
        }
    }

    /// Adds a header field. Fields that the protocol does not use are ignored, and so is an empty
    /// session id. If a field is repeated, the first value is used, except for `WWW-Authenticate`.
    // MCP 2025-11-25 basic/transports#session-management [SESS-015]: names are case-insensitive.
    // MCP 2026-07-28 basic/transports/streamable-http#case-sensitivity [HDR-031]
    pub fn field(&mut self, name: &str, value: &'a [u8]) {
        let value = value.trim_ascii();
        let slot = match name.len() {
            10 if name.eq_ignore_ascii_case("dpop-nonce") => &mut self.dpop_nonce,
            8 if name.eq_ignore_ascii_case("location") => &mut self.location,
            11 if name.eq_ignore_ascii_case("retry-after") => &mut self.retry_after,
            12 if name.eq_ignore_ascii_case("content-type") => &mut self.content_type,
            14 if name.eq_ignore_ascii_case("mcp-session-id") => {
                if !value.is_empty() {
                    self.session_id.get_or_insert_with(|| Hidden(without_repetition(value)));
                }
                return;
            }
            16 if name.eq_ignore_ascii_case("content-encoding") => &mut self.content_encoding,
            16 if name.eq_ignore_ascii_case("www-authenticate") => {
                return self.challenges.push(value);
            }
            _ => return,
        };
        slot.get_or_insert(value);
    }

    /// Returns the media type of the body, if the response names one. A compressed body is
    /// [`Media::Other`].
    pub(super) fn media(&self) -> Option<Media> {
        let media = self.content_type.map(Media::from_content_type);
        if self.encoding_fault().is_some() { Some(Media::Other) } else { media }
    }

    /// Returns why the body cannot be read if it has an encoding that was not asked for.
    // RFC 9110, section 12.5.3: the client accepts `identity` alone. Some servers compress anyway.
    #[must_use]
    pub fn encoding_fault(&self) -> Option<&'static str> {
        let encoding = self.content_encoding?;
        let is = |name: &str| encoding.eq_ignore_ascii_case(name.as_bytes());
        if encoding.is_empty() || is("identity") {
            None
        } else if is("gzip") || is("x-gzip") {
            Some("its content encoding is `gzip`, and only `identity` was asked for")
        } else if is("br") {
            Some("its content encoding is `br`, and only `identity` was asked for")
        } else if is("deflate") {
            Some("its content encoding is `deflate`, and only `identity` was asked for")
        } else if is("zstd") {
            Some("its content encoding is `zstd`, and only `identity` was asked for")
        } else {
            Some("it has a content encoding, and only `identity` was asked for")
        }
    }

    /// Returns the status.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.status
    }

    /// Returns the target of a redirect, as written in the field `Location`.
    #[must_use]
    pub const fn location(&self) -> Option<&'a [u8]> {
        self.location
    }

    /// Returns the values of all `WWW-Authenticate` fields: a server may offer several
    /// authentication schemes.
    #[must_use]
    pub fn challenges(&self) -> &[&'a [u8]] {
        &self.challenges
    }

    /// Returns the nonce for the next DPoP proof (RFC 9449, section 8).
    #[must_use]
    pub const fn dpop_nonce(&self) -> Option<&'a [u8]> {
        self.dpop_nonce
    }

    /// Returns the header fields that were kept, with lowercase names. One of them is the session
    /// id, which is enough to act in the session.
    // MCP 2025-11-25 basic/transports#session-management [SESS-005]
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &'a [u8])> {
        let fields = [
            ("content-type", self.content_type),
            ("content-encoding", self.content_encoding),
            (SESSION_ID, self.session_id.map(|id| id.0)),
            ("location", self.location),
            ("retry-after", self.retry_after),
            ("dpop-nonce", self.dpop_nonce),
        ];
        let challenges = self.challenges.iter().map(|value| ("www-authenticate", *value));
        fields.into_iter().filter_map(|(name, value)| Some((name, value?))).chain(challenges)
    }
}

/// Returns the session id of a field that was sent several times and joined by an intermediary (RFC
/// 9110, section 5.3). No id contains a space, so a separator cannot be part of one.
// MCP 2025-11-25 basic/transports#session-management [SESS-003]
fn without_repetition(value: &[u8]) -> &[u8] {
    let end = value.windows(2).position(|pair| pair == b", ").unwrap_or(value.len());
    let (first, rest) = value.split_at(end);
    let repeated = rest.chunks(end + 2).all(|part| part.get(2..) == Some(first));
    if repeated { first } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_that_was_joined_with_itself_is_one() {
        for value in ["abc", "abc, abc", "abc, abc, abc", "abc,abc"] {
            let expected = value.split(", ").next().unwrap_or_default();
            assert_eq!(without_repetition(value.as_bytes()), expected.as_bytes());
        }
        for value in ["a, b", "a, a, b", "a, ", ", a", "a,  a", "ab, a", "a, ab", "a, a,", "a, a, "]
        {
            assert_eq!(without_repetition(value.as_bytes()), value.as_bytes());
        }
    }
}

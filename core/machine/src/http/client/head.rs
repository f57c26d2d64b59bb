use alloc::vec::Vec;

use crate::http::Status;

use super::transmit::SESSION_ID;

/// The head of a response, as far as the protocol cares: [`new`](Self::new), then
/// [`field`](Self::field) for every header field.
#[derive(Clone, Debug)]
pub struct IncomingResponse<'a> {
    pub(crate) status: Status,
    pub(super) content_type: Option<&'a [u8]>,
    pub(super) session_id: Option<Hidden<'a>>,
    pub(crate) location: Option<&'a [u8]>,
    pub(super) retry_after: Option<&'a [u8]>,
    /// All that came: a server may ask for a token in several ways.
    pub(crate) challenges: Vec<&'a [u8]>,
    /// What the next proof of a key must have in it (RFC 9449, section 8).
    pub(crate) dpop_nonce: Option<&'a [u8]>,
}

/// A value that stays out of debug output.
// MCP 2025-11-25 basic/transports#session-management [SESS-005]
#[derive(Clone, Copy)]
pub(super) struct Hidden<'a>(pub(super) &'a [u8]);

impl core::fmt::Debug for Hidden<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("..")
    }
}

impl<'a> IncomingResponse<'a> {
    /// A response with this status and no fields.
    #[must_use]
    pub const fn new(status: Status) -> Self {
        Self {
            status,
            content_type: None,
            session_id: None,
            location: None,
            retry_after: None,
            challenges: Vec::new(),
            dpop_nonce: None,
        }
    }

    /// Takes note of a header field; those that the protocol does not use are passed over. Of a
    /// field that is repeated the first one counts, except for `WWW-Authenticate`.
    // MCP 2025-11-25 basic/transports#session-management [SESS-015]: names without regard to case.
    // MCP 2026-07-28 basic/transports/streamable-http#case-sensitivity [HDR-031]
    pub fn field(&mut self, name: &str, value: &'a [u8]) {
        let value = value.trim_ascii();
        let slot = match name.len() {
            10 if name.eq_ignore_ascii_case("dpop-nonce") => &mut self.dpop_nonce,
            8 if name.eq_ignore_ascii_case("location") => &mut self.location,
            11 if name.eq_ignore_ascii_case("retry-after") => &mut self.retry_after,
            12 if name.eq_ignore_ascii_case("content-type") => &mut self.content_type,
            14 if name.eq_ignore_ascii_case("mcp-session-id") => {
                self.session_id.get_or_insert(Hidden(value));
                return;
            }
            16 if name.eq_ignore_ascii_case("www-authenticate") => {
                return self.challenges.push(value);
            }
            _ => return,
        };
        slot.get_or_insert(value);
    }

    /// The status.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.status
    }

    /// Where a redirect leads, as it is in the field `Location`.
    #[must_use]
    pub const fn location(&self) -> Option<&'a [u8]> {
        self.location
    }

    /// The values of all fields `WWW-Authenticate`: a server may ask for a token in several ways.
    #[must_use]
    pub fn challenges(&self) -> &[&'a [u8]] {
        &self.challenges
    }

    /// What the next proof of a key must have in it (RFC 9449, section 8).
    #[must_use]
    pub const fn dpop_nonce(&self) -> Option<&'a [u8]> {
        self.dpop_nonce
    }

    /// The header fields that were taken note of, with names in lower case. One of them names the
    /// session: whoever knows it can act in the session.
    // MCP 2025-11-25 basic/transports#session-management [SESS-005]
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &'a [u8])> {
        let fields = [
            ("content-type", self.content_type),
            (SESSION_ID, self.session_id.map(|id| id.0)),
            ("location", self.location),
            ("retry-after", self.retry_after),
            ("dpop-nonce", self.dpop_nonce),
        ];
        let challenges = self.challenges.iter().map(|value| ("www-authenticate", *value));
        fields.into_iter().filter_map(|(name, value)| Some((name, value?))).chain(challenges)
    }
}

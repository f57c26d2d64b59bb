//! Header fields that the application adds to the requests of a client, where the transport has
//! such fields.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use bytestring::ByteString;

/// A header field.
#[allow(unreachable_pub, reason = "exported by the module of HTTP")]
pub type Field = (Cow<'static, str>, ByteString);

/// Why an application cannot add a header field to the requests of a client: the caller's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHeader {
    /// The name is not a token of HTTP.
    #[error("`{0}` is not a valid header name")]
    Name(String),
    /// The protocol, HTTP or the adapter determines this field.
    #[error("the header `{0}` is set by the client itself")]
    Reserved(String),
    /// The value contains a character that a header cannot carry. The message does not show it,
    /// because it may be a secret.
    #[error(
        "the value of the header `{0}` contains characters other than visible ASCII and spaces"
    )]
    Value(String),
}

/// Header fields that an application adds to the requests of a client, valid and in lower case:
/// for a [command](crate::peer::ClientCommand::CallWithFields).
///
/// ```
/// use mcp_sansio::peer::{HeaderFields, InvalidHeader};
///
/// let fields = HeaderFields::new().field("X-Tenant", "north")?;
/// assert!(matches!(fields.field("Mcp-Session-Id", "1"), Err(InvalidHeader::Reserved(_))));
/// # Ok::<(), InvalidHeader>(())
/// ```
#[derive(Clone, Default)]
pub struct HeaderFields(pub(crate) Vec<Field>);

/// Fields of HTTP that are determined by the message, the connection or the driver.
const RESERVED: [&str; 13] = [
    "accept",
    "accept-encoding",
    "connection",
    "dpop",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// The prefixes of such field names.
const RESERVED_PREFIXES: [&str; 3] = ["content-", "mcp-", "proxy-"];

impl HeaderFields {
    /// Creates a list without fields.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a field, or replaces the one with this name.
    ///
    /// # Errors
    ///
    /// The name or the value is invalid, or the protocol, HTTP or the adapter determines this
    /// field: `Mcp-*`, `Content-*`, `Proxy-*`, `Host`, `Accept` and so on.
    pub fn field(mut self, name: &str, value: &str) -> Result<Self, InvalidHeader> {
        self.insert(name, value)?;
        Ok(self)
    }

    /// Returns whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Like [`field`](Self::field), by reference.
    ///
    /// # Errors
    ///
    /// As [`field`](Self::field).
    pub fn insert(&mut self, name: &str, value: &str) -> Result<(), InvalidHeader> {
        let name = name.to_ascii_lowercase();
        if name.is_empty() || !name.bytes().all(is_token_byte) {
            return Err(InvalidHeader::Name(name));
        }
        let reserved = RESERVED.contains(&&*name)
            || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if reserved {
            return Err(InvalidHeader::Reserved(name));
        }
        if !value.bytes().all(is_allowed) {
            return Err(InvalidHeader::Value(name));
        }
        self.0.retain(|(known, _)| *known != name);
        self.0.push((Cow::Owned(name), ByteString::from(value.trim())));
        Ok(())
    }
}

/// Returns whether the byte is allowed in a token, such as a header field name (RFC 9110, `tchar`).
#[must_use]
#[allow(unreachable_pub, reason = "exported by the module of HTTP")]
pub const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// Returns whether the byte is allowed in a field value.
pub(crate) const fn is_allowed(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~')
}

impl core::fmt::Debug for HeaderFields {
    /// Omits the values, which may be secrets.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

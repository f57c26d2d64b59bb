//! Header fields that the application adds to the requests of a client.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use bytestring::ByteString;

use crate::http::field_value::{is_allowed, is_token_byte};

use super::transmit::Field;

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

/// The header fields that an application adds, in lower case.
#[derive(Clone)]
pub(crate) struct Headers(Vec<Field>);

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

/// The prefixes of the names of such fields.
const RESERVED_PREFIXES: [&str; 3] = ["content-", "mcp-", "proxy-"];

impl Headers {
    pub(crate) const NONE: Self = Self(Vec::new());

    /// Adds a field, or replaces the one with this name.
    pub(super) fn insert(&mut self, name: &str, value: &str) -> Result<(), InvalidHeader> {
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

    pub(super) fn fields(&self) -> impl Iterator<Item = Field> {
        self.0.iter().cloned()
    }

    #[cfg(feature = "recording")]
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }
}

impl core::fmt::Debug for Headers {
    /// Omits the values, which may be secrets.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

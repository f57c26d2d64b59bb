use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use crate::skills::uri::{InvalidSkillUri, SkillUri};

/// The identity of a skill: the host's label of its server, and its URI.
///
/// The URI alone does not identify a skill, because other servers may serve the same one; neither does
/// the name. Use this as the key of registries, approvals, caches and tools, and [`path`](Self::path) for files.
///
/// ```
/// use mcp_sansio_extensions::skills::{SkillId, SkillUri};
///
/// let id = SkillId::new("docs-server", SkillUri::parse("skill://refunds/SKILL.md")?);
/// assert_eq!(id.path(), "docs-server/skill%3A%2F%2Frefunds%2FSKILL%2Emd");
/// assert_eq!(SkillId::from_path(&id.path())?, id);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// MCP 2026-07-28 skills:skills#skill-uris [SKILL-029] [SKILL-030]
// MCP 2026-07-28 skills:skills#security-considerations [SKILL-099]
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[non_exhaustive]
pub struct SkillId {
    /// The name that the host gave the server. Not the name that the server gives itself, which
    /// another server can use as well.
    pub server: String,
    /// The URI of the skill.
    pub uri: SkillUri,
}

/// A path is not that of a [`SkillId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSkillPath {
    /// It is not two names with a `/` between them, as [`SkillId::path`] writes them.
    #[error("the path is not one that `SkillId::path` wrote")]
    Form,
    /// The second name is not the URI of a skill.
    #[error(transparent)]
    Uri(#[from] InvalidSkillUri),
}

impl SkillId {
    /// Creates the identity of a skill.
    #[must_use]
    pub fn new(server: impl Into<String>, uri: SkillUri) -> Self {
        Self { server: server.into(), uri }
    }

    /// Returns a relative path for the content of the skill: two names of letters, digits, `-`, `_`,
    /// `~` and `%`. Different skills have different paths, and the path tells the server.
    // MCP 2026-07-28 skills:skills#skill-uris [SKILL-031]
    #[must_use]
    pub fn path(&self) -> String {
        let mut path = String::new();
        encode(&self.server, &mut path);
        path.push('/');
        encode(self.uri.as_str(), &mut path);
        path
    }

    /// Reads a path that [`path`](Self::path) wrote.
    ///
    /// # Errors
    ///
    /// The path was not written by it.
    pub fn from_path(path: &str) -> Result<Self, InvalidSkillPath> {
        let (server, uri) = path.split_once('/').ok_or(InvalidSkillPath::Form)?;
        let decode = |name| decode(name).ok_or(InvalidSkillPath::Form);
        Ok(Self { server: decode(server)?, uri: SkillUri::parse(decode(uri)?)? })
    }
}

impl fmt::Display for SkillId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}", self.uri, self.server)
    }
}

/// Percent-encodes everything but letters, digits, `-`, `_` and `~`; dots too, so that no name is
/// `..`.
fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _written = write!(out, "%{byte:02X}");
        }
    }
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        let digits = core::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = tail;
    }
    let decoded = String::from_utf8(bytes).ok()?;
    let mut again = String::new();
    encode(&decoded, &mut again);
    (again == text).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(server: &str, uri: &str) -> SkillId {
        SkillId::new(server, SkillUri::parse(uri).unwrap())
    }

    #[test]
    fn the_same_uri_of_two_servers_has_two_identities_and_paths() {
        // Rule: [SKILL-029] [SKILL-030] [SKILL-031] [SKILL-099].
        let uri = "skill://refunds/SKILL.md";
        let (one, other) = (id("one", uri), id("other", uri));
        assert_ne!(one, other);
        assert_ne!(one.path(), other.path());
        for odd in ["", "..", "a/b", "a%2Fb", "é", "C:\\"] {
            let odd = id(odd, uri);
            let path = odd.path();
            assert_eq!(path.matches('/').count(), 1, "{path}");
            assert!(!path.contains('.') && !path.contains('\\'), "{path}");
            assert_eq!(SkillId::from_path(&path), Ok(odd));
        }
    }

    #[test]
    fn other_paths_are_refused() {
        let path = id("s", "skill://refunds/SKILL.md").path();
        assert!(SkillId::from_path(&path.replace('%', "%%")).is_err());
        assert!(SkillId::from_path(&path.replace("%2F", "%2f")).is_err());
        for other in ["", "s", "../x", "s/x", "s/%zz", "s/%"] {
            assert!(SkillId::from_path(other).is_err(), "{other}");
        }
    }
}

//! Digests of files.

use alloc::string::String;
use core::fmt::{self, Write as _};
use core::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

const ALGORITHM: &str = "sha256:";

/// The SHA-256 digest of a file's bytes, written as `sha256:` and 64 lower-case hexadecimal digits.
///
/// A digest shows that a file agrees with the entry of its skill. It is not a signature: the
/// server can change both.
///
/// ```
/// use mcp_sansio_extensions::skills::SkillDigest;
///
/// let digest = SkillDigest::of(b"# Refunds\n");
/// assert_eq!(digest.to_string().parse(), Ok(digest));
/// ```
// MCP 2026-07-28 skills:skills#integrity-and-verification [SKILL-044]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SkillDigest([u8; 32]);

/// A text is not a [`SkillDigest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is `sha256:` and 64 lower-case hexadecimal digits")]
#[non_exhaustive]
pub struct InvalidSkillDigest;

impl SkillDigest {
    /// Computes the digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the bytes of the digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for SkillDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALGORITHM)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SkillDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SkillDigest {
    type Err = InvalidSkillDigest;

    fn from_str(text: &str) -> Result<Self, InvalidSkillDigest> {
        let digits = text.strip_prefix(ALGORITHM).ok_or(InvalidSkillDigest)?.as_bytes();
        if digits.len() != 64 {
            return Err(InvalidSkillDigest);
        }
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(InvalidSkillDigest),
        };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for SkillDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(ALGORITHM.len() + 64);
        write!(text, "{self}").map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for SkillDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_digest_is_sha256_in_lower_case_hexadecimal() {
        // Rule: [SKILL-044].
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(SkillDigest::of(b"").to_string(), empty);
        assert_eq!(empty.parse(), Ok(SkillDigest::of(b"")));
        let hex = &empty["sha256:".len()..];
        for other in [
            hex.to_string(),
            format!("sha512:{hex}"),
            format!("SHA256:{hex}"),
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha256:{}", &hex[1..]),
            format!("sha256:{hex}0"),
            format!("sha256:{}g", &hex[1..]),
        ] {
            assert_eq!(other.parse::<SkillDigest>(), Err(InvalidSkillDigest), "{other}");
        }
    }
}

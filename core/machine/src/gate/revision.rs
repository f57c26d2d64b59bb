//! The five revisions of the protocol, and their eras.

use core::fmt;

/// A published revision of the protocol, ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// 2024-11-05: the first one.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, batches, audio, tool annotations, completions capability.
    V2025_03_26,
    /// 2025-06-18: structured output, elicitation, resource links; no batches.
    V2025_06_18,
    /// 2025-11-25: URL elicitation, sampling with tools, tasks, icons.
    V2025_11_25,
    /// 2026-07-28: stateless; no handshake, input rounds in place of server requests.
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The newest revision that opens with the handshake.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// Returns the spelling on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the revision with this name; `None` for any other string, which is an unsupported
    /// version and not a malformed one.
    // MCP 2026-07-28 learn-versioning#negotiation [VER-010]: versions are opaque strings.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// Returns the era of this revision.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The way in which connections are opened.
// MCP 2026-07-28 basic/versioning#terminology
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Era {
    /// `initialize` opens a session; 2025-11-25 and older.
    Legacy,
    /// Each request carries its own metadata; 2026-07-28 and newer.
    Modern,
}

/// A set of revisions.
///
/// ```
/// use mcp_sansio::{Revision, Revisions};
///
/// assert!(Revisions::ALL.contains(Revision::V2024_11_05));
/// let one = Revisions::only(Revision::V2026_07_28);
/// assert!(!one.contains(Revision::V2025_11_25));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revisions(u8);

impl Revisions {
    /// No revision.
    pub const NONE: Self = Self(0);
    /// All five.
    pub const ALL: Self = Self::since(Revision::V2024_11_05);
    /// Those that open with the handshake.
    pub const LEGACY: Self = Self::range(Revision::V2024_11_05, Revision::LATEST_LEGACY);
    /// Those without a handshake.
    pub const MODERN: Self = Self::since(Revision::V2026_07_28);

    /// Creates a set with one revision.
    #[must_use]
    pub const fn only(revision: Revision) -> Self {
        Self(revision.bit())
    }

    /// Creates the set from `first` to `last`, inclusive.
    #[must_use]
    pub const fn range(first: Revision, last: Revision) -> Self {
        Self((last.bit() | (last.bit() - 1)) & !(first.bit() - 1))
    }

    /// Creates the set of `first` and all newer revisions.
    #[must_use]
    pub const fn since(first: Revision) -> Self {
        Self::range(first, Revision::LATEST)
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether `revision` is in the set.
    #[must_use]
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & revision.bit() != 0
    }

    /// Returns whether any revision in the set belongs to `era`.
    #[must_use]
    pub const fn speaks(self, era: Era) -> bool {
        let of_era = match era {
            Era::Legacy => Self::LEGACY,
            Era::Modern => Self::MODERN,
        };
        !self.intersection(of_era).is_empty()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the members, oldest first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Revision> {
        Revision::ALL.into_iter().filter(move |revision| self.contains(*revision))
    }

    /// Returns the newest member.
    #[must_use]
    pub fn latest(self) -> Option<Revision> {
        self.iter().next_back()
    }
}

impl fmt::Debug for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_parses_back_from_its_spelling() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        // Rule: [VER-010].
        assert_eq!(Revision::parse("v999.0.0"), None);
    }

    #[test]
    fn a_range_includes_both_ends() {
        let range = Revisions::range(Revision::V2025_03_26, Revision::V2025_11_25);
        assert!(range.iter().eq([
            Revision::V2025_03_26,
            Revision::V2025_06_18,
            Revision::V2025_11_25
        ]));
        assert_eq!(range.latest(), Some(Revision::V2025_11_25));
        assert_eq!(Revisions::LEGACY.union(Revisions::MODERN), Revisions::ALL);
    }
}

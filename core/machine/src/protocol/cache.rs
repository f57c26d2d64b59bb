//! How long a result stays fresh and who may share it; since 2026-07-28.

use core::time::Duration;

use serde::ser::Serializer;
use serde::{Deserialize, Deserializer};

use super::message::word;
use super::revision::Revision;
use super::wire::SerializeAt;

/// What a server says of caching a result.
///
/// The default is that of a result that says nothing: stale at once, and for its asker alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheHints {
    /// How long the result stays fresh.
    pub ttl: Ttl,
    /// Who may share it.
    pub scope: CacheScope,
}

impl CacheHints {
    /// Fresh for `ttl`, for the asker alone.
    #[must_use]
    pub fn private(ttl: Duration) -> Self {
        Self { ttl: ttl.into(), scope: CacheScope::Private }
    }

    /// Fresh for `ttl`, for everyone.
    #[must_use]
    pub fn public(ttl: Duration) -> Self {
        Self { ttl: ttl.into(), scope: CacheScope::Public }
    }
}

/// How long a result stays fresh, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(pub u64);

impl From<Duration> for Ttl {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

impl From<Ttl> for Duration {
    fn from(ttl: Ttl) -> Self {
        Self::from_millis(ttl.0)
    }
}

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // MCP 2026-07-28 server/utilities/caching#freshness-calculation [CACHE-006]: negative
        // counts as 0. The conversion saturates at both ends.
        Option::<f64>::deserialize(deserializer).map(|ms| Self(ms.unwrap_or(0.0) as u64))
    }
}

impl SerializeAt for Ttl {
    fn serialize_at<S: Serializer>(&self, _: Revision, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

word! {
    /// Who may share a cached result.
    // MCP 2026-07-28 server/utilities/caching#cache-scope-field [CACHE-002]
    #[derive(Default)]
    pub enum CacheScope {
        /// Nobody but the asker, by its authorization.
        #[default]
        Private = "private",
        /// Everyone.
        Public = "public",
    }
}

/// Gives a result with the fields `ttl_ms` and `cache_scope` one view of both.
// MCP 2026-07-28 server/utilities/caching#cacheable-results [CACHE-001]: both fields are on every
// such result, so they are `defaulted` fields of the types named here.
macro_rules! cacheable {
    ($($name:ty),+ $(,)?) => { $(
        impl $name {
            /// How long the result stays fresh and who may share it.
            #[must_use]
            pub fn cache_hints(&self) -> $crate::protocol::CacheHints {
                $crate::protocol::CacheHints { ttl: self.ttl_ms, scope: self.cache_scope.clone() }
            }

            /// Sets how long the result stays fresh and who may share it.
            #[must_use]
            pub fn cached(mut self, hints: $crate::protocol::CacheHints) -> Self {
                self.ttl_ms = hints.ttl;
                self.cache_scope = hints.scope;
                self
            }
        }
    )+ };
}
pub(crate) use cacheable;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_absent_or_null_ttl_is_stale_at_once() {
        // Rule: [CACHE-006].
        for (text, ttl) in [("-5", 0), ("null", 0), ("1500", 1500), ("2.5", 2)] {
            assert_eq!(serde_json::from_str::<Ttl>(text).unwrap(), Ttl(ttl), "{text}");
        }
    }

    #[test]
    fn a_duration_beyond_the_range_saturates() {
        assert_eq!(Ttl::from(Duration::MAX), Ttl(u64::MAX));
        assert_eq!(Duration::from(Ttl(1500)), Duration::from_millis(1500));
    }
}

//! The cache lifetime and the scope of results; since 2026-07-28.

use core::time::Duration;

use serde::ser::Serializer;
use serde::{Deserialize, Deserializer};

use super::Revision;
use super::message::word;
use super::wire::{SerializeAt, Text};
use crate::jsonrpc::hint;

/// The caching hints of a result.
///
/// The default applies to a result without hints: immediately stale, and not shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheHints {
    /// How long the result stays fresh.
    pub ttl: Ttl,
    /// Whether the result may be shared between users.
    pub scope: CacheScope,
}

impl CacheHints {
    /// Creates hints for a result that is fresh for `ttl` and not shared.
    #[must_use]
    pub fn private(ttl: Duration) -> Self {
        Self { ttl: ttl.into(), scope: CacheScope::Private }
    }

    /// Creates hints for a result that is fresh for `ttl` and may be shared.
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
        // MCP 2026-07-28 server/utilities/caching#freshness-calculation [CACHE-006]: a negative
        // value counts as 0. The conversion saturates at both ends.
        hint::<f64, D>(deserializer).map(|ms| Self(ms.unwrap_or(0.0) as u64))
    }
}

impl SerializeAt for Ttl {
    fn serialize_at<S: Serializer>(&self, _: Revision, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

word! {
    /// The scope in which a cached result may be shared.
    // MCP 2026-07-28 server/utilities/caching#cache-scope-field [CACHE-002]
    #[derive(Default)]
    pub enum CacheScope by cache_scope {
        /// Only within the authorization of the request.
        #[default]
        Private = "private",
        /// Between all users.
        Public = "public",
    }
}

/// Reads a scope; without one, the result is not shared.
fn cache_scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CacheScope, D::Error> {
    let scope = hint::<Text<'de>, D>(deserializer)?;
    Ok(scope.map_or_else(CacheScope::default, |scope| CacheScope::from(&*scope.0)))
}

/// Adds accessors for the fields `ttl_ms` and `cache_scope` of a result.
// MCP 2026-07-28 server/utilities/caching#cacheable-results [CACHE-001]: every such result has both
// fields, so they are `defaulted` fields of these types.
macro_rules! cacheable {
    ($($name:ty),+ $(,)?) => { $(
        impl $name {
            /// Returns the caching hints.
            #[must_use]
            pub fn cache_hints(&self) -> $crate::protocol::CacheHints {
                $crate::protocol::CacheHints { ttl: self.ttl_ms, scope: self.cache_scope.clone() }
            }

            /// Sets the caching hints.
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
    fn a_negative_absent_or_null_ttl_is_zero() {
        // Rule: [CACHE-006].
        for (text, ttl) in [("-5", 0), ("null", 0), ("1500", 1500), ("2.5", 2)] {
            assert_eq!(serde_json::from_str::<Ttl>(text).unwrap(), Ttl(ttl), "{text}");
        }
    }

    #[test]
    fn malformed_hints_are_absent_and_reported() {
        use crate::jsonrpc::RawJson;
        use crate::protocol::ListToolsResult;

        let text = r#"{"tools":[],"ttlMs":"60000","cacheScope":["public"]}"#;
        let (list, omissions) =
            RawJson::trusted(text).decode_lossy::<ListToolsResult>().expect("a list");
        assert_eq!(list.cache_hints(), CacheHints::default());
        let places: alloc::vec::Vec<_> = omissions.iter().map(|it| &*it.pointer).collect();
        assert_eq!(places, ["/ttlMs", "/cacheScope"]);
        let public = r#"{"tools":[],"ttlMs":5,"cacheScope":"public"}"#;
        let list = RawJson::trusted(public).decode::<ListToolsResult>().expect("a list");
        assert_eq!(list.cache_hints(), CacheHints::public(Duration::from_millis(5)));
    }

    #[test]
    fn a_duration_beyond_the_range_saturates() {
        assert_eq!(Ttl::from(Duration::MAX), Ttl(u64::MAX));
        assert_eq!(Duration::from(Ttl(1500)), Duration::from_millis(1500));
    }
}

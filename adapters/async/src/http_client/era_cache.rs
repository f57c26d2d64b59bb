use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_sansio::Era;
use mcp_sansio::http::Origin;

/// Servers remembered. 256: more than one process connects to, and few enough for a linear search.
/// The least recently used server is evicted, which costs one round trip at its next connection.
const ORIGINS_MAX: usize = 256;

/// The eras of known servers, so that later connections skip the probe. Adapters keep it with their
/// connection pool. Holds at most 256 servers.
#[derive(Debug, Default)]
pub struct EraCache {
    /// Most recently used last.
    known: Mutex<VecDeque<(Origin, Era)>>,
}

impl EraCache {
    /// Returns the era of the server at `origin`, if known.
    #[must_use]
    pub fn get(&self, origin: &Origin) -> Option<Era> {
        let mut known = self.lock();
        let place = known.iter().position(|(other, _)| other == origin)?;
        let found = known.remove(place)?;
        let era = found.1;
        known.push_back(found);
        Some(era)
    }

    /// Stores the era of the server at `origin`.
    pub fn insert(&self, origin: &Origin, era: Era) {
        let mut known = self.lock();
        known.retain(|(other, _)| other != origin);
        if known.len() == ORIGINS_MAX {
            known.pop_front();
        }
        known.push_back((origin.clone(), era));
    }

    /// Forgets the era of the server at `origin`: if the server has changed, the next connection
    /// probes again.
    pub fn remove(&self, origin: &Origin) {
        self.lock().retain(|(other, _)| other != origin);
    }

    // A panic elsewhere leaves no inconsistent state.
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Origin, Era)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use mcp_sansio::http::Location;

    use super::*;

    fn origin(port: usize) -> Origin {
        Location::parse(&format!("http://localhost:{port}/mcp")).unwrap().origin().clone()
    }

    #[test]
    fn an_origin_has_the_era_that_was_learned_last() {
        let era_cache = EraCache::default();
        assert_eq!(era_cache.get(&origin(1)), None);
        era_cache.insert(&origin(1), Era::Legacy);
        era_cache.insert(&origin(1), Era::Modern);
        era_cache.insert(&origin(2), Era::Legacy);
        assert_eq!(era_cache.get(&origin(1)), Some(Era::Modern));
        era_cache.remove(&origin(1));
        assert_eq!(era_cache.get(&origin(1)), None);
        assert_eq!(era_cache.get(&origin(2)), Some(Era::Legacy));
    }

    #[test]
    fn the_least_recently_used_origin_is_evicted() {
        let era_cache = EraCache::default();
        for port in 0..ORIGINS_MAX {
            era_cache.insert(&origin(port), Era::Legacy);
        }
        assert!(era_cache.get(&origin(0)).is_some());
        era_cache.insert(&origin(ORIGINS_MAX), Era::Modern);
        assert!(era_cache.get(&origin(0)).is_some());
        assert_eq!(era_cache.get(&origin(1)), None);
        assert_eq!(era_cache.lock().len(), ORIGINS_MAX);
    }
}

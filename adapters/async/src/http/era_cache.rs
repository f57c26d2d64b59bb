use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_sansio::Era;
use mcp_sansio::http::Origin;

/// Servers that are remembered. 256: more than one process talks to, and few enough to look
/// through one by one. Those that were not asked for the longest are forgotten first; it costs them
/// a round trip.
const ORIGINS_MAX: usize = 256;

/// Which era the servers were of, so that the next connection need not find out: what adapters keep
/// beside their pool of connections. At most 256 servers.
#[derive(Debug, Default)]
pub struct EraCache {
    /// The last one asked for or learned at the end.
    known: Mutex<VecDeque<(Origin, Era)>>,
}

impl EraCache {
    /// The era of the server at `origin`, where one was learned.
    #[must_use]
    pub fn get(&self, origin: &Origin) -> Option<Era> {
        let mut known = self.lock();
        let place = known.iter().position(|(other, _)| other == origin)?;
        let found = known.remove(place)?;
        let era = found.1;
        known.push_back(found);
        Some(era)
    }

    /// Remembers the era of the server at `origin`.
    pub fn insert(&self, origin: &Origin, era: Era) {
        let mut known = self.lock();
        known.retain(|(other, _)| other != origin);
        if known.len() == ORIGINS_MAX {
            known.pop_front();
        }
        known.push_back((origin.clone(), era));
    }

    /// Forgets it: should the server have changed, the next connection finds out how.
    pub fn remove(&self, origin: &Origin) {
        self.lock().retain(|(other, _)| other != origin);
    }

    // A panic elsewhere leaves nothing half done in here.
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

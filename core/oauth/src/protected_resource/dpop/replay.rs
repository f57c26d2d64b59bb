//! The proofs that were accepted lately.

use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt;

use sha2::{Digest, Sha256};

/// How many expired proofs each new one removes: more than it adds, and few, because a lock is held.
const REMOVALS: usize = 4;

/// The first half of a SHA-256: no second text with the same one can be found.
type Digest16 = [u8; 16];

/// The key and the `jti` of a proof.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProofId {
    key: Digest16,
    jti: Digest16,
}

impl fmt::Display for ProofId {
    /// Writes 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.iter().chain(&self.jti).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl ProofId {
    pub(super) fn new(thumbprint: &str, jti: &str) -> Self {
        let half = |text: &str| {
            let digest = Sha256::digest(text);
            core::array::from_fn(|index| digest[index])
        };
        Self { key: half(thumbprint), jti: half(jti) }
    }
}

/// Proofs that must not be used again, until they expire.
pub(super) struct SeenProofs {
    known: BTreeSet<ProofId>,
    /// In seconds since 1970.
    by_expiry: BTreeSet<(u64, ProofId)>,
    /// The number of proofs of each key.
    counts: BTreeMap<Digest16, usize>,
}

/// Why a proof was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unrecorded {
    /// It is recorded already.
    Repeated,
    /// There are too many proofs, altogether or of its key.
    Full,
}

impl SeenProofs {
    pub(super) const fn new() -> Self {
        Self { known: BTreeSet::new(), by_expiry: BTreeSet::new(), counts: BTreeMap::new() }
    }

    /// Records a proof that is valid until `expiry`. One key gets a quarter of `proofs_max`, so that
    /// one client cannot lock out the others. Performs a bounded amount of work.
    pub(super) fn record(
        &mut self,
        id: ProofId,
        expiry: u64,
        now: u64,
        proofs_max: usize,
    ) -> Result<(), Unrecorded> {
        self.remove_expired(now);
        if self.known.contains(&id) {
            return Err(Unrecorded::Repeated);
        }
        let of_key = self.counts.get(&id.key).copied().unwrap_or(0);
        if self.known.len() >= proofs_max || of_key >= proofs_max.div_ceil(4) {
            return Err(Unrecorded::Full);
        }
        self.known.insert(id);
        self.by_expiry.insert((expiry, id));
        self.counts.insert(id.key, of_key + 1);
        Ok(())
    }

    fn remove_expired(&mut self, now: u64) {
        for _ in 0..REMOVALS {
            // A proof is valid in the second of its expiry.
            let Some(&(_, id)) = self.by_expiry.first().filter(|(expiry, _)| *expiry < now) else {
                return;
            };
            self.by_expiry.pop_first();
            self.known.remove(&id);
            match self.counts.get_mut(&id.key) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.counts.remove(&id.key)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn record(seen: &mut SeenProofs, key: &str, jti: &str, now: u64) -> Result<(), Unrecorded> {
        seen.record(ProofId::new(key, jti), now + 10, now, 8)
    }

    #[test]
    fn a_proof_is_recorded_once_until_it_expires() {
        let mut seen = SeenProofs::new();
        assert_eq!(record(&mut seen, "k", "a", 0), Ok(()));
        assert_eq!(record(&mut seen, "k", "a", 10), Err(Unrecorded::Repeated));
        assert_eq!(record(&mut seen, "other", "a", 10), Ok(()));
        assert_eq!(record(&mut seen, "k", "b", 10), Ok(()));
        assert_eq!(record(&mut seen, "k", "a", 11), Ok(()));
        assert_eq!((seen.known.len(), seen.by_expiry.len(), seen.counts.len()), (3, 3, 2));
    }

    #[test]
    fn one_key_has_a_quarter_of_the_room() {
        let mut seen = SeenProofs::new();
        for jti in ["a", "b"] {
            assert_eq!(record(&mut seen, "k", jti, 0), Ok(()));
        }
        assert_eq!(record(&mut seen, "k", "c", 0), Err(Unrecorded::Full));
        for number in 0..6 {
            assert_eq!(record(&mut seen, &format!("{number}"), "a", 0), Ok(()), "{number}");
        }
        assert_eq!(record(&mut seen, "last", "a", 0), Err(Unrecorded::Full));
        assert_eq!(record(&mut seen, "k", "a", 0), Err(Unrecorded::Repeated));
        // Each attempt makes room.
        assert_eq!(record(&mut seen, "last", "a", 11), Ok(()));
        assert_eq!(record(&mut seen, "k", "c", 11), Ok(()));
        assert_eq!((seen.known.len(), seen.by_expiry.len(), seen.counts.len()), (2, 2, 2));
    }
}

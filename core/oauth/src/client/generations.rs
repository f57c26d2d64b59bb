//! The order of tokens that replace each other.
//!
//! A store may return tokens that this client has replaced, because it could not save their
//! successors. A refresh token is often valid once, and an authorization server that sees it again
//! may revoke all tokens of the user. Only the order in which tokens replaced each other tells such
//! tokens from those that another process of the application has saved since; that they differ
//! does not.

use alloc::collections::VecDeque;
use alloc::string::String;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The most lineages that are remembered. 32, in 2 KiB: each is a sign-in in one run of the
/// application, and those that the store still returns are kept longest.
const LINEAGES_MAX: usize = 32;

/// The position of tokens in the sequence that one sign-in started and every renewal continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Generation {
    /// A unique name of the sequence.
    lineage: String,
    number: u64,
}

/// The tokens that a client has had: the latest of each lineage. The last one is current.
#[derive(Debug, Default)]
pub(super) struct Generations(VecDeque<Generation>);

impl Generation {
    /// Returns the first generation of a lineage with a unique name.
    pub(crate) const fn first(lineage: String) -> Self {
        Self { lineage, number: 1 }
    }

    /// Returns the generation that a renewal creates.
    pub(super) fn next(&self) -> Self {
        Self { lineage: self.lineage.clone(), number: self.number.saturating_add(1) }
    }

    /// Names the lineage of tokens that were stored without one, so that it is the same whenever
    /// they are read.
    pub(crate) fn name_after(&mut self, access_token: &str) {
        if self.lineage.is_empty() {
            self.lineage = URL_SAFE_NO_PAD.encode(&Sha256::digest(access_token)[..16]);
        }
    }
}

impl Generations {
    /// Records the tokens that are now current.
    pub(super) fn enter(&mut self, generation: &Generation) {
        if let Some(current) = self.0.back_mut()
            && current.lineage != generation.lineage
        {
            // Other tokens replace these, which are not valid again unless they were renewed.
            *current = current.next();
        }
        self.0.retain(|it| it.lineage != generation.lineage);
        if self.0.len() >= LINEAGES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(generation.clone());
    }

    /// Whether the client has replaced these tokens.
    pub(super) fn has_replaced(&mut self, generation: &Generation) -> bool {
        let Some(at) = self.0.iter().position(|it| it.lineage == generation.lineage) else {
            return false;
        };
        let replaced = generation.number < self.0[at].number;
        // The current lineage stays last.
        if at + 1 < self.0.len()
            && let (Some(seen), Some(current)) = (self.0.remove(at), self.0.pop_back())
        {
            self.0.extend([seen, current]);
        }
        replaced
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn generation(lineage: &str, number: u64) -> Generation {
        Generation { lineage: lineage.into(), number }
    }

    #[test]
    fn earlier_generations_are_replaced_and_others_are_not() {
        let mut known = Generations::default();
        assert!(!known.has_replaced(&generation("a", 1)));
        known.enter(&generation("a", 3));
        for (lineage, number, replaced) in [("a", 2, true), ("a", 3, false), ("a", 4, false)] {
            assert_eq!(known.has_replaced(&generation(lineage, number)), replaced, "{number}");
        }
        assert!(!known.has_replaced(&generation("b", 1)));
    }

    #[test]
    fn a_sign_in_replaces_the_tokens_of_the_previous_one() {
        let mut known = Generations::default();
        known.enter(&generation("a", 3));
        known.enter(&generation("b", 1));
        assert!(known.has_replaced(&generation("a", 3)));
        assert!(!known.has_replaced(&generation("b", 1)));
        // Another process has renewed them since.
        assert!(!known.has_replaced(&generation("a", 4)));
    }

    #[test]
    fn a_lineage_that_the_store_returns_is_remembered_longest() {
        let mut known = Generations::default();
        known.enter(&generation("stuck", 1));
        for number in 0..3 * LINEAGES_MAX {
            known.enter(&generation(&format!("sign-in {number}"), 1));
            assert!(known.has_replaced(&generation("stuck", 1)), "{number}");
        }
        assert_eq!(known.0.len(), LINEAGES_MAX);
    }

    #[test]
    fn tokens_that_were_stored_without_a_lineage_have_one_by_their_content() {
        let named = |token| {
            let mut generation = Generation::default();
            generation.name_after(token);
            generation
        };
        assert_eq!(named("t1"), named("t1"));
        assert_ne!(named("t1"), named("t2"));
        let mut kept = Generation::first("a".into());
        kept.name_after("t1");
        assert_eq!(kept, generation("a", 1));
    }
}

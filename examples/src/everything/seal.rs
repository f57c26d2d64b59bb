//! State that travels through the client and comes back unchanged, or not at all.

use std::hash::{BuildHasher, RandomState};

/// Marks texts so that changed ones are recognised.
///
/// The mark is a keyed hash of 64 bits under a key of this process: enough to tell an accident or
/// a curious client. It neither hides the text nor expires.
#[derive(Clone, Debug, Default)]
pub(super) struct Seal(RandomState);

impl Seal {
    /// The text with its mark.
    pub(super) fn close(&self, text: &str) -> String {
        format!("{text}.{:016x}", self.0.hash_one(text))
    }

    /// The text, if it is one of [`close`](Self::close).
    pub(super) fn open<'t>(&self, sealed: &'t str) -> Option<&'t str> {
        let (text, mark) = sealed.rsplit_once('.')?;
        (format!("{:016x}", self.0.hash_one(text)) == mark).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_is_opened() {
        let (seal, other) = (Seal::default(), Seal::default());
        let sealed = seal.close("a.b");
        assert_eq!(seal.open(&sealed), Some("a.b"));
        assert_eq!(seal.open(&format!("{sealed}-TAMPERED")), None);
        assert_eq!(seal.open(&sealed.replace('a', "c")), None);
        assert_eq!(other.open(&sealed), None);
        assert_eq!(seal.open(""), None);
    }
}

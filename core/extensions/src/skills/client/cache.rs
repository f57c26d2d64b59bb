//! Verified files in memory.

use alloc::collections::BTreeMap;
use alloc::string::String;

use super::file::Content;
use crate::skills::digest::SkillDigest;

/// The files of one server that were read and verified, up to a number of bytes. The least recently
/// used ones go first.
#[derive(Debug)]
pub(super) struct Cache {
    files: BTreeMap<String, Cached>,
    bytes: usize,
    bytes_max: usize,
    clock: u64,
}

#[derive(Debug)]
struct Cached {
    digest: SkillDigest,
    content: Content,
    used: u64,
}

impl Cache {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self { files: BTreeMap::new(), bytes: 0, bytes_max, clock: 0 }
    }

    /// Returns the content of a file if it has this digest.
    // MCP 2026-07-28 skills:skills#lazy-retrieval [SKILL-081]
    pub(super) fn get(&mut self, uri: &str, digest: SkillDigest) -> Option<Content> {
        let cached = self.files.get_mut(uri).filter(|cached| cached.digest == digest)?;
        self.clock += 1;
        cached.used = self.clock;
        Some(cached.content.clone())
    }

    /// Adds a verified file. One that is larger than the cache is not kept.
    pub(super) fn insert(&mut self, uri: String, digest: SkillDigest, content: Content) {
        self.remove(&uri);
        let size = content.bytes.len() + uri.len();
        if size > self.bytes_max {
            return;
        }
        while self.bytes + size > self.bytes_max {
            let oldest = self.files.iter().min_by_key(|(_, cached)| cached.used);
            let Some(oldest) = oldest.map(|(uri, _)| uri.clone()) else { break };
            self.remove(&oldest);
        }
        self.clock += 1;
        self.bytes += size;
        self.files.insert(uri, Cached { digest, content, used: self.clock });
    }

    fn remove(&mut self, uri: &str) {
        if let Some(cached) = self.files.remove(uri) {
            self.bytes -= cached.content.bytes.len() + uri.len();
        }
    }

    pub(super) fn clear(&mut self) {
        self.files.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Content {
        Content { bytes: text.as_bytes().into(), media_type: None }
    }

    #[test]
    fn a_file_with_another_digest_is_not_served() {
        // Rule: [SKILL-081].
        let mut cache = Cache::new(100);
        let digest = SkillDigest::of(b"one");
        cache.insert("a".into(), digest, content("one"));
        assert_eq!(cache.get("a", digest).unwrap().bytes[..], *b"one");
        assert!(cache.get("a", SkillDigest::of(b"two")).is_none());
        assert!(cache.get("b", digest).is_none());
        cache.clear();
        assert!(cache.get("a", digest).is_none());
    }

    #[test]
    fn the_least_recently_used_files_go_first() {
        let mut cache = Cache::new(8);
        let digest = SkillDigest::of(b"xyz");
        for uri in ["a", "b"] {
            cache.insert(uri.into(), digest, content("xyz"));
        }
        assert!(cache.get("a", digest).is_some());
        cache.insert("c".into(), digest, content("xyz"));
        let kept = ["a", "b", "c"].map(|uri| cache.get(uri, digest).is_some());
        assert_eq!(kept, [true, false, true]);
        cache.insert("d".into(), digest, content("more than eight"));
        assert!(cache.get("d", digest).is_none());
        cache.insert("a".into(), digest, content("x"));
        assert_eq!(cache.bytes, 2 + 4);
    }
}

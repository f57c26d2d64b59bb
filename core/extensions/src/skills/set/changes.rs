use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::protocol::Resource;

use super::SkillSet;

/// The difference between two sets of skills.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SkillChanges {
    /// The `SKILL.md` of skills that are new, or whose description as a resource changed.
    pub described: Vec<Resource>,
    /// The URIs of skills that are gone.
    pub removed: Vec<String>,
    /// The URIs of files that are in both sets with different content.
    pub updated: Vec<String>,
}

impl SkillChanges {
    /// Returns whether there are no differences that clients can be told of.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.described.is_empty() && self.removed.is_empty() && self.updated.is_empty()
    }
}

impl SkillSet {
    /// Returns the difference between this set and the one that replaces it.
    #[must_use]
    pub fn changes_to(&self, new: &Self) -> SkillChanges {
        let mut changes = SkillChanges::default();
        for resource in new.listed_resources() {
            if self.listed(&resource.uri).is_none_or(|old| old != resource) {
                changes.described.push(resource);
            }
        }
        let kept: BTreeSet<String> = new.listed_resources().map(|resource| resource.uri).collect();
        let old = self.listed_resources().map(|resource| resource.uri);
        changes.removed = old.filter(|uri| !kept.contains(uri)).collect();
        for (uri, file) in &self.files {
            if new.files.get(uri).is_some_and(|new| new.bytes != file.bytes) {
                changes.updated.push(uri.clone());
            }
        }
        changes
    }

    /// Returns the `SKILL.md` of the listed skills as resources.
    pub(crate) fn listed_resources(&self) -> impl Iterator<Item = Resource> {
        let listed = self.skills.iter().filter(|(_, served)| served.listed);
        listed.filter_map(|(uri, _)| self.resource(uri))
    }

    fn listed(&self, uri: &str) -> Option<Resource> {
        let served = self.skills.get(uri).filter(|served| served.listed);
        served.and_then(|_| self.resource(uri))
    }
}

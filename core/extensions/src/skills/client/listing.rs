use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::jsonrpc::Json;

use super::error::InvalidEntry;
use super::id::SkillId;
use crate::skills::entry::{Skill, SkillLimits};
use crate::skills::uri::SkillUri;

/// A skill that a server offers: its entry, with its identity.
///
/// It is made from an answer of the server alone: a resource is not a skill because of its URI.
// MCP 2026-07-28 skills:skills#resource-mapping [SKILL-019]
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedSkill {
    id: SkillId,
    entry: Skill,
}

/// The skills that a server lists. The list may be incomplete: a skill that is not in it can be
/// loaded by its URI.
// MCP 2026-07-28 skills:skills#listing-skills [SKILL-060]
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SkillListing {
    /// The skills, in the order of the server.
    pub skills: Vec<OfferedSkill>,
    /// The entries that are not valid, which must not be loaded.
    pub invalid: Vec<InvalidListed>,
}

/// An entry of a listing that is not valid.
#[derive(Debug)]
#[non_exhaustive]
pub struct InvalidListed {
    /// The URI in the entry, if it has one.
    pub uri: Option<String>,
    /// The reason.
    pub reason: InvalidEntry,
}

impl OfferedSkill {
    pub(super) fn read(
        server: &str,
        json: &Json,
        limits: &SkillLimits,
    ) -> Result<Self, InvalidEntry> {
        let entry: Skill = json.decode()?;
        entry.check(limits)?;
        Ok(Self { id: SkillId::new(server, entry.uri.clone()), entry })
    }

    /// Returns the identity.
    #[must_use]
    pub const fn id(&self) -> &SkillId {
        &self.id
    }

    /// Returns the URI.
    #[must_use]
    pub const fn uri(&self) -> &SkillUri {
        &self.entry.uri
    }

    /// Returns the entry.
    #[must_use]
    pub const fn entry(&self) -> &Skill {
        &self.entry
    }

    /// Returns the name: a label, which other skills may have too.
    #[must_use]
    pub fn name(&self) -> &str {
        self.entry.name()
    }

    /// Returns the description.
    #[must_use]
    pub fn description(&self) -> &str {
        self.entry.description()
    }
}

impl SkillListing {
    /// Adds a page.
    pub(super) fn add(
        &mut self,
        server: &str,
        page: &[Json],
        limits: &SkillLimits,
        known: &mut BTreeSet<SkillUri>,
    ) {
        for json in page {
            let read = OfferedSkill::read(server, json, limits).and_then(|skill| {
                let new = known.insert(skill.uri().clone());
                if new { Ok(skill) } else { Err(InvalidEntry::Duplicate) }
            });
            match read {
                Ok(skill) => self.skills.push(skill),
                Err(reason) => {
                    let uri = json.as_raw().get("uri").and_then(|uri| uri.decode().ok());
                    self.invalid.push(InvalidListed { uri, reason });
                }
            }
        }
    }

    /// Returns a label for each skill, in their order: its name, or its path if another skill of the
    /// listing has the same name.
    ///
    /// Labels are unique within the server, unless schemes differ. Put the label of the server before
    /// them where skills of several servers meet.
    // MCP 2026-07-28 skills:skills#names [SKILL-036] [SKILL-037]
    #[must_use]
    pub fn labels(&self) -> Vec<&str> {
        let mut names = BTreeMap::<&str, usize>::new();
        for skill in &self.skills {
            *names.entry(skill.name()).or_default() += 1;
        }
        let label = |skill: &'_ OfferedSkill| names.get(skill.name()) == Some(&1);
        self.skills
            .iter()
            .map(|skill| if label(skill) { skill.name() } else { skill.uri().path() })
            .collect()
    }

    /// Returns the skills with this name. There may be several.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &OfferedSkill> {
        self.skills.iter().filter(move |skill| skill.name() == name)
    }
}

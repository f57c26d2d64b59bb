use alloc::collections::BTreeMap;
use alloc::string::String;

use super::OfferedSkill;
use super::id::SkillId;
use crate::skills::digest::SkillDigest;
use crate::skills::entry::Skill;

/// The consent of the user to a skill, bound to its server, its URI and the content of its files.
///
/// The host asks, stores the approval, and checks it before each load. It covers neither the skills
/// in the directory of this one nor a later version.
///
/// ```
/// use mcp_sansio_extensions::skills::{SkillApproval, OfferedSkill};
///
/// fn may_load(skill: &OfferedSkill, stored: &[SkillApproval]) -> bool {
///     stored.iter().any(|approval| approval.check(skill).is_ok())
/// }
/// ```
// MCP 2026-07-28 skills:skills#security-considerations [SKILL-102]
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SkillApproval {
    skill: SkillId,
    /// All files at the time of the approval.
    files: BTreeMap<String, SkillDigest>,
}

/// Why an approval does not cover a skill: the user has to be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotApproved {
    /// The approval is for another skill, or for one of another server.
    #[error("the approval is for another skill")]
    OtherSkill,
    /// A file was added, removed or changed since.
    #[error("the skill has changed since it was approved")]
    Changed,
    /// The content of the skill is generated, so that no approval can be bound to it.
    #[error("the content of the skill is generated, so that an approval does not last")]
    Generated,
}

impl SkillApproval {
    /// Creates the approval of a skill from the entry that the user was shown.
    ///
    /// # Errors
    ///
    /// [`NotApproved::Generated`]: the approval could not be bound to the content.
    // MCP 2026-07-28 skills:skills#security-considerations [SKILL-104]
    pub fn new(skill: &OfferedSkill) -> Result<Self, NotApproved> {
        let files = files(skill.entry()).ok_or(NotApproved::Generated)?;
        Ok(Self { skill: skill.id().clone(), files })
    }

    /// Returns the identity of the approved skill.
    #[must_use]
    pub const fn skill(&self) -> &SkillId {
        &self.skill
    }

    /// Checks that the approval covers the present entry of a skill.
    ///
    /// # Errors
    ///
    /// See [`NotApproved`].
    // MCP 2026-07-28 skills:skills#security-considerations [SKILL-103] [SKILL-104]
    // MCP 2026-07-28 skills:skills#nested-skills [SKILL-026]: a skill in another has its own URI.
    pub fn check(&self, skill: &OfferedSkill) -> Result<(), NotApproved> {
        if *skill.id() != self.skill {
            return Err(NotApproved::OtherSkill);
        }
        match files(skill.entry()) {
            None => Err(NotApproved::Generated),
            Some(files) if files == self.files => Ok(()),
            Some(_) => Err(NotApproved::Changed),
        }
    }
}

/// Returns the files with their digests, if there are digests.
fn files(skill: &Skill) -> Option<BTreeMap<String, SkillDigest>> {
    let files = || skill.files().iter().map(|file| (file.uri.clone(), file.digest)).collect();
    (!skill.is_dynamic()).then(files)
}

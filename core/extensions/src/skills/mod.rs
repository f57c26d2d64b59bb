//! Skills: directories of instructions for a model, served as resources whose files are verified.

mod client;
mod entry;
mod frontmatter;
mod messages;
mod server;
mod set;
mod uri;

pub use client::{
    InvalidListed, LoadedSkill, NotApproved, OfferedSkill, SkillApproval, SkillChild, SkillClient,
    SkillDirectory, SkillError, SkillFile, SkillId, SkillListing, VerificationError, declare,
};
pub use entry::{
    InvalidSkill, SKILL_BYTES_MAX, SKILL_FILES_MAX, Skill, SkillDigest, SkillLimits, SkillResource,
    SkillResources,
};
pub use frontmatter::Frontmatter;
pub use messages::{
    GET_SKILL, GetSkillParams, GetSkillResult, LIST_SKILLS, ListSkillsParams, ListSkillsResult,
    READ_DIRECTORY, ReadDirectoryParams, ReadDirectoryResult,
};
pub use server::ServedSkills;
pub use set::{GeneratedSkill, SkillChanges, SkillSet, SkillSetBuilder, SkillSetError};
pub use uri::{SkillUri, check_name};

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/skills";

/// The prefix of keys in `_meta` of skill files.
// MCP 2026-07-28 skills:skills#reservations [SKILL-095]
pub(crate) const META_PREFIX: &str = "io.modelcontextprotocol.skills/";

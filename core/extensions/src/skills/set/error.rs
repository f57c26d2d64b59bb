use alloc::string::String;

use crate::skills::entry::InvalidSkill;
use crate::skills::frontmatter::InvalidFrontmatter;
use crate::skills::uri::InvalidSkillUri;

/// Why files are not a set of skills: the fault of their author, or of the application that chose
/// them. Each variant names the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillSetError {
    /// The base of the URIs has no form like `skill://` or `skill://acme/billing`.
    #[error("{0:?} is not the beginning of a skill's URI, such as `skill://`")]
    Base(String),
    /// The path of a file is absolute, or has an empty segment, `.` or `..`.
    #[error("{0:?} is not a relative path of names with `/` between them")]
    Path(String),
    /// Two files have the same path.
    #[error("the file {0:?} is there twice")]
    Duplicate(String),
    /// A generated skill has files as well, or is in the directory of another skill, whose entry could
    /// not list its files.
    #[error("{0:?}: a generated skill has a directory of its own, without other files")]
    Mixed(String),
    /// The `SKILL.md` stands in no directory that could be its skill's name.
    #[error("{path:?} cannot have a URI: {reason}")]
    Uri {
        /// The path of the `SKILL.md`.
        path: String,
        /// The reason.
        reason: InvalidSkillUri,
    },
    /// The frontmatter of a `SKILL.md` is missing or breaks a rule.
    #[error("{path:?}: {reason}")]
    Frontmatter {
        /// The path of the `SKILL.md`.
        path: String,
        /// The reason.
        reason: InvalidFrontmatter,
    },
    /// The skill is too large, or its name is not that of its directory.
    #[error("{path:?}: {reason}")]
    Skill {
        /// The path of the `SKILL.md`.
        path: String,
        /// The reason.
        reason: InvalidSkill,
    },
    /// A path that is to be left out of the listing is not in the set.
    #[error("there is no skill at {0:?}")]
    NoSuchSkill(String),
}

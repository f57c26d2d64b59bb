use alloc::boxed::Box;
use alloc::string::String;

use mcp_sansio::jsonrpc::JsonError;
use mcp_sansio_handlers::ClientError;

use super::approval::NotApproved;
use crate::skills::entry::InvalidSkill;
use crate::skills::frontmatter::{FrontmatterDifference, InvalidFrontmatter};
use crate::skills::uri::{InvalidSkillReference, InvalidSkillUri};

/// Why a host got no skill, or no file of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The server did not declare the extension, or the connection is not open yet. Nothing was sent.
    #[error("the server did not declare skills")]
    NotOffered,
    /// The server did not declare that directories can be read. Nothing was sent.
    #[error("the server does not list directories")]
    NoDirectories,
    /// The call failed. [`ClientError::as_refusal`] with `-32602` means that the server serves no
    /// such skill or file.
    #[error(transparent)]
    Call(Box<ClientError>),
    /// The URI is not one of a skill: the fault of the caller.
    #[error(transparent)]
    Uri(#[from] InvalidSkillUri),
    /// The entry is not one: the fault of the server. The skill must not be loaded.
    #[error("the entry of the skill is not valid: {0}")]
    Entry(#[from] InvalidEntry),
    /// The reference leads out of the skill. Nothing was sent.
    #[error(transparent)]
    Reference(#[from] InvalidSkillReference),
    /// The content is not what the entry says. It must not be used, and is not handed out. Refresh
    /// the entry with [`SkillClient::get`](super::SkillClient::get).
    #[error(transparent)]
    Verification(#[from] VerificationError),
    /// The user did not approve the present version of the skill. Nothing was sent.
    #[error(transparent)]
    NotApproved(#[from] NotApproved),
    /// The content of the skill is generated, and the host
    /// [declines](super::SkillClient::decline_generated) such skills. Nothing was sent.
    #[error("the content of the skill is generated, which this host declines")]
    Generated,
    /// More was read of a skill with generated content than
    /// [`SkillLimits::bytes_max`](crate::skills::SkillLimits::bytes_max).
    #[error("the generated skill is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
}

impl From<ClientError> for SkillError {
    fn from(error: ClientError) -> Self {
        Self::Call(Box::new(error))
    }
}

/// Why an entry is not valid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEntry {
    /// A member is missing or has another form.
    #[error(transparent)]
    Form(#[from] JsonError),
    /// The members contradict each other, or the skill is too large for this host.
    #[error(transparent)]
    Skill(#[from] InvalidSkill),
    /// The entry is that of another skill than the requested one.
    #[error("the server answered with the entry of {0:?}")]
    OtherSkill(String),
    /// An earlier entry of the listing has the same URI.
    #[error("an earlier entry has the same URI")]
    Duplicate,
}

/// Why the content of a file is not what the entry of its skill says: it is damaged, changed, or the
/// skill was updated since.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerificationError {
    /// The entry does not list the file.
    #[error("the entry of the skill does not list {uri:?}")]
    Unlisted {
        /// The file.
        uri: String,
    },
    /// The server did not answer with exactly the contents of the file.
    #[error("the server did not send the contents of {uri:?}")]
    Contents {
        /// The file.
        uri: String,
    },
    /// The length differs.
    #[error("{uri:?} has {received} bytes, and its entry says {expected}")]
    Size {
        /// The file.
        uri: String,
        /// The size in the entry.
        expected: u64,
        /// The size of the content.
        received: u64,
    },
    /// The digest differs.
    #[error("the digest of {uri:?} differs from its entry")]
    Digest {
        /// The file.
        uri: String,
    },
    /// The `SKILL.md` has no valid frontmatter.
    #[error("the frontmatter of {uri:?} is not valid: {reason}")]
    Frontmatter {
        /// The file.
        uri: String,
        /// The reason.
        reason: InvalidFrontmatter,
    },
    /// The frontmatter of the `SKILL.md` is not that of the entry.
    #[error("the frontmatter of {uri:?} is not that of its entry: {difference}")]
    Difference {
        /// The file.
        uri: String,
        /// The field that differs.
        difference: FrontmatterDifference,
    },
}

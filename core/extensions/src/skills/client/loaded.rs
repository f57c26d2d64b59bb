use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use mcp_sansio_sync::Mutex;

use super::SkillClient;
use super::error::{SkillError, VerificationError};
use super::file::{Content, SkillFile};
use super::id::SkillId;
use super::listing::OfferedSkill;
use crate::skills::entry::Skill;
use crate::skills::frontmatter::Frontmatter;
use crate::skills::set::DIRECTORY;
use crate::skills::uri::{SKILL_FILE, SkillUri};

/// A skill that was loaded, with the entry that its files are verified against.
///
/// Keep it as long as the `SKILL.md` is in the context of the model, and read the files of the skill
/// through it. It reads from the server of the skill alone.
// MCP 2026-07-28 skills:skills#the-acting-window-and-the-held-entry [SKILL-074]
#[derive(Clone, Debug)]
pub struct LoadedSkill {
    client: SkillClient,
    skill: Arc<OfferedSkill>,
    file: SkillFile,
    /// Where the instructions begin in the file.
    body: usize,
    /// The bytes that were read of a skill with generated content.
    read: Arc<Mutex<u64>>,
}

/// A file or a directory of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillChild {
    /// Its URI.
    pub uri: String,
    /// The last segment of the URI.
    pub name: String,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// The present content of a directory in a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillDirectory {
    /// The children that belong to the skill as it was loaded.
    pub children: Vec<SkillChild>,
    /// Whether the server has children that the entry does not list, or lacks some: the skill has
    /// changed. [Refresh](LoadedSkill::refresh) it, and present it as changed.
    pub is_changed: bool,
}

/// The present entry of a loaded skill.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RefreshedSkill {
    /// Its files are the same.
    Same(OfferedSkill),
    /// Its files have changed, or are generated: approvals of the loaded skill do not cover it.
    Changed(OfferedSkill),
}

impl LoadedSkill {
    /// Fetches the `SKILL.md` and compares it with the entry.
    // MCP 2026-07-28 skills:skills#frontmatter-verification [SKILL-078] [SKILL-079]
    pub(super) async fn load(client: SkillClient, skill: OfferedSkill) -> Result<Self, SkillError> {
        let (uri, read) = (skill.uri().to_string(), Arc::new(Mutex::new(0)));
        let content = read_file(&client, skill.entry(), &uri, &read).await?;
        let invalid = |reason| VerificationError::Frontmatter { uri: uri.clone(), reason };
        let (frontmatter, body) = Frontmatter::parse(&content.bytes).map_err(invalid)?;
        if let Some(difference) = skill.entry().frontmatter.difference(&frontmatter) {
            return Err(VerificationError::Difference { uri, difference }.into());
        }
        let body = content.bytes.len() - body.len();
        let file = SkillFile { origin: skill.id().clone(), uri, content };
        Ok(Self { client, skill: Arc::new(skill), file, body, read })
    }

    /// Returns the identity of the skill.
    #[must_use]
    pub fn id(&self) -> &SkillId {
        self.skill.id()
    }

    /// Returns the skill with the entry that it was loaded from.
    #[must_use]
    pub fn skill(&self) -> &OfferedSkill {
        &self.skill
    }

    /// Returns the `SKILL.md`.
    #[must_use]
    pub const fn file(&self) -> &SkillFile {
        &self.file
    }

    /// Returns the instructions: the `SKILL.md` after its frontmatter.
    #[must_use]
    pub fn instructions(&self) -> &str {
        self.file.text().and_then(|text| text.get(self.body..)).unwrap_or_default()
    }

    /// Reads the file that a reference in the `SKILL.md` names, such as `references/FORMS.md`. From
    /// the cache, if a verified copy is there.
    ///
    /// # Errors
    ///
    /// The reference leads out of the skill, the entry does not list the file, the call failed, or the
    /// content is not what the entry says.
    pub async fn read(&self, reference: &str) -> Result<SkillFile, SkillError> {
        let uri = self.skill.uri().resolve(reference)?;
        self.read_uri(uri).await
    }

    /// Reads the file that a reference in another file of the skill names. It is resolved against the
    /// directory of the `SKILL.md` that the other file belongs to: that of a nested skill, if the file
    /// is in one.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read).
    // MCP 2026-07-28 skills:skills#relative-references [SKILL-071]
    pub async fn read_from(
        &self,
        file: &SkillFile,
        reference: &str,
    ) -> Result<SkillFile, SkillError> {
        let uri = self.root_of(file.uri()).resolve(reference)?;
        self.read_uri(uri).await
    }

    async fn read_uri(&self, uri: String) -> Result<SkillFile, SkillError> {
        let content = read_file(&self.client, self.skill.entry(), &uri, &self.read).await?;
        Ok(SkillFile { origin: self.id().clone(), uri, content })
    }

    /// Returns the nearest skill whose directory contains the file, among those in this one.
    fn root_of(&self, uri: &str) -> SkillUri {
        let mut directory = uri;
        while let Some((parent, _name)) = directory.rsplit_once('/') {
            if parent == self.skill.uri().root() {
                break;
            }
            let nested = SkillUri::parse(alloc::format!("{parent}/{SKILL_FILE}"));
            if let Ok(nested) = nested
                && self.skill.entry().file(nested.as_str()).is_some()
            {
                return nested;
            }
            directory = parent;
        }
        self.skill.uri().clone()
    }

    /// Lists a directory of the skill from its entry, without asking the server. `.` is the directory
    /// of the skill. The list is empty for other files, and for a skill with generated content.
    ///
    /// # Errors
    ///
    /// [`SkillError::Reference`]: the reference leads out of the skill.
    // MCP 2026-07-28 skills:skills#directory-reads-and-the-held-entry [SKILL-088]
    pub fn children(&self, reference: &str) -> Result<Vec<SkillChild>, SkillError> {
        let uri = self.skill.uri().resolve(reference)?;
        Ok(children(self.skill.entry(), &uri))
    }

    /// Asks the server for the content of a directory in the skill. Use it for skills with generated content;
    /// for others [`children`](Self::children) knows the files.
    ///
    /// Children that the entry does not list are left out: they are no files of the skill that was
    /// loaded.
    ///
    /// # Errors
    ///
    /// [`SkillError::NoDirectories`], and those of [`read`](Self::read).
    // MCP 2026-07-28 skills:skills#directory-reads-and-the-held-entry [SKILL-089] [SKILL-091]
    pub async fn read_directory(&self, reference: &str) -> Result<SkillDirectory, SkillError> {
        let uri = self.skill.uri().resolve(reference)?;
        let found = self.client.directory(&uri).await?;
        let child = |resource: mcp_sansio::protocol::Resource| SkillChild {
            name: last_segment(&resource.uri).to_string(),
            is_directory: resource.mime_type.as_deref() == Some(DIRECTORY),
            uri: resource.uri,
        };
        let mut found: Vec<SkillChild> = found.into_iter().map(child).collect();
        if self.skill.entry().is_dynamic() {
            found.retain(|child| self.skill.uri().contains(&child.uri));
            return Ok(SkillDirectory { children: found, is_changed: false });
        }
        let known = children(self.skill.entry(), &uri);
        let before = found.len();
        found.retain(|child| known.iter().any(|known| known.uri == child.uri));
        let is_changed = found.len() != before || found.len() != known.len();
        Ok(SkillDirectory { children: found, is_changed })
    }

    /// Asks the server for the present entry of the skill. This skill keeps its own.
    ///
    /// # Errors
    ///
    /// Those of [`SkillClient::get`].
    pub async fn refresh(&self) -> Result<RefreshedSkill, SkillError> {
        let skill = self.client.get(self.skill.uri().as_str()).await?;
        Ok(if skill.entry().has_same_files(self.skill.entry()) {
            RefreshedSkill::Same(skill)
        } else {
            RefreshedSkill::Changed(skill)
        })
    }
}

impl RefreshedSkill {
    /// Returns the skill with its present entry.
    #[must_use]
    pub fn into_skill(self) -> OfferedSkill {
        match self {
            Self::Same(skill) | Self::Changed(skill) => skill,
        }
    }
}

/// Reads a file of a skill, and compares it with the entry.
// MCP 2026-07-28 skills:skills#the-acting-window-and-the-held-entry [SKILL-076] [SKILL-077]
// MCP 2026-07-28 skills:skills#lazy-retrieval [SKILL-080]: here alone, when it is needed.
async fn read_file(
    client: &SkillClient,
    skill: &Skill,
    uri: &str,
    read: &Mutex<u64>,
) -> Result<Content, SkillError> {
    if skill.is_dynamic() {
        let limit = client.limits().bytes_max;
        if !skill.uri.contains(uri) {
            return Err(VerificationError::Unlisted { uri: uri.into() }.into());
        }
        if read.lock(|read| *read) >= limit {
            return Err(SkillError::TooLarge { limit });
        }
        let content = client.fetch(uri).await?;
        // MCP 2026-07-28 skills:skills#limits [SKILL-055]
        let total = read.lock(|read| {
            *read = read.saturating_add(content.bytes.len() as u64);
            *read
        });
        return if total > limit { Err(SkillError::TooLarge { limit }) } else { Ok(content) };
    }
    let Some(file) = skill.file(uri) else {
        return Err(VerificationError::Unlisted { uri: uri.into() }.into());
    };
    if let Some(content) = client.cached(uri, file.digest) {
        return Ok(content);
    }
    let content = client.fetch(uri).await?;
    content.verify(file)?;
    client.keep(uri, file.digest, content.clone());
    Ok(content)
}

/// Returns the direct children of a directory, according to the entry; in the order of the URIs.
fn children(skill: &Skill, directory: &str) -> Vec<SkillChild> {
    let below = alloc::format!("{directory}/");
    let mut found: Vec<SkillChild> = Vec::new();
    for file in skill.files() {
        let Some(path) = file.uri.strip_prefix(&below) else { continue };
        let (name, is_directory) = match path.split_once('/') {
            Some((name, _rest)) => (name, true),
            None => (path, false),
        };
        let (uri, name) = (alloc::format!("{below}{name}"), name.to_string());
        found.push(SkillChild { uri, name, is_directory });
    }
    found.sort_unstable_by(|one, other| one.uri.cmp(&other.uri));
    found.dedup();
    found
}

fn last_segment(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap_or(uri)
}

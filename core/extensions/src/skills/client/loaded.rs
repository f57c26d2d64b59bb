//! A loaded skill: its files, and whether the user approved it.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::protocol::{ReadResourceResult, ResourceContents};
use mcp_sansio_sync::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::{OfferedSkill, SkillClient, SkillError, VerificationError};
use crate::skills::entry::{InvalidSkill, Skill, SkillDigest, SkillResource};
use crate::skills::frontmatter::Frontmatter;
use crate::skills::set::DIRECTORY;
use crate::skills::uri::{SKILL_FILE, SkillUri};

/// A skill that was loaded, with the entry that its files are verified against.
///
/// Keep it as long as the `SKILL.md` is in the context of the model, and read the files of the
/// skill through it. It reads from the server of the skill alone.
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

impl LoadedSkill {
    /// Fetches the `SKILL.md` and compares it with the entry.
    // MCP 2026-07-28 skills:skills#frontmatter-verification [SKILL-078] [SKILL-079]
    pub(super) async fn load(client: SkillClient, skill: OfferedSkill) -> Result<Self, SkillError> {
        let (uri, read) = (skill.uri().to_string(), Arc::new(Mutex::new(0)));
        let content = read_file(&client, skill.entry(), &uri, &read).await?;
        let invalid = |reason| VerificationError::Frontmatter { uri: uri.clone(), reason };
        let (frontmatter, body) = Frontmatter::parse(&content.bytes).map_err(invalid)?;
        if let Some(field) = skill.entry().frontmatter.difference(&frontmatter) {
            return Err(invalid(InvalidSkill::Difference(field.into())).into());
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
    /// The reference leads out of the skill, the entry does not list the file, the call failed, or
    /// the content is not what the entry says.
    pub async fn read(&self, reference: &str) -> Result<SkillFile, SkillError> {
        let uri = resolve(self.skill.uri(), reference)?;
        self.read_uri(uri).await
    }

    /// Reads the file that a reference in another file of the skill names. It is resolved against
    /// the directory of the `SKILL.md` that the other file belongs to: that of a nested skill, if
    /// the file is in one.
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
        let uri = resolve(&self.root_of(file.uri()), reference)?;
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

    /// Lists a directory of the skill from its entry, without asking the server. `.` is the
    /// directory of the skill. The list is empty for other files, and for a skill with generated
    /// content.
    ///
    /// # Errors
    ///
    /// [`SkillError::Reference`]: the reference leads out of the skill.
    // MCP 2026-07-28 skills:skills#directory-reads-and-the-held-entry [SKILL-088]
    pub fn children(&self, reference: &str) -> Result<Vec<SkillChild>, SkillError> {
        let uri = resolve(self.skill.uri(), reference)?;
        Ok(children(self.skill.entry(), &uri))
    }

    /// Asks the server for the content of a directory in the skill. Use it for skills with
    /// generated content; for others [`children`](Self::children) knows the files.
    ///
    /// Children that the entry does not list are left out: they are no files of the skill that was
    /// loaded.
    ///
    /// # Errors
    ///
    /// [`SkillError::NoDirectories`], and those of [`read`](Self::read).
    // MCP 2026-07-28 skills:skills#directory-reads-and-the-held-entry [SKILL-089] [SKILL-091]
    pub async fn read_directory(&self, reference: &str) -> Result<SkillDirectory, SkillError> {
        let uri = resolve(self.skill.uri(), reference)?;
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

    /// Asks the server for the present entry of the skill. This skill keeps its own. Unless they
    /// [have the same files](Skill::has_same_files), approvals of this skill do not cover the present
    /// one.
    ///
    /// # Errors
    ///
    /// Those of [`SkillClient::get`].
    pub async fn refresh(&self) -> Result<OfferedSkill, SkillError> {
        self.client.get(self.skill.uri().as_str()).await
    }
}

fn resolve(skill: &SkillUri, reference: &str) -> Result<String, SkillError> {
    skill.resolve(reference).ok_or_else(|| SkillError::Reference(reference.into()))
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

// ------------------------------------------------------------------ files

/// A file of a skill, with its origin.
///
/// The content comes from a server, and is as trustworthy as the server: tag it with
/// [`origin`](Self::origin) where it enters the context of a model. A `SKILL.md` of another skill
/// that was read as a file is text: its frontmatter has no effect.
// MCP 2026-07-28 skills:skills#nested-skills [SKILL-025]
// MCP 2026-07-28 skills:skills#security-considerations [SKILL-096]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    pub(super) origin: SkillId,
    pub(super) uri: String,
    pub(super) content: Content,
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) bytes: Arc<[u8]>,
    pub(super) media_type: Option<String>,
}

impl SkillFile {
    /// Returns the skill that the file was read for, with the host's label of its server.
    #[must_use]
    pub const fn origin(&self) -> &SkillId {
        &self.origin
    }

    /// Returns the URI of the file.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.content.bytes
    }

    /// Returns the text, if the bytes are UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        core::str::from_utf8(&self.content.bytes).ok()
    }

    /// Returns the media type that the server sent, if it sent one.
    #[must_use]
    pub fn media_type(&self) -> Option<&str> {
        self.content.media_type.as_deref()
    }
}

impl Content {
    /// Takes the contents of `uri` from the answer of the server.
    pub(super) fn from_result(
        uri: &str,
        result: ReadResourceResult,
    ) -> Result<Self, VerificationError> {
        let invalid = || VerificationError::Contents { uri: uri.into() };
        let mut contents = result.contents.into_iter();
        let (Some(only), None) = (contents.next(), contents.next()) else { return Err(invalid()) };
        let (named, bytes, media_type) = match only {
            ResourceContents::Text(text) => {
                (text.uri, Arc::from(text.text.into_bytes()), text.mime_type)
            }
            ResourceContents::Blob(blob) => {
                let bytes = blob.bytes().map_err(|_| invalid())?;
                (blob.uri, Arc::from(bytes), blob.mime_type)
            }
            _ => return Err(invalid()),
        };
        if named != uri {
            return Err(invalid());
        }
        Ok(Self { bytes, media_type })
    }

    /// Compares the content with the entry of its skill.
    // MCP 2026-07-28 skills:skills#verification-on-read [SKILL-072] [SKILL-073]
    // MCP 2026-07-28 skills:skills#resources [SKILL-050]
    pub(super) fn verify(&self, entry: &SkillResource) -> Result<(), VerificationError> {
        let (uri, expected, received) = (&entry.uri, entry.size, self.bytes.len() as u64);
        if received != expected {
            return Err(VerificationError::Size { uri: uri.clone(), expected, received });
        }
        if SkillDigest::of(&self.bytes) != entry.digest {
            return Err(VerificationError::Digest { uri: uri.clone() });
        }
        Ok(())
    }
}

// ------------------------------------------------------------------ verified files in memory

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

// ------------------------------------------------------------------ approval

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

// ------------------------------------------------------------------ identity of a skill

/// The identity of a skill: the host's label of its server, and its URI.
///
/// The URI alone does not identify a skill, because other servers may serve the same one; neither
/// does the name. Use this as the key of registries, approvals, caches and tools, and
/// [`path`](Self::path) for files.
///
/// ```
/// use mcp_sansio_extensions::skills::{SkillId, SkillUri};
///
/// let id = SkillId::new("docs-server", SkillUri::parse("skill://refunds/SKILL.md")?);
/// assert_eq!(id.path(), "docs-server/skill%3A%2F%2Frefunds%2FSKILL%2Emd");
/// assert_eq!(SkillId::from_path(&id.path())?, id);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// MCP 2026-07-28 skills:skills#skill-uris [SKILL-029] [SKILL-030]
// MCP 2026-07-28 skills:skills#security-considerations [SKILL-099]
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[non_exhaustive]
pub struct SkillId {
    /// The name that the host gave the server. Not the name that the server gives itself, which
    /// another server can use as well.
    pub server: String,
    /// The URI of the skill.
    pub uri: SkillUri,
}

impl SkillId {
    /// Creates the identity of a skill.
    #[must_use]
    pub fn new(server: impl Into<String>, uri: SkillUri) -> Self {
        Self { server: server.into(), uri }
    }

    /// Returns a relative path for the content of the skill: two names of letters, digits, `-`,
    /// `_`, `~` and `%`. Different skills have different paths, and the path tells the server.
    // MCP 2026-07-28 skills:skills#skill-uris [SKILL-031]
    #[must_use]
    pub fn path(&self) -> String {
        let mut path = String::new();
        path.extend(utf8_percent_encode(&self.server, ENCODED));
        path.push('/');
        path.extend(utf8_percent_encode(self.uri.as_str(), ENCODED));
        path
    }

    /// Reads a path that [`path`](Self::path) wrote.
    ///
    /// # Errors
    ///
    /// The path was not written by it.
    pub fn from_path(path: &str) -> Result<Self, InvalidSkill> {
        let other = || InvalidSkill::Uri("the path is not one that `SkillId::path` wrote".into());
        let (server, uri) = path.split_once('/').ok_or_else(other)?;
        let decode = |name| decode(name).ok_or_else(other);
        Ok(Self { server: decode(server)?, uri: SkillUri::parse(decode(uri)?)? })
    }
}

impl fmt::Display for SkillId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}", self.uri, self.server)
    }
}

/// Everything but letters, digits, `-`, `_` and `~`; dots too, so that no name is `..`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

fn decode(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    let is_as_encoded = utf8_percent_encode(&decoded, ENCODED).to_string() == text;
    is_as_encoded.then(|| decoded.into_owned())
}

#[cfg(test)]
mod file_tests {
    use alloc::vec;

    use mcp_sansio::protocol::{BlobResourceContents, TextResourceContents};

    use super::*;

    #[test]
    fn contents_of_another_file_are_not_taken() {
        let text = |uri: &str| ResourceContents::from(TextResourceContents::new(uri, "x"));
        let read = |contents| Content::from_result("a:b", ReadResourceResult::new(contents));
        assert_eq!(read(vec![text("a:b")]).unwrap().bytes[..], *b"x");
        let blob = BlobResourceContents::from_bytes("a:b", &[0xff]);
        assert_eq!(read(vec![blob.into()]).unwrap().bytes[..], [0xff]);
        for contents in [
            vec![],
            vec![text("a:c")],
            vec![text("a:b"), text("a:b")],
            vec![BlobResourceContents::new("a:b", "no base64!").into()],
        ] {
            assert_eq!(read(contents), Err(VerificationError::Contents { uri: "a:b".into() }));
        }
    }

    #[test]
    fn content_is_compared_by_size_and_digest() {
        // Rule: [SKILL-072] [SKILL-050].
        let content = Content { bytes: b"abc"[..].into(), media_type: None };
        let entry = SkillResource::of("a:b", b"abc");
        assert_eq!(content.verify(&entry), Ok(()));
        let (uri, expected, received) = ("a:b".into(), 4, 3);
        let longer = SkillResource { size: 4, ..entry.clone() };
        let size = VerificationError::Size { uri, expected, received };
        assert_eq!(content.verify(&longer), Err(size));
        let other = SkillResource { digest: SkillDigest::of(b"abd"), ..entry };
        assert_eq!(content.verify(&other), Err(VerificationError::Digest { uri: "a:b".into() }));
    }
}

#[cfg(test)]
mod cache_tests {
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

#[cfg(test)]
mod id_tests {
    use super::*;

    fn id(server: &str, uri: &str) -> SkillId {
        SkillId::new(server, SkillUri::parse(uri).unwrap())
    }

    #[test]
    fn the_same_uri_of_two_servers_has_two_identities_and_paths() {
        // Rule: [SKILL-029] [SKILL-030] [SKILL-031] [SKILL-099].
        let uri = "skill://refunds/SKILL.md";
        let (one, other) = (id("one", uri), id("other", uri));
        assert_ne!(one, other);
        assert_ne!(one.path(), other.path());
        for odd in ["", "..", "a/b", "a%2Fb", "é", "C:\\"] {
            let odd = id(odd, uri);
            let path = odd.path();
            assert_eq!(path.matches('/').count(), 1, "{path}");
            assert!(!path.contains('.') && !path.contains('\\'), "{path}");
            assert_eq!(SkillId::from_path(&path), Ok(odd));
        }
    }

    #[test]
    fn other_paths_are_refused() {
        let path = id("s", "skill://refunds/SKILL.md").path();
        assert!(SkillId::from_path(&path.replace('%', "%%")).is_err());
        assert!(SkillId::from_path(&path.replace("%2F", "%2f")).is_err());
        for other in ["", "s", "../x", "s/x", "s/%zz", "s/%"] {
            assert!(SkillId::from_path(other).is_err(), "{other}");
        }
    }
}

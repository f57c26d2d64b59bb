//! The skills that a server serves, with their files.

mod builder;

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroUsize;
use core::ops::Bound;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::jsonrpc::{ErrorObject, Json, RawJson};
use mcp_sansio::protocol::{
    BlobResourceContents, Meta, Resource, ResourceContents, TextResourceContents, check_key,
};

use super::META_PREFIX;
use super::entry::{InvalidSkill, Skill};
use super::frontmatter::Frontmatter;
use super::messages::ReadDirectoryResult;
use super::uri::{SKILL_FILE, decode_path, encode_segment, is_plain_path};

pub(super) use builder::DIRECTORY;
use builder::media_type_of;
pub use builder::{GeneratedSkill, SkillSetBuilder};

/// The default number of entries on a page of `skills/list`, and of children on a page of
/// `resources/directory/read`. 100: most servers fit on one page.
pub(super) const PAGE_SIZE_DEFAULT: NonZeroUsize = NonZeroUsize::new(100).unwrap();

/// A page of `skills/list` ends when its entries exceed this size, in bytes. 256 KiB: the entry of
/// a skill with 512 files has about 80, and clients bound the length of a message at a few
/// megabytes.
const PAGE_BYTES_MAX: usize = 256 << 10;

/// The skills that a server serves, with all their files.
///
/// It is built from files by path: from a folder, from an archive or from the program itself. Every
/// directory with a `SKILL.md` is a skill, in another skill too.
///
/// ```
/// use mcp_sansio_extensions::skills::SkillSet;
///
/// let skills = SkillSet::builder()
///     .file(
///         "billing/refunds/SKILL.md",
///         "---\nname: refunds\ndescription: Refunds an order\n---\nWrite `examples/email.md`.\n",
///     )
///     .file("billing/refunds/examples/email.md", "Dear customer,\n")
///     .build()?;
///
/// let refunds = skills.get("skill://billing/refunds/SKILL.md").unwrap();
/// assert_eq!(refunds.files().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// Ordered maps: the order of listings follows from the URIs.
#[derive(Clone, Debug)]
pub struct SkillSet {
    files: BTreeMap<String, File>,
    skills: BTreeMap<String, Served>,
    /// The URIs of the skills with generated content, by those of their directories.
    generated: BTreeMap<String, String>,
    tree: Tree,
    /// The beginnings of the URIs, for the templates of the resources.
    bases: Vec<String>,
    outside: Vec<String>,
}

#[derive(Clone, Debug)]
struct File {
    /// The name of the file, as in its path.
    name: String,
    bytes: Arc<[u8]>,
    media_type: Cow<'static, str>,
}

/// A skill of the set.
#[derive(Clone, Debug)]
struct Served {
    skill: Skill,
    /// The entry, written once.
    json: Json,
    listed: bool,
    generated: Option<Arc<dyn GeneratedSkill>>,
}

impl Default for SkillSet {
    /// Creates an empty set with the base `skill://`.
    fn default() -> Self {
        Self::with_base("skill://".into())
    }
}

impl SkillSet {
    fn with_base(base: String) -> Self {
        Self {
            files: BTreeMap::new(),
            skills: BTreeMap::new(),
            generated: BTreeMap::new(),
            tree: Tree::default(),
            bases: alloc::vec![base],
            outside: Vec::new(),
        }
    }

    /// Creates a builder with the base `skill://`.
    pub fn builder() -> SkillSetBuilder {
        SkillSetBuilder::new()
    }

    /// Adds the skills of another set, which has other URIs.
    ///
    /// # Errors
    ///
    /// [`SkillSetError::Duplicate`]: both sets have a file at the same URI.
    pub fn merge(mut self, other: Self) -> Result<Self, SkillSetError> {
        let files = other.files.keys().find(|uri| self.files.contains_key(*uri));
        let skills = other.skills.keys().find(|uri| self.skills.contains_key(*uri));
        if let Some(uri) = files.or(skills) {
            return Err(SkillSetError::Duplicate(uri.clone()));
        }
        self.files.extend(other.files);
        self.skills.extend(other.skills);
        self.generated.extend(other.generated);
        self.tree.merge(other.tree);
        self.outside.extend(other.outside);
        for base in other.bases {
            if !self.bases.contains(&base) {
                self.bases.push(base);
            }
        }
        Ok(self)
    }

    /// Returns the entries of all skills, ordered by URI.
    pub fn skills(&self) -> impl Iterator<Item = &Skill> {
        self.skills.values().map(|served| &served.skill)
    }

    /// Returns the number of skills.
    #[must_use]
    pub fn len(&self) -> usize {
        self.skills.len()
    }

    /// Returns whether there are no skills.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Returns the entry of the skill whose `SKILL.md` is at `uri`, listed or not.
    // MCP 2026-07-28 skills:skills#getting-a-skill [SKILL-066]
    #[must_use]
    pub fn get(&self, uri: &str) -> Option<&Skill> {
        self.skills.get(uri).map(|served| &served.skill)
    }

    pub(super) fn entry(&self, uri: &str) -> Option<&Json> {
        self.skills.get(uri).map(|served| &served.json)
    }

    /// Returns the paths that are in no directory of a skill, so that they are not served.
    #[must_use]
    pub fn paths_outside(&self) -> &[String] {
        &self.outside
    }

    pub(super) fn bases(&self) -> &[String] {
        &self.bases
    }

    /// Returns a page of entries after `cursor`, and the next cursor.
    // MCP 2026-07-28 skills:skills#listing-skills [SKILL-056] [SKILL-058]
    // MCP 2026-07-28 skills:skills#nested-skills [SKILL-027]: one flat list.
    pub(super) fn page(
        &self,
        cursor: Option<&str>,
        size: NonZeroUsize,
    ) -> Result<(Vec<Json>, Option<String>), ErrorObject<'static>> {
        let after = cursor.map(|cursor| List::Skills.read(cursor)).transpose()?;
        let start = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.skills.range::<str, _>((start, Bound::Unbounded));
        let mut listed = rest.filter(|(_, served)| served.listed).peekable();
        let (mut page, mut bytes, mut last) = (Vec::new(), 0, None);
        while page.len() < size.get() && bytes < PAGE_BYTES_MAX {
            let Some((uri, served)) = listed.next() else { break };
            bytes += served.json.as_str().len();
            page.push(served.json.clone());
            last = Some(uri);
        }
        let more = listed.peek().is_some();
        Ok((page, last.filter(|_| more).map(|uri| List::Skills.write(uri))))
    }

    /// Returns a page with children of a directory.
    // MCP 2026-07-28 skills:skills#reading-directories [SKILL-083] [SKILL-086] [SKILL-094]
    pub(super) fn directory(
        &self,
        uri: &str,
        cursor: Option<&str>,
        size: NonZeroUsize,
    ) -> Result<ReadDirectoryResult, ErrorObject<'static>> {
        let generated = self.generated(uri);
        let files = generated.map(|(served, _path)| served.generated_tree());
        let children = match &files {
            Some(tree) => tree.children(uri),
            None => self.tree.children(uri),
        };
        let Some(children) = children else {
            let is_file = self.files.contains_key(uri) || self.skills.contains_key(uri);
            return Err(ErrorObject::invalid_params(if is_file {
                format!("{uri} is not a directory resource")
            } else {
                format!("no directory is served at {uri}")
            }));
        };
        let after = cursor.map(|cursor| List::Directory.read(cursor)).transpose()?;
        let start = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = children.range::<str, _>((start, Bound::Unbounded)).peekable();
        let mut page = Vec::new();
        let mut last = None;
        while page.len() < size.get() {
            let Some((segment, child)) = rest.next() else { break };
            let child_uri = if uri.ends_with('/') {
                format!("{uri}{segment}")
            } else {
                format!("{uri}/{segment}")
            };
            page.push(if child.is_directory {
                Resource::new(child_uri, child.name.as_str()).mime_type(DIRECTORY)
            } else {
                self.resource(&child_uri).unwrap_or_else(|| {
                    let media_type = media_type_of(&child.name, true);
                    Resource::new(child_uri, child.name.as_str()).mime_type(media_type)
                })
            });
            last = Some(segment);
        }
        let more = rest.peek().is_some();
        let next = last.filter(|_| more).map(|segment| List::Directory.write(segment));
        Ok(ReadDirectoryResult::new(page).next_cursor(next))
    }

    /// Returns the description of a file as a resource.
    // MCP 2026-07-28 skills:skills#resource-metadata [SKILL-020] [SKILL-021] [SKILL-022] [SKILL-023]
    #[must_use]
    pub fn resource(&self, uri: &str) -> Option<Resource> {
        let described = |resource: Resource, frontmatter: &Frontmatter| {
            let resource = resource.description(frontmatter.description());
            match meta(frontmatter) {
                Some(meta) => resource.meta(meta),
                None => resource,
            }
        };
        let skill = self.get(uri);
        let Some(file) = self.files.get(uri) else {
            let frontmatter = &skill?.frontmatter;
            let resource = Resource::new(uri, frontmatter.name());
            return Some(described(resource.mime_type("text/markdown"), frontmatter));
        };
        let name = skill.map_or(file.name.as_str(), Skill::name);
        let resource = Resource::new(uri, name).mime_type(&*file.media_type);
        let resource = resource.size(file.bytes.len() as u64);
        Some(match skill {
            Some(skill) => described(resource, &skill.frontmatter),
            None => resource,
        })
    }

    /// Returns the contents of a file: text, if its bytes are UTF-8. `None` if no skill has such a
    /// file.
    ///
    /// # Errors
    ///
    /// The `SKILL.md` of a [`GeneratedSkill`] has no frontmatter, or not that of its entry: a bug of
    /// the server.
    // MCP 2026-07-28 skills:skills#verification-on-read [SKILL-045]: the bytes are not changed.
    pub fn read(&self, uri: &str) -> Result<Option<ResourceContents>, InvalidSkill> {
        if let Some(file) = self.files.get(uri) {
            return Ok(Some(contents(uri, &file.bytes, &file.media_type)));
        }
        let Some((served, path)) = self.generated(uri) else { return Ok(None) };
        let Some(path) = decode_path(path) else { return Ok(None) };
        let bytes = served.generated.as_ref().and_then(|skill| skill.read(&path));
        let Some(bytes) = bytes else { return Ok(None) };
        if path == SKILL_FILE {
            // MCP 2026-07-28 skills:skills#frontmatter [SKILL-032]
            let (frontmatter, _instructions) = Frontmatter::parse(&bytes)?;
            if let Some(field) = served.skill.frontmatter.difference(&frontmatter) {
                return Err(InvalidSkill::Difference(field.into()));
            }
        }
        let name = path.rsplit('/').next().unwrap_or(&path);
        let media_type = media_type_of(name, core::str::from_utf8(&bytes).is_ok());
        Ok(Some(contents(uri, &bytes, media_type)))
    }

    /// Returns the skill with generated content whose directory contains `uri`, and the rest of the
    /// URI. Linear in the length of the URI.
    fn generated<'s>(&self, uri: &'s str) -> Option<(&Served, &'s str)> {
        let mut end = uri.len();
        loop {
            if let Some(skill) = self.generated.get(&uri[..end]) {
                let path = uri[end..].strip_prefix('/').unwrap_or_default();
                return self.skills.get(skill).map(|served| (served, path));
            }
            end = uri[..end].rfind('/')?;
        }
    }
}

fn contents(uri: &str, bytes: &[u8], media_type: &str) -> ResourceContents {
    match core::str::from_utf8(bytes) {
        Ok(text) => TextResourceContents::new(uri, text).mime_type(media_type).into(),
        Err(_) => BlobResourceContents::from_bytes(uri, bytes).mime_type(media_type).into(),
    }
}

/// Returns the fields other than the name and the description as metadata, if there are some whose
/// names may be keys.
// MCP 2026-07-28 skills:skills#resource-metadata [SKILL-024]
fn meta(frontmatter: &Frontmatter) -> Option<Meta> {
    let mut meta = Meta::default();
    for field in frontmatter.field_names() {
        let key = format!("{META_PREFIX}{field}");
        if !matches!(field, "name" | "description")
            && check_key(&key).is_ok()
            && let Some(value) = frontmatter.field(field)
        {
            meta.insert(key, value);
        }
    }
    (!meta.is_empty()).then_some(meta)
}

impl Served {
    fn new(skill: Skill, listed: bool, generated: Option<Arc<dyn GeneratedSkill>>) -> Self {
        // A frontmatter from YAML always has a JSON form.
        let json = Json::from_serialize(&skill).unwrap_or_else(|_| RawJson::EMPTY_OBJECT.into());
        Self { skill, json, listed, generated }
    }

    /// Returns the directories of the files that exist now.
    fn generated_tree(&self) -> Tree {
        let mut tree = Tree::default();
        let root = self.skill.uri.root();
        tree.add_file(self.skill.uri.as_str(), SKILL_FILE);
        for path in self.generated.iter().flat_map(|skill| skill.paths()) {
            tree.add_path(root, &path);
        }
        tree
    }
}

impl fmt::Debug for dyn GeneratedSkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GeneratedSkill")
    }
}

// ------------------------------------------------------------------ changes

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

// ------------------------------------------------------------------ cursors: the key of the entry at the end of a page

/// The list that a cursor belongs to.
#[derive(Clone, Copy, Debug)]
enum List {
    Skills,
    Directory,
}

impl List {
    const fn mark(self) -> char {
        match self {
            Self::Skills => 's',
            Self::Directory => 'd',
        }
    }

    /// Writes the cursor of a page that ends with `key`. It stays valid when the set changes: the
    /// next page begins after the key.
    fn write(self, key: &str) -> String {
        format!("{}{}", self.mark(), URL_SAFE_NO_PAD.encode(key))
    }

    /// Reads a cursor.
    ///
    /// # Errors
    ///
    /// It is not one of this list: the client's error.
    fn read(self, cursor: &str) -> Result<String, ErrorObject<'static>> {
        let key = cursor.strip_prefix(self.mark()).and_then(|key| URL_SAFE_NO_PAD.decode(key).ok());
        key.and_then(|key| String::from_utf8(key).ok()).ok_or_else(|| {
            ErrorObject::invalid_params(
                "invalid cursor for this list: start again without a cursor",
            )
        })
    }
}

// ------------------------------------------------------------------ errors

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
    /// A generated skill has files as well, or is in the directory of another skill, whose entry
    /// could not list its files.
    #[error("{0:?}: a generated skill has a directory of its own, without other files")]
    Mixed(String),
    /// The `SKILL.md` stands in no directory that could be its skill's name, its frontmatter is
    /// missing or breaks a rule, or the skill is too large.
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

// ------------------------------------------------------------------ the directories of files, by URI

/// The children of a directory, by the segments of their URIs.
type Children = BTreeMap<String, Child>;

/// The directories above files, and their direct children.
#[derive(Clone, Debug, Default)]
struct Tree(BTreeMap<String, Children>);

/// A file or a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Child {
    /// As in its path.
    name: String,
    is_directory: bool,
}

impl Tree {
    /// Adds a file with the directories above it.
    fn add_file(&mut self, uri: &str, name: &str) {
        self.add(uri, name, false);
    }

    /// Adds a directory with the directories above it.
    fn add_directory(&mut self, uri: &str, name: &str) {
        self.0.entry(uri.to_string()).or_default();
        self.add(uri, name, true);
    }

    /// Adds the file at a path below `root`. Ignores paths that lead elsewhere.
    fn add_path(&mut self, root: &str, path: &str) {
        if !is_plain_path(path) {
            return;
        }
        let mut uri = root.to_string();
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            uri.push('/');
            uri.push_str(&encode_segment(name, false, false));
            if names.peek().is_some() {
                self.add_directory(&uri, name);
            } else {
                self.add_file(&uri, name);
            }
        }
    }

    fn add(&mut self, uri: &str, name: &str, is_directory: bool) {
        let (mut uri, mut name, mut is_directory) = (uri, name, is_directory);
        while let Some((parent, segment)) = uri.rsplit_once('/') {
            // The first segment follows `scheme://`: no directory is above it.
            if parent.ends_with('/') {
                return;
            }
            let children = self.0.entry(parent.to_string()).or_default();
            if children.contains_key(segment) {
                return;
            }
            let child = Child { name: name.to_string(), is_directory };
            children.insert(segment.to_string(), child);
            (uri, is_directory) = (parent, true);
            name = parent.rsplit('/').next().unwrap_or(parent);
        }
    }

    fn children(&self, uri: &str) -> Option<&Children> {
        self.0.get(uri)
    }

    fn merge(&mut self, other: Self) {
        for (uri, children) in other.0 {
            self.0.entry(uri).or_default().extend(children);
        }
    }
}

#[cfg(test)]
mod cursor_tests {
    use super::*;

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        let cursor = List::Skills.write("skill://a/SKILL.md");
        assert_eq!(List::Skills.read(&cursor).as_deref(), Ok("skill://a/SKILL.md"));
        assert!(List::Directory.read(&cursor).is_err());
        for garbage in ["", "s ", "sé", "s_w"] {
            assert!(List::Skills.read(garbage).is_err(), "{garbage}");
        }
    }
}

#[cfg(test)]
mod tree_tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_directory_above_a_file_is_there() {
        // Rule: [SKILL-085] [SKILL-086].
        let mut tree = Tree::default();
        tree.add_file("skill://acme/refunds/x/y.md", "y.md");
        tree.add_file("skill://acme/refunds/SKILL.md", "SKILL.md");
        tree.add_directory("skill://acme/refunds/empty", "empty");
        let names = |uri: &str| {
            let children = tree.children(uri)?;
            Some(children.iter().map(|(name, child)| (&**name, child.is_directory)).collect())
        };
        let names = |uri| names(uri).unwrap_or_else(|| alloc::vec![("none", false)]);
        let expected: Vec<(&str, bool)> =
            alloc::vec![("SKILL.md", false), ("empty", true), ("x", true)];
        assert_eq!(names("skill://acme/refunds"), expected);
        assert_eq!(names("skill://acme"), [("refunds", true)]);
        assert_eq!(names("skill://acme/refunds/x"), [("y.md", false)]);
        assert_eq!(names("skill://acme/refunds/empty"), []);
        assert_eq!(names("skill:/"), [("none", false)]);
        assert_eq!(names("skill://acme/refunds/x/y.md"), [("none", false)]);
    }
}

//! How a set of skills is put together from files and generators.

use alloc::borrow::Cow;
use alloc::collections::btree_map::{BTreeMap, Entry};
use alloc::collections::btree_set::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::{File, Served, SkillSet, SkillSetError, Tree};
use crate::skills::entry::{Skill, SkillDigest, SkillLimits, SkillResource, SkillResources};
use crate::skills::frontmatter::Frontmatter;
use crate::skills::uri::{SKILL_FILE, SkillUri, encode_segment, is_plain_path};

/// Collects the files of a [`SkillSet`].
///
/// Paths have `/` between their names and are relative to the folder that contains the skills:
/// `billing/refunds/SKILL.md` becomes `skill://billing/refunds/SKILL.md`.
#[derive(Default)]
#[must_use = "call `build`"]
pub struct SkillSetBuilder {
    base: String,
    files: BTreeMap<String, Source>,
    directories: BTreeSet<String>,
    unlisted: BTreeSet<String>,
    generated: Vec<(String, Frontmatter, Arc<dyn GeneratedSkill>)>,
    duplicate: Option<String>,
}

struct Source {
    bytes: Arc<[u8]>,
    media_type: Option<String>,
}

impl SkillSetBuilder {
    pub(super) fn new() -> Self {
        Self { base: "skill://".into(), ..Self::default() }
    }

    /// Sets the beginning of all URIs: a scheme with a path or without one, such as
    /// `skill://acme/billing` or `github://owner/repo/skills`. The default is `skill://`.
    // MCP 2026-07-28 skills:skills#resource-mapping [SKILL-011] [SKILL-012] [SKILL-018]
    pub fn base(mut self, base: impl Into<String>) -> Self {
        self.base = base.into();
        self
    }

    /// Adds a file. Its media type follows from its name.
    // MCP 2026-07-28 skills:skills#skill-format [SKILL-010]
    pub fn file(self, path: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        self.add(path.into(), bytes.as_ref(), None)
    }

    /// Adds a file with its media type.
    pub fn file_as(
        self,
        path: impl Into<String>,
        bytes: impl AsRef<[u8]>,
        media_type: impl Into<String>,
    ) -> Self {
        self.add(path.into(), bytes.as_ref(), Some(media_type.into()))
    }

    /// Adds a directory, which may stay empty. Directories of files need not be added.
    pub fn directory(mut self, path: impl Into<String>) -> Self {
        self.directories.insert(path.into());
        self
    }

    /// Leaves a skill out of `skills/list`. Clients still reach it by its URI.
    pub fn unlisted(mut self, skill: impl Into<String>) -> Self {
        self.unlisted.insert(skill.into());
        self
    }

    /// Adds a skill whose files are generated. `path` is that of its directory.
    pub fn generated(
        mut self,
        path: impl Into<String>,
        frontmatter: Frontmatter,
        skill: impl GeneratedSkill + 'static,
    ) -> Self {
        self.generated.push((path.into(), frontmatter, Arc::new(skill)));
        self
    }

    fn add(mut self, path: String, bytes: &[u8], media_type: Option<String>) -> Self {
        let source = Source { bytes: bytes.into(), media_type };
        match self.files.entry(path) {
            Entry::Occupied(taken) => _ = self.duplicate.get_or_insert_with(|| taken.key().clone()),
            Entry::Vacant(free) => _ = free.insert(source),
        }
        self
    }

    /// Reads the frontmatters, computes the digests and checks the rules of every skill.
    ///
    /// # Errors
    ///
    /// The first problem that a host could find, with the path of the file: see [`SkillSetError`].
    pub fn build(self) -> Result<SkillSet, SkillSetError> {
        if let Some(path) = self.duplicate {
            return Err(SkillSetError::Duplicate(path));
        }
        let base = Base::parse(&self.base)?;
        for path in self.files.keys().chain(&self.directories) {
            if !is_plain_path(path) || path.contains('\0') {
                return Err(SkillSetError::Path(path.clone()));
            }
        }
        let mut set = SkillSet::with_base(base.0.clone());
        let mut roots = BTreeSet::new();
        let mut found = Vec::new();
        for (path, source) in &self.files {
            // MCP 2026-07-28 skills:skills#skill-format [SKILL-008]
            // MCP 2026-07-28 skills:skills#resource-mapping [SKILL-017]
            let Some(directory) = skill_directory(path) else { continue };
            let uri = base.skill(directory, path)?;
            let parsed = Frontmatter::parse(&source.bytes).and_then(|(frontmatter, _)| {
                frontmatter.check()?;
                Ok(frontmatter)
            });
            let frontmatter = parsed.map_err(|reason| {
                let path = path.clone();
                SkillSetError::Skill { path, reason }
            })?;
            roots.insert(directory);
            found.push((path, uri, frontmatter));
        }
        let mut digests = BTreeMap::new();
        for (path, source) in &self.files {
            if !is_below(path, &roots) {
                set.outside.push(path.clone());
                continue;
            }
            let (uri, name) = (base.uri(path), file_name(path));
            digests.insert(uri.clone(), SkillDigest::of(&source.bytes));
            let text = core::str::from_utf8(&source.bytes).is_ok();
            let media_type = match &source.media_type {
                Some(media_type) => Cow::Owned(media_type.clone()),
                None => Cow::Borrowed(media_type_of(name, text)),
            };
            set.tree.add_file(&uri, name);
            let (name, bytes) = (name.to_string(), Arc::clone(&source.bytes));
            set.files.insert(uri, File { name, bytes, media_type });
        }
        add_directories(&mut set.tree, &base, &self.directories, &roots);
        let mut unlisted = self.unlisted;
        for (path, uri, frontmatter) in found {
            let files = files_of(&uri, &set.files, &digests);
            let skill = Skill::new(uri, frontmatter, SkillResources::Files(files));
            let listed = !unlisted.remove(path);
            set.add(skill, listed, None, path)?;
        }
        for (directory, frontmatter, generated) in self.generated {
            if !is_plain_path(&directory) {
                return Err(SkillSetError::Path(directory));
            }
            let path = format!("{directory}/{SKILL_FILE}");
            let uri = base.skill(&directory, &path)?;
            if let Err(reason) = frontmatter.check() {
                return Err(SkillSetError::Skill { path, reason });
            }
            let below = format!("{}/", uri.root());
            let file = set.files.range(below.clone()..).next();
            let has_files = file.is_some_and(|(file, _)| file.starts_with(&below));
            if has_files || set.skills().any(|skill| skill.uri.contains(uri.as_str())) {
                return Err(SkillSetError::Mixed(path));
            }
            set.generated.insert(uri.root().to_string(), uri.to_string());
            set.tree.add_file(uri.as_str(), SKILL_FILE);
            let skill = Skill::new(uri, frontmatter, SkillResources::Dynamic);
            let listed = !unlisted.remove(&path);
            set.add(skill, listed, Some(generated), &path)?;
        }
        match unlisted.pop_first() {
            Some(path) => Err(SkillSetError::NoSuchSkill(path)),
            None => Ok(set),
        }
    }
}

impl SkillSet {
    // MCP 2026-07-28 skills:skills#resource-mapping [SKILL-013]
    // MCP 2026-07-28 skills:skills#limits [SKILL-053]: every host can load a served skill.
    fn add(
        &mut self,
        skill: Skill,
        listed: bool,
        generated: Option<Arc<dyn GeneratedSkill>>,
        path: &str,
    ) -> Result<(), SkillSetError> {
        let path = path.to_string();
        if let Err(reason) = skill.check(&SkillLimits::default()) {
            return Err(SkillSetError::Skill { path, reason });
        }
        let uri = skill.uri.to_string();
        match self.skills.insert(uri, Served::new(skill, listed, generated)) {
            Some(_) => Err(SkillSetError::Duplicate(path)),
            None => Ok(()),
        }
    }
}

/// Returns the files of a skill; those of the skills in it are among them.
// MCP 2026-07-28 skills:skills#resources [SKILL-041] [SKILL-043] [SKILL-046]
fn files_of(
    skill: &SkillUri,
    files: &BTreeMap<String, File>,
    digests: &BTreeMap<String, SkillDigest>,
) -> Vec<SkillResource> {
    let below = format!("{}/", skill.root());
    let inside = files.range(below.clone()..).take_while(|(uri, _)| uri.starts_with(&below));
    inside
        .filter_map(|(uri, file)| {
            let (uri, size) = (uri.clone(), file.bytes.len() as u64);
            Some(SkillResource { digest: *digests.get(&uri)?, uri, size })
        })
        .collect()
}

fn add_directories(
    tree: &mut Tree,
    base: &Base,
    directories: &BTreeSet<String>,
    roots: &BTreeSet<&str>,
) {
    for path in directories {
        if is_below(path, roots) {
            tree.add_directory(&base.uri(path), file_name(path));
        }
    }
}

/// Returns the directory of a `SKILL.md`; an empty one for that of the base.
fn skill_directory(path: &str) -> Option<&str> {
    if path == SKILL_FILE {
        return Some("");
    }
    path.strip_suffix(SKILL_FILE)?.strip_suffix('/')
}

/// Whether a directory of a skill is above a path.
fn is_below(path: &str, roots: &BTreeSet<&str>) -> bool {
    let mut above = path;
    while let Some((parent, _name)) = above.rsplit_once('/') {
        if roots.contains(parent) {
            return true;
        }
        above = parent;
    }
    roots.contains("")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The beginning of URIs, without a slash at the end unless it ends with `://`.
struct Base(String);

impl Base {
    fn parse(text: &str) -> Result<Self, SkillSetError> {
        let base = if text.ends_with("://") { text } else { text.trim_end_matches('/') };
        let base = Self(base.to_string());
        // Any skill shows whether the base is one of skills.
        match SkillUri::parse(format!("{}/{SKILL_FILE}", base.uri("x"))) {
            Ok(_) if !base.0.contains(['{', '}']) => Ok(base),
            _ => Err(SkillSetError::Base(text.to_string())),
        }
    }

    /// Returns the URI of the skill in `directory`, whose file has `path`.
    fn skill(&self, directory: &str, path: &str) -> Result<SkillUri, SkillSetError> {
        let root = if directory.is_empty() { self.0.clone() } else { self.uri(directory) };
        SkillUri::parse(format!("{root}/{SKILL_FILE}"))
            .map_err(|reason| SkillSetError::Skill { path: path.to_string(), reason })
    }

    fn uri(&self, path: &str) -> String {
        let mut uri = self.0.clone();
        for (at, name) in path.split('/').enumerate() {
            let first = at == 0 && uri.ends_with('/');
            if !uri.ends_with('/') {
                uri.push('/');
            }
            uri.push_str(&encode_segment(name, first, false));
        }
        uri
    }
}

impl fmt::Debug for SkillSetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("SkillSetBuilder");
        out.field("base", &self.base).field("files", &self.files.keys()).finish_non_exhaustive()
    }
}

// ------------------------------------------------------------------ skills whose files are generated

/// A skill whose content is generated, so that no digests can be published: it is listed as
/// `"dynamic"`, and hosts may decline it.
///
/// ```
/// use mcp_sansio_extensions::skills::{Frontmatter, GeneratedSkill, SkillSet};
///
/// struct Daily;
///
/// impl GeneratedSkill for Daily {
///     fn read(&self, path: &str) -> Option<Vec<u8>> {
///         let head = "---\nname: daily\ndescription: Today's report\n---\n";
///         (path == "SKILL.md").then(|| format!("{head}It is day 7.\n").into_bytes())
///     }
/// }
///
/// let frontmatter = Frontmatter::from_name("daily", "Today's report");
/// let skills = SkillSet::builder().generated("reports/daily", frontmatter, Daily).build()?;
/// assert!(skills.get("skill://reports/daily/SKILL.md").unwrap().is_dynamic());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// MCP 2026-07-28 skills:skills#resources [SKILL-047]
pub trait GeneratedSkill: Send + Sync {
    /// Returns the content of the file at a path in the skill, such as `SKILL.md`, or `None` if the
    /// skill has no such file. The frontmatter of `SKILL.md` has to be that of the entry. Must not
    /// block.
    fn read(&self, path: &str) -> Option<Vec<u8>>;

    /// Returns the paths of the files that exist now, besides the `SKILL.md`, for reads of
    /// directories. Must not block.
    fn paths(&self) -> Vec<String> {
        Vec::new()
    }
}

// ------------------------------------------------------------------ the media types of files, by their names

/// The media type of a directory.
// MCP 2026-07-28 skills:skills#directory-resources [SKILL-085]
pub(crate) const DIRECTORY: &str = "inode/directory";

/// The types of the files that skills usually contain, sorted by the ending.
const TYPES: &[(&str, &str)] = &[
    ("bash", "application/x-sh"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("py", "text/x-python"),
    ("sh", "application/x-sh"),
    ("sql", "application/sql"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain"),
    ("wasm", "application/wasm"),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

/// Returns the media type of the file called `name`.
// MCP 2026-07-28 skills:skills#resource-metadata [SKILL-020]
pub(super) fn media_type_of(name: &str, is_text: bool) -> &'static str {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match TYPES.binary_search_by(|(known, _)| (*known).cmp(&ending)) {
        Ok(at) => TYPES[at].1,
        Err(_) if is_text => "text/plain",
        Err(_) => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_decides() {
        // Rule: [SKILL-020].
        assert!(TYPES.is_sorted());
        assert_eq!(media_type_of("SKILL.md", true), "text/markdown");
        assert_eq!(media_type_of("A.PNG", false), "image/png");
        assert_eq!(media_type_of("Makefile", true), "text/plain");
        assert_eq!(media_type_of("x.bin", false), "application/octet-stream");
    }
}

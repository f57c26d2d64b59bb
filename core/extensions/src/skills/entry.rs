//! Entries: the description of a skill by its server.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::fmt::Write as _;
use core::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::frontmatter::Frontmatter;
use super::uri::SkillUri;

/// The most files of a skill that every host accepts.
// MCP 2026-07-28 skills:skills#limits [SKILL-051] [SKILL-053]
pub const SKILL_FILES_MAX: usize = 512;

/// The largest total size of a skill that every host accepts, in bytes.
// MCP 2026-07-28 skills:skills#limits [SKILL-051] [SKILL-053]
pub const SKILL_BYTES_MAX: u64 = 16 << 20;

/// The entry of a skill: its URI, its frontmatter, and its files with their digests.
///
/// Both `skills/list` and `skills/get` return it, and it is complete: a host needs no more to
/// present a skill, to bind an approval to it, and to verify each file.
// MCP 2026-07-28 skills:skills#skill-entries [SKILL-028]
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Skill {
    /// The URI of its `SKILL.md`.
    pub uri: SkillUri,
    /// The frontmatter of its `SKILL.md`.
    pub frontmatter: Frontmatter,
    /// Its files.
    pub resources: SkillResources,
}

/// The files of a skill.
// MCP 2026-07-28 skills:skills#resources [SKILL-040] [SKILL-048]: an array or `"dynamic"`, nothing
// else.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkillResources {
    /// All files, the `SKILL.md` among them.
    Files(Vec<SkillResource>),
    /// The content is generated, so that it has no stable digests. It cannot be verified, and no
    /// approval can be bound to it.
    Dynamic,
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct SkillResource {
    /// The URI of the file.
    pub uri: String,
    /// The digest of its bytes.
    pub digest: SkillDigest,
    /// The number of its bytes.
    pub size: u64,
}

/// Why a skill, or a part of one, is not valid: the fault of its author, or of the server that
/// describes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSkill {
    /// The URI is not `<scheme>://<skill-path>/SKILL.md`.
    #[error("{0}")]
    Uri(Cow<'static, str>),
    /// A digest is not `sha256:` and 64 lower-case hexadecimal digits.
    #[error("a digest is `sha256:` and 64 lower-case hexadecimal digits")]
    Digest,
    /// The `SKILL.md` does not begin with a frontmatter: a YAML mapping with a JSON form.
    #[error("{0}")]
    Frontmatter(Cow<'static, str>),
    /// A field of the frontmatter is missing, too long, empty, or of the wrong type.
    #[error("the frontmatter has no `{field}` that is {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// The required type and length.
        expected: &'static str,
    },
    /// The frontmatter of the `SKILL.md` is not that of the entry, in the named field.
    #[error("the frontmatter is not that of the entry: the field {0:?} differs")]
    Difference(String),
    /// A member of the entry is missing or has another form.
    #[error("{0}")]
    Form(String),
    /// The entry is that of another skill than the requested one.
    #[error("the server answered with the entry of {0:?}")]
    OtherSkill(String),
    /// The last segment of the skill's path is not its name.
    #[error("the path ends with {segment:?}, but the name of the skill is {name:?}")]
    Name {
        /// The last segment of the path.
        segment: String,
        /// The name in the frontmatter.
        name: String,
    },
    /// Its files do not contain the `SKILL.md`.
    #[error("the files of the skill do not contain its `SKILL.md`")]
    Incomplete,
    /// A file of the skill, or the skill itself, is listed twice.
    #[error("{0:?} is listed twice")]
    Duplicate(String),
    /// A file is not in the directory of the skill.
    #[error("the file {0:?} is not in the directory of the skill")]
    Foreign(String),
    /// The skill has more files than the host accepts.
    #[error("the skill has {files} files, and at most {limit} are accepted")]
    TooManyFiles {
        /// The number of files.
        files: usize,
        /// The limit.
        limit: usize,
    },
    /// The files of the skill are larger than the host accepts.
    #[error("the files of the skill have {bytes} bytes, and at most {limit} are accepted")]
    TooLarge {
        /// The sum of their sizes.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}

/// The sizes of skills that a host accepts.
///
/// ```
/// use mcp_sansio_extensions::skills::{SKILL_FILES_MAX, SkillLimits};
///
/// let limits = SkillLimits::default().files_max(2 * SKILL_FILES_MAX);
/// # let _ = limits;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillLimits {
    /// The most files. [`SKILL_FILES_MAX`] by default, which every host has to accept.
    pub files_max: usize,
    /// The most bytes of all files. [`SKILL_BYTES_MAX`] by default, which every host has to accept.
    /// For a skill with generated content it bounds the bytes that are read.
    pub bytes_max: u64,
}

impl Default for SkillLimits {
    fn default() -> Self {
        Self { files_max: SKILL_FILES_MAX, bytes_max: SKILL_BYTES_MAX }
    }
}

impl SkillLimits {
    /// Sets [`SkillLimits::files_max`].
    #[must_use]
    pub const fn files_max(mut self, files: usize) -> Self {
        self.files_max = files;
        self
    }

    /// Sets [`SkillLimits::bytes_max`].
    #[must_use]
    pub const fn bytes_max(mut self, bytes: u64) -> Self {
        self.bytes_max = bytes;
        self
    }
}

impl Skill {
    /// Creates an entry.
    #[must_use]
    pub const fn new(uri: SkillUri, frontmatter: Frontmatter, resources: SkillResources) -> Self {
        Self { uri, frontmatter, resources }
    }

    /// Returns the name of the skill: a label, which other skills may have too.
    #[must_use]
    pub fn name(&self) -> &str {
        self.frontmatter.name()
    }

    /// Returns the description of the skill.
    #[must_use]
    pub fn description(&self) -> &str {
        self.frontmatter.description()
    }

    /// Returns whether the content is generated, so that it cannot be verified.
    #[must_use]
    pub const fn is_dynamic(&self) -> bool {
        matches!(self.resources, SkillResources::Dynamic)
    }

    /// Returns the files; an empty slice if the content is [generated](Self::is_dynamic).
    #[must_use]
    pub fn files(&self) -> &[SkillResource] {
        match &self.resources {
            SkillResources::Files(files) => files,
            SkillResources::Dynamic => &[],
        }
    }

    /// Returns the file at `uri`. Linear in the number of files.
    #[must_use]
    pub fn file(&self, uri: &str) -> Option<&SkillResource> {
        self.files().iter().find(|file| file.uri == uri)
    }

    /// Returns the total size of the files, in bytes.
    #[must_use]
    pub fn total_size(&self) -> u64 {
        self.files().iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }

    /// Checks that the entry agrees with itself, and that its files are within `limits`. Reads no
    /// file.
    ///
    /// # Errors
    ///
    /// See [`InvalidSkill`].
    // MCP 2026-07-28 skills:skills#frontmatter [SKILL-033]
    // MCP 2026-07-28 skills:skills#resources [SKILL-041] [SKILL-042]
    // MCP 2026-07-28 skills:skills#limits [SKILL-054]: before any read, with the reason.
    pub fn check(&self, limits: &SkillLimits) -> Result<(), InvalidSkill> {
        let name = self.name();
        if self.uri.name() != name {
            let segment = self.uri.name().into();
            return Err(InvalidSkill::Name { segment, name: name.into() });
        }
        let SkillResources::Files(files) = &self.resources else { return Ok(()) };
        if files.len() > limits.files_max {
            let (files, limit) = (files.len(), limits.files_max);
            return Err(InvalidSkill::TooManyFiles { files, limit });
        }
        let (bytes, limit) = (self.total_size(), limits.bytes_max);
        if bytes > limit {
            return Err(InvalidSkill::TooLarge { bytes, limit });
        }
        let mut known = BTreeSet::new();
        for SkillResource { uri, .. } in files {
            if !self.uri.contains(uri) {
                return Err(InvalidSkill::Foreign(uri.clone()));
            }
            if !known.insert(uri.as_str()) {
                return Err(InvalidSkill::Duplicate(uri.clone()));
            }
        }
        if known.contains(self.uri.as_str()) { Ok(()) } else { Err(InvalidSkill::Incomplete) }
    }

    /// Returns whether two entries have the same files with the same content, in any order. Entries
    /// with generated content are never the same.
    // MCP 2026-07-28 skills:skills#security-considerations [SKILL-103]
    #[must_use]
    pub fn has_same_files(&self, other: &Self) -> bool {
        let set = |skill: &Self| {
            let files = skill.files().iter().map(|file| (file.uri.clone(), file.digest));
            files.collect::<BTreeSet<_>>()
        };
        !self.is_dynamic() && !other.is_dynamic() && set(self) == set(other)
    }
}

impl SkillResource {
    /// Creates the description of a file from its bytes.
    #[must_use]
    pub fn of(uri: impl Into<String>, bytes: &[u8]) -> Self {
        Self { uri: uri.into(), digest: SkillDigest::of(bytes), size: bytes.len() as u64 }
    }
}

/// The value of `resources` if there is no list of files.
const DYNAMIC: &str = "dynamic";

impl Serialize for SkillResources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Files(files) => files.serialize(serializer),
            Self::Dynamic => serializer.serialize_str(DYNAMIC),
        }
    }
}

impl<'de> Deserialize<'de> for SkillResources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Form<'a> {
            Word(#[serde(borrow)] Cow<'a, str>),
            Files(Vec<SkillResource>),
        }

        match Form::deserialize(deserializer) {
            Ok(Form::Files(files)) => Ok(Self::Files(files)),
            Ok(Form::Word(word)) if word == DYNAMIC => Ok(Self::Dynamic),
            _ => Err(D::Error::custom(
                "`resources` is an array of `{uri, digest, size}`, or \"dynamic\"",
            )),
        }
    }
}

// ------------------------------------------------------------------ digests of files

const ALGORITHM: &str = "sha256:";

/// The SHA-256 digest of a file's bytes, written as `sha256:` and 64 lower-case hexadecimal digits.
///
/// A digest shows that a file agrees with the entry of its skill. It is not a signature: the
/// server can change both.
///
/// ```
/// use mcp_sansio_extensions::skills::SkillDigest;
///
/// let digest = SkillDigest::of(b"# Refunds\n");
/// assert_eq!(digest.to_string().parse(), Ok(digest));
/// ```
// MCP 2026-07-28 skills:skills#integrity-and-verification [SKILL-044]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SkillDigest([u8; 32]);

impl SkillDigest {
    /// Computes the digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the bytes of the digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for SkillDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALGORITHM)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SkillDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SkillDigest {
    type Err = InvalidSkill;

    fn from_str(text: &str) -> Result<Self, InvalidSkill> {
        let digits = text.strip_prefix(ALGORITHM).ok_or(InvalidSkill::Digest)?.as_bytes();
        if digits.len() != 64 {
            return Err(InvalidSkill::Digest);
        }
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(InvalidSkill::Digest),
        };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for SkillDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(ALGORITHM.len() + 64);
        write!(text, "{self}").map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for SkillDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    fn skill(files: &[(&str, &str)]) -> Skill {
        let files = files.iter().map(|(uri, text)| SkillResource::of(*uri, text.as_bytes()));
        Skill::new(
            SkillUri::parse("skill://a/refunds/SKILL.md").unwrap(),
            Frontmatter::from_name("refunds", "Refunds"),
            SkillResources::Files(files.collect()),
        )
    }

    const MAIN: (&str, &str) = ("skill://a/refunds/SKILL.md", "");

    #[test]
    fn an_entry_has_a_uri_a_frontmatter_and_resources() {
        // Rule: [SKILL-028] [SKILL-040].
        let text = r#"{"uri":"skill://a/refunds/SKILL.md","frontmatter":{"description":"Refunds","name":"refunds"},"resources":[{"uri":"skill://a/refunds/SKILL.md","digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":0}]}"#;
        let entry = skill(&[MAIN]);
        assert_eq!(serde_json::to_string(&entry).unwrap(), text);
        assert_eq!(serde_json::from_str::<Skill>(text).unwrap(), entry);
        let dynamic = Skill { resources: SkillResources::Dynamic, ..entry };
        let text = serde_json::to_string(&dynamic).unwrap();
        assert!(text.ends_with(r#","resources":"dynamic"}"#), "{text}");
        assert_eq!(serde_json::from_str::<Skill>(&text).unwrap(), dynamic);
    }

    #[test]
    fn an_entry_without_resources_is_not_read() {
        // Rule: [SKILL-048].
        let entry = |rest: &str| {
            let text = format!(
                r#"{{"uri":"skill://a/SKILL.md","frontmatter":{{"name":"a","description":"b"}}{rest}}}"#
            );
            serde_json::from_str::<Skill>(&text)
        };
        assert!(entry(r#","resources":"dynamic""#).is_ok());
        for rest in [
            "",
            r#","resources":null"#,
            r#","resources":"static""#,
            r#","resources":{}"#,
            r#","resources":[{"uri":"skill://a/SKILL.md"}]"#,
            r#","resources":[{"uri":"skill://a/SKILL.md","digest":"sha256:00","size":1}]"#,
        ] {
            assert!(entry(rest).is_err(), "{rest}");
        }
    }

    #[test]
    fn an_entry_lists_each_file_of_its_directory_once() {
        // Rule: [SKILL-041] [SKILL-042] [SKILL-033].
        let limits = SkillLimits::default();
        assert_eq!(skill(&[MAIN, ("skill://a/refunds/x/y.md", "")]).check(&limits), Ok(()));
        assert_eq!(
            skill(&[("skill://a/refunds/x.md", "")]).check(&limits),
            Err(InvalidSkill::Incomplete)
        );
        assert_eq!(
            skill(&[MAIN, MAIN]).check(&limits),
            Err(InvalidSkill::Duplicate(MAIN.0.into()))
        );
        for other in ["skill://a/other/x.md", "skill://a/refunds/../x.md", "skill://a/refunds"] {
            let check = skill(&[MAIN, (other, "")]).check(&limits);
            assert_eq!(check, Err(InvalidSkill::Foreign(other.to_string())));
        }
        let mut named = skill(&[MAIN]);
        named.frontmatter = Frontmatter::from_name("other", "Refunds");
        assert!(matches!(named.check(&limits), Err(InvalidSkill::Name { .. })));
    }

    #[test]
    fn limits_are_checked_before_any_file_is_read() {
        // Rule: [SKILL-051] [SKILL-053] [SKILL-054].
        let limits = SkillLimits::default();
        let mut entry = skill(&[MAIN]);
        let SkillResources::Files(files) = &mut entry.resources else { unreachable!() };
        for n in 1..SKILL_FILES_MAX {
            files.push(SkillResource::of(format!("skill://a/refunds/{n}"), b""));
        }
        files[0].size = 16_777_216;
        assert_eq!(entry.check(&limits), Ok(()));
        assert_eq!(
            entry.check(&limits.files_max(511)),
            Err(InvalidSkill::TooManyFiles { files: 512, limit: 511 })
        );
        let SkillResources::Files(files) = &mut entry.resources else { unreachable!() };
        files[1].size = 1;
        let (bytes, limit) = (16_777_217, SKILL_BYTES_MAX);
        assert_eq!(entry.check(&limits), Err(InvalidSkill::TooLarge { bytes, limit }));
        assert_eq!(entry.check(&limits.bytes_max(u64::MAX)), Ok(()));
    }

    #[test]
    fn sets_of_files_are_compared_without_order() {
        // Rule: [SKILL-103].
        let other = ("skill://a/refunds/x.md", "x");
        let entry = skill(&[MAIN, other]);
        assert!(entry.has_same_files(&skill(&[other, MAIN])));
        for changed in
            [&[MAIN][..], &[MAIN, (other.0, "y")], &[MAIN, other, ("skill://a/refunds/z", "")]]
        {
            assert!(!entry.has_same_files(&skill(changed)));
        }
        let dynamic = Skill { resources: SkillResources::Dynamic, ..entry.clone() };
        assert!(!dynamic.has_same_files(&dynamic) && !entry.has_same_files(&dynamic));
    }
}

#[cfg(test)]
mod digest_tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_digest_is_sha256_in_lower_case_hexadecimal() {
        // Rule: [SKILL-044].
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(SkillDigest::of(b"").to_string(), empty);
        assert_eq!(empty.parse(), Ok(SkillDigest::of(b"")));
        let hex = &empty["sha256:".len()..];
        for other in [
            hex.to_string(),
            format!("sha512:{hex}"),
            format!("SHA256:{hex}"),
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha256:{}", &hex[1..]),
            format!("sha256:{hex}0"),
            format!("sha256:{}g", &hex[1..]),
        ] {
            assert_eq!(other.parse::<SkillDigest>(), Err(InvalidSkill::Digest), "{other}");
        }
    }
}

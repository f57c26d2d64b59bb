//! URIs of skills and of their files.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::catalog::check_uri;
use percent_encoding::percent_decode_str;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

use super::entry::InvalidSkill;

/// The file that makes a directory a skill.
pub(super) const SKILL_FILE: &str = "SKILL.md";

/// The URI of a skill: that of its `SKILL.md`, `<scheme>://<skill-path>/SKILL.md`.
///
/// The scheme and the first segment have no meaning: nothing here resolves them, and neither may a
/// host. A URI identifies a skill only together with the server that serves it: see
/// [`SkillId`](super::SkillId).
///
/// ```
/// use mcp_sansio_extensions::skills::SkillUri;
///
/// let uri = SkillUri::parse("skill://acme/billing/refunds/SKILL.md")?;
/// assert_eq!(uri.name(), "refunds");
/// assert_eq!(uri.root(), "skill://acme/billing/refunds");
/// assert_eq!(
///     uri.resolve("examples/email.md").as_deref(),
///     Some("skill://acme/billing/refunds/examples/email.md"),
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// MCP 2026-07-28 skills:skills#resource-mapping [SKILL-016]: the authority is one more segment of a
// path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SkillUri(String);

impl SkillUri {
    /// Parses the URI of a `SKILL.md`.
    ///
    /// # Errors
    ///
    /// [`InvalidSkill::Uri`]: the text is not one.
    // MCP 2026-07-28 skills:skills#resource-mapping [SKILL-011] [SKILL-018]: any scheme.
    pub fn parse(uri: impl Into<String>) -> Result<Self, InvalidSkill> {
        let form = || {
            let form = "the URI of a skill has the form `<scheme>://<skill-path>/SKILL.md`";
            InvalidSkill::Uri(form.into())
        };
        let uri = uri.into();
        check_uri(&uri).map_err(|error| {
            InvalidSkill::Uri(format!("the URI of a skill is absolute: {error}").into())
        })?;
        let (_scheme, path) = uri.split_once("://").ok_or_else(form)?;
        let (root, file) = path.rsplit_once('/').ok_or_else(form)?;
        if file != SKILL_FILE || path.contains(['?', '#']) {
            return Err(form());
        }
        if !is_plain_path(root) {
            let segment = "the path of a skill has no empty segments and neither `.` nor `..`";
            return Err(InvalidSkill::Uri(segment.into()));
        }
        Ok(Self(uri))
    }

    /// Returns the URI.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the URI of the skill's directory, without a slash at its end.
    #[must_use]
    pub fn root(&self) -> &str {
        &self.0[..self.0.len() - SKILL_FILE.len() - 1]
    }

    /// Returns the path of the skill, which tells skills of one name apart: `acme/billing/refunds`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.root().split_once("://").map_or("", |(_scheme, path)| path)
    }

    /// Returns the name of the skill: the last segment of its path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path().rsplit('/').next().unwrap_or_default()
    }

    /// Returns whether `uri` is a file or a directory below the skill's directory.
    #[must_use]
    pub fn contains(&self, uri: &str) -> bool {
        let path = uri.strip_prefix(self.root()).and_then(|rest| rest.strip_prefix('/'));
        path.is_some_and(is_plain_path) && check_uri(uri).is_ok()
    }

    /// Resolves a reference in the skill, such as `references/FORMS.md`, against its directory. A
    /// fragment (`#part`) is dropped. `.` is the directory itself.
    ///
    /// Returns `None` if the reference is empty or leads out of the skill: it is an absolute path,
    /// has too many `..`, or is the URI of another resource. To follow it is a decision of the host.
    // MCP 2026-07-28 skills:skills#relative-references [SKILL-071]
    pub fn resolve(&self, reference: &str) -> Option<String> {
        let path = reference.split('#').next().unwrap_or_default();
        if path.is_empty() {
            return None;
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        if check_uri(path).is_ok() {
            // MCP 2026-07-28 skills:skills#security-considerations [SKILL-098]: the caller reads the
            // result from the skill's own server.
            let inside = path == self.root() || self.contains(path);
            return inside.then(|| path.to_string());
        }
        let mut segments = Vec::new();
        for segment in path.split('/') {
            match segment {
                "." => {}
                ".." => drop(segments.pop()?),
                // An absolute path, or `a//b`.
                "" => return None,
                name => segments.push(encode_segment(name, false, true)),
            }
        }
        if segments.is_empty() {
            return Some(self.root().to_string());
        }
        let uri = format!("{}/{}", self.root(), segments.join("/"));
        self.contains(&uri).then_some(uri)
    }
}

/// Whether a path has neither empty segments nor `.` and `..`, percent-encoded or not.
pub(super) fn is_plain_path(path: &str) -> bool {
    path.split('/').all(|segment| !segment.is_empty() && !is_dots(segment))
}

fn is_dots(segment: &str) -> bool {
    let mut rest = segment;
    let mut dots = 0;
    while !rest.is_empty() {
        let dot = rest.strip_prefix('.').or_else(|| {
            let (escape, rest) = rest.split_at_checked(3)?;
            escape.eq_ignore_ascii_case("%2e").then_some(rest)
        });
        let Some(after) = dot else { return false };
        rest = after;
        dots += 1;
    }
    dots == 1 || dots == 2
}

/// Percent-encodes the name of a file or a directory as a segment of a URI's path. As the `first`
/// segment it is encoded as a `reg-name`. Escapes that are there already are kept if `escaped`.
// MCP 2026-07-28 skills:skills#resource-mapping [SKILL-015]
pub(super) fn encode_segment(name: &str, first: bool, escaped: bool) -> String {
    use fmt::Write as _;

    let mut segment = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        let plain = c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=".contains(c);
        let digits = || name.as_bytes().get(at + 1..at + 3);
        let kept = escaped
            && c == '%'
            && digits().is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        if plain || kept || (!first && matches!(c, ':' | '@')) {
            segment.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a string does not fail.
                let _written = write!(segment, "%{byte:02X}");
            }
        }
    }
    segment
}

/// Returns the path of names that [`encode_segment`] wrote; `None` for a path with other segments.
pub(super) fn decode_path(path: &str) -> Option<String> {
    let mut names = String::with_capacity(path.len());
    for segment in path.split('/') {
        let name = percent_decode_str(segment).decode_utf8().ok()?;
        let is_name = is_plain_path(&name) && !name.contains('/');
        if !is_name || encode_segment(&name, false, false) != segment {
            return None;
        }
        if !names.is_empty() {
            names.push('/');
        }
        names.push_str(&name);
    }
    Some(names)
}

impl AsRef<str> for SkillUri {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SkillUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SkillUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for SkillUri {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SkillUri {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

// ------------------------------------------------------------------ names of skills

/// The longest name, in characters.
// Agent Skills specification, `name` field: "Must be 1-64 characters".
const LENGTH_MAX: usize = 64;

/// Checks the name of a skill: 1 to 64 lower-case letters, digits and single inner hyphens.
///
/// Only the letters a to z are accepted: hosts differ in whether they accept others.
///
/// ```
/// use mcp_sansio_extensions::skills::check_name;
///
/// assert_eq!(check_name("pdf-processing"), Ok(()));
/// assert!(check_name("PDF").is_err());
/// ```
///
/// # Errors
///
/// [`InvalidSkill::Field`]: the name is invalid.
// MCP 2026-07-28 skills:skills#resource-mapping [SKILL-014]
pub fn check_name(name: &str) -> Result<(), InvalidSkill> {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    if name.len() <= LENGTH_MAX && name.split('-').all(is_word) {
        return Ok(());
    }
    let expected = "a text of 1 to 64 lower-case letters, digits and single hyphens between them";
    Err(InvalidSkill::Field { field: "name", expected })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_uri_ends_with_its_name_and_the_file() {
        // Rule: [SKILL-011] [SKILL-018] [SKILL-016].
        for (uri, name, root) in [
            ("skill://git-workflow/SKILL.md", "git-workflow", "skill://git-workflow"),
            ("skill://acme/billing/refunds/SKILL.md", "refunds", "skill://acme/billing/refunds"),
            ("github://o/r/skills/x/SKILL.md", "x", "github://o/r/skills/x"),
        ] {
            let parsed = SkillUri::parse(uri).unwrap();
            assert_eq!((parsed.name(), parsed.root(), parsed.as_str()), (name, root, uri));
        }
        assert_eq!(SkillUri::parse("skill://a/b/SKILL.md").unwrap().path(), "a/b");
        for other in [
            "SKILL.md",
            "skill://SKILL.md",
            "skill:a/SKILL.md",
            "skill://a/skill.md",
            "skill://a/SKILL.md/",
            "skill://a/SKILL.md?x",
            "skill://a/SKILL.md#x",
            "skill://a//SKILL.md",
            "skill://a/../SKILL.md",
            "skill://a/%2E./SKILL.md",
            "skill://a b/SKILL.md",
        ] {
            assert!(SkillUri::parse(other).is_err(), "{other}");
        }
    }

    #[test]
    fn references_resolve_against_the_directory_of_the_skill() {
        // Rule: [SKILL-071].
        let uri = SkillUri::parse("skill://acme/refunds/SKILL.md").unwrap();
        for (reference, file) in [
            ("references/GUIDE.md", "references/GUIDE.md"),
            ("./templates/", "templates"),
            ("a/../b.md#part", "b.md"),
            ("my file.md", "my%20file.md"),
            ("my%20file.md", "my%20file.md"),
            ("100%.md", "100%25.md"),
            ("skill://acme/refunds/x.md", "x.md"),
        ] {
            let resolved = uri.resolve(reference);
            assert_eq!(resolved.unwrap(), format!("skill://acme/refunds/{file}"));
        }
        for directory in [".", "a/..", "skill://acme/refunds"] {
            assert_eq!(uri.resolve(directory).unwrap(), "skill://acme/refunds", "{directory}");
        }
        assert_eq!(uri.resolve("#part"), None);
    }

    #[test]
    fn references_do_not_leave_the_skill() {
        // Rule: [SKILL-098].
        let uri = SkillUri::parse("skill://acme/refunds/SKILL.md").unwrap();
        for reference in [
            "../other/SKILL.md",
            "a/../../x",
            "/etc/passwd",
            "%2e%2e/x",
            "a//b",
            "file:///etc/passwd",
            "skill://acme/refunds-2/SKILL.md",
            "skill://acme/refunds/../x",
            "https://example.com/",
        ] {
            assert_eq!(uri.resolve(reference), None, "{reference}");
        }
    }

    #[test]
    fn file_names_become_segments() {
        // Rule: [SKILL-015].
        assert_eq!(encode_segment("a b:é%", false, false), "a%20b:%C3%A9%25");
        assert_eq!(encode_segment("user@host:80", true, false), "user%40host%3A80");
        assert_eq!(decode_path("data/a%20b").as_deref(), Some("data/a b"));
        for other in ["", "a//b", "a/..", "a%2Fb", "%2E%2E", "a%2", "%FF", "a b", "%61"] {
            assert_eq!(decode_path(other), None, "{other}");
        }
    }
}

#[cfg(test)]
mod name_tests {
    use super::*;

    #[test]
    fn names_are_lower_case_words_joined_by_hyphens() {
        // Rule: [SKILL-014].
        for name in ["a", "7", "git-workflow", "a1-b2-c3", &"x".repeat(64)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in
            ["", &"x".repeat(65), "Git", "git_workflow", "café", "-git", "git-", "git--flow", "-"]
        {
            let refused = check_name(name);
            assert!(matches!(refused, Err(InvalidSkill::Field { field: "name", .. })), "{name}");
        }
    }
}

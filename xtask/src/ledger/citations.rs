//! What the sources cite.
//!
//! Code cites with `MCP <revision> <page>#<section> [ID]` in a line comment; several ids may
//! follow, and the text may go on in the next lines. A test needs the ids only.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::rules::REVISIONS;
use crate::files;
use crate::source::{Comment, Source};

/// An id in a comment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Citation {
    /// `path:line`.
    pub(super) place: String,
    pub(super) id: String,
    /// The revision that the comment names before the id.
    pub(super) revision: Option<String>,
    /// Whether test code cites, not the code itself.
    pub(super) test: bool,
}

/// What was found in the sources.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) citations: Vec<Citation>,
    /// Comments that are not of the one form.
    pub(super) errors: Vec<String>,
}

/// Reads the sources of the workspace. This crate is not among them, nor are benchmarks and fuzz
/// targets.
pub(super) fn find(root: &Path) -> io::Result<Found> {
    let mut sources = Vec::new();
    for path in files::with_extension(root, "rs")? {
        let aside = |part: &OsStr| part == "xtask" || part == "benches" || part == "fuzz";
        if !path.iter().any(aside) {
            let text = std::fs::read_to_string(root.join(&path))?;
            sources.push((path, Source::new(&text)));
        }
    }
    let test_files: Vec<PathBuf> =
        sources.iter().flat_map(|(path, source)| source.test_files(path)).collect();
    let mut found = Found::default();
    for (path, source) in &sources {
        read(path, source, is_test_file(path, &test_files), &mut found);
    }
    Ok(found)
}

fn is_test_file(path: &Path, test_files: &[PathBuf]) -> bool {
    let module = path.with_extension("");
    path.components().any(|it| it.as_os_str() == "tests")
        || test_files.iter().any(|file| module.starts_with(file))
}

fn read(path: &Path, source: &Source, test_file: bool, found: &mut Found) {
    let mut revision = None;
    let mut previous: Option<&Comment> = None;
    for comment in &source.comments {
        // A revision holds for the ids behind it, to the end of the comment.
        let goes_on =
            previous.is_some_and(|it| it.line + 1 == comment.line && it.alone && comment.alone);
        if !goes_on {
            revision = None;
        }
        let test = test_file || source.is_test(comment.at);
        let place = format!("{}:{}", path.display(), comment.line);
        for mark in marks(&comment.text) {
            match mark {
                Mark::Revision(name) => {
                    revision = Some(name);
                    if !REVISIONS.contains(&name) {
                        found.errors.push(format!("{place}: {name} is not a revision"));
                    }
                }
                Mark::Id(id) => {
                    if revision.is_none() && !test {
                        found.errors.push(format!(
                            "{place}: [{id}] without `MCP <revision> <page>#<section>` before it"
                        ));
                    }
                    found.citations.push(Citation {
                        place: place.clone(),
                        id: id.to_owned(),
                        // One that does not exist is reported already.
                        revision: revision.filter(|it| REVISIONS.contains(it)).map(str::to_owned),
                        test,
                    });
                }
            }
        }
        previous = Some(comment);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Mark<'a> {
    Revision(&'a str),
    Id(&'a str),
}

/// The revisions (`MCP 2025-06-18 `) and ids (`[SESS-004]`) in a line, in order.
fn marks(text: &str) -> impl Iterator<Item = Mark<'_>> {
    text.char_indices().filter_map(move |(at, c)| {
        let rest = &text[at..];
        match c {
            'M' => {
                let (name, page) = rest.strip_prefix("MCP ")?.split_once(' ')?;
                let looks_right = is_date(name) && page.split(' ').next()?.contains('#');
                looks_right.then_some(Mark::Revision(name))
            }
            '[' => {
                let (id, _) = rest[1..].split_once(']')?;
                is_id(id).then_some(Mark::Id(id))
            }
            _ => None,
        }
    })
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

/// Letters, a hyphen, three digits.
fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(area, number)| {
        area.len() >= 2
            && area.bytes().all(|b| b.is_ascii_uppercase())
            && number.len() == 3
            && number.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Found {
        let mut found = Found::default();
        let path = Path::new(path);
        read(path, &Source::new(text), is_test_file(path, &[]), &mut found);
        found
    }

    fn ids(found: &Found) -> Vec<(&str, Option<&str>, bool)> {
        let citations = found.citations.iter();
        citations.map(|it| (it.id.as_str(), it.revision.as_deref(), it.test)).collect()
    }

    #[test]
    fn code_cites_with_revision_and_page() {
        let found = found(
            "core/src/a.rs",
            "/// MCP 2025-06-18 basic/a#b [AAA-001] [AAA-002]: so it is,\n\
             /// and [AAA-003] too. MCP 2026-07-28 c#d [AAA-004].\n\
             fn f() { g(\"// MCP 2025-06-18 a#b [AAA-005]\") } // MCP 2024-11-05 a#b [AAA-006]\n",
        );
        assert_eq!(found.errors, [""; 0]);
        assert_eq!(
            ids(&found),
            [
                ("AAA-001", Some("2025-06-18"), false),
                ("AAA-002", Some("2025-06-18"), false),
                ("AAA-003", Some("2025-06-18"), false),
                ("AAA-004", Some("2026-07-28"), false),
                ("AAA-006", Some("2024-11-05"), false),
            ]
        );
    }

    #[test]
    fn code_without_a_revision_or_with_a_wrong_one_is_an_error() {
        let found = found(
            "core/src/a.rs",
            "// MCP 2025-06-18 a#b [AAA-001]\nx();\n// [AAA-002]\ny();\n\
             // MCP 2025-06-19 a#b [AAA-003]\nz();\n// MCP 2025-06-18 [AAA-004]\n",
        );
        assert_eq!(
            found.errors,
            [
                "core/src/a.rs:3: [AAA-002] without `MCP <revision> <page>#<section>` before it",
                "core/src/a.rs:5: 2025-06-19 is not a revision",
                "core/src/a.rs:7: [AAA-004] without `MCP <revision> <page>#<section>` before it",
            ]
        );
    }

    #[test]
    fn tests_cite_with_the_id_alone() {
        let text = "#[cfg(test)]\nmod tests {\n    // Rule: [AAA-001], [AAA-002].\n}\n";
        let inside = found("core/src/a.rs", text);
        assert_eq!(inside.errors, [""; 0]);
        assert_eq!(ids(&inside), [("AAA-001", None, true), ("AAA-002", None, true)]);
        assert_eq!(ids(&found("core/tests/a.rs", "// Rule: [AAA-001]."))[0].0, "AAA-001");
    }

    #[test]
    fn a_module_for_tests_may_have_its_own_file() {
        let files = [PathBuf::from("core/src/peer/checks")];
        assert!(is_test_file(Path::new("core/src/peer/checks.rs"), &files));
        assert!(is_test_file(Path::new("core/src/peer/checks/a.rs"), &files));
        assert!(!is_test_file(Path::new("core/src/peer/checks_more.rs"), &files));
        assert!(is_test_file(Path::new("adapters/std/tests/a.rs"), &[]));
    }

    #[test]
    fn other_brackets_are_no_ids() {
        let text = "// [`Foo`] [a-001] [A-001] [AAA-01] [x](y) [AAA-001";
        assert_eq!(ids(&found("a.rs", text)), []);
    }
}

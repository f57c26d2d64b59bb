//! Citations in the sources.
//!
//! Code cites with `MCP <revision> <page>#<section> [ID]` in a line comment; several ids may
//! follow, and the text may continue on the next lines. A test cites with `Rule: [ID]`, in the
//! comment above a function with `#[test]`, in its body, or in a table (`const`, `static`) that a
//! test in the same file names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::rules::REVISIONS;
use crate::files;
use crate::source::{Comment, Source};

/// The most rules that one test, or one comment in a table of cases, may cite.
///
/// A failing test should identify the broken rule, which it cannot if it covers dozens.
const RULES_MAX: usize = 6;

/// An id in a comment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Citation {
    /// `path:line`.
    pub(super) place: String,
    pub(super) id: String,
    /// The revision and page that the comment names before the id, without the section.
    pub(super) page: Option<(String, String)>,
    pub(super) kind: Kind,
}

/// The effect of a citation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Code implements the rule.
    Code,
    /// A test covers the rule.
    Test,
    /// A comment in test code mentions the rule.
    Mention,
}

/// The citations and errors found in the sources.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) citations: Vec<Citation>,
    /// Comments that do not have the required form.
    pub(super) errors: Vec<String>,
}

/// Reads the sources of the workspace, except this crate, benchmarks and fuzz targets; the tests of
/// the fuzz targets are included.
pub(super) fn find(root: &Path) -> io::Result<Found> {
    let mut sources = Vec::new();
    for path in files::with_extension(root, "rs")? {
        let aside = |part: &OsStr| part == "xtask" || part == "benches" || part == "fuzz";
        if !path.iter().any(aside) || path.starts_with("fuzz/bodies/tests") {
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
    let mut held = BTreeMap::<Place, BTreeSet<&str>>::new();
    let mut named = None;
    let mut rule = None;
    let mut previous: Option<&Comment> = None;
    for comment in &source.comments {
        // A page or `Rule:` applies to the ids after it, to the end of the comment.
        let goes_on =
            previous.is_some_and(|it| it.line + 1 == comment.line && it.alone && comment.alone);
        if !goes_on {
            (named, rule) = (None, None);
        }
        let test = test_file || source.is_test(comment.at);
        let place = format!("{}:{}", path.display(), comment.line);
        for mark in marks(&comment.text) {
            match mark {
                Mark::Page(revision, page) => {
                    named = Some((revision, page));
                    if !REVISIONS.contains(&revision) {
                        found.errors.push(format!("{place}: {revision} is not a revision"));
                    }
                }
                Mark::NoPage => named = None,
                Mark::Rule => {
                    rule = rule.or(Some(comment));
                    if !test || enclosing(source, comment).is_none() {
                        found.errors.push(format!(
                            "{place}: `Rule:` outside of a test: move it to the `#[test]` that \
                             fails when the rule is broken (onto it or into its body), or into a \
                             `const` or `static` table that a test of this file names"
                        ));
                    }
                }
                Mark::Id(id) => {
                    let kind = match rule {
                        Some(rule) if test => {
                            if let Some(holder) = enclosing(source, rule) {
                                held.entry(holder).or_default().insert(id);
                            }
                            Kind::Test
                        }
                        _ if test => Kind::Mention,
                        _ => Kind::Code,
                    };
                    if named.is_none() && kind == Kind::Code {
                        found.errors.push(format!(
                            "{place}: [{id}] without `MCP <revision> <page>#<section>` on one line \
                             before it"
                        ));
                    }
                    found.citations.push(Citation {
                        place: place.clone(),
                        id: id.to_owned(),
                        // A nonexistent revision is already reported.
                        page: named
                            .filter(|(revision, _)| REVISIONS.contains(revision))
                            .map(|(revision, page)| (revision.to_owned(), page.to_owned())),
                        kind,
                    });
                }
            }
        }
        previous = Some(comment);
    }
    for (holder, ids) in held.iter().filter(|(_, ids)| ids.len() > RULES_MAX) {
        found.errors.push(format!(
            "{}:{}: {} cites {} rules, at most {RULES_MAX}: split it, or cite each rule at the \
             test that fails when that rule is broken",
            path.display(),
            holder.line,
            holder.what,
            ids.len(),
        ));
    }
}

/// A test function, or one comment in a table.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    line: usize,
    what: String,
}

/// Returns the test, or the comment in a table, that `comment` belongs to.
fn enclosing(source: &Source, comment: &Comment) -> Option<Place> {
    if let Some(test) = source.tests.iter().find(|it| it.contains(comment.at)) {
        return Some(Place { line: test.line, what: format!("the test `{}`", test.name) });
    }
    let table = source.tables().find(|it| it.contains(comment.at))?;
    let what = format!("a comment in the table `{}`", table.name);
    Some(Place { line: comment.line, what })
}

#[derive(Debug, PartialEq, Eq)]
enum Mark<'a> {
    /// A revision and one of its pages.
    Page(&'a str, &'a str),
    /// The beginning of such a citation, without a page on this line.
    NoPage,
    /// Marks the following ids as covered by a test.
    Rule,
    Id(&'a str),
}

/// Returns the pages (`MCP 2025-06-18 basic/index#requests`), `Rule:` and ids (`[SESS-004]`) in a
/// line, in order.
fn marks(text: &str) -> impl Iterator<Item = Mark<'_>> {
    text.char_indices().filter_map(move |(at, c)| {
        let rest = &text[at..];
        match c {
            'M' => {
                let mut words = rest.split(' ');
                (words.next() == Some("MCP")).then_some(())?;
                let Some(revision) = words.next() else { return Some(Mark::NoPage) };
                is_date(revision).then_some(())?;
                let page = words.next().and_then(|page| page.split_once('#'));
                Some(page.map_or(Mark::NoPage, |(page, _)| Mark::Page(revision, page)))
            }
            'R' => rest.starts_with("Rule:").then_some(Mark::Rule),
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

/// Returns whether the text is letters, a hyphen, and three digits.
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

    fn ids(found: &Found) -> Vec<(&str, Option<&str>, Kind)> {
        let citations = found.citations.iter();
        citations
            .map(|it| (it.id.as_str(), it.page.as_ref().map(|page| page.0.as_str()), it.kind))
            .collect()
    }

    #[test]
    fn code_cites_with_revision_and_page() {
        let found = found(
            "core/machine/src/a.rs",
            "/// MCP 2025-06-18 basic/a#b [AAA-001] [AAA-002]: so it is,\n\
             /// and [AAA-003] too. MCP 2026-07-28 c#d [AAA-004].\n\
             fn f() { g(\"// MCP 2025-06-18 a#b [AAA-005]\") } // MCP 2024-11-05 a#b [AAA-006]\n",
        );
        assert_eq!(found.errors, [""; 0]);
        let pages: Vec<_> = found
            .citations
            .iter()
            .map(|it| {
                let (revision, page) = it.page.as_ref().expect("it names a page");
                (it.id.as_str(), revision.as_str(), page.as_str())
            })
            .collect();
        assert_eq!(
            pages,
            [
                ("AAA-001", "2025-06-18", "basic/a"),
                ("AAA-002", "2025-06-18", "basic/a"),
                ("AAA-003", "2025-06-18", "basic/a"),
                ("AAA-004", "2026-07-28", "c"),
                ("AAA-006", "2024-11-05", "a"),
            ]
        );
        assert!(found.citations.iter().all(|it| it.kind == Kind::Code));
    }

    #[test]
    fn code_without_a_revision_or_with_a_wrong_one_is_an_error() {
        let found = found(
            "core/machine/src/a.rs",
            "// MCP 2025-06-18 a#b [AAA-001]\nx();\n// [AAA-002]\ny();\n\
             // MCP 2025-06-19 a#b [AAA-003]\nz();\n// MCP 2025-06-18 [AAA-004]\n\
             w();\n// MCP 2025-06-18 a#b [AAA-001], MCP 2025-06-18\n// a#c [AAA-005]\n",
        );
        assert_eq!(
            found.errors,
            [
                "core/machine/src/a.rs:3: [AAA-002] without `MCP <revision> <page>#<section>` on one line before it",
                "core/machine/src/a.rs:5: 2025-06-19 is not a revision",
                "core/machine/src/a.rs:7: [AAA-004] without `MCP <revision> <page>#<section>` on one line before it",
                "core/machine/src/a.rs:10: [AAA-005] without `MCP <revision> <page>#<section>` on one line before it",
            ]
        );
    }

    #[test]
    fn tests_cite_with_the_id_alone() {
        let text = "#[cfg(test)]\nmod tests {\n    // Rule: [AAA-001], [AAA-002].\n    #[test]\n    \
                    fn f() {}\n}\n";
        let inside = found("core/machine/src/a.rs", text);
        assert_eq!(inside.errors, [""; 0]);
        assert_eq!(ids(&inside), [("AAA-001", None, Kind::Test), ("AAA-002", None, Kind::Test)]);
        let behind = found(
            "core/machine/tests/a.rs",
            "#[tokio::test]\nasync fn f() { g() } // Rule: [AAA-001].",
        );
        assert_eq!(behind.errors.len(), 1, "behind the body");
        let body = found("core/machine/tests/a.rs", "#[test]\nfn f() {\n // Rule: [AAA-001].\n}\n");
        assert_eq!(body.errors, [""; 0]);
        assert_eq!(ids(&body), [("AAA-001", None, Kind::Test)]);
    }

    #[test]
    fn a_test_that_only_speaks_of_a_rule_does_not_hold_it() {
        let found =
            found("core/machine/tests/a.rs", "#[test]\nfn f() {\n // As [AAA-001] says.\n}\n");
        assert_eq!(ids(&found), [("AAA-001", None, Kind::Mention)]);
        assert_eq!(found.errors, [""; 0]);
    }

    #[test]
    fn a_rule_outside_of_a_test_is_refused() {
        let error = |path, text| match &found(path, text).errors[..] {
            [] => String::new(),
            [error] => error.clone(),
            errors => panic!("{errors:?}"),
        };
        let outside = [
            ("core/machine/tests/a.rs", "//! Rule: [AAA-001].\n\n#[test]\nfn f() {}\n"),
            (
                "core/machine/tests/a.rs",
                "fn helper() {\n // Rule: [AAA-001].\n}\n#[test]\nfn f() {}\n",
            ),
            ("core/machine/tests/a.rs", "// Rule: [AAA-001].\nfn f() {}\n"),
            (
                "core/machine/tests/a.rs",
                "const A: u8 = 1; // Rule: [AAA-001].\n#[test]\nfn f() { B }\n",
            ),
            ("core/machine/src/a.rs", "// MCP 2025-06-18 a#b Rule: [AAA-001].\nfn f() {}\n"),
        ];
        for (path, text) in outside {
            assert!(error(path, text).contains("`Rule:` outside of a test"), "{text}");
        }
        let table = "// Rule: [AAA-001].\nconst A: u8 = 1;\n#[test]\nfn f() { A }\n";
        assert_eq!(error("core/machine/tests/a.rs", table), "");
        assert_eq!(ids(&found("core/machine/tests/a.rs", table)), [("AAA-001", None, Kind::Test)]);
    }

    #[test]
    fn a_test_holds_a_handful_of_rules() {
        let rules = |count| (1..=count).map(|it| format!("[AAA-{it:03}]")).collect::<String>();
        let errors = |text: String| found("core/machine/tests/a.rs", &text).errors;
        let test = |count| format!("// Rule: {}\n#[test]\nfn f() {{}}\n", rules(count));
        assert_eq!(errors(test(RULES_MAX)), [""; 0]);
        assert_eq!(
            errors(test(RULES_MAX + 1)),
            [
                "core/machine/tests/a.rs:1: the test `f` cites 7 rules, at most 6: split it, or cite each rule \
              at the test that fails when that rule is broken"
            ]
        );
        let (few, many) = (rules(4), rules(8).split_off(4 * "[AAA-001]".len()));
        let spread = format!("// Rule: {few}\n#[test]\nfn f() {{\n // Rule: {many}\n}}\n");
        assert_eq!(errors(spread).len(), 1, "citations above a test and in it are added up");
        let table = |first: &str, second: &str| {
            let rows =
                format!("const A: [u8; 2] = [\n1, // Rule: {first}\n2, // Rule: {second}\n];");
            errors(format!("{rows}\n#[test]\nfn f() {{ A }}\n"))
        };
        assert_eq!(table(&few, &many), [""; 0], "each row of a table counts alone");
        assert_eq!(table(&few, &rules(7)).len(), 1);
    }

    #[test]
    fn a_module_for_tests_may_have_its_own_file() {
        let files = [PathBuf::from("core/machine/src/peer/checks")];
        assert!(is_test_file(Path::new("core/machine/src/peer/checks.rs"), &files));
        assert!(is_test_file(Path::new("core/machine/src/peer/checks/a.rs"), &files));
        assert!(!is_test_file(Path::new("core/machine/src/peer/checks_more.rs"), &files));
        assert!(is_test_file(Path::new("adapters/std/tests/a.rs"), &[]));
    }

    #[test]
    fn other_brackets_are_no_ids() {
        let text = "// [`Foo`] [a-001] [A-001] [AAA-01] [x](y) [AAA-001";
        assert_eq!(ids(&found("a.rs", text)), []);
    }
}

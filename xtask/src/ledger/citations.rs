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
mod tests;

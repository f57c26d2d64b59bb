//! The comments, tests, tables and functions of a Rust file.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree, extra};

/// The words with which an item begins, after its attributes.
const ITEMS: &str =
    "async const enum extern fn impl macro_rules mod pub static struct trait type union unsafe use";

/// A line comment, `//`, `///` or `//!`.
#[derive(Debug)]
pub(crate) struct Comment {
    /// Its start, in bytes from the start of the file.
    pub(crate) at: usize,
    /// Its line, from 1.
    pub(crate) line: usize,
    /// The text after the slashes.
    pub(crate) text: String,
    /// Whether only white space precedes it on its line.
    pub(crate) alone: bool,
}

/// A function, `const` or `static`.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) name: String,
    /// The first line of its attributes and the comments directly above, from 1.
    pub(crate) line: usize,
    /// The same, up to its end, in bytes.
    range: Range<usize>,
}

impl Item {
    pub(crate) fn contains(&self, at: usize) -> bool {
        self.range.contains(&at)
    }
}

/// A parsed source file.
#[derive(Debug, Default)]
pub(crate) struct Source {
    text: String,
    is_ascii: bool,
    line_starts: Vec<usize>,
    pub(crate) comments: Vec<Comment>,
    /// The functions with `#[test]`, `#[tokio::test]` and the like, in order.
    pub(crate) tests: Vec<Item>,
    constants: Vec<Item>,
    /// The functions, each with the words before the block around it: `impl Trait for Type`.
    functions: Vec<(Vec<String>, String)>,
    /// The items with `#[cfg(test)]`, in bytes.
    test_only: Vec<Range<usize>>,
    test_modules: Vec<String>,
    /// The tokens, in bytes. A documentation comment is several of the same place.
    tokens: Vec<Range<usize>>,
}

impl Source {
    /// Parses a file. One that the compiler would not read has no items.
    pub(crate) fn new(text: &str) -> Self {
        let line_starts =
            [0].into_iter().chain(text.match_indices('\n').map(|it| it.0 + 1)).collect();
        let (text, is_ascii) = (text.to_owned(), text.is_ascii());
        let mut source = Self { text, is_ascii, line_starts, ..Self::default() };
        if let Ok(tokens) = TokenStream::from_str(&source.text) {
            source.walk(tokens, &[]);
        }
        extra::invalidate_current_thread_spans();
        source.find_comments();
        let Self { text, tests, constants, comments, .. } = &mut source;
        for item in tests.iter_mut().chain(constants) {
            item.line = 1 + text[..item.range.start].matches('\n').count();
            for comment in comments.iter().rev().filter(|it| it.alone) {
                if comment.line + 1 == item.line {
                    (item.line, item.range.start) = (comment.line, comment.at);
                }
            }
        }
        source
    }

    /// Returns whether the byte at `at` belongs to an item with `#[cfg(test)]`.
    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.test_only.iter().any(|range| range.contains(&at))
    }

    /// Returns the tables of tests: each `const` and `static` that a test of this file names.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Item> {
        let is_named = |table: &&Item| {
            let inside = |it: &&Range<usize>| self.tests.iter().any(|test| test.contains(it.start));
            self.tokens.iter().filter(inside).any(|it| self.text[it.clone()] == table.name)
        };
        self.constants.iter().filter(is_named)
    }

    /// Returns whether there is a function `name`, or `Type::name` in an `impl` of the type or of
    /// its trait.
    pub(crate) fn has_function(&self, function: &str) -> bool {
        self.functions.iter().any(|(around, name)| match function.split_once("::") {
            Some((owner, inner)) => name == inner && around.iter().any(|it| it == owner),
            None => name == function && around.is_empty(),
        })
    }

    /// Returns the tokens outside of tests, without comments.
    pub(crate) fn code(&self) -> Vec<&str> {
        let code = self.tokens.iter().filter(|it| !self.is_test(it.start));
        code.map(|it| &self.text[it.clone()]).filter(|it| !it.starts_with("//")).collect()
    }

    /// Returns the files and folders, without the `.rs`, of modules that `path` declares as
    /// `#[cfg(test)] mod name;`.
    pub(crate) fn test_files<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        let folder = match path.file_name().and_then(|name| name.to_str()) {
            Some("lib.rs" | "main.rs" | "mod.rs") => path.with_file_name(""),
            _ => path.with_extension(""),
        };
        self.test_modules.iter().map(move |module| folder.join(module))
    }

    /// Returns the bytes of a span. `Span::byte_range` takes twice the time without optimization.
    fn range(&self, span: Span) -> Range<usize> {
        let [start, end] = [span.start(), span.end()].map(|at| {
            let line = self.line_starts[at.line - 1];
            let mut ends = self.text[line..].char_indices().map(|it| it.0);
            if self.is_ascii {
                line + at.column
            } else {
                ends.nth(at.column).map_or(self.text.len(), |column| line + column)
            }
        });
        start..end
    }

    /// Reads tokens statement by statement: up to a semicolon or a block. `around` are the words
    /// before the block that contains them.
    fn walk(&mut self, tokens: TokenStream, around: &[String]) {
        let (mut attributes, mut words) = (Vec::new(), Vec::<String>::new());
        let mut start = None;
        let mut mark_before = None;
        for token in tokens {
            let at = self.range(token.span());
            let start_here = *start.get_or_insert(at.start);
            let mut ends = false;
            match token {
                TokenTree::Group(group) => {
                    self.tokens.push(self.range(group.span_open()));
                    let is_block = group.delimiter() == Delimiter::Brace;
                    if let Some(mark) =
                        mark_before.filter(|_| group.delimiter() == Delimiter::Bracket)
                    {
                        self.walk(group.stream(), around);
                        match mark {
                            '!' => start = None,
                            _ => attributes.push(self.text[at.clone()].replace([' ', '\n'], "")),
                        }
                    } else {
                        self.walk(group.stream(), if is_block { &words } else { around });
                        ends = is_block;
                    }
                    self.tokens.push(self.range(group.span_close()));
                    mark_before = None;
                }
                TokenTree::Punct(mark) => {
                    self.tokens.push(at.clone());
                    let is_attribute =
                        matches!((mark.as_char(), mark_before), ('#', _) | ('!', Some('#')));
                    mark_before = is_attribute.then_some(mark.as_char());
                    ends = mark.as_char() == ';';
                }
                TokenTree::Ident(word) => {
                    self.tokens.push(at.clone());
                    words.push(word.to_string());
                }
                TokenTree::Literal(_) => self.tokens.push(at.clone()),
            }
            if ends {
                self.item(&attributes, &words, start_here..at.end, around);
                (attributes, words, start) = (Vec::new(), Vec::new(), None);
            }
        }
    }

    fn item(
        &mut self,
        attributes: &[String],
        words: &[String],
        at: Range<usize>,
        around: &[String],
    ) {
        if !words.first().is_some_and(|first| ITEMS.split(' ').any(|it| it == first)) {
            return;
        }
        let after = |keyword: &str| {
            let place = words.iter().position(|it| it == keyword)?;
            words.get(place + 1).cloned()
        };
        let item = |name| Item { name, line: 0, range: at.clone() };
        let visible = words.iter().find(|it| *it != "pub").map(String::as_str);
        if let Some(name) = after("fn") {
            self.functions.push((around.to_vec(), name.clone()));
            if attributes.iter().any(|it| is_test_attribute(it)) {
                self.tests.push(item(name));
            }
        } else if let Some(keyword @ ("const" | "static")) = visible {
            self.constants.extend(after(keyword).map(item));
        }
        let is_for_tests = |it: &String| it == "[cfg(test)]" || it.starts_with("[cfg(all(test,");
        if attributes.iter().any(is_for_tests) {
            if visible == Some("mod") && self.text[..at.end].ends_with(';') {
                self.test_modules.extend(after("mod"));
            }
            self.test_only.push(at);
        }
    }

    /// Finds the comments, which are what is neither a token nor white space.
    fn find_comments(&mut self) {
        let mut end = 0;
        let mut line = 1;
        let last = self.text.len()..self.text.len();
        for token in self.tokens.iter().chain([&last]).cloned() {
            let is_comment = self.text[token.clone()].starts_with("//");
            if token.start < end {
                continue;
            }
            // A documentation comment is a token.
            let gap = end..if is_comment { token.end } else { token.start };
            let mut at = gap.start;
            for (number, part) in self.text[gap.clone()].split('\n').enumerate() {
                let from = at + part.len() - part.trim_start().len();
                if let Some(text) = part.trim_start().strip_prefix("//") {
                    let before = self.text[..from].rsplit('\n').next().unwrap_or_default();
                    self.comments.push(Comment {
                        at: from,
                        line: line + number,
                        text: text.strip_prefix(['/', '!']).unwrap_or(text).trim().to_owned(),
                        alone: before.trim().is_empty(),
                    });
                }
                at += part.len() + 1;
            }
            line += self.text[end..token.end].matches('\n').count();
            end = token.end;
        }
        if self.text.starts_with("#![cfg(test)]") {
            self.test_only.push(0..end);
        }
    }
}

/// Returns whether an attribute marks a test function: `test`, or a path that ends in it.
fn is_test_attribute(text: &str) -> bool {
    let path = text.split(['(', ']']).next().unwrap_or(text);
    path.trim_start_matches('[').rsplit("::").next() == Some("test")
}

#[cfg(test)]
mod tests;

//! A minimal Rust lexer that distinguishes code, comments and test code.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// A line comment, `//`, `///` or `//!`.
#[derive(Debug)]
pub(crate) struct Comment {
    /// Its start, in characters from the start of the file.
    pub(crate) at: usize,
    /// Its line, from 1.
    pub(crate) line: usize,
    /// The text after the slashes.
    pub(crate) text: String,
    /// Whether only white space precedes it on its line.
    pub(crate) alone: bool,
}

/// The contents of a string literal, escapes included.
#[derive(Debug)]
pub(crate) struct Literal {
    /// Its start, in characters from the start of the file.
    pub(crate) at: usize,
    /// The line of its first character, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// An attribute, `#[..]` or `#![..]`.
#[derive(Debug)]
pub(crate) struct Attribute {
    /// Its line, from 1.
    pub(crate) line: usize,
    /// The text between the brackets, without white space and without the contents of strings.
    pub(crate) text: String,
    inner: bool,
    range: Range<usize>,
}

/// A function with `#[test]`, or a `const` or `static`, with the comments and attributes above it.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) name: String,
    /// Its first line, from 1.
    pub(crate) line: usize,
    range: Range<usize>,
}

impl Item {
    pub(crate) fn contains(&self, at: usize) -> bool {
        self.range.contains(&at)
    }
}

/// A parsed source file.
#[derive(Debug)]
pub(crate) struct Source {
    /// The text with the contents of comments, strings and characters replaced with blanks.
    code: Vec<char>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) literals: Vec<Literal>,
    pub(crate) attributes: Vec<Attribute>,
    tests: Vec<Range<usize>>,
    test_modules: Vec<String>,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let (code, comments, literals) = blank(text);
        let attributes = attributes(&code);
        let mut source = Self {
            code,
            comments,
            literals,
            attributes,
            tests: Vec::new(),
            test_modules: Vec::new(),
        };
        source.find_tests();
        source
    }

    /// Returns the text with the contents of comments, strings and characters replaced with blanks.
    pub(crate) fn code(&self) -> &[char] {
        &self.code
    }

    /// Returns whether the character at `at` belongs to an item with `#[cfg(test)]`.
    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// Returns the lines, from 1, whose code contains `needle`.
    pub(crate) fn lines_with(&self, needle: &str) -> Vec<usize> {
        let code: String = self.code.iter().collect();
        (1..).zip(code.lines()).filter(|(_, line)| line.contains(needle)).map(|it| it.0).collect()
    }

    /// Returns the functions with `#[test]`, `#[tokio::test]` and the like, in order.
    pub(crate) fn test_functions(&self) -> Vec<Item> {
        let tests = self.attributes.iter().filter(|it| !it.inner && is_test_attribute(&it.text));
        let item = |attribute: &Attribute| {
            let start = attribute.range.start;
            self.item(start, attribute.line, item_end(&self.code, start)?, "fn")
        };
        tests.filter_map(item).collect()
    }

    /// Returns the tables used by tests of this file: each `const` and `static` named in one of
    /// `functions`.
    pub(crate) fn tables(&self, functions: &[Item]) -> Vec<Item> {
        let mut found = Vec::new();
        for word in ["const", "static"] {
            let all = words(&self.code, 0..self.code.len());
            for at in all.filter(|it| self.is_word_at(it, word) && self.names_constant(it)) {
                let line = 1 + self.code[..at.start].iter().filter(|c| **c == '\n').count();
                let Some(end) = item_end(&self.code, at.start) else { continue };
                found.extend(self.item(at.start, line, end, word));
            }
        }
        found.retain(|table| {
            let mut inside = functions.iter().flat_map(|it| words(&self.code, it.range.clone()));
            inside.any(|it| self.is_word_at(&it, &table.name))
        });
        found
    }

    /// Returns the item from `start` to `end`, whose name follows the word `keyword`.
    fn item(&self, start: usize, line: usize, end: usize, keyword: &str) -> Option<Item> {
        let mut inside = words(&self.code, start..end);
        inside.find(|it| self.is_word_at(it, keyword))?;
        let name = inside.next().map(|it| self.code[it].iter().collect())?;
        let (start, line) = self.with_comments(start, line);
        Some(Item { name, line, range: start..end })
    }

    /// Returns the start of the comments and attributes on the lines directly above.
    fn with_comments(&self, mut start: usize, mut line: usize) -> (usize, usize) {
        loop {
            let comment = self.comments.iter().find(|it| it.alone && it.line + 1 == line);
            let attribute = self.attributes.iter().find(|it| {
                let lines = self.code[it.range.clone()].iter().filter(|c| **c == '\n').count();
                it.line < line && it.line + lines + 1 == line
            });
            (start, line) = match (comment, attribute) {
                (Some(comment), _) => (comment.at, comment.line),
                (None, Some(attribute)) => (attribute.range.start, attribute.line),
                (None, None) => return (start, line),
            };
        }
    }

    /// Returns whether a `const` or `static` has a name and a type, so that it is not a const
    /// parameter.
    fn names_constant(&self, keyword: &Range<usize>) -> bool {
        let blank = |c: &&char| !c.is_whitespace();
        let before = self.code[..keyword.start].iter().rfind(blank);
        let Some(name) = words(&self.code, keyword.end..self.code.len()).next() else {
            return false;
        };
        let after = self.code[name.end..].iter().find(blank);
        !matches!(before, Some('<' | ',' | '\'')) && after == Some(&':')
    }

    fn is_word_at(&self, range: &Range<usize>, word: &str) -> bool {
        self.code[range.clone()].iter().copied().eq(word.chars())
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

    fn find_tests(&mut self) {
        for attribute in &self.attributes {
            if !(attribute.text == "cfg(test)" || attribute.text.starts_with("cfg(all(test,")) {
                continue;
            }
            if attribute.inner {
                self.tests.push(0..self.code.len());
                continue;
            }
            let Some(end) = item_end(&self.code, attribute.range.end) else { continue };
            let item: String = self.code[attribute.range.end..end].iter().collect();
            if let Some(name) = item.trim().strip_suffix(';').and_then(module_name) {
                self.test_modules.push(name.to_owned());
            }
            self.tests.push(attribute.range.start..end);
        }
    }
}

/// Returns whether an attribute marks a test function: `test`, or a path that ends in it.
fn is_test_attribute(text: &str) -> bool {
    let path = text.split('(').next().unwrap_or(text);
    path.rsplit("::").next() == Some("test")
}

/// Returns the ranges of the words in a part of the code: names, keywords and numbers.
fn words(code: &[char], range: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let start = at + code[at..range.end].iter().position(|c| is_word(*c))?;
        let length = code[start..range.end].iter().position(|c| !is_word(*c));
        at = length.map_or(range.end, |length| start + length);
        Some(start..at)
    })
}

/// Returns the name in `mod name`, which other attributes and a visibility may precede.
fn module_name(item: &str) -> Option<&str> {
    let mut words = item.split_whitespace().rev();
    let name = words.next()?;
    (words.next()? == "mod").then_some(name)
}

/// Returns the end of the item whose attributes end at `from`; `None` if no item follows.
fn item_end(code: &[char], from: usize) -> Option<usize> {
    const ITEMS: [&str; 16] = [
        "async",
        "const",
        "enum",
        "extern",
        "fn",
        "impl",
        "macro_rules",
        "mod",
        "pub",
        "static",
        "struct",
        "trait",
        "type",
        "union",
        "unsafe",
        "use",
    ];
    let mut at = from;
    // Further attributes, then the keyword of the item.
    loop {
        at += code.get(at..)?.iter().position(|c| !c.is_whitespace())?;
        if code[at] != '#' {
            break;
        }
        let open = at + code[at..].iter().position(|c| *c == '[')?;
        at = closing(code, open)? + 1;
    }
    let word: String = code[at..].iter().take_while(|c| is_word(**c)).collect();
    if !ITEMS.contains(&word.as_str()) {
        return None;
    }
    while let Some(c) = code.get(at) {
        match c {
            ';' => return Some(at + 1),
            '{' => return Some(closing(code, at)? + 1),
            '(' | '[' => at = closing(code, at)? + 1,
            _ => at += 1,
        }
    }
    None
}

/// Returns the position of the bracket that closes the one at `open`.
fn closing(code: &[char], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in code.iter().enumerate().skip(open) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn attributes(code: &[char]) -> Vec<Attribute> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut at = 0;
    while at < code.len() {
        if code[at] == '\n' {
            line += 1;
        }
        let inner = code[at] == '#' && code.get(at + 1) == Some(&'!');
        let open = at + 1 + usize::from(inner);
        if code[at] == '#'
            && code.get(open) == Some(&'[')
            && let Some(close) = closing(code, open)
        {
            let text = code[open + 1..close].iter().filter(|c| !c.is_whitespace()).collect();
            found.push(Attribute { line, text, inner, range: at..close + 1 });
            line += code[at..=close].iter().filter(|c| **c == '\n').count();
            at = close;
        }
        at += 1;
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Replaces comments and literals with blanks, preserving lines and lengths, and collects line
/// comments and string literals.
fn blank(text: &str) -> (Vec<char>, Vec<Comment>, Vec<Literal>) {
    let mut code: Vec<char> = text.chars().collect();
    let mut comments = Vec::new();
    let mut literals = Vec::new();
    let mut at = 0;
    let mut line = 1;
    let mut line_start = 0;
    while at < code.len() {
        let rest = &code[at..];
        let end = match rest {
            ['/', '/', ..] => {
                let end = at + rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
                let text: String = code[at + 2..end].iter().collect();
                let text = text.strip_prefix(['/', '!']).unwrap_or(&text).trim().to_owned();
                let alone = code[line_start..at].iter().all(|c| c.is_whitespace());
                comments.push(Comment { at, line, text, alone });
                end
            }
            ['/', '*', ..] => at + block_comment(rest),
            ['"', ..] => at + string(rest),
            ['r', ..] if starts_raw(&code, at) => at + raw_string(rest),
            ['\'', ..] => at + character(rest),
            _ => at,
        };
        if matches!(rest, ['"' | 'r', ..]) && end > at {
            let text: String = code[at..end].iter().collect();
            let text = text.trim_start_matches('r').trim_matches('#').trim_matches('"').to_owned();
            literals.push(Literal { at, line, text });
        }
        for c in &mut code[at..end] {
            if *c == '\n' {
                line += 1;
            } else {
                *c = ' ';
            }
        }
        if end == at {
            if code[at] == '\n' {
                line += 1;
                line_start = at + 1;
            }
            at += 1;
        } else {
            at = end;
        }
    }
    (code, comments, literals)
}

fn block_comment(rest: &[char]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

fn string(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Returns whether a raw string starts with the `r` at `at`, as opposed to a name that contains an
/// `r`.
fn starts_raw(code: &[char], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|at| code[at]);
    let starts_word = match before(1) {
        Some('b' | 'c') => !before(2).is_some_and(is_word),
        Some(c) => !is_word(c),
        None => true,
    };
    starts_word && code[at + 1..].iter().find(|c| **c != '#') == Some(&'"')
}

fn raw_string(rest: &[char]) -> usize {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    let mut at = hashes + 2;
    while at < rest.len() {
        if rest[at] == '"' && rest[at + 1..].iter().take_while(|c| **c == '#').count() >= hashes {
            return at + 1 + hashes;
        }
        at += 1;
    }
    rest.len()
}

/// Returns the length of a character literal; 0 for a lifetime.
fn character(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', _, tail @ ..] => {
            tail.iter().position(|c| *c == '\'').map_or(rest.len(), |end| end + 4)
        }
        ['\'', _, '\'', ..] => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        blank(text).0.iter().collect()
    }

    #[test]
    fn strings_characters_and_comments_are_no_code() {
        let blank = |count| " ".repeat(count);
        assert_eq!(code("a \"{\\\"//\" b"), format!("a{}b", blank(9)));
        assert_eq!(code("r#\"\"{\"# br\"\\\" x"), format!("{}b{}x", blank(8), blank(5)));
        assert_eq!(code("'{' '\\'' '\\u{7f}' 'a: x"), format!("{}'a: x", blank(18)));
        assert_eq!(code("a /* { /* } */ { */ b"), format!("a{}b", blank(19)));
        assert_eq!(code("var r#mod"), "var r#mod");
    }

    #[test]
    fn comments_know_their_lines() {
        let (_, comments, _) = blank("let a = \"\n//\";\n/// one\nb // two\n//! three");
        let found: Vec<_> =
            comments.iter().map(|it| (it.line, it.text.as_str(), it.alone)).collect();
        assert_eq!(found, [(3, "one", true), (4, "two", false), (5, "three", true)]);
    }

    #[test]
    fn a_test_module_reaches_to_its_brace() {
        let text = "// a\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n fn f() { '}' }\n // b\n}\n// c";
        let source = Source::new(text);
        let found: Vec<_> = source.comments.iter().map(|it| source.is_test(it.at)).collect();
        assert_eq!(found, [false, true, false]);
    }

    #[test]
    fn a_test_module_may_be_another_file() {
        let source =
            Source::new("#[cfg(test)]\nmod tests;\n#[cfg(all(test, x))] pub(crate) mod a;");
        let files: Vec<_> = source.test_files(Path::new("core/machine/src/peer/mod.rs")).collect();
        assert_eq!(
            files,
            [Path::new("core/machine/src/peer/tests"), Path::new("core/machine/src/peer/a")]
        );
        let files: Vec<_> = source.test_files(Path::new("core/machine/src/peer.rs")).collect();
        assert_eq!(files[0], Path::new("core/machine/src/peer/tests"));
    }

    #[test]
    fn a_test_function_has_the_comments_on_top_and_its_body() {
        let text = "// a\n\n// b\n#[tokio::test(flavor = \"x\")]\n// c\n#[allow(x)]\n\
                    async fn one() {\n // d\n}\n// e\n\nfn two() {\n // f\n}\n";
        let source = Source::new(text);
        let tests = source.test_functions();
        let found: Vec<_> = tests.iter().map(|it| (it.name.as_str(), it.line)).collect();
        assert_eq!(found, [("one", 3)]);
        let inside: Vec<_> = source.comments.iter().map(|it| tests[0].contains(it.at)).collect();
        assert_eq!(inside, [false, true, true, true, false, false]);
    }

    #[test]
    fn a_table_is_a_constant_that_a_test_names() {
        let text = "// a\nconst ROWS: [u8; 1] = [\n // b\n 1,\n];\n\
                    static OTHER: u8 = { /* ROWS */ 1 }; // c\n\
                    const fn f<const N: usize>(x: &'static u8) {}\n\
                    #[test]\nfn one() { assert(ROWS, \"OTHER\", N) }\n";
        let source = Source::new(text);
        let tables = source.tables(&source.test_functions());
        let found: Vec<_> = tables.iter().map(|it| (it.name.as_str(), it.line)).collect();
        assert_eq!(found, [("ROWS", 1)]);
        let inside: Vec<_> = source.comments.iter().map(|it| tables[0].contains(it.at)).collect();
        assert_eq!(inside, [true, true, false]);
    }

    #[test]
    fn a_test_field_is_no_item_and_an_inner_attribute_is_the_file() {
        let source = Source::new("struct A {\n #[cfg(test)]\n a: u8,\n b: u8, // b\n}");
        assert!(!source.is_test(source.comments[0].at));
        let source = Source::new("#![cfg(test)]\n// a");
        assert!(source.is_test(source.comments[0].at));
    }
}

//! Finds phrases that make text hard to read, in documentation, comments, messages and test names.
//!
//! The patterns are noun clauses in place of nouns, chains of `of`, and metaphors. In quinn and in
//! rustls two to four lines in a thousand match one of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::source::Source;
use crate::{Failure, files};

/// The most lines in a thousand that may contain such a phrase.
const LINES_MAX: usize = 3;

/// Files that are data: lists of rules, and the public API as text.
const DATA: [&str; 2] = ["docs/api", "docs/rules/open.txt"];

/// The patterns and their names. Code in backticks is replaced with `c` before matching.
const PATTERNS: [(&str, &str); 14] = [
    ("of … of", r"\bof (?:the|an?|its|their|this|that|each|every) (?:[\w-]+ ){1,2}of\b"),
    (
        "what …",
        r"(?x)
        \b(?:[Ww]hat|[Ww]hatever)\ (?:is|are|was|were|has|had|have|can|could|must|may|might|will|would|does|did
        |comes?|came|becomes?|became|belongs?|goes|went|follows|remains|stays?|stands|lies|counts|matters
        |happens|happened|needs?|takes?|gives?|makes?|says|asks?|wants?|holds?|waits?|costs?|arrives|leaves
        |speaks|begins|ends|it|they|he|an?|another|others?|each|every|one|somebody|anybody|else|only|there)\b",
    ),
    ("what … as a subject", r"(?:^|[.:;]\ )What\ [^?.]*(?:[.:;]|$)"),
    (
        "who …",
        r"\b[Ww]ho(?:so)?ever\b|(?:^|[.:;(] |\b(?:for|of|to|by|with|from|tells?|says?|knows?) )[Ww]ho(?:se)? ",
    ),
    ("come to", r"\b(?:comes?|came|coming) (?:to (?:nothing|an end|no\b)|of it\b)|\bcame? of\b"),
    ("is none", r"\b(?:is|are|was|were|be|been|has|have|had) none\b"),
    ("nobody", r"\b(?:[Nn]o|[Ee]very|[Ss]ome|[Aa]ny)body\b"),
    ("by itself", r"\b[Bb]y (?:itself|themselves|himself)\b"),
    (
        "as it is",
        r"\bas (?:it|they) (?:is|are|was|were|stands?|comes?|came|goes|went)\b(?:[.,;:)]|$| (?:here|there|now|and|or|but|by|in|on|to|with)\b)",
    ),
    (
        "goes on",
        r"\b(?:go|goes|gone|went) on(?:[.,;:)]|$| (?:as|after|and|or|but|by|in|to|with|where|when|until|while|without|if)\b)",
    ),
    (
        "is for … to",
        r"\b(?:is|are|was) for (?:[\w-]+ ){1,3}to (?:be|do|say|tell|decide|know|give|take|limit|find|see|make)\b",
    ),
    ("beside", r"\b[Bb]eside\b"),
    (
        "have it done",
        r"\b(?:has|have|had|having) (?:it|them|this|that|one|something) (?:done|said|told|made|sent|taken|given|asked|read|written)\b",
    ),
    (
        "metaphor",
        r"(?x)\b(?:seats?|guests?|keepers?|archivists?|outlets?|ow(?:ed?|es|ing)|in\ vain|unasked|vouch(?:es)?|errands?
        |brings?\ along|(?:its|a|the|one|each|every)\ turns?(?:\ of\ phrase)?|(?:the|its|their)\ course|standing
        |the\ way\ of|on\ (?:its|their|the)\ way|ha(?:s|ve)\ (?:its|their)\ say|for\ good|(?:the|no|its)\ news|deaf|unheard)\b",
    ),
];

/// A text, and the start of each of its lines.
#[derive(Debug, Default)]
struct Text {
    text: String,
    /// Line numbers in the file, from 1, and their start in `text`.
    lines: Vec<(usize, usize)>,
}

impl Text {
    fn push(&mut self, line: usize, text: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.lines.push((line, self.text.len()));
        self.text.push_str(text.trim());
    }

    fn line_at(&self, at: usize) -> usize {
        let before = self.lines.iter().rev().find(|(_, start)| *start <= at);
        before.map_or(0, |(line, _)| *line)
    }
}

/// A match of a pattern.
#[derive(Debug)]
struct Finding {
    line: usize,
    name: &'static str,
    excerpt: String,
}

/// The patterns, compiled.
#[derive(Debug)]
struct Patterns {
    patterns: Vec<(&'static str, Regex)>,
    code: Regex,
    link: Regex,
}

impl Patterns {
    fn new() -> Self {
        let regex = |pattern: &str| Regex::new(pattern).expect("a pattern of this file");
        Self {
            patterns: PATTERNS.iter().map(|(name, pattern)| (*name, regex(pattern))).collect(),
            code: regex("`[^`]*`"),
            link: regex(r"\]\([^)]*\)|<!--.*?-->|https?://\S+"),
        }
    }

    fn findings(&self, text: &Text, found: &mut Vec<Finding>) {
        // Replaced with the same number of bytes, so that positions are preserved.
        let blank = |captures: &regex::Captures<'_>| {
            let length = captures[0].len();
            format!("c{}", "_".repeat(length.saturating_sub(1)))
        };
        let plain = self.link.replace_all(&text.text, |captures: &regex::Captures<'_>| {
            "_".repeat(captures[0].len())
        });
        let plain = self.code.replace_all(&plain, blank);
        for (name, pattern) in &self.patterns {
            for hit in pattern.find_iter(&plain) {
                let ends = plain[hit.end()..].find(['.', '?', '!']);
                if ends.is_some_and(|end| plain[hit.end() + end..].starts_with('?')) {
                    continue;
                }
                let mut end = hit.end().min(hit.start() + 70);
                while !text.text.is_char_boundary(end) {
                    end -= 1;
                }
                let excerpt = text.text[hit.start()..end].trim().to_owned();
                found.push(Finding { line: text.line_at(hit.start()), name, excerpt });
            }
        }
    }
}

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let (check, paths) = match arguments {
        ["--check", paths @ ..] => (true, paths),
        paths => (false, paths),
    };
    if let Some(flag) = paths.iter().find(|path| path.starts_with('-')) {
        return Err(Failure::Unable(format!("prose: cannot read `{flag}`")));
    }
    let root = files::root();
    let patterns = Patterns::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut lines, mut hits) = (0, 0);
    let mut listed = Vec::new();
    for path in tracked(&root)? {
        let path = Path::new(&path);
        if DATA.iter().any(|data| path.starts_with(data))
            || !(paths.is_empty() || paths.iter().any(|part| path.starts_with(part)))
        {
            continue;
        }
        let texts = match path.extension().and_then(|it| it.to_str()) {
            Some("rs") => rust(path, &std::fs::read_to_string(root.join(path))?),
            Some("md") => markdown(&std::fs::read_to_string(root.join(path))?),
            _ => continue,
        };
        lines += texts.iter().map(|text| text.lines.len()).sum::<usize>();
        let mut found = Vec::new();
        for text in &texts {
            patterns.findings(text, &mut found);
        }
        found.sort_by_key(|finding| finding.line);
        let mut marked: Vec<usize> = found.iter().map(|finding| finding.line).collect();
        marked.dedup();
        hits += marked.len();
        for Finding { line, name, excerpt } in found {
            *counts.entry(name).or_default() += 1;
            listed.push(format!("{}:{line}: [{name}] {excerpt}", path.display()));
        }
    }
    let is_fine = hits * 1000 <= lines * LINES_MAX;
    if !(check && is_fine) {
        for line in listed {
            println!("{line}");
        }
    }
    let tenths = hits * 10_000 / lines.max(1);
    println!("{hits} of {lines} lines, {}.{} in a thousand", tenths / 10, tenths % 10);
    for (name, count) in counts {
        println!("{count:6} {name}");
    }
    if check && !is_fine {
        return Err(Failure::Failed(format!("more than {LINES_MAX} lines in a thousand")));
    }
    Ok(())
}

/// Returns the files tracked by git, in order.
fn tracked(root: &Path) -> Result<Vec<String>, Failure> {
    let output = Command::new("git").arg("ls-files").current_dir(root).output()?;
    if !output.status.success() {
        return Err(Failure::Unable(String::from("prose: `git ls-files` failed")));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(str::to_owned).collect())
}

/// Returns the paragraphs of comments, the messages and the test names of a file.
fn rust(path: &Path, text: &str) -> Vec<Text> {
    let source = Source::new(text);
    let mut texts = Vec::new();
    let mut paragraph = Text::default();
    let (mut last, mut fence) = (0, false);
    for comment in &source.comments {
        if comment.line != last + 1 {
            fence = false;
        }
        let is_fence = comment.text.starts_with("```");
        if comment.line != last + 1 || comment.text.is_empty() || is_fence || fence {
            texts.push(std::mem::take(&mut paragraph));
        }
        last = comment.line;
        if is_fence {
            fence = !fence;
        } else if !fence && !comment.text.is_empty() {
            paragraph.push(comment.line, &comment.text);
        }
    }
    texts.push(paragraph);
    let is_test_file = path.components().any(|part| {
        matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs" | "benches" | "fuzz"))
    });
    for literal in &source.literals {
        let is_sentence = literal.text.split(' ').filter(|word| is_plain(word)).count() >= 3;
        if is_sentence && !is_test_file && !source.is_test(literal.at) {
            texts.push(one_line(literal.line, &literal.text.replace("\\\n", "")));
        }
    }
    for test in source.test_functions() {
        texts.push(one_line(test.line, &test.name.replace('_', " ")));
    }
    texts.retain(|text| !text.lines.is_empty());
    texts
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase())
}

fn one_line(line: usize, text: &str) -> Text {
    let mut one = Text::default();
    one.push(line, text);
    one
}

/// Returns the paragraphs of a page, without its code.
fn markdown(text: &str) -> Vec<Text> {
    let mut texts = Vec::new();
    let mut paragraph = Text::default();
    let mut fence = false;
    for (number, line) in (1..).zip(text.lines()) {
        let starts = line.trim_start();
        let is_fence = starts.starts_with("```");
        let is_apart = starts.is_empty() || starts.starts_with(['|', '#', '*', '-']);
        if is_fence || fence || is_apart {
            texts.push(std::mem::take(&mut paragraph));
        }
        if is_fence {
            fence = !fence;
        } else if !fence && !starts.is_empty() {
            paragraph.push(number, line);
        }
    }
    texts.push(paragraph);
    texts.retain(|text| !text.lines.is_empty());
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[Text]) -> Vec<(usize, &'static str)> {
        let mut found = Vec::new();
        for text in texts {
            Patterns::new().findings(text, &mut found);
        }
        found.into_iter().map(|finding| (finding.line, finding.name)).collect()
    }

    #[test]
    fn each_pattern_is_found() {
        for (text, name) in [
            ("the end of the input of the peer", "of … of"),
            ("takes what comes next.", "what …"),
            ("What clients can cost", "what … as a subject"),
            ("told to whoever reads", "who …"),
            ("the call came to nothing", "come to"),
            ("there is none", "is none"),
            ("nobody waits", "nobody"),
            ("it ends by itself", "by itself"),
            ("sent as it is.", "as it is"),
            ("and the call goes on.", "goes on"),
            ("it is for the peer to decide", "is for … to"),
            ("it stands beside the other", "beside"),
            ("have it done", "have it done"),
            ("an answer is owed", "metaphor"),
        ] {
            assert!(found(&markdown(text)).contains(&(1, name)), "{text}");
        }
    }

    #[test]
    fn plain_sentences_and_code_do_not_match() {
        let text = "Returns the error of a call.\n\nWhat is a session?\n\n`what is` is code\n\n\
            ```text\nwhat comes of it\n```\n";
        assert_eq!(found(&markdown(text)), []);
    }

    #[test]
    fn comments_are_read_as_paragraphs_and_tests_by_their_names() {
        let text = "//! Takes what\n//! comes next.\n\nfn f() -> &'static str {\n    \
            \"there is none of that\"\n}\n\n#[test]\nfn nobody_waits() {}\n";
        let lines = found(&rust(Path::new("src/a.rs"), text));
        assert_eq!(lines, [(1, "what …"), (5, "is none"), (8, "nobody")]);
        let lines = found(&rust(Path::new("tests/a.rs"), text));
        assert_eq!(lines, [(1, "what …"), (8, "nobody")]);
    }
}

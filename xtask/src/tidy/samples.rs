//! Programs shown in Markdown are files of the project: a code block after a comment that names a
//! file must equal that file, except for the comment at its head. After a comment `from` a file,
//! the block must be consecutive lines of that file, except for their common indentation. All other
//! Rust code in the guide and in `README.md` is compiled as a documentation test, so it must not be
//! marked `ignore`.

use std::path::Path;

/// Adds an error for each block of the file `path` that differs from its source; `read` returns the
/// text of a project file.
pub(super) fn check(
    path: &Path,
    text: &str,
    read: impl Fn(&Path) -> Option<String>,
    errors: &mut Vec<String>,
) {
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        let Some(file) = line.strip_prefix("<!-- ").and_then(|it| it.strip_suffix(" -->")) else {
            if line.starts_with("```rust,ignore") {
                errors.push(format!(
                    "{}:{number}: code that is neither compiled nor quoted from a file",
                    path.display()
                ));
            }
            continue;
        };
        // Marks of a generated table.
        if file.starts_with("table ") || file.starts_with("/table ") {
            continue;
        }
        let shown: Vec<&str> = lines
            .by_ref()
            .map(|(_, line)| line)
            .skip_while(|line| line.is_empty())
            .skip(1)
            .take_while(|line| !line.starts_with("```"))
            .collect();
        let place = format!("{}:{number}", path.display());
        let (file, is_part) = match file.strip_prefix("from ") {
            Some(file) => (file, true),
            None => (file, false),
        };
        let Some(program) = read(Path::new(file)) else {
            errors.push(format!("{place}: `{file}` not found"));
            continue;
        };
        let is_there = if is_part { has_lines(&program, &shown) } else { body(&program) == shown };
        if !is_there {
            errors.push(format!("{place}: the block differs from `{file}`"));
        }
    }
}

/// Returns whether `shown` occurs in a program, possibly indented.
fn has_lines(program: &str, shown: &[&str]) -> bool {
    let lines: Vec<&str> = program.lines().collect();
    let first = shown.first().copied().unwrap_or_default();
    !first.is_empty()
        && lines.windows(shown.len()).any(|lines| {
            let Some(indentation) = lines[0].strip_suffix(first) else { return false };
            indentation.trim_start().is_empty()
                && lines.iter().zip(shown).all(|(line, shown)| {
                    line.strip_prefix(indentation).unwrap_or(line) == *shown
                        && (line.is_empty() || line.starts_with(indentation))
                })
        })
}

/// Returns the lines of a program without the comments and attributes at its head.
fn body(program: &str) -> Vec<&str> {
    let head = |line: &&str| line.starts_with("//!") || line.starts_with("#![") || line.is_empty();
    program.lines().skip_while(head).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(markdown: &str) -> Vec<String> {
        let read = |path: &Path| {
            (path == Path::new("a.rs")).then(|| String::from("//! A program.\n\nfn main() {}\n"))
        };
        let mut errors = Vec::new();
        check(Path::new("README.md"), markdown, read, &mut errors);
        errors
    }

    #[test]
    fn a_block_is_the_program_that_it_names() {
        assert_eq!(found("<!-- a.rs -->\n```rust\nfn main() {}\n```\n"), [""; 0]);
        assert_eq!(
            found("<!-- a.rs -->\n```rust\nfn main() { }\n```\n"),
            ["README.md:1: the block differs from `a.rs`"]
        );
        assert_eq!(found("<!-- b.rs -->\n```rust\n```\n"), ["README.md:1: `b.rs` not found"]);
    }

    #[test]
    fn a_block_that_names_no_file_is_compiled() {
        assert_eq!(found("```rust\nfn f() {}\n```\n"), [""; 0]);
        assert_eq!(
            found("```rust,ignore\nfn f() {}\n```\n"),
            ["README.md:1: code that is neither compiled nor quoted from a file"]
        );
        assert_eq!(found("<!-- from a.rs -->\n```rust,ignore\nfn main() {}\n```\n"), [""; 0]);
    }

    #[test]
    fn a_part_of_a_program_stands_in_it_line_by_line() {
        let program = "fn a() {\n    if b {\n        c();\n\n        d();\n    }\n}\n";
        let has = |shown: &str| has_lines(program, &shown.lines().collect::<Vec<_>>());
        assert!(has("if b {\n    c();\n\n    d();\n}"));
        assert!(has("c();\n\nd();"));
        assert!(!has("c();\nd();"));
        assert!(!has("if b {\nc();"));
        assert!(!has("c();\n\n d();"));
        assert!(!has("b {"));
        assert!(!has("fn a() {\n}"));
        assert!(!has(""));
    }

    #[test]
    fn a_block_from_a_program_is_looked_for_in_it() {
        assert_eq!(found("<!-- from a.rs -->\n```rust\nfn main() {}\n```\n"), [""; 0]);
        assert_eq!(
            found("<!-- from a.rs -->\n```rust\nfn main()\n```\n"),
            ["README.md:1: the block differs from `a.rs`"]
        );
        let missing = found("<!-- from b.rs -->\n```rust\n```\n");
        assert_eq!(missing, ["README.md:1: `b.rs` not found"]);
    }
}

//! Programs shown in Markdown are files of the project: a code block after a comment that names a
//! file must equal that file, except for the comment at its head. After a comment `from` a file,
//! each paragraph of the block must be consecutive lines of that file, except for their common
//! indentation. All other Rust code in the guide and in `README.md` is compiled as a documentation
//! test, so it must not be marked `ignore`, nor have hidden lines: a forge shows them.

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
            } else if line.starts_with("```rust")
                && lines
                    .by_ref()
                    .map_while(|(_, line)| (line != "```").then_some(line.trim_start()))
                    .any(|line| line == "#" || line.starts_with("# "))
            {
                errors.push(format!(
                    "{}:{number}: a forge shows hidden lines: quote a file of docs/samples",
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
        let is_there = if is_part {
            shown.split(|line| line.is_empty()).all(|part| has_lines(&program, part))
        } else {
            body(&program) == shown
        };
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
mod tests;

//! Programs shown in Markdown are files of the project: a block of code after a comment that names
//! a file is that file, word for word, but for the comment at its head.

use std::path::Path;

/// Adds the blocks of the file `path` that are not what they say; `read` gives the text of a file
/// of the project.
pub(super) fn check(
    path: &Path,
    text: &str,
    read: impl Fn(&Path) -> Option<String>,
    errors: &mut Vec<String>,
) {
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        let Some(file) = line.strip_prefix("<!-- ").and_then(|it| it.strip_suffix(" -->")) else {
            continue;
        };
        let shown: Vec<&str> = lines
            .by_ref()
            .map(|(_, line)| line)
            .skip_while(|line| line.is_empty())
            .skip(1)
            .take_while(|line| !line.starts_with("```"))
            .collect();
        let place = format!("{}:{number}", path.display());
        match read(Path::new(file)) {
            None => errors.push(format!("{place}: there is no `{file}`")),
            Some(program) if body(&program) != shown => {
                errors.push(format!("{place}: the block is not what `{file}` has"));
            }
            Some(_) => {}
        }
    }
}

/// The lines of a program without the comments and attributes at its head.
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
            ["README.md:1: the block is not what `a.rs` has"]
        );
        assert_eq!(found("<!-- b.rs -->\n```rust\n```\n"), ["README.md:1: there is no `b.rs`"]);
    }
}

//! Tests of `samples`.

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

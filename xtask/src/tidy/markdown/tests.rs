//! Tests of `markdown`.

use super::*;

fn errors(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let exists = |path: &Path| path == "docs/a.md" || path == "README.md";
    check(Path::new("docs/b.md"), text, exists, &mut errors);
    errors
}

#[test]
fn blanks_and_tabs() {
    assert_eq!(errors("a \n\tb\n"), ["docs/b.md:1: trailing white space", "docs/b.md:2: a tab"]);
}

#[test]
fn links_lead_to_files() {
    assert_eq!(errors("[a](a.md#x) [r](../README.md) [w](https://x.y) [h](#z)"), [""; 0]);
    assert_eq!(errors("![a](c.md \"t\")"), ["docs/b.md:1: `c.md` leads nowhere"]);
    assert_eq!(errors("[a]: c.md"), ["docs/b.md:1: `c.md` leads nowhere"]);
    assert_eq!(errors("[a](../../README.md)").len(), 1);
    assert_eq!(errors(&format!("[r]({REPOSITORY}README.md#x)")), [""; 0]);
    assert_eq!(errors(&format!("[r]({REPOSITORY}READ.md)")).len(), 1);
    assert_eq!(errors("`[a](c.md)` [`a`](a.md)\n```\n[a](c.md)\n```"), [""; 0]);
}

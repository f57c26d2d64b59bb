//! Tests of `tidy`.

use super::*;

fn errors(path: &str, text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    rust(Path::new(path), text, &mut errors);
    errors
}

#[test]
fn long_files_are_refused_where_it_matters() {
    assert_eq!(errors("core/machine/src/a.rs", &"\n".repeat(1000)), [""; 0]);
    assert_eq!(errors("core/machine/src/a.rs", &"\n".repeat(1001)).len(), 1);
    assert_eq!(errors("core/machine/tests/a.rs", &"\n".repeat(1001)), [""; 0]);
}

#[test]
fn names_describe_their_content() {
    assert_eq!(errors("core/machine/src/utils.rs", "").len(), 1);
    assert_eq!(errors("core/machine/tests/common/mod.rs", "").len(), 1);
    assert_eq!(errors("core/machine/src/commonplace.rs", ""), [""; 0]);
}

#[test]
fn an_ignored_test_is_refused() {
    assert_eq!(errors("a.rs", "    #[ignore = \"slow\"]"), ["a.rs:1: ignored test"]);
    assert_eq!(errors("a.rs", "// #[ignore]"), [""; 0]);
}

//! The tests that the page of guarantees names exist.

use std::collections::BTreeSet;
use std::path::Path;

/// A code span with at least this many words is the name of a test.
const WORDS_MIN: usize = 5;

/// Adds the names of all functions of a source file to `functions`.
pub(super) fn collect(text: &str, functions: &mut BTreeSet<String>) {
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("fn ") {
            let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
            functions.insert(rest[..end.unwrap_or(rest.len())].to_owned());
        }
    }
}

/// Adds an error for each test that the file `path` names and that is not one of `functions`.
pub(super) fn check(
    path: &Path,
    text: &str,
    functions: &BTreeSet<String>,
    errors: &mut Vec<String>,
) {
    for (number, line) in (1..).zip(text.lines()) {
        for span in line.split('`').skip(1).step_by(2) {
            let name = span.rsplit("::").next().unwrap_or(span);
            let is_name = name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
            if is_name && name.split('_').count() >= WORDS_MIN && !functions.contains(name) {
                let path = path.display();
                errors.push(format!("{path}:{number}: there is no test `{name}`"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_does_not_exist_is_an_error() {
        let mut functions = BTreeSet::new();
        collect("#[test]\nfn a_call_that_times_out_is_cancelled() {}", &mut functions);
        let text = "| `calls::a_call_that_times_out_is_cancelled` |\n| `a_call_that_never_ends_is_cancelled` |\n\
                    `call_timeout` and `a b_c_d_e_f_g`";
        let mut errors = Vec::new();
        check(Path::new("guide.md"), text, &functions, &mut errors);
        assert_eq!(errors, ["guide.md:2: there is no test `a_call_that_never_ends_is_cancelled`"]);
    }
}

//! House rules that the compiler does not check.

mod markdown;
mod samples;

use std::path::Path;

use crate::source::Source;
use crate::{Failure, files};

/// Beyond this many lines a file is refused.
const LINES_MAX: usize = 600;
/// From this many lines on it is mentioned.
const LINES_MANY: usize = 400;
/// A decision is read in one sitting.
const DECISION_LINES_MAX: usize = 80;
/// Where the length of files is watched.
const WATCHED: [&str; 7] = [
    "core/collections/src",
    "core/handlers/src",
    "core/machine/src",
    "core/oauth/src",
    "core/sync/src",
    "adapters",
    "examples",
];
/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "common", "misc", "helper", "helpers"];

/// What the check found.
#[derive(Debug, Default)]
struct Findings {
    errors: Vec<String>,
    warnings: Vec<String>,
}

pub(crate) fn run() -> Result<(), Failure> {
    let root = files::root();
    let mut findings = Findings::default();
    for path in files::with_extension(&root, "rs")? {
        rust(&path, &std::fs::read_to_string(root.join(&path))?, &mut findings);
    }
    for path in files::with_extension(&root, "md")? {
        let text = std::fs::read_to_string(root.join(&path))?;
        let exists = |link: &Path| root.join(link).exists();
        markdown::check(&path, &text, exists, &mut findings.errors);
        let read = |path: &Path| std::fs::read_to_string(root.join(path)).ok();
        samples::check(&path, &text, read, &mut findings.errors);
        let lines = text.lines().count();
        if path.starts_with("docs/decisions") && lines >= DECISION_LINES_MAX {
            let path = path.display();
            findings.errors.push(format!(
                "{path}: {lines} lines; a decision has fewer than {DECISION_LINES_MAX}"
            ));
        }
    }
    for warning in &findings.warnings {
        eprintln!("warning: {warning}");
    }
    for error in &findings.errors {
        eprintln!("error: {error}");
    }
    if findings.errors.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("{} house rules broken", findings.errors.len())))
}

fn rust(path: &Path, text: &str, findings: &mut Findings) {
    let name = path.display();
    let errors = &mut findings.errors;
    for part in path.with_extension("").iter() {
        if EMPTY_NAMES.iter().any(|name| part == *name) {
            errors
                .push(format!("{name}: a name that says what is inside, not `{}`", part.display()));
        }
    }
    let lines = text.lines().count();
    if WATCHED.iter().any(|folder| path.starts_with(folder)) {
        if lines > LINES_MAX {
            errors.push(format!("{name}: {lines} lines, more than {LINES_MAX}"));
        } else if lines > LINES_MANY {
            findings.warnings.push(format!("{name}: {lines} lines, {LINES_MAX} is the end"));
        }
    }
    let source = Source::new(text);
    for attribute in &source.attributes {
        let line = attribute.line;
        let lifts = |word: &str| {
            attribute.text.starts_with(&format!("{word}("))
                || attribute.text.starts_with("cfg_attr(")
                    && attribute.text.contains(&format!(",{word}("))
        };
        if (lifts("allow") || lifts("expect")) && !attribute.text.contains("reason=") {
            errors.push(format!("{name}:{line}: a lint is lifted without a reason"));
        }
        if attribute.text == "ignore" || attribute.text.starts_with("ignore=") {
            errors.push(format!("{name}:{line}: a test that is ignored"));
        }
    }
    for unfinished in ["todo!", "unimplemented!"] {
        for line in source.lines_with(unfinished) {
            errors.push(format!("{name}:{line}: `{unfinished}`"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(path: &str, text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        rust(Path::new(path), text, &mut findings);
        findings.errors
    }

    #[test]
    fn long_files_are_refused_where_it_matters() {
        assert_eq!(errors("core/machine/src/a.rs", &"\n".repeat(600)), [""; 0]);
        assert_eq!(errors("core/machine/src/a.rs", &"\n".repeat(601)).len(), 1);
        assert_eq!(errors("core/machine/tests/a.rs", &"\n".repeat(601)), [""; 0]);
    }

    #[test]
    fn names_say_what_is_inside() {
        assert_eq!(errors("core/machine/src/utils.rs", "").len(), 1);
        assert_eq!(errors("core/machine/tests/common/mod.rs", "").len(), 1);
        assert_eq!(errors("core/machine/src/commonplace.rs", ""), [""; 0]);
    }

    #[test]
    fn a_lifted_lint_has_its_reason() {
        assert_eq!(errors("a.rs", "\n#[allow(x)]").len(), 1);
        assert_eq!(errors("a.rs", "#![cfg_attr(y, allow(x))]").len(), 1);
        assert_eq!(errors("a.rs", "#[allow(\n x,\n reason = \"y\"\n)]\n#[warn(x)]"), [""; 0]);
    }

    #[test]
    fn nothing_is_left_for_later() {
        assert_eq!(errors("a.rs", "\ntodo!()"), ["a.rs:2: `todo!`"]);
        assert_eq!(errors("a.rs", "#[ignore = \"slow\"]"), ["a.rs:1: a test that is ignored"]);
        assert_eq!(errors("a.rs", "// todo! and #[ignore]\n\"todo!()\""), [""; 0]);
    }
}

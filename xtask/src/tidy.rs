//! Project conventions that the compiler does not check.

mod exhaustive;
mod markdown;
mod samples;
mod targets;
mod test_names;

use std::collections::BTreeSet;
use std::path::Path;

use crate::source::Source;
use crate::{Failure, files};

/// Files with more lines are refused.
const LINES_MAX: usize = 600;
/// Files with at least this many lines cause a warning.
const LINES_MANY: usize = 400;
/// Files that may have more, each with the reason.
const LONG: [(&str, &str); 1] = [(
    "core/machine/src/jsonrpc/scan.rs",
    "one scanner, whose functions are inlined into each other",
)];
/// A decision record should be readable in one sitting.
const DECISION_LINES_MAX: usize = 80;
/// Folders in which the length of files is checked.
const WATCHED: [&str; 10] = [
    "core/collections/src",
    "core/extensions/src",
    "core/handlers/src",
    "core/machine/src",
    "core/oauth/src",
    "core/sync/src",
    "core/test/src",
    "adapters",
    "examples",
    "tools",
];
/// Names that do not describe their content.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "common", "misc", "helper", "helpers"];

/// The errors and warnings of the check.
#[derive(Debug, Default)]
struct Findings {
    errors: Vec<String>,
    warnings: Vec<String>,
}

pub(crate) fn run() -> Result<(), Failure> {
    let root = files::root();
    let mut findings = Findings::default();
    let mut functions = BTreeSet::new();
    for path in files::with_extension(&root, "rs")? {
        let text = std::fs::read_to_string(root.join(&path))?;
        rust(&path, &text, &mut findings);
        test_names::collect(&text, &mut functions);
    }
    for path in files::with_extension(&root, "md")? {
        let text = std::fs::read_to_string(root.join(&path))?;
        let exists = |link: &Path| root.join(link).exists();
        markdown::check(&path, &text, exists, &mut findings.errors);
        let read = |path: &Path| std::fs::read_to_string(root.join(path)).ok();
        samples::check(&path, &text, read, &mut findings.errors);
        if path == Path::new("docs/guide/guarantees.md") {
            test_names::check(&path, &text, &functions, &mut findings.errors);
        }
        let lines = text.lines().count();
        if path.starts_with("docs/decisions") && lines >= DECISION_LINES_MAX {
            let path = path.display();
            findings.errors.push(format!(
                "{path}: {lines} lines; a decision has fewer than {DECISION_LINES_MAX}"
            ));
        }
    }
    let found = crate::crates::targets()?;
    let read = |path: &Path| std::fs::read_to_string(root.join(path)).ok();
    targets::check(&found, &files::with_extension(&root, "rs")?, read, &mut findings.errors);
    let api = root.join(crate::api::FOLDER);
    let apis = files::with_extension(&api, "txt")?.into_iter();
    let apis = apis.map(|path| std::fs::read_to_string(api.join(path)));
    let apis = apis.collect::<Result<Vec<_>, _>>()?;
    let contributing = std::fs::read_to_string(root.join("CONTRIBUTING.md"))?;
    exhaustive::check(&apis, &contributing, &mut findings.errors);
    for warning in &findings.warnings {
        eprintln!("warning: {warning}");
    }
    for error in &findings.errors {
        eprintln!("error: {error}");
    }
    if findings.errors.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("{} project conventions violated", findings.errors.len())))
}

fn rust(path: &Path, text: &str, findings: &mut Findings) {
    let name = path.display();
    let errors = &mut findings.errors;
    for part in path.with_extension("").iter() {
        if EMPTY_NAMES.iter().any(|name| part == *name) {
            errors.push(format!(
                "{name}: choose a name that describes the content instead of `{}`",
                part.display()
            ));
        }
    }
    let lines = text.lines().count();
    let is_long = LONG.iter().any(|(file, _)| path == Path::new(file));
    if !is_long && WATCHED.iter().any(|folder| path.starts_with(folder)) {
        if lines > LINES_MAX {
            errors.push(format!("{name}: {lines} lines, more than {LINES_MAX}"));
        } else if lines > LINES_MANY {
            findings.warnings.push(format!("{name}: {lines} lines; the limit is {LINES_MAX}"));
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
            errors.push(format!("{name}:{line}: a lint is disabled without a reason"));
        }
        if attribute.text == "ignore" || attribute.text.starts_with("ignore=") {
            errors.push(format!("{name}:{line}: ignored test"));
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
    fn names_describe_their_content() {
        assert_eq!(errors("core/machine/src/utils.rs", "").len(), 1);
        assert_eq!(errors("core/machine/tests/common/mod.rs", "").len(), 1);
        assert_eq!(errors("core/machine/src/commonplace.rs", ""), [""; 0]);
    }

    #[test]
    fn a_disabled_lint_has_a_reason() {
        assert_eq!(errors("a.rs", "\n#[allow(x)]").len(), 1);
        assert_eq!(errors("a.rs", "#![cfg_attr(y, allow(x))]").len(), 1);
        assert_eq!(errors("a.rs", "#[allow(\n x,\n reason = \"y\"\n)]\n#[warn(x)]"), [""; 0]);
    }

    #[test]
    fn unfinished_code_is_refused() {
        assert_eq!(errors("a.rs", "\ntodo!()"), ["a.rs:2: `todo!`"]);
        assert_eq!(errors("a.rs", "#[ignore = \"slow\"]"), ["a.rs:1: ignored test"]);
        assert_eq!(errors("a.rs", "// todo! and #[ignore]\n\"todo!()\""), [""; 0]);
    }
}

//! Project conventions that the compiler does not check.

mod markdown;
mod samples;
mod targets;

use std::path::Path;

use crate::{Failure, files, reject};

/// Files with more lines are refused.
const LINES_MAX: usize = 1000;
/// A decision record should be readable in one sitting.
const DECISION_LINES_MAX: usize = 80;
/// Folders in which the length of files is checked.
const WATCHED: [&str; 4] = ["core", "adapters", "examples", "tools"];
/// Names that do not describe their content.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "common", "misc", "helper", "helpers"];

pub(crate) fn run() -> Result<(), Failure> {
    let root = files::root();
    let read = |path: &Path| std::fs::read_to_string(root.join(path)).ok();
    let mut errors = Vec::new();
    for path in files::with_extension(&root, "rs")? {
        let text = std::fs::read_to_string(root.join(&path))?;
        rust(&path, &text, &mut errors);
    }
    for path in files::with_extension(&root, "md")? {
        let text = std::fs::read_to_string(root.join(&path))?;
        let exists = |link: &Path| root.join(link).exists();
        markdown::check(&path, &text, exists, &mut errors);
        samples::check(&path, &text, read, &mut errors);
        let lines = text.lines().count();
        if path.starts_with("docs/decisions") && lines >= DECISION_LINES_MAX {
            let path = path.display();
            errors.push(format!(
                "{path}: {lines} lines; a decision has fewer than {DECISION_LINES_MAX}"
            ));
        }
    }
    let found = crate::crates::targets()?;
    targets::check(&found, &files::with_extension(&root, "rs")?, read, &mut errors);
    reject(&errors, "project conventions violated")
}

fn rust(path: &Path, text: &str, errors: &mut Vec<String>) {
    let name = path.display();
    for part in path.with_extension("").iter() {
        if EMPTY_NAMES.iter().any(|name| part == *name) {
            errors.push(format!(
                "{name}: choose a name that describes the content instead of `{}`",
                part.display()
            ));
        }
    }
    let lines = text.lines().count();
    let is_watched = WATCHED.iter().any(|folder| path.starts_with(folder));
    if is_watched && lines > LINES_MAX && path.iter().any(|part| part == "src") {
        errors.push(format!("{name}: {lines} lines, more than {LINES_MAX}"));
    }
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("#[ignore") {
            errors.push(format!("{name}:{number}: ignored test"));
        }
    }
}

#[cfg(test)]
mod tests;

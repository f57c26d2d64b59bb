//! Locates the specification for tests and tools: its schemas, its examples and the ledger of
//! rules.
//!
//! The specification is not part of the repository. Its folder is
//!
//! 1. the value of `MCP_SPEC_DIR`,
//! 2. or else `spec` in the folder given by `MCP_SHARED_DIR`,
//! 3. or else `../shared/spec`.
//!
//! Paths are relative to the root of the repository. A test that needs the specification fails if
//! it is absent, unless `MCP_SPEC_SKIP=1` allows it to be skipped.

use std::ffi::OsString;
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The variable that allows tests to be skipped if the specification is absent and its value is
/// `1`.
const SKIP: &str = "MCP_SPEC_SKIP";

/// Returns the expected folder of the specification, whether or not it exists.
#[must_use]
pub fn specification_folder() -> PathBuf {
    Candidate::from_env(&|name| std::env::var_os(name)).folder
}

/// Returns the folder of the specification for a test; `None` if the test is skipped, which is
/// reported on standard error.
///
/// # Panics
///
/// If the specification is absent and skipping is not allowed. The message names the folder and the
/// variables to set.
#[must_use]
#[track_caller]
pub fn specification() -> Option<PathBuf> {
    match look_up(&|name| std::env::var_os(name)) {
        Lookup::Found(folder) => Some(folder),
        Lookup::Skip(place) => {
            // The output of the printing macros is captured, so the notice would not be visible.
            let notice = format!("SKIPPED for {SKIP}=1: {place}\n");
            let _ = std::io::stderr().write_all(notice.as_bytes());
            None
        }
        Lookup::Missing(place) => panic!(
            "{place}; set MCP_SPEC_DIR, or MCP_SHARED_DIR to the folder around it, or {SKIP}=1 to \
             skip the tests that need it"
        ),
    }
}

/// The expected folder of the specification, and the variable that determines it.
#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    folder: PathBuf,
    source: &'static str,
}

/// The outcome of the search for the specification.
#[derive(Debug, PartialEq, Eq)]
enum Lookup {
    Found(PathBuf),
    Skip(Candidate),
    Missing(Candidate),
}

impl Candidate {
    fn from_env(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.parent().unwrap_or(here);
        let set = |name| variable(name).filter(|value| !value.is_empty());
        if let Some(folder) = set("MCP_SPEC_DIR") {
            return Self { folder: root.join(folder), source: "MCP_SPEC_DIR" };
        }
        if let Some(shared) = set("MCP_SHARED_DIR") {
            return Self { folder: root.join(shared).join("spec"), source: "MCP_SHARED_DIR" };
        }
        Self { folder: root.join("../shared/spec"), source: "the default" }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no specification in {} ({})", self.folder.display(), self.source)
    }
}

fn look_up(variable: &dyn Fn(&str) -> Option<OsString>) -> Lookup {
    let place = Candidate::from_env(variable);
    if place.folder.join("requirements.tsv").is_file() {
        Lookup::Found(place.folder)
    } else if variable(SKIP).is_some_and(|value| value == "1") {
        Lookup::Skip(place)
    } else {
        Lookup::Missing(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(set: &[(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
        move |name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
    }

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    #[test]
    fn the_nearest_variable_says_where_the_specification_is() {
        let folder = |set| Candidate::from_env(&variables(set)).folder;
        assert_eq!(folder(&[]), root().join("../shared/spec"));
        assert_eq!(folder(&[("MCP_SHARED_DIR", "/a")]), Path::new("/a/spec"));
        assert_eq!(folder(&[("MCP_SHARED_DIR", "a")]), root().join("a/spec"));
        assert_eq!(folder(&[("MCP_SHARED_DIR", "/a"), ("MCP_SPEC_DIR", "/b")]), Path::new("/b"));
        assert_eq!(folder(&[("MCP_SHARED_DIR", "/a"), ("MCP_SPEC_DIR", "")]), Path::new("/a/spec"));
    }

    #[test]
    fn a_folder_without_the_ledger_is_no_specification() {
        let missing = |set| match look_up(&variables(set)) {
            Lookup::Missing(place) => place.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            missing(&[("MCP_SPEC_DIR", "/nowhere")]),
            "no specification in /nowhere (MCP_SPEC_DIR)"
        );
        assert_eq!(
            missing(&[("MCP_SHARED_DIR", "/nowhere")]),
            "no specification in /nowhere/spec (MCP_SHARED_DIR)"
        );
    }

    #[test]
    fn only_the_variable_for_it_skips_and_only_where_there_is_nothing_to_test_with() {
        let nowhere = ("MCP_SPEC_DIR", "/nowhere");
        let skips = |set: &[_]| matches!(look_up(&variables(set)), Lookup::Skip(_));
        assert!(skips(&[nowhere, (SKIP, "1")]));
        for value in ["", "0", "yes"] {
            assert!(!skips(&[nowhere, (SKIP, value)]), "{value}");
        }
        assert!(!skips(&[nowhere, ("CI", "1")]));
        let folder = std::env::temp_dir().join(format!("reference-data-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("requirements.tsv"), "").unwrap();
        let set = [("MCP_SPEC_DIR", folder.to_str().unwrap()), (SKIP, "1")];
        let found = look_up(&variables(&set));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, Lookup::Found(folder));
    }
}

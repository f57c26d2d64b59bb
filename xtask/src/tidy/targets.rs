//! What `cargo test --workspace` builds has tests: each test program links everything once more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::crates::Target;

/// Packages with more than one program in `tests`, with the largest number and the reason.
const SEVERAL: [(&str, usize, &str); 3] = [
    ("adapter-tests", 2, "one counts the bytes of its process"),
    (
        "mcp-sansio",
        13,
        "some replace the allocator, and each of the others takes seconds to compile",
    ),
    ("mcp-sansio-handlers", 3, "the simulations are built with a profile of their own"),
];

/// Adds an error for each target that is built for tests that it does not have, and for each
/// package with more test programs than it needs. `files` are the Rust files of the workspace.
pub(super) fn check(
    targets: &[Target],
    files: &[PathBuf],
    read: impl Fn(&Path) -> Option<String>,
    errors: &mut Vec<String>,
) {
    let mut programs = BTreeMap::<&str, usize>::new();
    for target in targets {
        let Target { package, name, kind, source, .. } = target;
        if kind == "test" {
            *programs.entry(package).or_default() += usize::from(target.tested);
            continue;
        }
        if !matches!(&**kind, "bin" | "lib" | "proc-macro") {
            continue;
        }
        let has = |sign: fn(&str) -> bool| {
            let mut own = files.iter().filter(|path| belongs(source, path));
            own.any(|path| read(path).is_some_and(|text| text.lines().any(sign)))
        };
        if target.tested && !has(is_test) {
            errors.push(format!("{package}: {kind} `{name}` has no tests: set `test = false`"));
        }
        if target.doctested && kind == "lib" && !has(is_documented_code) {
            errors.push(format!(
                "{package}: no code in the documentation of `{name}`: set `doctest = false`"
            ));
        }
    }
    for (package, count) in programs {
        let several = SEVERAL.iter().find(|(name, ..)| *name == package);
        let max = several.map_or(1, |(_, max, _)| *max);
        if count > max {
            errors.push(format!(
                "{package}: {count} test programs, more than {max}: add modules to one of them"
            ));
        }
    }
}

/// Whether a file can be a module of the target with the root module `source`.
fn belongs(source: &Path, path: &Path) -> bool {
    let stem = source.file_stem().and_then(|it| it.to_str());
    match (stem, source.parent()) {
        (Some("lib" | "main"), Some(folder)) => path.starts_with(folder),
        _ => path == source,
    }
}

fn is_test(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("#[test]") || line.starts_with("#[") && line.contains("::test]")
}

fn is_documented_code(line: &str) -> bool {
    let line = line.trim_start();
    (line.starts_with("//") || line.starts_with("#[doc") || line.starts_with("#![doc"))
        && (line.contains("```") || line.contains("include_str!"))
}

#[cfg(test)]
mod tests;

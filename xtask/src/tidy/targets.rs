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

/// Adds an error for each target that is built for tests that it does not have, and for each package
/// with more test programs than it needs. `files` are the Rust files of the workspace.
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
            *programs.entry(package).or_default() += 1;
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
mod tests {
    use super::*;

    fn target(package: &str, kind: &str, source: &str) -> Target {
        Target {
            package: package.to_owned(),
            name: "it".to_owned(),
            kind: kind.to_owned(),
            source: PathBuf::from(source),
            tested: true,
            doctested: true,
        }
    }

    fn errors(targets: &[Target], files: &[(&str, &str)]) -> Vec<String> {
        let paths: Vec<_> = files.iter().map(|(path, _)| PathBuf::from(path)).collect();
        let read = |path: &Path| {
            let file = files.iter().find(|(name, _)| path == Path::new(name))?;
            Some(file.1.to_owned())
        };
        let mut errors = Vec::new();
        check(targets, &paths, read, &mut errors);
        errors
    }

    #[test]
    fn a_library_without_tests_or_documented_code_is_not_built_for_them() {
        let library = [target("a", "lib", "a/src/lib.rs")];
        let code = "/// ```\n/// f();\n/// ```";
        let test = "    #[test]\n    fn f() {}";
        assert_eq!(errors(&library, &[("a/src/lib.rs", ""), ("b/src/lib.rs", test)]).len(), 2);
        assert_eq!(errors(&library, &[("a/src/lib.rs", code)]).len(), 1);
        assert_eq!(errors(&library, &[("a/src/lib.rs", code), ("a/src/b.rs", test)]), [""; 0]);
    }

    #[test]
    fn a_program_is_only_built_for_tests_of_its_own() {
        let program = [target("a", "bin", "a/src/bin/b.rs")];
        assert_eq!(
            errors(&program, &[("a/src/bin/b.rs", ""), ("a/src/lib.rs", "#[test]")]).len(),
            1
        );
        assert_eq!(errors(&program, &[("a/src/bin/b.rs", "#[tokio::test]")]), [""; 0]);
    }

    #[test]
    fn a_package_has_one_test_program() {
        let test = |name: &str| target("a", "test", name);
        assert_eq!(errors(&[test("a/tests/a.rs")], &[]), [""; 0]);
        assert_eq!(errors(&[test("a/tests/a.rs"), test("a/tests/b.rs")], &[]).len(), 1);
    }
}

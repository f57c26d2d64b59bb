//! Tests of `targets`.

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
    assert_eq!(errors(&program, &[("a/src/bin/b.rs", ""), ("a/src/lib.rs", "#[test]")]).len(), 1);
    assert_eq!(errors(&program, &[("a/src/bin/b.rs", "#[tokio::test]")]), [""; 0]);
}

#[test]
fn a_package_has_one_test_program() {
    let test = |name: &str| target("a", "test", name);
    assert_eq!(errors(&[test("a/tests/a.rs")], &[]), [""; 0]);
    assert_eq!(errors(&[test("a/tests/a.rs"), test("a/tests/b.rs")], &[]).len(), 1);
}

//! Tests of `citations`.

use super::*;

fn found(path: &str, text: &str) -> Found {
    let mut found = Found::default();
    let path = Path::new(path);
    read(path, &Source::new(text), is_test_file(path, &[]), &mut found);
    found
}

fn ids(found: &Found) -> Vec<(&str, Option<&str>, Kind)> {
    let citations = found.citations.iter();
    citations
        .map(|it| (it.id.as_str(), it.page.as_ref().map(|page| page.0.as_str()), it.kind))
        .collect()
}

#[test]
fn code_cites_with_revision_and_page() {
    let found = found(
        "core/machine/src/a.rs",
        "/// MCP 2025-06-18 basic/a#b [AAA-001] [AAA-002]: so it is,\n\
         /// and [AAA-003] too. MCP 2026-07-28 c#d [AAA-004].\n\
         fn f() { g(\"// MCP 2025-06-18 a#b [AAA-005]\") } // MCP 2024-11-05 a#b [AAA-006]\n",
    );
    assert_eq!(found.errors, [""; 0]);
    let pages: Vec<_> = found
        .citations
        .iter()
        .map(|it| {
            let (revision, page) = it.page.as_ref().expect("it names a page");
            (it.id.as_str(), revision.as_str(), page.as_str())
        })
        .collect();
    assert_eq!(
        pages,
        [
            ("AAA-001", "2025-06-18", "basic/a"),
            ("AAA-002", "2025-06-18", "basic/a"),
            ("AAA-003", "2025-06-18", "basic/a"),
            ("AAA-004", "2026-07-28", "c"),
            ("AAA-006", "2024-11-05", "a"),
        ]
    );
    assert!(found.citations.iter().all(|it| it.kind == Kind::Code));
}

#[test]
fn code_without_a_revision_or_with_a_wrong_one_is_an_error() {
    let found = found(
        "core/machine/src/a.rs",
        "// MCP 2025-06-18 a#b [AAA-001]\nx();\n// [AAA-002]\ny();\n\
         // MCP 2025-06-19 a#b [AAA-003]\nz();\n// MCP 2025-06-18 [AAA-004]\n\
         w();\n// MCP 2025-06-18 a#b [AAA-001], MCP 2025-06-18\n// a#c [AAA-005]\n",
    );
    assert_eq!(
        found.errors,
        [
            "core/machine/src/a.rs:3: [AAA-002] without `MCP <revision> <page>#<section>` on one line before it",
            "core/machine/src/a.rs:5: 2025-06-19 is not a revision",
            "core/machine/src/a.rs:7: [AAA-004] without `MCP <revision> <page>#<section>` on one line before it",
            "core/machine/src/a.rs:10: [AAA-005] without `MCP <revision> <page>#<section>` on one line before it",
        ]
    );
}

#[test]
fn tests_cite_with_the_id_alone() {
    let text = "#[cfg(test)]\nmod tests {\n    // Rule: [AAA-001], [AAA-002].\n    #[test]\n    \
                fn f() {}\n}\n";
    let inside = found("core/machine/src/a.rs", text);
    assert_eq!(inside.errors, [""; 0]);
    assert_eq!(ids(&inside), [("AAA-001", None, Kind::Test), ("AAA-002", None, Kind::Test)]);
    let behind = found(
        "core/machine/tests/a.rs",
        "#[tokio::test]\nasync fn f() { g() } // Rule: [AAA-001].",
    );
    assert_eq!(behind.errors.len(), 1, "behind the body");
    let body = found("core/machine/tests/a.rs", "#[test]\nfn f() {\n // Rule: [AAA-001].\n}\n");
    assert_eq!(body.errors, [""; 0]);
    assert_eq!(ids(&body), [("AAA-001", None, Kind::Test)]);
}

#[test]
fn a_test_that_only_speaks_of_a_rule_does_not_hold_it() {
    let found = found("core/machine/tests/a.rs", "#[test]\nfn f() {\n // As [AAA-001] says.\n}\n");
    assert_eq!(ids(&found), [("AAA-001", None, Kind::Mention)]);
    assert_eq!(found.errors, [""; 0]);
}

#[test]
fn a_rule_outside_of_a_test_is_refused() {
    let error = |path, text| match &found(path, text).errors[..] {
        [] => String::new(),
        [error] => error.clone(),
        errors => panic!("{errors:?}"),
    };
    let outside = [
        ("core/machine/tests/a.rs", "//! Rule: [AAA-001].\n\n#[test]\nfn f() {}\n"),
        ("core/machine/tests/a.rs", "fn helper() {\n // Rule: [AAA-001].\n}\n#[test]\nfn f() {}\n"),
        ("core/machine/tests/a.rs", "// Rule: [AAA-001].\nfn f() {}\n"),
        (
            "core/machine/tests/a.rs",
            "const A: u8 = 1; // Rule: [AAA-001].\n#[test]\nfn f() { B }\n",
        ),
        ("core/machine/src/a.rs", "// MCP 2025-06-18 a#b Rule: [AAA-001].\nfn f() {}\n"),
    ];
    for (path, text) in outside {
        assert!(error(path, text).contains("`Rule:` outside of a test"), "{text}");
    }
    let table = "// Rule: [AAA-001].\nconst A: u8 = 1;\n#[test]\nfn f() { A }\n";
    assert_eq!(error("core/machine/tests/a.rs", table), "");
    assert_eq!(ids(&found("core/machine/tests/a.rs", table)), [("AAA-001", None, Kind::Test)]);
}

#[test]
fn a_test_holds_a_handful_of_rules() {
    let rules = |count| (1..=count).map(|it| format!("[AAA-{it:03}]")).collect::<String>();
    let errors = |text: String| found("core/machine/tests/a.rs", &text).errors;
    let test = |count| format!("// Rule: {}\n#[test]\nfn f() {{}}\n", rules(count));
    assert_eq!(errors(test(RULES_MAX)), [""; 0]);
    assert_eq!(
        errors(test(RULES_MAX + 1)),
        [
            "core/machine/tests/a.rs:1: the test `f` cites 7 rules, at most 6: split it, or cite each rule \
          at the test that fails when that rule is broken"
        ]
    );
    let (few, many) = (rules(4), rules(8).split_off(4 * "[AAA-001]".len()));
    let spread = format!("// Rule: {few}\n#[test]\nfn f() {{\n // Rule: {many}\n}}\n");
    assert_eq!(errors(spread).len(), 1, "citations above a test and in it are added up");
    let table = |first: &str, second: &str| {
        let rows = format!("const A: [u8; 2] = [\n1, // Rule: {first}\n2, // Rule: {second}\n];");
        errors(format!("{rows}\n#[test]\nfn f() {{ A }}\n"))
    };
    assert_eq!(table(&few, &many), [""; 0], "each row of a table counts alone");
    assert_eq!(table(&few, &rules(7)).len(), 1);
}

#[test]
fn a_module_for_tests_may_have_its_own_file() {
    let files = [PathBuf::from("core/machine/src/peer/checks")];
    assert!(is_test_file(Path::new("core/machine/src/peer/checks.rs"), &files));
    assert!(is_test_file(Path::new("core/machine/src/peer/checks/a.rs"), &files));
    assert!(!is_test_file(Path::new("core/machine/src/peer/checks_more.rs"), &files));
    assert!(is_test_file(Path::new("adapters/std/tests/a.rs"), &[]));
}

#[test]
fn other_brackets_are_no_ids() {
    let text = "// [`Foo`] [a-001] [A-001] [AAA-01] [x](y) [AAA-001";
    assert_eq!(ids(&found("a.rs", text)), []);
}

//! Tests of `rules`.

use super::*;

#[test]
fn revisions_are_one_a_range_or_a_list() {
    assert_eq!(parse_revisions("2025-03-26"), Ok(vec!["2025-03-26"]));
    assert_eq!(parse_revisions("2025-06-18..2026-07-28"), Ok(REVISIONS[2..].to_vec()));
    assert_eq!(
        parse_revisions("2024-11-05, 2025-11-25..2026-07-28"),
        Ok(vec!["2024-11-05", "2025-11-25", "2026-07-28"])
    );
    assert!(parse_revisions("2025-01-01").is_err());
    assert!(parse_revisions("2026-07-28..2024-11-05").is_err());
}

#[test]
fn a_broken_line_is_named() {
    let line = "A-001\tone\tboth\tMUST\t2025-03-26\tText.\tsource\n";
    let ledger = |lines: &[&str]| Ledger::parse(&format!("header\n{}", lines.concat()));
    assert_eq!(ledger(&[line]).map(|it| it.rules().count()), Ok(1));
    let error = |lines: &[&str]| ledger(lines).map(|_| ()).expect_err("broken");
    assert_eq!(error(&[line, "A-002\tone\n"]), "line 3: 2 fields instead of 7");
    assert_eq!(error(&[line, line]), "line 3: duplicate id A-001");
    assert_eq!(error(&[&line.replace("MUST", "WILL")]), "line 2: no level `WILL`");
    let mut both = ledger(&[line]).expect("well formed");
    let other = ledger(&[&line.replace("A-001", "B-001")]).expect("well formed");
    assert_eq!(both.extend(other), Ok(()));
    assert_eq!(both.rules().count(), 2);
    assert!(both.extend(ledger(&[line]).expect("well formed")).is_err());
}

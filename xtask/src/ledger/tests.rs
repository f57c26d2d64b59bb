//! Tests of `ledger`.

use super::*;

const LEDGER: &str = "\
id\tarea\trole\tlevel\trevisions\ttext\tsource
AAA-001\tone\tboth\tMUST\t2024-11-05..2025-06-18\tFirst.\t2025-06-18:x#one
AAA-002\tone\tboth\tSHOULD NOT\t2026-07-28\tSecond.\t2026-07-28:x#two
BBB-001\ttwo\tboth\tMAY\t2025-11-25\tThird.\t2025-11-25:y
";

fn citation(id: &str, page: Option<(&str, &str)>) -> Citation {
    Citation {
        place: "a.rs:1".to_owned(),
        id: id.to_owned(),
        page: page.map(|(revision, page)| (revision.to_owned(), page.to_owned())),
        kind: Kind::Code,
    }
}

#[test]
fn a_citation_names_a_rule_at_one_of_its_revisions() {
    let ledger = Ledger::parse(LEDGER).expect("well formed");
    let wrong = |id, page| wrong(&citation(id, page), &ledger);
    assert_eq!(wrong("AAA-001", Some(("2025-03-26", "x"))), None);
    assert_eq!(wrong("AAA-001", None), None);
    assert_eq!(
        wrong("AAA-001", Some(("2025-11-25", "x"))).as_deref(),
        Some(
            "a.rs:1: AAA-001 is not a rule of 2025-11-25 but of 2024-11-05, 2025-03-26, 2025-06-18"
        )
    );
    assert_eq!(wrong("AAA-009", None).as_deref(), Some("a.rs:1: the ledger has no rule AAA-009"));
}

#[test]
fn a_citation_names_the_page_of_the_ledger() {
    let ledger = Ledger::parse(LEDGER).expect("well formed");
    let wrong = |page| wrong(&citation("AAA-001", Some(page)), &ledger);
    assert_eq!(wrong(("2025-06-18", "x")), None);
    assert_eq!(
        wrong(("2025-06-18", "y")).as_deref(),
        Some(
            "a.rs:1: AAA-001 is cited from the page 2025-06-18 y; the ledger has it from 2025-06-18:x"
        )
    );
}

#[test]
fn a_cited_page_exists() {
    let pages = Pages::parse("2025-06-18:x\n");
    let absent = |page| absent(&citation("AAA-001", Some(page)), &pages);
    assert_eq!(absent(("2025-06-18", "x")), None);
    assert_eq!(absent(("2025-06-18", "y")).as_deref(), Some("a.rs:1: 2025-06-18 has no page y"));
}

#[test]
fn the_list_of_gaps_is_exact() {
    let ledger = Ledger::parse(LEDGER).expect("well formed");
    let rules: Vec<_> = ledger.rules().collect();
    let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
    let cited = Cited { code: set(&["AAA-001", "AAA-002"]), test: set(&["AAA-001"]) };
    let check = |text| check_gaps(text, &rules, &cited);
    assert_eq!(check("# gaps\n\nAAA-002 test no peer does it\n"), [""; 0]);
    assert_eq!(check("AAA-002 test\n").len(), 2, "a reason is missing");
    assert_eq!(check("AAA-002 code why\n"), ["AAA-002 has no test"]);
    assert_eq!(check(""), ["AAA-002 has no test"]);
    let closed = check("AAA-001 both why\nAAA-002 test why\n");
    assert_eq!(closed, ["AAA-001 has code and test: take it off the list"]);
}

#[test]
fn arguments_that_are_not_known_are_refused() {
    assert!(options(&["--area", "one", "--missing"]).is_ok_and(|it| it.missing));
    assert!(options(&["--area"]).is_err());
    assert!(options(&["--aera", "one"]).is_err());
}

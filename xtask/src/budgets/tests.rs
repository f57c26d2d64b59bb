//! Tests of `budgets`.

use super::*;

fn cost(name: &str, instructions: u64, allocations: u64, heap: Option<u64>) -> Cost {
    Cost { name: name.into(), instructions, allocations, heap }
}

fn found(budget: &Cost, cost: &Cost) -> (usize, usize) {
    let findings = compare(std::slice::from_ref(budget), std::slice::from_ref(cost));
    (findings.faults.len(), findings.hints.len())
}

#[test]
fn a_budget_holds_up_to_its_tolerance() {
    let budget = cost("a", 1000, 200, Some(500));
    assert_eq!(found(&budget, &budget), (0, 0));
    assert_eq!(found(&budget, &cost("a", 1050, 200, Some(525))), (0, 0));
    assert_eq!(found(&budget, &cost("a", 1051, 200, Some(500))), (1, 0));
    assert_eq!(found(&budget, &cost("a", 1000, 200, Some(526))), (1, 0));
}

#[test]
fn an_allocation_more_is_one_too_many() {
    let budget = cost("a", 1000, 0, None);
    assert_eq!(found(&budget, &cost("a", 1000, 1, None)), (1, 0));
}

#[test]
fn a_budget_that_is_far_too_large_is_mentioned() {
    let budget = cost("a", 1000, 200, None);
    assert_eq!(found(&budget, &cost("a", 921, 200, None)), (0, 0));
    assert_eq!(found(&budget, &cost("a", 919, 199, None)), (0, 2));
}

#[test]
fn a_feature_that_is_on_and_not_used_costs_nothing() {
    let found = |instructions, allocations| {
        let on = cost(&format!("a{UNUSED}"), instructions, allocations, None);
        let found = costs_of_unused_features(&[cost("a", 1000, 100, None), on]);
        (found.faults.len(), found.hints.len())
    };
    assert_eq!(found(1020, 100), (0, 0));
    assert_eq!(found(1021, 100), (0, 1));
    assert_eq!(found(1000, 101), (1, 0));
    assert_eq!(found(900, 50), (0, 0));
}

#[test]
fn each_scenario_has_a_budget_and_each_budget_a_scenario() {
    assert_eq!(found(&cost("a", 1, 0, None), &cost("b", 1, 0, None)), (2, 0));
}

#[test]
fn the_documentation_shows_the_budgets() {
    let text = |path: &str| std::fs::read_to_string(files::root().join(path)).unwrap();
    let budgets = read(&text(FILE)).unwrap();
    let document = text(DOCUMENT);
    let printed = document::replaced(&document, MARK, &table(&budgets)).unwrap();
    assert!(document == printed, "`cargo run -p xtask -- budgets --write` prints the table");
}

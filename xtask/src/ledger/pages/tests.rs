//! Tests of `pages`.

use super::*;

#[test]
fn at_the_revision_of_the_ledger_the_page_is_that_of_the_ledger() {
    let page = "2026-07-28:basic/patterns/progress";
    assert!(agree(page, "2026-07-28", "basic/patterns/progress"));
    assert!(!agree(page, "2026-07-28", "basic/patterns/cancellation"));
    assert!(!agree(page, "2026-07-28", "basic/utilities/progress"));
}

#[test]
fn at_another_revision_it_is_the_page_of_that_name_or_its_former_or_later_name() {
    let page = "2026-07-28:basic/patterns/progress";
    assert!(agree(page, "2025-11-25", "basic/patterns/progress"));
    assert!(agree(page, "2025-11-25", "basic/utilities/progress"));
    assert!(!agree(page, "2025-11-25", "basic/utilities/cancellation"));
    let page = "2025-11-25:basic/utilities/progress";
    assert!(agree(page, "2026-07-28", "basic/patterns/progress"));
    assert!(!agree(page, "2025-03-26", "basic/patterns/progress"));
}

#[test]
fn pages_are_found_by_revision_or_extension() {
    let pages = Pages::parse("2025-11-25:basic/index\next-tasks:tasks\n");
    assert!(pages.contain("2025-11-25", "basic/index"));
    assert!(!pages.contain("2026-07-28", "basic/index"));
    assert!(pages.contain("2026-07-28", "ext-tasks:tasks"));
    assert!(!pages.contain("2026-07-28", "tasks"));
}

#[test]
fn extension_pages_match_every_revision() {
    assert!(agree("ext-tasks:tasks", "2026-07-28", "ext-tasks:tasks"));
    assert!(!agree("ext-tasks:tasks", "2026-07-28", "basic/index"));
    assert!(!agree("2026-07-28:basic/index", "2026-07-28", "ext-tasks:tasks"));
}

//! Pages of the specification that contain rules.

use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Pages that were renamed in a later revision: the old and the new name.
///
/// The ledger names one page for each rule, usually that of the latest revision, whereas code may
/// cite an older one.
const MOVED: [(&str, &str); 9] = [
    ("basic/authorization", "basic/authorization/authorization-server-discovery"),
    ("basic/authorization", "basic/authorization/client-registration"),
    ("basic/authorization", "basic/authorization/index"),
    ("basic/authorization", "basic/authorization/security-considerations"),
    ("basic/lifecycle", "basic/patterns/cancellation"),
    ("basic/transports", "basic/transports/stdio"),
    ("basic/transports", "basic/transports/streamable-http"),
    ("basic/utilities/cancellation", "basic/patterns/cancellation"),
    ("basic/utilities/progress", "basic/patterns/progress"),
];

/// The names of all pages: `revision:page`, or `extension:page`.
pub(super) struct Pages(BTreeSet<String>);

impl Pages {
    /// Parses one name per line.
    pub(super) fn parse(text: &str) -> Self {
        Self(text.lines().map(String::from).collect())
    }

    /// Returns whether a revision has the page. The page of an extension, `extension:page`, is the
    /// same at every revision.
    pub(super) fn contain(&self, revision: &str, page: &str) -> bool {
        let name = if page.contains(':') { page.into() } else { format!("{revision}:{page}") };
        self.0.contains(&name)
    }
}

/// Returns whether a citation of `page` at `revision` agrees with the page in the ledger.
///
/// At the ledger's own revision the pages must be equal. At another revision it is the page of the
/// same name, or the one renamed to or from it.
pub(super) fn agree(ledger: &str, revision: &str, page: &str) -> bool {
    // Pages of extensions have no revision.
    if page == ledger {
        return true;
    }
    let Some((ledger_revision, ledger_page)) = ledger.split_once(':') else { return false };
    if page == ledger_page {
        return true;
    }
    let moved = |older: &str, newer: &str| MOVED.contains(&(older, newer));
    match revision.cmp(ledger_revision) {
        Ordering::Equal => false,
        Ordering::Less => moved(page, ledger_page),
        Ordering::Greater => moved(ledger_page, page),
    }
}

#[cfg(test)]
mod tests;

//! The ledger: one rule of the protocol per line.

use std::collections::BTreeMap;

/// The revisions of the protocol, oldest first.
pub(crate) const REVISIONS: [&str; 5] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// The requirement levels of rules.
pub(super) const LEVELS: [&str; 5] = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", MAY];
pub(super) const MAY: &str = "MAY";

/// A line of the ledger.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) area: String,
    pub(super) role: String,
    pub(super) level: &'static str,
    pub(super) revisions: Vec<&'static str>,
    pub(super) text: String,
    /// The page that contains the rule, without the section: `2026-07-28:basic/index`.
    pub(super) page: String,
}

/// All rules, ordered by id.
#[derive(Debug)]
pub(super) struct Ledger(BTreeMap<String, Rule>);

impl Ledger {
    /// Parses `id area role level revisions text source`, separated by tabs, after one header line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut rules = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()).skip(1) {
            let rule = rule(line).map_err(|error| format!("line {number}: {error}"))?;
            if let Some(rule) = rules.insert(rule.id.clone(), rule) {
                return Err(format!("line {number}: duplicate id {}", rule.id));
            }
        }
        Ok(Self(rules))
    }

    /// Adds the rules of another ledger.
    pub(super) fn extend(&mut self, other: Self) -> Result<(), String> {
        if let Some(id) = other.0.keys().find(|id| self.0.contains_key(*id)) {
            return Err(format!("duplicate id {id}"));
        }
        self.0.extend(other.0);
        Ok(())
    }

    pub(super) fn get(&self, id: &str) -> Option<&Rule> {
        self.0.get(id)
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.0.values()
    }
}

fn rule(line: &str) -> Result<Rule, String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [id, area, role, level, revisions, text, source] = fields[..] else {
        return Err(format!("{} fields instead of 7", fields.len()));
    };
    Ok(Rule {
        id: id.to_owned(),
        area: area.to_owned(),
        role: role.to_owned(),
        level: LEVELS
            .into_iter()
            .find(|it| *it == level)
            .ok_or_else(|| format!("no level `{level}`"))?,
        revisions: parse_revisions(revisions)?,
        text: text.to_owned(),
        page: source.split('#').next().unwrap_or(source).to_owned(),
    })
}

/// Parses a revision, an inclusive range `a..b`, or a comma-separated list of these.
fn parse_revisions(text: &str) -> Result<Vec<&'static str>, String> {
    let place = |name: &str| {
        let place = REVISIONS.iter().position(|revision| *revision == name.trim());
        place.ok_or_else(|| format!("no revision `{name}`"))
    };
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let range = REVISIONS.get(place(first)?..=place(last)?);
        found.extend(range.ok_or_else(|| format!("`{part}` runs backwards"))?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests;

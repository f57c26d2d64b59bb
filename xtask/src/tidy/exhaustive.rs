//! Public types that a later version could not extend: enums, and structs with public fields, that
//! are not `#[non_exhaustive]`. `CONTRIBUTING.md` lists them with their reasons.
//!
//! The types are read from the text of the public API. It does not show private fields, which keep
//! a struct from being built or matched as well, so such structs are in the list, too.

use std::collections::{BTreeMap, BTreeSet};

/// The heading of the list.
const HEADING: &str = "## What stays exhaustive";

/// Adds an error for each exhaustive type of `apis`, the texts of the public API, that the list in
/// `contributing` lacks, and for each entry of the list that is no such type.
pub(super) fn check(apis: &[String], contributing: &str, errors: &mut Vec<String>) {
    let exhaustive: BTreeSet<&str> = apis.iter().flat_map(|api| types(api)).collect();
    let listed = listed(contributing, errors);
    for name in exhaustive.difference(&listed) {
        errors.push(format!(
            "`{name}` is not `#[non_exhaustive]`; add the attribute, or a reason to \
             \"{}\" in CONTRIBUTING.md",
            HEADING.trim_start_matches("## ")
        ));
    }
    for name in listed.difference(&exhaustive) {
        errors.push(format!(
            "CONTRIBUTING.md: `{name}` is not an exhaustive type of the public API; run \
             `cargo run -p xtask -- api` if it is new, or remove it from the list"
        ));
    }
}

/// Returns the path of each exhaustive type in a crate.
fn types(api: &str) -> Vec<&str> {
    // Whether each type is exhaustive: an enum always is, a struct as soon as a public field shows.
    let mut found = BTreeMap::new();
    for line in api.lines() {
        let Some(item) = line.strip_prefix("pub ") else { continue };
        if let Some(item) = item.strip_prefix("enum ") {
            found.insert(path(item), true);
        } else if let Some(item) = item.strip_prefix("struct ") {
            found.insert(path(item), item.contains("(pub ") || item.contains(", pub "));
        } else if let Some((field, _)) = item.split_once(": ")
            && let Some((owner, _)) = field.rsplit_once("::")
        {
            found.entry(owner).and_modify(|exhaustive| *exhaustive = true);
        }
    }
    found.into_iter().filter(|(_, exhaustive)| *exhaustive).map(|(name, _)| name).collect()
}

/// Returns the path at the start of a declaration, without generic parameters.
fn path(item: &str) -> &str {
    item.split(['<', '(', ' ']).next().unwrap_or_default()
}

/// Returns the types in the list: bullets of the form "reason: `a::B`, `c::D`".
fn listed<'a>(contributing: &'a str, errors: &mut Vec<String>) -> BTreeSet<&'a str> {
    let lines = (1..).zip(contributing.lines()).skip_while(|(_, line)| *line != HEADING).skip(1);
    let mut listed = BTreeSet::new();
    let mut has_reason = false;
    for (number, line) in lines.take_while(|(_, line)| !line.starts_with("## ")) {
        let names = if let Some(entry) = line.strip_prefix("- ") {
            let (reason, names) = entry.split_once(':').unwrap_or_default();
            has_reason = !reason.is_empty() && !reason.contains('`');
            names
        } else if line.starts_with("  ") {
            line
        } else {
            continue;
        };
        for name in names.split('`').skip(1).step_by(2) {
            if !has_reason {
                errors.push(format!("CONTRIBUTING.md:{number}: `{name}` has no reason"));
            }
            if !listed.insert(name) {
                errors.push(format!("CONTRIBUTING.md:{number}: `{name}` is listed twice"));
            }
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(api: &str, list: &str) -> Vec<String> {
        let mut errors = Vec::new();
        let contributing =
            format!("# C\n\n- Not here: `a::X`\n\n{HEADING}\n\n{list}\n## D\n- E: `F`\n");
        check(&[api.to_owned()], &contributing, &mut errors);
        errors
    }

    #[test]
    fn an_enum_is_non_exhaustive_or_listed() {
        assert_eq!(errors("#[non_exhaustive] pub enum a::B<'a>\npub a::B::C(u8)\n", ""), [""; 0]);
        let [missing] = &errors("pub enum a::B<'a>\npub a::B::C\n", "")[..] else { panic!() };
        assert!(missing.starts_with("`a::B` is not"), "{missing}");
        assert_eq!(errors("pub enum a::B<'a>\n", "- The set is closed: `a::B`\n"), [""; 0]);
    }

    #[test]
    fn a_struct_counts_if_it_has_a_public_field() {
        assert_eq!(errors("pub struct a::B\npub fn a::B::c(&self)\n", ""), [""; 0]);
        assert_eq!(errors("pub struct a::B(_)\npub const a::B::C: u8\n", ""), [""; 0]);
        assert_eq!(errors("pub struct a::B<T: d::E>(pub &'a T)\n", "").len(), 1);
        assert_eq!(errors("pub struct a::B(_, pub u8)\n", "").len(), 1);
        assert_eq!(errors("pub struct a::B<T>\npub a::B::c: core::time::Duration\n", "").len(), 1);
        let extensible = "#[non_exhaustive] pub struct a::B\npub a::B::c: u8\n";
        assert_eq!(errors(extensible, ""), [""; 0]);
    }

    #[test]
    fn a_field_of_a_variant_is_not_one_of_a_struct() {
        let api = "pub struct a::B\n#[non_exhaustive] pub enum a::b::B\npub a::b::B::C\npub a::b::B::C::d: u8\n";
        assert_eq!(errors(api, ""), [""; 0]);
    }

    #[test]
    fn the_list_names_exhaustive_types_once_and_with_a_reason() {
        let api = "pub enum a::B\npub enum a::C\n";
        assert_eq!(errors(api, "- Closed:\n  `a::B`,\n  `a::C`\n"), [""; 0]);
        assert_eq!(errors(api, "- Closed: `a::B`, `a::C`, `a::D`\n").len(), 1);
        assert_eq!(errors(api, "- Closed: `a::B`, `a::C`\n- Again: `a::C`\n").len(), 1);
        assert_eq!(errors(api, "- Closed: `a::B`\n- : `a::C`\n").len(), 1);
        let extensible = "#[non_exhaustive] pub enum a::B\n";
        assert_eq!(errors(extensible, "- Closed: `a::B`\n").len(), 1);
    }
}

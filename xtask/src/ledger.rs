//! Checks which rules of the protocol are implemented in code and covered by tests, based on
//! citations.

mod citations;
mod pages;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{Failure, files, reject};
use citations::{Citation, Found, Kind};
use pages::Pages;
pub(crate) use rules::REVISIONS;
use rules::{LEVELS, Ledger, MAY, Rule};

/// The rules of the protocol, those of the extensions, the names of the pages that contain them,
/// and the rules without code or test.
const PROTOCOL: &str = "docs/rules/protocol.tsv";
const EXTENSIONS: &str = "docs/rules/extensions.tsv";
pub(crate) const PAGES: &str = "docs/rules/pages.txt";
const OPEN: &str = "docs/rules/open.txt";

/// The areas in the ledger of the extensions whose rules have to be cited or listed as open. Rules
/// of other areas may be cited.
const EXTENSION_AREAS: [&str; 8] =
    ["apps", "dpop", "ema", "ext", "oauth-client-credentials", "server-card", "skills", "wif"];

/// The parsed arguments.
#[derive(Default)]
struct Options<'a> {
    area: Option<&'a str>,
    missing: bool,
    check: bool,
}

/// The rules that are cited.
#[derive(Default)]
struct Cited {
    code: BTreeSet<String>,
    test: BTreeSet<String>,
}

/// The number of rules, and how many of them are cited in code and in tests.
#[derive(Default)]
struct Count {
    rules: usize,
    code: usize,
    test: usize,
    both: usize,
}

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let options = options(arguments)?;
    let root = files::root();
    let mut ledger = parse(&root.join(PROTOCOL))?;
    let extensions = parse(&root.join(EXTENSIONS))?;
    let is_later = |rule: &&Rule| !EXTENSION_AREAS.contains(&rule.area.as_str());
    let later: BTreeSet<_> =
        extensions.rules().filter(is_later).map(|rule| rule.area.clone()).collect();
    ledger.extend(extensions).map_err(|error| Failure::Unable(format!("{EXTENSIONS}: {error}")))?;
    let asked = |rule: &&Rule| match options.area {
        Some(area) => area == rule.area,
        None => !later.contains(&rule.area),
    };
    let rules: Vec<&Rule> = ledger.rules().filter(asked).collect();
    if rules.is_empty() {
        let area = options.area.unwrap_or("(any)");
        return Err(Failure::Unable(format!("no area `{area}` in the ledger")));
    }

    let found = citations::find(&root)?;
    let mut errors = found.errors.clone();
    errors.extend(found.citations.iter().filter_map(|citation| wrong(citation, &ledger)));
    let pages = Pages::parse(&files::read(&root.join(PAGES))?);
    errors.extend(found.citations.iter().filter_map(|citation| absent(citation, &pages)));
    let cited = cited(&found);
    report(&rules, &cited);
    if options.missing {
        missing(&rules, &cited);
    }
    if options.check {
        errors.extend(check_gaps(&files::read(&root.join(OPEN))?, &rules, &cited));
    }
    reject(&errors, "errors in the citations")
}

fn options<'a>(arguments: &[&'a str]) -> Result<Options<'a>, Failure> {
    let mut options = Options::default();
    let mut arguments = arguments.iter();
    while let Some(name) = arguments.next() {
        match *name {
            "--missing" => options.missing = true,
            "--check" => options.check = true,
            "--area" => {
                let area = arguments.next();
                let area =
                    area.ok_or_else(|| Failure::Unable("ledger: --area needs a value".into()))?;
                options.area = Some(area);
            }
            _ => return Err(Failure::Unable(format!("ledger: unknown argument `{name}`"))),
        }
    }
    Ok(options)
}

fn parse(path: &Path) -> Result<Ledger, Failure> {
    Ledger::parse(&files::read(path)?)
        .map_err(|error| Failure::Unable(format!("{}: {error}", path.display())))
}

/// Returns the error in a citation, if any.
fn wrong(citation: &Citation, ledger: &Ledger) -> Option<String> {
    let Citation { place, id, page, .. } = citation;
    let Some(rule) = ledger.get(id) else {
        return Some(format!("{place}: the ledger has no rule {id}"));
    };
    let (revision, page) = page.as_ref()?;
    if !rule.revisions.contains(&revision.as_str()) {
        let revisions = rule.revisions.join(", ");
        return Some(format!("{place}: {id} is not a rule of {revision} but of {revisions}"));
    }
    (!pages::agree(&rule.page, revision, page)).then(|| {
        format!(
            "{place}: {id} is cited from the page {revision} {page}; the ledger has it from {}",
            rule.page
        )
    })
}

/// Returns an error if the specification does not have the page of a citation.
fn absent(citation: &Citation, pages: &Pages) -> Option<String> {
    let (revision, page) = citation.page.as_ref()?;
    (!pages.contain(revision, page))
        .then(|| format!("{}: {revision} has no page {page}", citation.place))
}

fn cited(found: &Found) -> Cited {
    let mut cited = Cited::default();
    for citation in &found.citations {
        match citation.kind {
            Kind::Code => cited.code.insert(citation.id.clone()),
            Kind::Test => cited.test.insert(citation.id.clone()),
            Kind::Mention => false,
        };
    }
    cited
}

fn report(rules: &[&Rule], cited: &Cited) {
    let mut areas = BTreeMap::<&str, Count>::new();
    let mut levels = LEVELS.map(|level| (level, Count::default()));
    let mut total = Count::default();
    for rule in rules {
        let code = cited.code.contains(&rule.id);
        let test = cited.test.contains(&rule.id);
        let Some(level) = levels.iter_mut().find(|it| it.0 == rule.level) else { continue };
        for count in [areas.entry(&rule.area).or_default(), &mut level.1, &mut total] {
            count.rules += 1;
            count.code += usize::from(code);
            count.test += usize::from(test);
            count.both += usize::from(code && test);
        }
    }
    println!("{:<16} {:>6} {:>6} {:>6} {:>6}", "area", "rules", "code", "test", "both");
    for (area, count) in &areas {
        line(area, count);
    }
    println!();
    for (level, count) in levels.iter().filter(|(_, count)| count.rules > 0) {
        line(level, count);
    }
    println!();
    line("total", &total);
}

fn line(name: &str, count: &Count) {
    let Count { rules, code, test, both } = count;
    println!("{name:<16} {rules:>6} {code:>6} {test:>6} {both:>6}");
}

fn missing(rules: &[&Rule], cited: &Cited) {
    for (what, set) in [("code", &cited.code), ("a test", &cited.test)] {
        println!("\nwithout {what}:");
        for rule in rules.iter().filter(|rule| !set.contains(&rule.id)) {
            println!("{} {} ({}): {}", rule.id, rule.level, rule.role, rule.text);
        }
    }
}

/// Compares the gaps listed in `text` with the actual ones.
fn check_gaps(text: &str, rules: &[&Rule], cited: &Cited) -> Vec<String> {
    let mut errors = Vec::new();
    let mut listed = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some(id), Some(gap @ ("code" | "test" | "both")), Some(_)) => {
                listed.insert(id, gap);
            }
            _ => errors.push(format!(
                "gaps, line {number}: expected an id, `code`, `test` or `both`, and a reason"
            )),
        }
    }
    for rule in rules {
        let gap = match (cited.code.contains(&rule.id), cited.test.contains(&rule.id)) {
            (true, true) => None,
            (true, false) => Some("test"),
            (false, true) => Some("code"),
            (false, false) => Some("both"),
        };
        match (gap, listed.get(rule.id.as_str()).copied()) {
            (None, None) => {}
            (Some(gap), Some(listed)) if gap == listed => {}
            (Some(_), None) if rule.level == MAY => {}
            (Some("both"), _) => errors.push(format!("{} has neither code nor test", rule.id)),
            (Some(gap), _) => errors.push(format!("{} has no {gap}", rule.id)),
            (None, Some(_)) => {
                errors.push(format!("{} has code and test: take it off the list", rule.id));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests;

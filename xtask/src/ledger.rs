//! Checks which rules of the protocol are implemented in code and covered by tests, based on
//! citations.

mod citations;
mod pages;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{Failure, files};
use citations::{Citation, Found, Kind};
use pages::Pages;
pub(crate) use rules::REVISIONS;
use rules::{Ledger, Level, Rule};

/// The rules of the protocol, those of the extensions, the names of the pages that contain them, and
/// the rules without code or test.
const PROTOCOL: &str = "docs/rules/protocol.tsv";
const EXTENSIONS: &str = "docs/rules/extensions.tsv";
pub(crate) const PAGES: &str = "docs/rules/pages.txt";
const OPEN: &str = "docs/rules/open.txt";

/// The areas in the ledger of the extensions whose rules have to be cited or listed as open. Rules of
/// other areas may be cited.
const EXTENSION_AREAS: [&str; 3] = ["apps", "ext", "skills"];

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
        return Err(Failure::Unable(format!("no area `{}` in the ledger", or_none(options.area))));
    }

    let found = citations::find(&root)?;
    let mut errors = found.errors.clone();
    errors.extend(found.citations.iter().filter_map(|citation| wrong(citation, &ledger)));
    let pages = Pages::parse(&read(&root.join(PAGES))?);
    errors.extend(found.citations.iter().filter_map(|citation| absent(citation, &pages)));
    let cited = cited(&found);
    report(&rules, &cited);
    if options.missing {
        missing(&rules, &cited);
    }
    if options.check {
        errors.extend(check_gaps(&read(&root.join(OPEN))?, &rules, &cited));
    }

    for error in &errors {
        eprintln!("error: {error}");
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("{} errors in the citations", errors.len())))
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
    Ledger::parse(&read(path)?)
        .map_err(|error| Failure::Unable(format!("{}: {error}", path.display())))
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::Unable(format!("{}: {error}", path.display())))
}

fn or_none(text: Option<&str>) -> &str {
    text.unwrap_or("(any)")
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
    let mut levels = BTreeMap::<Level, Count>::new();
    let mut total = Count::default();
    for rule in rules {
        let code = cited.code.contains(&rule.id);
        let test = cited.test.contains(&rule.id);
        for count in [
            areas.entry(&rule.area).or_default(),
            levels.entry(rule.level).or_default(),
            &mut total,
        ] {
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
    for (level, count) in &levels {
        line(level.as_str(), count);
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
            println!("{} {} ({}): {}", rule.id, rule.level.as_str(), rule.role, rule.text);
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
            (Some(_), None) if rule.level == Level::May => {}
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
mod tests {
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
        assert_eq!(
            wrong("AAA-009", None).as_deref(),
            Some("a.rs:1: the ledger has no rule AAA-009")
        );
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
        assert_eq!(
            absent(("2025-06-18", "y")).as_deref(),
            Some("a.rs:1: 2025-06-18 has no page y")
        );
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
}

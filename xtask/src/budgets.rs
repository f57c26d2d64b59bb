//! Budgets for the cost of the machines, and the check against them.

use std::fmt::Write as _;

use crate::counter::{Count, versions};
use crate::document::{self, thousands};
use crate::{Failure, counter, files, reject};

/// The file of budgets.
const FILE: &str = "benches/budgets.tsv";
/// The page that shows the budgets.
const DOCUMENT: &str = "docs/guide/performance.md";
const MARK: &str = "budgets";

/// Tolerance above a budget, in per cent. It covers differences between minor versions of the
/// compiler or the system's library, and between build folders, whose path influences inlining (1.6
/// has been observed).
const TOLERANCE: u64 = 5;
/// Distance below a budget from which on it should be lowered, in per cent.
const SLACK: u64 = 8;

/// What follows the name of a scenario that was counted with all features on and none of them used.
const UNUSED: &str = ", all features on";
/// All features whose code is only for those who use it. The features that choose a kind of lock are
/// not among them.
const UNUSED_FEATURES: &[&str] =
    &["mcp-sansio/recording", "mcp-sansio-handlers/anyhow", "mcp-sansio-handlers/schemars"];
/// How much more features that are on and not used should cost at most, in per cent of the
/// instructions.
const UNUSED_GOAL: u64 = 2;

const HEAD: &str = "\
# Budgets for the cost of one operation. `cargo run -p xtask -- budgets` compares; `--write` updates.
# Heap: bytes that an open object retains, including the machines themselves.
";
const COLUMNS: &str = "scenario\tinstructions\tallocations\theap";

/// The measured cost of one operation, or its budget.
#[derive(Clone, Debug, PartialEq)]
struct Cost {
    name: String,
    instructions: u64,
    /// In hundredths, as some operations allocate only once in a while.
    allocations: u64,
    /// Bytes retained.
    heap: Option<u64>,
}

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    match arguments {
        [] => check(),
        ["--write"] => write(),
        _ => Err(Failure::Unable("unknown arguments: `budgets` takes --write or nothing".into())),
    }
}

fn check() -> Result<(), Failure> {
    let path = files::root().join(FILE);
    let budgets = read(&std::fs::read_to_string(path)?)
        .ok_or_else(|| Failure::Unable(format!("{FILE} is not a table of budgets")))?;
    let costs = measure()?;
    let mut findings = compare(&budgets, &costs);
    if !findings.hints.is_empty() {
        let remedy = "`cargo run -p xtask -- budgets --write` lowers them";
        findings.hints.push(remedy.to_owned());
    }
    let unused = costs_of_unused_features(&costs);
    findings.faults.extend(unused.faults);
    findings.hints.extend(unused.hints);
    for cost in &costs {
        println!("{}", line(cost, budgets.iter().find(|budget| budget.name == cost.name)));
    }
    for hint in &findings.hints {
        println!("hint: {hint}");
    }
    let made = "budgets are exceeded or incomplete; counted with";
    let what = format!("{made} {}, the file names the original versions", versions());
    reject(&findings.faults, &what)
}

fn write() -> Result<(), Failure> {
    let costs = measure()?;
    let mut text = format!("{HEAD}# Counted with {}.\n{COLUMNS}\n", versions());
    for cost in &costs {
        let heap = cost.heap.map(|heap| heap.to_string()).unwrap_or_default();
        let allocations = hundredths(cost.allocations);
        let _ = writeln!(text, "{}\t{}\t{allocations}\t{heap}", cost.name, cost.instructions);
    }
    std::fs::write(files::root().join(FILE), text)?;
    document::replace(DOCUMENT, MARK, &table(&costs))
}

/// Counts all scenarios.
fn measure() -> Result<Vec<Cost>, Failure> {
    let mut counts = counter::count("budgets", &[], &[])?;
    let mut unused = counter::count("budgets", UNUSED_FEATURES, &[])?;
    unused.iter_mut().filter_map(|count| count.fields.first_mut()).for_each(|it| *it += UNUSED);
    counts.extend(unused);
    counts.extend(counter::count("budgets", &["telemetry"], &[])?);
    let costs: Option<Vec<Cost>> = counts.iter().map(cost).collect();
    costs.ok_or_else(|| Failure::Unable("cannot parse the output of `budgets`".into()))
}

fn cost(count: &Count) -> Option<Cost> {
    let [name, operations, allocations, heap] = &count.fields[..] else { return None };
    let operations: u64 = operations.parse().ok()?;
    let allocations: u64 = allocations.parse().ok()?;
    Some(Cost {
        name: name.clone(),
        instructions: count.instructions.div_ceil(operations),
        allocations: (allocations * 100).div_ceil(operations),
        heap: if heap.is_empty() { None } else { Some(heap.parse().ok()?) },
    })
}

/// Parses a table of budgets; `None` if it is malformed.
fn read(text: &str) -> Option<Vec<Cost>> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    if lines.next() != Some(COLUMNS) {
        return None;
    }
    let budget = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, instructions, allocations, heap] = fields[..] else { return None };
        let (whole, part) = allocations.split_once('.')?;
        Some(Cost {
            name: name.to_owned(),
            instructions: instructions.parse().ok()?,
            allocations: whole.parse::<u64>().ok()? * 100 + part.parse::<u64>().ok()?,
            heap: if heap.is_empty() { None } else { Some(heap.parse().ok()?) },
        })
    };
    lines.map(budget).collect()
}

#[derive(Debug, Default)]
struct Findings {
    faults: Vec<String>,
    hints: Vec<String>,
}

fn compare(budgets: &[Cost], costs: &[Cost]) -> Findings {
    let mut findings = Findings::default();
    for cost in costs {
        match budgets.iter().find(|budget| budget.name == cost.name) {
            Some(budget) => findings.judge(budget, cost),
            None => findings.faults.push(format!(
                "{} has no budget in {FILE}; run `cargo run -p xtask -- budgets --write`",
                cost.name
            )),
        }
    }
    for budget in budgets {
        if !costs.iter().any(|cost| cost.name == budget.name) {
            findings.faults.push(format!("{} has a budget, but was not counted", budget.name));
        }
    }
    findings
}

impl Findings {
    fn judge(&mut self, budget: &Cost, cost: &Cost) {
        let rough = (TOLERANCE, SLACK);
        let number = |number: Option<u64>| number.unwrap_or_default();
        for (what, cost_of, budget_of, (above, below), shown) in [
            ("instructions", cost.instructions, budget.instructions, rough, thousands as Shown),
            ("allocations", cost.allocations, budget.allocations, (0, 0), hundredths),
            ("bytes of the heap", number(cost.heap), number(budget.heap), rough, thousands),
        ] {
            let more = percentage(cost_of, budget_of);
            let found = format!(
                "{}: {} {what}, the budget is {} ({more:+.1} %)",
                cost.name,
                shown(cost_of),
                shown(budget_of)
            );
            if cost_of * 100 > budget_of * (100 + above) {
                self.faults.push(found);
            } else if cost_of * 100 < budget_of * (100 - below) {
                self.hints.push(found);
            }
        }
    }
}

/// Compares the scenarios that were counted with all features on with those without. An allocation
/// is a fault.
fn costs_of_unused_features(costs: &[Cost]) -> Findings {
    let mut findings = Findings::default();
    for on in costs {
        let Some(name) = on.name.strip_suffix(UNUSED) else { continue };
        let Some(off) = costs.iter().find(|cost| cost.name == name) else { continue };
        if on.allocations > off.allocations {
            let [with, without] = [on, off].map(|it| hundredths(it.allocations));
            findings.faults.push(format!(
                "{name}: with features that are not used, {with} allocations in place of {without}"
            ));
        }
        if on.instructions * 100 > off.instructions * (100 + UNUSED_GOAL) {
            let more = percentage(on.instructions, off.instructions);
            findings.hints.push(format!(
                "{name}: features that are not used cost {more:+.1} % instructions; the goal is \
                 {UNUSED_GOAL} %"
            ));
        }
    }
    findings
}

type Shown = fn(u64) -> String;

/// Returns the excess of `cost` over `budget`, in per cent.
fn percentage(cost: u64, budget: u64) -> f64 {
    if cost == budget {
        return 0.0;
    }
    (cost as f64 / budget as f64 - 1.0) * 100.0
}

fn hundredths(number: u64) -> String {
    format!("{}.{:02}", number / 100, number % 100)
}

/// Formats a cost and its budget.
fn line(cost: &Cost, budget: Option<&Cost>) -> String {
    let (name, allocations) = (&cost.name, hundredths(cost.allocations));
    let heap = cost.heap.map(thousands).unwrap_or_default();
    let instructions = thousands(cost.instructions);
    let more = budget.map(|budget| percentage(cost.instructions, budget.instructions));
    let more = more.map(|more| format!("{more:+.1} %")).unwrap_or_default();
    format!("{name:<55} {instructions:>12} {more:>8} {allocations:>8} {heap:>8}")
}

/// Formats the budgets as Markdown.
fn table(costs: &[Cost]) -> String {
    let head = ["One of", "Instructions", "Allocations", "Heap, bytes"].map(String::from);
    let row = |cost: &Cost| {
        let heap = cost.heap.map(thousands).unwrap_or_default();
        vec![cost.name.clone(), thousands(cost.instructions), hundredths(cost.allocations), heap]
    };
    // The others differ by less than the tolerance.
    let shown = costs.iter().filter(|cost| !cost.name.ends_with(UNUSED));
    let rows: Vec<Vec<String>> = shown.map(row).collect();
    document::table(&head, &rows, 1)
}

#[cfg(test)]
mod tests;

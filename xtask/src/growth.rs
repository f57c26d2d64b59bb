//! How the cost of a message grows with the number of other objects.

use crate::counter::{self, Count};
use crate::document::{self, thousands};
use crate::{Failure, reject};

/// The page that shows the counts.
const DOCUMENT: &str = "docs/guide/performance.md";
const MARK: &str = "growth";

/// The largest size of a check: it takes seconds, and growth with the size shows as a factor of a
/// hundred.
const CHECKED_SIZE: &str = "1000";
/// The smallest size of a check: below it, tables have their minimum size, and searches are
/// trivial.
const CHECKED_FROM: u64 = 10;
/// Allowed factor for a cost that should not depend on the size: searches take a few more steps.
const FACTOR_MAX: f64 = 1.5;

/// The cost of an operation depending on the number of other objects.
#[derive(Clone, Debug, PartialEq)]
struct Curve {
    /// The objects that grow in number.
    around: String,
    work: String,
    /// Whether its cost may be proportional to the size, rather than constant or logarithmic.
    is_linear: bool,
    /// Sizes in ascending order, and instructions.
    points: Vec<(u64, u64)>,
}

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    match arguments {
        [] => {
            print!("{}", table(&measure(&[])?));
            Ok(())
        }
        ["--write"] => document::replace(DOCUMENT, MARK, &table(&measure(&[])?)),
        ["--check"] => check(&measure(&[CHECKED_SIZE])?),
        _ => Err(Failure::Unable(
            "unknown arguments: `growth` takes --write, --check or nothing".into(),
        )),
    }
}

fn check(curves: &[Curve]) -> Result<(), Failure> {
    print!("{}", table(curves));
    let grown = |curve: &&Curve| !curve.is_linear && curve.factor_from(CHECKED_FROM) > FACTOR_MAX;
    let fault = |curve: &Curve| {
        let factor = curve.factor_from(CHECKED_FROM);
        format!("{}: {} costs {factor:.2} times as much", curve.around, curve.work)
    };
    let faults: Vec<String> = curves.iter().filter(grown).map(fault).collect();
    reject(&faults, "costs grow although they should be constant")
}

fn measure(arguments: &[&str]) -> Result<Vec<Curve>, Failure> {
    let mut curves = Vec::new();
    for count in counter::count("load", &[], arguments)? {
        add(&mut curves, &count)
            .ok_or_else(|| Failure::Unable("cannot parse the output of `load`".into()))?;
    }
    Ok(curves)
}

/// Adds a point to the last curve, or to a new one.
fn add(curves: &mut Vec<Curve>, count: &Count) -> Option<()> {
    let [around, work, expected @ ("flat" | "linear"), size, runs] =
        &count.fields.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let point = (size.parse().ok()?, count.instructions.div_ceil(runs.parse().ok()?));
    match curves.last_mut() {
        Some(last) if last.around == *around && last.work == *work => last.points.push(point),
        _ => curves.push(Curve {
            around: (*around).into(),
            work: (*work).into(),
            is_linear: *expected == "linear",
            points: vec![point],
        }),
    }
    Some(())
}

/// Formats the counts as Markdown.
fn table(curves: &[Curve]) -> String {
    let sizes = curves.iter().flat_map(|curve| curve.points.iter().map(|(size, _)| *size));
    let sizes: std::collections::BTreeSet<u64> = sizes.collect();
    let mut head = vec!["Ever more".to_owned(), "Work".to_owned()];
    head.extend(sizes.iter().map(|size| thousands(*size)));
    head.push("Growth".to_owned());
    let row = |curve: &Curve| {
        let mut row = vec![curve.around.clone(), curve.work.clone()];
        row.extend(sizes.iter().map(|size| {
            let point = curve.points.iter().find(|(known, _)| known == size);
            point.map_or_else(String::new, |(_, instructions)| thousands(*instructions))
        }));
        let factor = curve.factor_from(0);
        row.push(if curve.is_linear { "linear".to_owned() } else { format!("× {factor:.2}") });
        row
    };
    let rows: Vec<Vec<String>> = curves.iter().map(row).collect();
    document::table(&head, &rows, 2)
}

impl Curve {
    /// Returns the ratio of the cost at the largest size to that at `size`, or at the next larger
    /// one.
    fn factor_from(&self, size: u64) -> f64 {
        let first = self.points.iter().find(|(known, _)| *known >= size);
        let (Some((_, first)), Some((_, last))) = (first, self.points.last()) else { return 1.0 };
        *last as f64 / *first as f64
    }
}

#[cfg(test)]
mod tests;

//! How the cost of a message grows with the number of other objects.

use crate::Failure;
use crate::counter::{self, Count};
use crate::document::{self, thousands};

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
    expected: Expected,
    /// Sizes in ascending order, and instructions.
    points: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// Constant or logarithmic.
    Flat,
    /// Proportional to the size.
    Linear,
}

impl Expected {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "flat" => Some(Self::Flat),
            "linear" => Some(Self::Linear),
            _ => None,
        }
    }
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
    let grown = |curve: &&Curve| {
        curve.expected == Expected::Flat && curve.factor_from(CHECKED_FROM) > FACTOR_MAX
    };
    let faults: Vec<&Curve> = curves.iter().filter(grown).collect();
    for curve in &faults {
        let factor = curve.factor_from(CHECKED_FROM);
        println!("error: {}: {} costs {factor:.2} times as much", curve.around, curve.work);
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("{} costs grow although they should be constant", faults.len())))
}

fn measure(arguments: &[&str]) -> Result<Vec<Curve>, Failure> {
    let counts = counter::count("load", &[], arguments)?;
    let points: Option<Vec<Point<'_>>> = counts.iter().map(point).collect();
    points.map(curves).ok_or_else(|| Failure::Unable("cannot parse the output of `load`".into()))
}

/// One point of a curve.
type Point<'p> = ([&'p str; 2], Expected, (u64, u64));

fn point(count: &Count) -> Option<Point<'_>> {
    let [around, work, expected, size, runs] = &count.fields[..] else { return None };
    let instructions = count.instructions.div_ceil(runs.parse().ok()?);
    Some(([around, work], Expected::parse(expected)?, (size.parse().ok()?, instructions)))
}

/// Groups points by curve.
fn curves(points: Vec<Point<'_>>) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for ([around, work], expected, point) in points {
        match curves.last_mut() {
            Some(last) if last.around == around && last.work == work => last.points.push(point),
            _ => curves.push(Curve {
                around: around.into(),
                work: work.into(),
                expected,
                points: vec![point],
            }),
        }
    }
    curves
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
        row.push(match curve.expected {
            Expected::Flat => format!("× {factor:.2}"),
            Expected::Linear => "linear".to_owned(),
        });
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
mod tests {
    use super::*;

    fn curve(expected: Expected, costs: &[u64]) -> Curve {
        let points = (0..).map(|decade| 10_u64.pow(decade)).zip(costs.iter().copied()).collect();
        Curve { around: "sheep".into(), work: "a dog".into(), expected, points }
    }

    #[test]
    fn unexpected_growth_is_found() {
        assert!(check(&[curve(Expected::Flat, &[100, 200, 250, 299])]).is_ok());
        assert!(check(&[curve(Expected::Flat, &[100, 200, 250, 301])]).is_err());
        assert!(check(&[curve(Expected::Linear, &[1, 10, 100, 1000])]).is_ok());
    }
}

//! How the cost of a message grows with the number of other objects.

mod plot;

use std::fmt::Write as _;

use crate::counter::{Count, versions};
use crate::document::{self, thousands};
use crate::{Failure, counter, files};

/// The counts.
const FILE: &str = "docs/guide/performance/growth.tsv";
/// The plot of the counts.
const PICTURE: &str = "docs/guide/performance/growth.svg";
/// The page that shows the counts.
const DOCUMENT: &str = "docs/guide/performance.md";
const MARK: &str = "growth";

const HEAD: &str = "\
# Instructions of one piece of work while there is ever more of something else. Written by
# `cargo run -p xtask -- growth --write`.
";
const COLUMNS: &str = "ever more\twork\texpected\tsize\tinstructions";

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

    const fn as_str(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Linear => "linear",
        }
    }
}

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    match arguments {
        [] => {
            print!("{}", table(&measure(&[])?));
            Ok(())
        }
        ["--write"] => {
            let curves = measure(&[])?;
            std::fs::create_dir_all(files::root().join(FILE).with_file_name(""))?;
            std::fs::write(files::root().join(FILE), written(&curves))?;
            draw(&curves)
        }
        ["--draw"] => draw(&committed()?),
        ["--check"] => check(&measure(&[CHECKED_SIZE])?),
        _ => Err(Failure::Unable(
            "unknown arguments: `growth` takes --write, --draw, --check or nothing".into(),
        )),
    }
}

fn draw(curves: &[Curve]) -> Result<(), Failure> {
    std::fs::write(files::root().join(PICTURE), plot::svg(curves))?;
    document::replace(DOCUMENT, MARK, &table(curves))
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

fn committed() -> Result<Vec<Curve>, Failure> {
    let text = std::fs::read_to_string(files::root().join(FILE))?;
    read(&text).ok_or_else(|| Failure::Unable(format!("{FILE} is not a table of growth")))
}

fn read(text: &str) -> Option<Vec<Curve>> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    if lines.next() != Some(COLUMNS) {
        return None;
    }
    let point = |line| {
        let fields: Vec<&str> = str::split(line, '\t').collect();
        let [around, work, expected, size, instructions] = fields[..] else { return None };
        let point = (size.parse().ok()?, instructions.parse().ok()?);
        Some(([around, work], Expected::parse(expected)?, point))
    };
    let points: Option<Vec<Point<'_>>> = lines.map(point).collect();
    points.map(curves)
}

fn written(curves: &[Curve]) -> String {
    let mut text = format!("{HEAD}# Counted with {}.\n{COLUMNS}\n", versions());
    for Curve { around, work, expected, points } in curves {
        for (size, instructions) in points {
            let expected = expected.as_str();
            let _ = writeln!(text, "{around}\t{work}\t{expected}\t{size}\t{instructions}");
        }
    }
    text
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
    fn a_written_table_is_read_back() {
        let curves = [curve(Expected::Flat, &[1, 2, 3]), curve(Expected::Linear, &[1, 10])];
        let renamed = Curve { work: "a cat".into(), ..curves[1].clone() };
        let curves = [curves[0].clone(), renamed];
        assert_eq!(read(&written(&curves)).unwrap(), curves);
    }

    #[test]
    fn unexpected_growth_is_found() {
        assert!(check(&[curve(Expected::Flat, &[100, 200, 250, 299])]).is_ok());
        assert!(check(&[curve(Expected::Flat, &[100, 200, 250, 301])]).is_err());
        assert!(check(&[curve(Expected::Linear, &[1, 10, 100, 1000])]).is_ok());
    }

    #[test]
    fn the_picture_and_the_documentation_show_the_counts() {
        let text = |path: &str| std::fs::read_to_string(files::root().join(path)).unwrap();
        let (curves, document) = (committed().unwrap(), text(DOCUMENT));
        let remedy = "`cargo run -p xtask -- growth --draw` draws them";
        assert!(text(PICTURE) == plot::svg(&curves), "{remedy}");
        let printed = document::replaced(&document, MARK, &table(&curves)).unwrap();
        assert!(document == printed, "{remedy}");
    }
}

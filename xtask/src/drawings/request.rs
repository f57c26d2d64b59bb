//! The path of a request from the wire to its handler, and of the result back.

use std::collections::BTreeMap;
use std::fs;

use super::svg::{Area, Label, Svg};
use crate::source::Source;
use crate::{Failure, files};

const WIDTH: f64 = 1280.0;
const MARGIN: f64 = 14.0;
/// Space between columns.
const GAP: f64 = 20.0;
/// Space between rows, for the arrows.
const BETWEEN: f64 = 24.0;
/// Height of the column names at the bottom.
const FOOT: f64 = 36.0;
/// Incoming messages move up in the first two columns, outgoing ones move down in the others.
const COLUMNS: [&str; 4] = ["In, byte stream", "In, HTTP", "Out, HTTP", "Out, byte stream"];
const COLUMNS_IN: usize = 2;

/// The boxes, row by row.
const STEPS: &str = include_str!("request.tsv");

/// The first and the last column of a box.
type Columns = (usize, usize);

/// Draws the steps; fails if a box names a file or function that does not exist.
pub(super) fn drawing() -> Result<String, Failure> {
    let mut boxes: Vec<(Columns, Area, Label)> = Vec::new();
    let mut missing = Vec::new();
    let (mut last_row, mut y, mut bottom) = ("1", MARGIN, MARGIN);
    for line in STEPS.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (row, columns, title, about, file, function) = match fields[..] {
            [row, columns, title, about, file, function] => {
                let columns =
                    columns.split_once('-').map(|(first, last)| [first, last].map(str::parse));
                let Some([Ok(first), Ok(last)]) = columns else { return Err(unreadable(line)) };
                (row, (first, last), title, about, file, function)
            }
            _ => return Err(unreadable(line)),
        };
        let text = fs::read_to_string(files::root().join(file)).unwrap_or_default();
        if !Source::new(&text).has_function(function) {
            missing.push(format!("{title}: {file} has no function `{function}`"));
        }
        if row != last_row {
            (last_row, y) = (row, bottom + BETWEEN);
        }
        let (x, right) = (column(columns.0).0, column(columns.1).1);
        let label = Label::new(title, &[file.to_owned(), function.to_owned()], about, right - x);
        let area = Area { x, y, width: right - x, height: label.height() };
        bottom = bottom.max(area.bottom());
        boxes.push((columns, area, label));
    }
    if !missing.is_empty() {
        return Err(Failure::Failed(missing.join("\n")));
    }
    let height = bottom + FOOT;
    let mut svg = Svg::new(WIDTH, height, "How a request comes in and its result goes out");
    for (number, title) in COLUMNS.iter().enumerate() {
        svg.line("title", column(number).0, height - MARGIN, title);
    }
    for (points, back) in arrows(&boxes.iter().map(|it| (it.0, it.1)).collect::<Vec<_>>()) {
        svg.arrow("", &points, back);
    }
    for (_, area, label) in &boxes {
        svg.labelled(*area, label);
    }
    Ok(svg.finish())
}

fn unreadable(line: &str) -> Failure {
    Failure::Unable(format!("request.tsv: cannot read `{line}`"))
}

/// Returns the left and right edges of a column.
fn column(number: usize) -> (f64, f64) {
    let count = COLUMNS.len() as f64;
    let width = (WIDTH - 2.0 * MARGIN - (count - 1.0) * GAP) / count;
    let left = MARGIN + number as f64 * (width + GAP);
    (left, left + width)
}

/// Returns the arrows between the boxes of each column, from top to bottom; for incoming messages
/// the head is at the top.
fn arrows(boxes: &[(Columns, Area)]) -> Vec<([(f64, f64); 2], bool)> {
    // The columns in which two boxes are adjacent, by that pair of boxes.
    let mut joined = BTreeMap::<(usize, usize), Vec<usize>>::new();
    for number in 0..COLUMNS.len() {
        let inside = |at: &usize| (boxes[*at].0.0..=boxes[*at].0.1).contains(&number);
        let all: Vec<usize> = (0..boxes.len()).filter(inside).collect();
        for pair in all.windows(2) {
            joined.entry((pair[0], pair[1])).or_default().push(number);
        }
    }
    let arrow = |((upper, lower), columns): ((usize, usize), Vec<usize>)| {
        let (first, last) = (columns[0], columns[columns.len() - 1]);
        let x = f64::midpoint(column(first).0, column(last).1);
        ([(x, boxes[upper].1.bottom()), (x, boxes[lower].1.y)], first < COLUMNS_IN)
    };
    joined.into_iter().map(arrow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_join_adjacent_boxes_of_a_column() {
        let area = |number: f64| Area { x: 0.0, y: number * 50.0, width: 10.0, height: 30.0 };
        let boxes =
            [((0, 3), area(0.0)), ((0, 1), area(1.0)), ((2, 2), area(1.0)), ((1, 1), area(2.0))];
        let found = arrows(&boxes);
        let ends: Vec<_> =
            found.iter().map(|(points, up)| (points[0].1, points[1].1, *up)).collect();
        assert_eq!(ends, [(30.0, 50.0, true), (30.0, 50.0, false), (80.0, 100.0, true)]);
    }
}

//! Layout of boxes in rows, with arrows between rows that avoid the boxes.

use std::collections::{BTreeMap, BTreeSet};

use super::svg::{Area, Label, Svg};

/// The distance between two boxes of a row.
const GAP: f64 = 26.0;
/// The distance between two rows, for the arrows.
const BETWEEN: f64 = 40.0;
/// The width reserved for an arrow that passes a row.
const LANE: f64 = 10.0;
/// Iterations that improve the order in the rows.
const SWEEPS: usize = 6;

/// A graph whose nodes are assigned to rows.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// From the top.
    pub(super) rows: Vec<Vec<Node>>,
    pub(super) edges: Vec<Edge>,
}

/// A box.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) label: Label,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// An arrow between two boxes of different rows.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) from: String,
    pub(super) to: String,
    /// The CSS class.
    pub(super) class: &'static str,
}

/// A line through points, starting at the top; its class, and whether its head is there.
type Arrow = (Vec<(f64, f64)>, &'static str, bool);

/// The positions of all elements.
#[derive(Debug)]
pub(super) struct Placed {
    /// The boxes by name.
    pub(super) boxes: BTreeMap<String, Area>,
    arrows: Vec<Arrow>,
    pub(super) bottom: f64,
    /// The top of each row.
    pub(super) tops: Vec<f64>,
}

impl Graph {
    /// Places everything between `left` and `right`, starting at `top`. `extra` is additional space
    /// above each row.
    pub(super) fn place(&self, left: f64, right: f64, top: f64, extra: &[f64]) -> Placed {
        // Elements of rows are numbers: of boxes first, then of arrows that pass a row.
        let nodes: Vec<&Node> = self.rows.iter().flatten().collect();
        let mut widths: Vec<f64> = nodes.iter().map(|node| node.width).collect();
        let mut count = 0;
        let mut rows: Vec<Vec<usize>> = Vec::new();
        for row in &self.rows {
            rows.push((count..count + row.len()).collect());
            count += row.len();
        }
        let find = |name: &str| {
            let number = nodes.iter().position(|node| node.name == name).unwrap_or(0);
            (rows.iter().position(|row| row.contains(&number)).unwrap_or(0), number)
        };
        let ends: Vec<_> = self.edges.iter().map(|it| [find(&it.from), find(&it.to)]).collect();
        // The pairs of elements of neighbouring rows that a line joins, edge by edge.
        let mut links = Vec::new();
        for (edge, ends) in ends.iter().enumerate() {
            let (upper, lower) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            let mut last = upper.1;
            for row in &mut rows[upper.0 + 1..lower.0] {
                row.push(widths.len());
                links.push((edge, [last, widths.len()]));
                last = widths.len();
                widths.push(LANE);
            }
            links.push((edge, [last, lower.1]));
        }
        order(&mut rows, &links);

        let mut areas = vec![Area::default(); widths.len()];
        let (mut tops, mut y) = (Vec::new(), top);
        for (number, row) in rows.iter().enumerate() {
            y += extra.get(number).copied().unwrap_or(0.0);
            tops.push(y);
            let height = self.rows[number].iter().map(|node| node.height).fold(0.0, f64::max);
            let gaps = row.len().saturating_sub(1) as f64 * GAP;
            let taken: f64 = row.iter().map(|it| widths[*it]).sum::<f64>() + gaps;
            let mut x = left + ((right - left) - taken).max(0.0) / 2.0;
            for element in row {
                areas[*element] = Area { x, y, width: widths[*element], height };
                x += widths[*element] + GAP;
            }
            y += height + BETWEEN;
        }
        // The links at one side of an element share its width, in the order of their other ends.
        let port = |link: usize, side: usize| {
            let element = links[link].1[side];
            let mut beside: Vec<usize> =
                (0..links.len()).filter(|it| links[*it].1[side] == element).collect();
            let other = |it: &usize| areas[links[*it].1[1 - side]].middle();
            beside.sort_by(|one, two| other(one).total_cmp(&other(two)));
            let place = beside.iter().position(|it| *it == link).unwrap_or(0);
            let Area { x, width, .. } = areas[element];
            x + width * (place as f64 + 1.0) / (beside.len() as f64 + 1.0)
        };
        let mut arrows: Vec<Arrow> = self
            .edges
            .iter()
            .zip(&ends)
            .map(|(it, ends)| (vec![], it.class, ends[0] > ends[1]))
            .collect();
        for (number, (edge, [upper, lower])) in links.iter().enumerate() {
            arrows[*edge].0.push((port(number, 0), areas[*upper].bottom()));
            arrows[*edge].0.push((port(number, 1), areas[*lower].y));
        }
        let boxes = nodes.iter().map(|node| node.name.clone()).zip(areas).collect();
        Placed { boxes, arrows, bottom: y - BETWEEN, tops }
    }
}

/// Sorts each row by the positions of its neighbours, to reduce crossings.
fn order(rows: &mut [Vec<usize>], links: &[(usize, [usize; 2])]) {
    for sweep in 0..SWEEPS {
        // The side of a link that is in the row to sort.
        let side = if sweep % 2 == 0 { 1 } else { 0 };
        for step in 1..rows.len() {
            let row = if side == 1 { step } else { rows.len() - 1 - step };
            let positions = rows.iter().flat_map(|row| {
                let position =
                    |(at, it): (usize, &usize)| (*it, (at as f64 + 0.5) / row.len() as f64);
                row.iter().enumerate().map(position)
            });
            let positions: BTreeMap<usize, f64> = positions.collect();
            let key = |element: &usize| {
                let around = links.iter().filter(|it| it.1[side] == *element);
                let around: Vec<f64> = around.map(|it| positions[&it.1[1 - side]]).collect();
                let mean = around.iter().sum::<f64>() / around.len() as f64;
                if around.is_empty() { positions[element] } else { mean }
            };
            rows[row].sort_by(|one, other| key(one).total_cmp(&key(other)));
        }
    }
}

impl Placed {
    /// Draws the arrows, then the boxes of `graph`.
    pub(super) fn draw(&self, graph: &Graph, svg: &mut Svg) {
        for (points, class, up) in &self.arrows {
            svg.arrow(class, points, *up);
        }
        for node in graph.rows.iter().flatten() {
            svg.labelled(self.boxes[&node.name], &node.label);
        }
    }
}

/// Returns `edges` without those implied by `all`, that is without edges for which a longer path
/// leads to the same end.
pub(super) fn reduced(
    edges: &BTreeSet<(String, String)>,
    all: &BTreeSet<(String, String)>,
) -> BTreeSet<(String, String)> {
    let mut next = BTreeMap::<&str, Vec<&str>>::new();
    for (from, to) in all {
        next.entry(from).or_default().push(to);
    }
    let reaches = |start: &str, end: &str| {
        let mut seen = BTreeSet::new();
        let mut left = vec![start];
        while let Some(one) = left.pop() {
            if one == end {
                return true;
            }
            if seen.insert(one) {
                left.extend(next.get(one).into_iter().flatten());
            }
        }
        false
    };
    let follows = |from: &str, to: &str| {
        let steps = next.get(from).into_iter().flatten();
        steps.filter(|step| **step != to && **step != from).any(|step| reaches(step, to))
    };
    edges.iter().filter(|(from, to)| !follows(from, to)).cloned().collect()
}

#[cfg(test)]
mod tests;

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

/// An element of a row: a box, or a passing arrow, identified by the index of its edge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Box(String),
    Lane(usize),
}

/// An edge as the elements that it connects, from top to bottom.
#[derive(Debug)]
struct Chain {
    /// The row of the first element.
    row: usize,
    places: Vec<Place>,
    class: &'static str,
    /// Whether the arrow points up.
    up: bool,
}

impl Chain {
    /// Returns the element in `row` and the one directly above it.
    fn pair_above(&self, row: usize) -> Option<(&Place, &Place)> {
        let index = row.checked_sub(self.row)?;
        Some((self.places.get(index)?, self.places.get(index.checked_sub(1)?)?))
    }

    /// Returns the element in `row` and the one directly below it.
    fn pair_below(&self, row: usize) -> Option<(&Place, &Place)> {
        let index = row.checked_sub(self.row)?;
        Some((self.places.get(index)?, self.places.get(index + 1)?))
    }
}

/// A line through points, starting at the top.
#[derive(Debug)]
struct Arrow {
    points: Vec<(f64, f64)>,
    class: &'static str,
    up: bool,
}

impl Graph {
    /// Places everything between `left` and `right`, starting at `top`. `extra` is additional space
    /// above each row.
    pub(super) fn place(&self, left: f64, right: f64, top: f64, extra: &[f64]) -> Placed {
        let row_of: BTreeMap<&str, usize> = (0..)
            .zip(&self.rows)
            .flat_map(|(row, nodes)| nodes.iter().map(move |node| (node.name.as_str(), row)))
            .collect();
        let boxed = |node: &Node| Place::Box(node.name.clone());
        let mut rows: Vec<Vec<Place>> =
            self.rows.iter().map(|nodes| nodes.iter().map(boxed).collect()).collect();
        let mut chains = Vec::new();
        for (number, edge) in self.edges.iter().enumerate() {
            let (from, to) = (row_of[edge.from.as_str()], row_of[edge.to.as_str()]);
            let up = from > to;
            let (upper, lower) = if up { (&edge.to, &edge.from) } else { (&edge.from, &edge.to) };
            let mut places = vec![Place::Box(upper.clone())];
            for row in &mut rows[from.min(to) + 1..from.max(to)] {
                row.push(Place::Lane(number));
                places.push(Place::Lane(number));
            }
            places.push(Place::Box(lower.clone()));
            chains.push(Chain { row: from.min(to), places, class: edge.class, up });
        }
        order(&mut rows, &chains);
        self.areas(&rows, &chains, (left, right, top), extra)
    }

    fn areas(
        &self,
        rows: &[Vec<Place>],
        chains: &[Chain],
        (left, right, top): (f64, f64, f64),
        extra: &[f64],
    ) -> Placed {
        let nodes: BTreeMap<&str, &Node> =
            self.rows.iter().flatten().map(|node| (node.name.as_str(), node)).collect();
        let width = |place: &Place| match place {
            Place::Box(name) => nodes[name.as_str()].width,
            Place::Lane(_) => LANE,
        };
        let mut areas: Vec<BTreeMap<Place, Area>> = Vec::new();
        let mut tops = Vec::new();
        let mut y = top;
        for (number, row) in rows.iter().enumerate() {
            y += extra.get(number).copied().unwrap_or(0.0);
            tops.push(y);
            let height = self.rows[number].iter().map(|node| node.height).fold(0.0, f64::max);
            let gaps = row.len().saturating_sub(1) as f64 * GAP;
            let taken: f64 = row.iter().map(width).sum::<f64>() + gaps;
            let mut x = left + ((right - left) - taken).max(0.0) / 2.0;
            let mut placed = BTreeMap::new();
            for place in row {
                let width = width(place);
                placed.insert(place.clone(), Area { x, y, width, height });
                x += width + GAP;
            }
            areas.push(placed);
            y += height + BETWEEN;
        }
        let arrow = |(number, chain): (usize, &Chain)| {
            let mut points = Vec::new();
            for (index, place) in chain.places.iter().enumerate() {
                let row = chain.row + index;
                let area = areas[row][place];
                if index > 0 {
                    let x = port(
                        area,
                        number,
                        chains,
                        &|it| it.pair_above(row),
                        place,
                        &areas[row - 1],
                    );
                    points.push((x, area.y));
                }
                if index + 1 < chain.places.len() {
                    let x = port(
                        area,
                        number,
                        chains,
                        &|it| it.pair_below(row),
                        place,
                        &areas[row + 1],
                    );
                    points.push((x, area.bottom()));
                }
            }
            Arrow { points, class: chain.class, up: chain.up }
        };
        let arrows = chains.iter().enumerate().map(arrow).collect();
        let mut boxes = BTreeMap::new();
        for (place, area) in areas.into_iter().flatten() {
            if let Place::Box(name) = place {
                boxes.insert(name, area);
            }
        }
        Placed { boxes, arrows, bottom: y - BETWEEN, tops }
    }
}

/// Sorts each row by the positions of its neighbours, to reduce crossings.
fn order(rows: &mut [Vec<Place>], chains: &[Chain]) {
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        for step in 1..rows.len() {
            let row = if down { step } else { rows.len() - 1 - step };
            let beside = &rows[if down { row - 1 } else { row + 1 }];
            let position = |place: &Place| {
                let at = beside.iter().position(|it| it == place)?;
                Some((at as f64 + 0.5) / beside.len() as f64)
            };
            let mut keyed: Vec<(f64, Place)> = Vec::new();
            for (at, place) in rows[row].iter().enumerate() {
                let pairs = chains
                    .iter()
                    .filter_map(|it| if down { it.pair_above(row) } else { it.pair_below(row) });
                let around: Vec<f64> = pairs
                    .filter(|(own, _)| *own == place)
                    .filter_map(|(_, other)| position(other))
                    .collect();
                let key = if around.is_empty() {
                    (at as f64 + 0.5) / rows[row].len() as f64
                } else {
                    around.iter().sum::<f64>() / around.len() as f64
                };
                keyed.push((key, place.clone()));
            }
            keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
            rows[row] = keyed.into_iter().map(|(_, place)| place).collect();
        }
    }
}

/// Returns the point at which edge `number` leaves or enters `place`: the edges there share its
/// width, in the order of their other ends.
fn port(
    area: Area,
    number: usize,
    chains: &[Chain],
    pair: &dyn Fn(&Chain) -> Option<(&Place, &Place)>,
    place: &Place,
    beside: &BTreeMap<Place, Area>,
) -> f64 {
    let mut all: Vec<(f64, usize)> = Vec::new();
    for (at, chain) in chains.iter().enumerate() {
        if let Some((own, other)) = pair(chain)
            && own == place
        {
            all.push((beside[other].middle(), at));
        }
    }
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let at = all.iter().position(|it| it.1 == number).unwrap_or(0);
    area.x + area.width * (at as f64 + 1.0) / (all.len() as f64 + 1.0)
}

impl Placed {
    /// Draws the arrows, then the boxes of `graph`.
    pub(super) fn draw(&self, graph: &Graph, svg: &mut Svg) {
        for Arrow { points, class, up } in &self.arrows {
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
mod tests {
    use super::*;

    fn graph(rows: &[&[&str]], edges: &[(&str, &str)]) -> Graph {
        let node = |name: &&str| Node {
            name: (*name).to_owned(),
            label: Label::default(),
            width: 100.0,
            height: 30.0,
        };
        let edge = |&(from, to): &(&str, &str)| Edge {
            from: from.to_owned(),
            to: to.to_owned(),
            class: "",
        };
        Graph {
            rows: rows.iter().map(|row| row.iter().map(node).collect()).collect(),
            edges: edges.iter().map(edge).collect(),
        }
    }

    #[test]
    fn boxes_do_not_overlap_and_stay_inside() {
        let rows: [&[&str]; 3] = [&["a", "b"], &["c", "d", "e"], &["f"]];
        let edges = [("a", "f"), ("b", "f"), ("a", "e"), ("b", "c")];
        let placed = graph(&rows, &edges).place(0.0, 600.0, 0.0, &[]);
        let boxes: Vec<&Area> = placed.boxes.values().collect();
        assert_eq!(boxes.len(), 6);
        for (at, one) in boxes.iter().enumerate() {
            assert!(one.x >= 0.0 && one.right() <= 600.0 && one.bottom() <= placed.bottom);
            for other in &boxes[at + 1..] {
                let apart = one.right() <= other.x
                    || other.right() <= one.x
                    || one.bottom() <= other.y
                    || other.bottom() <= one.y;
                assert!(apart, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn an_arrow_passes_between_boxes() {
        let rows: [&[&str]; 3] = [&["a"], &["b", "c"], &["d"]];
        let placed = graph(&rows, &[("a", "d")]).place(0.0, 600.0, 0.0, &[]);
        let Arrow { points, up, .. } = &placed.arrows[0];
        assert!(!up && points.len() == 4);
        for area in placed.boxes.values().filter(|it| it.y == placed.tops[1]) {
            assert!(points[1].0 < area.x || points[1].0 > area.right());
        }
    }

    #[test]
    fn an_arrow_that_points_up_is_drawn_from_above() {
        let rows: [&[&str]; 2] = [&["a"], &["b"]];
        let placed = graph(&rows, &[("b", "a")]).place(0.0, 600.0, 0.0, &[]);
        let Arrow { points, up, .. } = &placed.arrows[0];
        assert!(*up && points[0].1 < points[1].1);
    }

    #[test]
    fn transitive_edges_are_omitted() {
        let set = |edges: &[(&str, &str)]| {
            edges.iter().map(|(a, b)| (String::from(*a), String::from(*b))).collect()
        };
        let edges = set(&[("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")]);
        assert_eq!(reduced(&edges, &edges), set(&[("a", "b"), ("b", "c"), ("d", "c")]));
        let without = set(&[("a", "c"), ("b", "c")]);
        assert_eq!(reduced(&without, &without), without);
    }
}

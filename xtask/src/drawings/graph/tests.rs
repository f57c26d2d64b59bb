//! Tests of `graph`.

use super::*;

fn graph(rows: &[&[&str]], edges: &[(&str, &str)]) -> Graph {
    let node = |name: &&str| Node {
        name: (*name).to_owned(),
        label: Label::default(),
        width: 100.0,
        height: 30.0,
    };
    let edge =
        |&(from, to): &(&str, &str)| Edge { from: from.to_owned(), to: to.to_owned(), class: "" };
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
    let (points, _, up) = &placed.arrows[0];
    assert!(!up && points.len() == 4);
    for area in placed.boxes.values().filter(|it| it.y == placed.tops[1]) {
        assert!(points[1].0 < area.x || points[1].0 > area.right());
    }
}

#[test]
fn an_arrow_that_points_up_is_drawn_from_above() {
    let rows: [&[&str]; 2] = [&["a"], &["b"]];
    let placed = graph(&rows, &[("b", "a")]).place(0.0, 600.0, 0.0, &[]);
    let (points, _, up) = &placed.arrows[0];
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

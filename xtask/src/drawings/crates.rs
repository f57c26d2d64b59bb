//! The crates that applications use, and the layers inside the machine crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::graph::{Edge, Graph, Node, reduced};
use super::svg::{Area, LINE, Label, PADDING, Svg};
use crate::crates::{Crate, Dependency};
use crate::layers::{self, FOUNDATION, LAYERS, MACHINE};
use crate::{Failure, files};

const WIDTH: f64 = 1080.0;
/// The space around frames and inside of them.
const MARGIN: f64 = 14.0;
/// The height of a frame's title.
const HEAD: f64 = LINE + 2.0 * PADDING;
const CRATE_WIDTH: f64 = 236.0;
const MODULE_WIDTH: f64 = 330.0;

const LEGEND: [&str; 2] =
    ["Arrows point to dependencies; transitive ones are omitted.", "Dashed: with a feature."];

/// Folders whose crates are drawn, from the top.
const BANDS: [(&str, &str); 3] = [
    ("tools", "installable programs"),
    ("adapters", "I/O, clocks, randomness, threads and tasks; no rule of the protocol"),
    ("core", "no_std; no I/O, clock or randomness"),
];

/// Draws `crates`, and the modules of the machine crate; `uses` lists which module names which.
pub(super) fn drawing(
    crates: &[Crate],
    uses: &BTreeSet<(String, String)>,
) -> Result<String, Failure> {
    let inner = modules(layers::machine(crates)?, uses);
    let room = WIDTH - 10.0 * MARGIN;
    let inner_height = inner.place(0.0, room, HEAD, &[]).bottom + MARGIN + FOUNDATION_HEIGHT;
    let (outer, bands) = crates_graph(crates, room, inner_height);
    let extra = |row| if bands.iter().any(|band| band.0 == row) { HEAD } else { 0.0 };
    let extra: Vec<f64> = (0..outer.rows.len()).map(extra).collect();
    let placed = outer.place(2.0 * MARGIN, WIDTH - 2.0 * MARGIN, MARGIN, &extra);
    let height = placed.bottom + 3.0 * MARGIN + 2.0 * LINE;
    let mut svg = Svg::new(WIDTH, height, "Crates, layers and their dependencies");
    let mut frames = Vec::new();
    for (number, (first, title, about)) in bands.iter().enumerate() {
        let last = bands.get(number + 1).map_or(outer.rows.len(), |next| next.0) - 1;
        let top = placed.tops[*first] - HEAD;
        let ends = outer.rows[last].iter().map(|node| placed.boxes[&node.name].bottom());
        let bottom = ends.fold(top, f64::max) + MARGIN;
        let area = Area { x: MARGIN, y: top, width: WIDTH - 2.0 * MARGIN, height: bottom - top };
        svg.frame(area);
        frames.push((area, format!("{title}/"), about));
    }
    placed.draw(&outer, &mut svg);
    draw_machine(&mut svg, layers::machine(crates)?, &inner, placed.boxes[MACHINE]);
    for (area, title, about) in frames {
        svg.heading(area, &title, about);
    }
    for (number, line) in (1_u32..).zip(LEGEND) {
        svg.line("", MARGIN, placed.bottom + 2.0 * MARGIN + f64::from(number) * LINE, line);
    }
    Ok(svg.finish())
}

/// The height of the line about the modules below all layers.
const FOUNDATION_HEIGHT: f64 = LINE + PADDING;

fn draw_machine(svg: &mut Svg, machine: &Crate, inner: &Graph, area: Area) {
    svg.frame(area);
    let placed = inner.place(area.x, area.right(), area.y + HEAD, &[]);
    placed.draw(inner, svg);
    let about = format!("{}: {}", folder(machine), machine.description);
    svg.heading(area, &machine.name, &about);
    let below = format!("Below all of them: {}.", FOUNDATION.join(", "));
    svg.line("", area.x + PADDING, area.bottom() - PADDING, &below);
}

/// The first row of a frame around crates, its title, and an explanation.
type Band = (usize, &'static str, &'static str);

/// Arranges the crates in rows, each above its dependencies; also returns the bands.
fn crates_graph(crates: &[Crate], room: f64, machine_height: f64) -> (Graph, Vec<Band>) {
    let (mut rows, mut bands) = (Vec::new(), Vec::new());
    let mut drawn = BTreeSet::new();
    for (band, about) in BANDS {
        let inside: Vec<&Crate> =
            crates.iter().filter(|it| it.published && it.folder.starts_with(band)).collect();
        let heights = heights(&inside);
        let most = heights.values().max().map_or(0, |height| height + 1);
        if most > 0 {
            bands.push((rows.len(), band, about));
        }
        for height in (0..most).rev() {
            let row = inside.iter().filter(|it| heights[it.name.as_str()] == height);
            rows.push(row.map(|it| crate_node(it, room, machine_height)).collect::<Vec<_>>());
        }
    }
    drawn.extend(rows.iter().flatten().map(|node: &Node| node.name.clone()));
    let (mut all, mut needed) = (BTreeSet::new(), BTreeSet::new());
    for one in crates.iter().filter(|it| drawn.contains(&it.name)) {
        for Dependency { name, optional, .. } in &one.dependencies {
            if drawn.contains(name) {
                let edge = (one.name.clone(), name.clone());
                if !optional {
                    needed.insert(edge.clone());
                }
                all.insert(edge);
            }
        }
    }
    // A required dependency is not implied by an optional one.
    let optional: BTreeSet<(String, String)> = all.difference(&needed).cloned().collect();
    let edge = |class| move |(from, to)| Edge { from, to, class };
    let solid = reduced(&needed, &needed).into_iter().map(edge(""));
    let edges = solid.chain(reduced(&optional, &all).into_iter().map(edge("optional"))).collect();
    (Graph { rows, edges }, bands)
}

/// Returns the height of each crate: the length of its longest dependency chain in `crates`.
fn heights<'a>(crates: &[&'a Crate]) -> BTreeMap<&'a str, usize> {
    let mut heights: BTreeMap<&str, usize> =
        crates.iter().map(|it| (it.name.as_str(), 0)).collect();
    // Cargo allows no cycles, so that each round settles at least one height.
    for _ in crates {
        for one in crates {
            let below = one.dependencies.iter().filter_map(|it| heights.get(it.name.as_str()));
            let height = below.map(|height| height + 1).max().unwrap_or(0);
            heights.insert(&one.name, height);
        }
    }
    heights
}

/// Creates the box of a crate; that of the machine crate is large and empty.
fn crate_node(one: &Crate, room: f64, machine_height: f64) -> Node {
    let name = one.name.clone();
    if name == MACHINE {
        return Node { name, label: Label::default(), width: room, height: machine_height };
    }
    let label = Label::new(&name, &[folder(one)], &one.description, CRATE_WIDTH);
    Node { name, width: CRATE_WIDTH, height: label.height(), label }
}

/// Arranges the modules in their layers.
fn modules(machine: &Crate, uses: &BTreeSet<(String, String)>) -> Graph {
    let src = format!("{}src", folder(machine));
    let node = |module: &layers::Module| {
        let is_folder = files::root().join(&src).join(module.name).is_dir();
        let ending = if is_folder { "/" } else { ".rs" };
        let files = [format!("{src}/{}{ending}", module.name)];
        let label = Label::new(module.name, &files, module.knows, MODULE_WIDTH);
        let (name, width) = (module.name.to_owned(), MODULE_WIDTH);
        Node { name, width, height: label.height(), label }
    };
    let rows: Vec<Vec<Node>> =
        LAYERS.iter().map(|layer| layer.iter().map(node).collect()).collect();
    let layered = |name: &str| LAYERS.iter().flat_map(|it| it.iter()).any(|it| it.name == name);
    // `layers` reports those against the layers.
    let down =
        uses.iter().filter(|(from, to)| layered(from) && layered(to) && layers::is_below(to, from));
    let down: BTreeSet<_> = down.cloned().collect();
    let edges = reduced(&down, &down).into_iter().map(|(from, to)| Edge { from, to, class: "" });
    let edges = edges.collect();
    Graph { rows, edges }
}

/// Returns the folder of a crate with a trailing slash.
fn folder(one: &Crate) -> String {
    format!("{}/", Path::new(&one.folder).display())
}

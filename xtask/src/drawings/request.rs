//! The path of a request from the wire to its handler, and of the result back.

use std::collections::BTreeMap;
use std::fs;

use super::svg::{Area, Label, Svg};
use crate::crates::Crate;
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

const MACHINE: &str = "mcp-sansio";
const ASYNC: &str = "mcp-sansio-async";
const HANDLERS: &str = "mcp-sansio-handlers";

/// A box.
struct Step {
    title: &'static str,
    about: &'static str,
    /// The crate, the file in its folder `src`, and the function: `name` or `Type::name`.
    code: (&'static str, &'static str, &'static str),
    /// The first and the last column.
    columns: (usize, usize),
}

/// The rows, from the top.
const ROWS: &[&[Step]] = &[
    &[Step {
        title: "The handler runs",
        about: "A plain function at once, an async one where the driver polls.",
        code: (HANDLERS, "server_endpoint.rs", "ServerEndpoint::call"),
        columns: (0, 3),
    }],
    &[
        Step {
            title: "The handler is found",
            about: "By the id of the item that was found.",
            code: (HANDLERS, "dispatch.rs", "Handlers::prepare"),
            columns: (0, 1),
        },
        Step {
            title: "The outcome becomes a response",
            about: "A result, an error, or questions to the user.",
            code: (HANDLERS, "server_endpoint.rs", "ServerEndpoint::finish"),
            columns: (2, 3),
        },
    ],
    &[Step {
        title: "Arguments are validated",
        about: "By the validator, if one is installed.",
        code: (MACHINE, "peer/server/receive.rs", "Server::check_arguments"),
        columns: (0, 1),
    }],
    &[Step {
        title: "The target is looked up",
        about: "Once, by its name or URI; one that is not offered is refused.",
        code: (MACHINE, "catalog/subject/mod.rs", "Catalog::resolve_given"),
        columns: (0, 1),
    }],
    &[
        Step {
            title: "The gate: may it be sent?",
            about: "One table: the sender, revisions, phase and capability of each method.",
            code: (MACHINE, "protocol/method.rs", "Row::check"),
            columns: (0, 1),
        },
        Step {
            title: "The result is completed",
            about: "With the members that the revision requires of every result.",
            code: (MACHINE, "peer/server/answers.rs", "Server::send_result"),
            columns: (2, 3),
        },
    ],
    &[
        Step {
            title: "Era, id and metadata",
            about: "The metadata is read once; it says which era the request is of.",
            code: (MACHINE, "peer/server/receive.rs", "Server::receive_request"),
            columns: (0, 1),
        },
        Step {
            title: "Written into the transmit queue",
            about: "Once. Control traffic has a lane of its own.",
            code: (MACHINE, "peer/outbox.rs", "Outbox::try_push"),
            columns: (2, 3),
        },
    ],
    &[Step {
        title: "Routed to its machine",
        about: "A session's, or one of its own.",
        code: (MACHINE, "http/server/posts.rs", "Server::post"),
        columns: (1, 1),
    }],
    &[
        Step {
            title: "The envelope is scanned",
            about: "One pass checks the whole text; members stay text.",
            code: (MACHINE, "jsonrpc/envelope.rs", "parse"),
            columns: (0, 1),
        },
        Step {
            title: "Assigned to a stream",
            about: "As JSON or as an event.",
            code: (MACHINE, "http/server/placing.rs", "Server::place"),
            columns: (2, 2),
        },
    ],
    &[
        Step {
            title: "Frames are decoded",
            about: "Overlong lines are skipped.",
            code: (MACHINE, "stream/connection.rs", "StreamConnection::take_frames"),
            columns: (0, 0),
        },
        Step {
            title: "The head is checked",
            about: "Path, method, origin, types, length.",
            code: (MACHINE, "http/server/admission.rs", "Server::admit"),
            columns: (1, 1),
        },
        Step {
            title: "The exchange transmits",
            about: "A slow reader slows only itself.",
            code: (MACHINE, "http/server/transmit.rs", "Server::poll_transmit"),
            columns: (2, 2),
        },
        Step {
            title: "Queued frames leave together",
            about: "As many as there is room for.",
            code: (MACHINE, "stream/connection.rs", "StreamConnection::transmit"),
            columns: (3, 3),
        },
    ],
    &[
        Step {
            title: "Bytes are read",
            about: "",
            code: (ASYNC, "driver.rs", "Driver::poll_read"),
            columns: (0, 0),
        },
        Step {
            title: "A request is read",
            about: "",
            code: (ASYNC, "http_server/service.rs", "HttpService::serve"),
            columns: (1, 1),
        },
        Step {
            title: "A response is written",
            about: "",
            code: (ASYNC, "http_server/body.rs", "ServedBody::poll_frame"),
            columns: (2, 2),
        },
        Step {
            title: "Bytes are written",
            about: "",
            code: (ASYNC, "driver.rs", "Driver::write"),
            columns: (3, 3),
        },
    ],
];

/// Draws the steps; fails if a box names a file or function that does not exist.
pub(super) fn drawing(crates: &[Crate]) -> Result<String, Failure> {
    let mut boxes = Vec::new();
    let mut missing = Vec::new();
    let mut y = MARGIN;
    for steps in ROWS {
        let mut height = 0_f64;
        for step in *steps {
            let file = match locate(step, crates) {
                Ok(file) => file,
                Err(error) => {
                    missing.push(error);
                    continue;
                }
            };
            let (left, right) = (column(step.columns.0).0, column(step.columns.1).1);
            let named = [file, step.code.2.to_owned()];
            let label = Label::new(step.title, &named, step.about, right - left);
            height = height.max(label.height());
            let area = Area { x: left, y, width: right - left, height: label.height() };
            boxes.push((step, label, area));
        }
        y += height + BETWEEN;
    }
    if !missing.is_empty() {
        return Err(Failure::Failed(missing.join("\n")));
    }
    let height = y - BETWEEN + FOOT;
    let mut svg = Svg::new(WIDTH, height, "How a request comes in and its result goes out");
    for (number, title) in COLUMNS.iter().enumerate() {
        svg.line("title", column(number).0, height - MARGIN, title);
    }
    for (points, back) in arrows(&boxes.iter().map(|it| (it.0.columns, it.2)).collect::<Vec<_>>()) {
        svg.arrow("", &points, back);
    }
    for (_, label, area) in &boxes {
        svg.labelled(*area, label);
    }
    Ok(svg.finish())
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
fn arrows(boxes: &[((usize, usize), Area)]) -> Vec<([(f64, f64); 2], bool)> {
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
        let ends = columns.iter().map(|it| column(*it));
        let (left, right) =
            ends.fold((WIDTH, 0.0_f64), |all, it| (all.0.min(it.0), all.1.max(it.1)));
        let x = f64::midpoint(left, right);
        let points = [(x, boxes[upper].1.bottom()), (x, boxes[lower].1.y)];
        (points, columns[0] < COLUMNS_IN)
    };
    joined.into_iter().map(arrow).collect()
}

/// Returns the file of a step, relative to the workspace root; fails unless it contains the
/// function.
fn locate(step: &Step, crates: &[Crate]) -> Result<String, String> {
    let (name, file, function) = step.code;
    let owner = crates.iter().find(|it| it.name == name);
    let folder = owner.map(|it| it.folder.join("src"));
    let folder = folder.ok_or_else(|| format!("{}: crate `{name}` not found", step.title))?;
    let path = folder.join(file);
    let shown = path.display().to_string();
    let text = fs::read_to_string(files::root().join(path))
        .map_err(|_| format!("{}: file {shown} not found", step.title))?;
    if Source::new(&text).has_function(function) {
        return Ok(shown);
    }
    Err(format!("{}: {shown} has no function `{function}`", step.title))
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

    #[test]
    fn boxes_of_a_row_do_not_share_a_column() {
        for row in ROWS {
            for pair in row.windows(2) {
                assert!(pair[0].columns.1 < pair[1].columns.0, "{}", pair[1].title);
            }
        }
    }
}

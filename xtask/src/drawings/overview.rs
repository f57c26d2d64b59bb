//! The project in one picture, for the README: inputs and outputs of a machine, and an adapter around it.

use super::svg::{Area, Label, PADDING, Svg};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 346.0;

/// Inputs, from top to bottom: a title and an explanation.
const INPUTS: [(&str, &str); 3] = [
    ("Bytes, exchanges", "lines of a stream, HTTP requests and responses"),
    ("Commands", "call, respond, cancel, notify"),
    ("Time", "an Instant with each input"),
];

const OUTPUTS: [(&str, &str); 3] = [
    ("Frames, exchanges", "lines to write, HTTP requests and responses"),
    ("Events", "requests, results, progress, lost calls"),
    ("Deadline", "when to call again without input"),
];

const ADAPTERS: &str = "tokio · smol and async-std · blocking std · embedded-io · your own";

pub(super) fn drawing() -> String {
    let mut svg =
        Svg::new(WIDTH, HEIGHT, "Inputs and outputs of a machine, and an adapter around it");
    let around = Area { x: 8.0, y: 8.0, width: WIDTH - 16.0, height: HEIGHT - 16.0 };
    svg.frame(around);
    svg.heading(around, "Adapter", ADAPTERS);
    svg.line(
        "",
        around.x + PADDING,
        around.bottom() - PADDING,
        "moves bytes, reads the clock, draws randomness, runs tasks or threads; holds no rule of the protocol",
    );
    let machine = Area { x: 290.0, y: 150.0, width: 280.0, height: 124.0 };
    let handlers = Area { x: machine.x, y: 52.0, width: machine.width, height: 66.0 };
    svg.labelled(
        handlers,
        &Label::new(
            "mcp-sansio-handlers",
            &[],
            "Server, Host, Client: functions as handlers, on any runtime",
            handlers.width,
        ),
    );
    svg.labelled(
        machine,
        &Label::new(
            "mcp-sansio",
            &[],
            "peer::Server, peer::Client, http::Server, http::Client: synchronous state machines for all five \
             revisions. no_std, no I/O, no clock, no randomness, no unsafe code",
            machine.width,
        ),
    );
    let lanes = [handlers.middle() - 60.0, handlers.middle() + 60.0];
    svg.arrow("arrow", &[(lanes[0], handlers.bottom()), (lanes[0], machine.y)], false);
    svg.arrow("arrow", &[(lanes[1], machine.y), (lanes[1], handlers.bottom())], false);
    for (x, labels) in [(24.0, INPUTS), (604.0, OUTPUTS)] {
        for (number, (title, about)) in (0_u32..).zip(labels) {
            let y = 52.0 + f64::from(number) * 88.0;
            let area = Area { x, y, width: 232.0, height: 72.0 };
            svg.labelled(area, &Label::new(title, &[], about, area.width));
            let from = y + area.height / 2.0;
            let to = machine.y + 22.0 + f64::from(number) * 40.0;
            let points = if x < machine.x {
                [(area.right(), from), (machine.x, to)]
            } else {
                [(machine.right(), to), (area.x, from)]
            };
            svg.straight(points);
        }
    }
    svg.finish()
}

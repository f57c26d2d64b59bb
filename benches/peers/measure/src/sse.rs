//! Decoders of Server-Sent Events.

use std::process::Command;

use crate::Effort;
use crate::programs::Program;
use crate::table::Table;

const PROGRAMS: [Program; 4] = [
    Program::new("this project", "peer-sse", "mcp-sansio"),
    Program::new("sse-stream 0.3", "peer-sse", "sse-stream"),
    Program::new("eventsource-stream 0.2", "peer-sse", "eventsource-stream"),
    Program::new("floor: copy and scan", "peer-sse", "scan"),
];

const INPUTS: [(&str, &str); 2] =
    [("events of 100 bytes: GB/s", "small"), ("events of 4 MiB: GB/s", "long")];

pub(crate) fn compare(effort: Effort) {
    let mut table = Table::default();
    for program in PROGRAMS {
        let Some(path) = program.build() else { continue };
        let mut figures = Vec::new();
        for (name, input) in INPUTS {
            // A fifth of the time allows thousands of passes.
            let seconds = (effort.time.as_secs_f64() / 5.0).to_string();
            let output = Command::new(&path).args([program.variant, input, &seconds]).output();
            let output = output.expect("the program starts").stdout;
            let text = String::from_utf8(output).expect("words");
            let rate: f64 = text.trim().parse().expect("a number");
            figures.push((name.into(), format!("{:.2}", rate / 1e9)));
        }
        table.column(program.title, figures);
    }
    table.print("Server-Sent Events in reads of 16 KiB");
}

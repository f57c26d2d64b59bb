//! Round trips between a client and a server in one process.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Effort;
use crate::programs::Program;
use crate::table::{Table, number};

/// The number of round trips in the first instruction count. The difference from the second count
/// is divided by the additional round trips.
const FIRST_ROUNDS: u64 = 50;

const PROGRAMS: [Program; 8] = [
    Program::new("this project: machines, 2025-11-25", "peer-sansio", "machines-2025-11-25"),
    Program::new("this project: machines, 2026-07-28", "peer-sansio", "machines-2026-07-28"),
    Program::new("this project: tokio, 2025-11-25", "peer-sansio", "tokio-2025-11-25"),
    Program::new("this project: tokio, 2026-07-28", "peer-sansio", "tokio-2026-07-28"),
    Program::new("rmcp 3.11.0, as documented", "peer-rmcp", "documented"),
    Program::new("rmcp 3.11.0, router kept", "peer-rmcp", "cached"),
    Program::new("tower-mcp 0.25.0", "peer-tower-mcp", "channel"),
    Program::new("floor", "peer-floor", "serde_json"),
];

const IDLE_PAIRS: usize = 1000;

const WORKS: [(&str, &str); 3] = [("ping", "ping"), ("echo 64 B", "64"), ("echo 64 KiB", "65536")];

pub(crate) fn compare(effort: Effort) {
    let mut table = Table::default();
    for program in PROGRAMS {
        let Some(path) = program.build() else { continue };
        let mut figures = Vec::new();
        for (name, work) in WORKS {
            // The modern era has no `ping`.
            if work == "ping" && program.variant.ends_with("2026-07-28") {
                continue;
            }
            // Large texts take longer, so fewer rounds are run.
            let divisor = if work == "65536" { 10 } else { 1 };
            let rounds = effort.rounds / divisor;
            let (allocations, nanoseconds) = metered(&path, program.variant, work, rounds);
            let counted = effort.counted_rounds / divisor;
            let first = instructions(&path, program.variant, work, FIRST_ROUNDS);
            let second = instructions(&path, program.variant, work, FIRST_ROUNDS + counted);
            let each = |total: f64| total / rounds as f64;
            let instructions = first.zip(second).map_or_else(
                || "no valgrind".into(),
                |(first, second)| number(second.saturating_sub(first) as f64 / counted as f64),
            );
            figures.push((format!("{name}: instructions"), instructions));
            figures.push((format!("{name}: allocations"), number(each(allocations))));
            figures.push((format!("{name}: a second"), number(1e9 / each(nanoseconds))));
        }
        table.column(program.title, figures);
    }
    table.print("In one process, a round trip");
}

/// Measures the memory of idle clients and servers in one process.
pub(crate) fn compare_idle() {
    let mut table = Table::default();
    for program in PROGRAMS.iter().filter(|it| it.package != "peer-floor") {
        let Some(path) = program.build() else { continue };
        let mut command = command(&path, Stdio::piped());
        command.args([program.variant, "pairs", &IDLE_PAIRS.to_string()]);
        let (heap, resident) = two_numbers(command);
        let each = |bytes: f64| number(bytes / IDLE_PAIRS as f64 / 1024.0);
        table.column(
            program.title,
            vec![("heap, KiB".into(), each(heap)), ("resident, KiB".into(), each(resident))],
        );
    }
    table.print("In one process, an idle client and its server");
}

fn command(program: impl AsRef<std::ffi::OsStr>, stdout: Stdio) -> Command {
    let mut command = Command::new(program);
    command.stdout(stdout);
    command
}

/// Returns the allocations and the nanoseconds of all rounds.
fn metered(path: &Path, variant: &str, work: &str, rounds: u64) -> (f64, f64) {
    let mut command = command(path, Stdio::piped());
    command.args([variant, "link", work, &rounds.to_string()]);
    two_numbers(command)
}

/// Runs a program and parses the two numbers that it prints.
fn two_numbers(mut command: Command) -> (f64, f64) {
    let output = command.output().expect("the program starts").stdout;
    let text = String::from_utf8(output).expect("words");
    let (first, second) = text.trim().split_once(' ').expect("two numbers");
    (first.parse().expect("a number"), second.parse().expect("a number"))
}

/// Counts the instructions of a whole process. Returns `None` without valgrind.
fn instructions(path: &Path, variant: &str, work: &str, rounds: u64) -> Option<u64> {
    let mut command = command("valgrind", Stdio::null());
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(path);
    let output = command.args([variant, "link", work, &rounds.to_string()]).output().ok()?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, count) = words.split_once("Collected : ")?;
    count.split_whitespace().next()?.parse().ok()
}

//! The chores of this project: `cargo run -p xtask -- help`.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool answers on the standard streams"
)]

mod api;
mod budgets;
mod counter;
mod crates;
mod document;
mod drawings;
mod files;
mod firmware;
mod gate_table;
mod growth;
mod layers;
mod ledger;
mod no_std;
mod prose;
mod sizes;
mod source;
mod tidy;
mod toolchain;

use std::process::ExitCode;

const HELP: &str = "\
The chores of this project.

cargo run -p xtask -- COMMAND

  api [--check]
      Writes the public API of each published crate, with all its features, to docs/api/CRATE.txt.
      Derived implementations and those of auto traits are left out.
      --check    writes nothing, and fails where a file is not up to date
  budgets [--write]
      Counts instructions and allocations of what benches/budgets.tsv names, and bytes of the heap;
      fails where one is more than its budget there: instructions and bytes by more than 5 %, which
      is left to compilers, allocations at all. Needs valgrind.
      --write    makes what was counted the budgets, there and in docs/guide/performance.md
  drawings [--check]
      Draws three pictures in docs/guide: overview.svg, inputs and outputs of a machine; crates.svg, the
      crates and layers; request.svg, a request on its way in and out. Fails where a box names a file
      or function that does not exist.
      --check    draws nothing, and fails unless the files are what the code says
  firmware-size
      Builds examples/firmware and prints what it takes of flash and RAM, and what takes most of
      it; fails beyond the budget. The path of the image is printed last.
  gate-table [--write | --check]
      Prints docs/guide/gate-table.md, who may send what, from the table that the machines consult.
      --write    writes it
      --check    fails unless the file is what the table says
  growth [--write | --draw | --check]
      Counts instructions of messages while there is ever more of something else, and prints a
      table. Takes minutes, and valgrind.
      --write    writes docs/guide/performance/growth.tsv as well, and draws
      --draw     counts nothing, and draws what is in that file: docs/guide/performance/growth.svg, and
                 the table in docs/guide/performance.md
      --check    goes to a size of 1,000, which takes seconds, and fails where a cost grows with a
                 size that it should not depend on
  layers
      Checks which module under core/ names which: none names one above it or beside it, `peer` says
      nothing of HTTP, no crate there depends on one outside, and nothing public is hidden.
  ledger [--ledger FILE] [--area AREA] [--missing] [--check GAPS]
      Counts the rules of the protocol that code and tests cite, and reports false citations:
      CONTRIBUTING.md says what a right one is. FILE defaults to requirements.tsv in MCP_SPEC_DIR,
      by default the folder spec of MCP_SHARED_DIR, by default ../shared beside the repository.
      --area     only this area of the ledger
      --missing  also lists the rules without code and those without a test
      --check    fails unless GAPS lists exactly the gaps that there are; each line of GAPS is
                 ID, `code` or `test` or `both`, and the reason; MAY rules need no line
  no-std [TARGET...]
      Builds the core for targets without a standard library, by default for all of these:
      thumbv7m-none-eabi thumbv6m-none-eabi riscv32imac-unknown-none-elf wasm32-unknown-unknown
  prose [--check] [PATH...]
      Lists the turns of phrase that the project avoids, in documentation, comments, messages and
      names of tests, and how many lines in a thousand have one. PATH: only files below these.
      --check    lists the turns only if more than 3 lines in a thousand have one, and fails then
  sizes
      Builds a small server on each adapter, and the examples for WebAssembly and microcontrollers;
      prints the table of docs/guide/adapters.md: how many crates each brings along, and its size.
  tidy
      Checks the house rules that the compiler does not: length and names of files, reasons of
      `allow`, ignored tests, Markdown, and that the code shown in it is that of the examples.
  help
      Prints this.

Exit status: 0 all is well, 1 the check failed, 2 it could not be made.
";

/// Why a command did not end well.
#[derive(Debug)]
enum Failure {
    /// The check was made and failed; what it found is printed already. The text sums up.
    Failed(String),
    /// The check could not be made.
    Unable(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Unable(error.to_string())
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(text)) => {
            eprintln!("xtask: {text}");
            ExitCode::from(1)
        }
        Err(Failure::Unable(text)) => {
            eprintln!("xtask: {text}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[&str]) -> Result<(), Failure> {
    match arguments {
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["api", rest @ ..] => api::run(rest),
        ["budgets", rest @ ..] => budgets::run(rest),
        ["drawings", rest @ ..] => drawings::run(rest),
        ["firmware-size"] => firmware::size(),
        ["gate-table", rest @ ..] => gate_table::run(rest),
        ["growth", rest @ ..] => growth::run(rest),
        ["layers"] => layers::run(),
        ["ledger", rest @ ..] => ledger::run(rest),
        ["no-std", rest @ ..] => no_std::run(rest),
        ["prose", rest @ ..] => prose::run(rest),
        ["sizes"] => sizes::run(),
        ["tidy"] => tidy::run(),
        [] => Err(Failure::Unable(format!("no command given\n\n{HELP}"))),
        _ => Err(Failure::Unable(format!("cannot read `{}`\n\n{HELP}", arguments.join(" ")))),
    }
}

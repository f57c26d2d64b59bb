//! Development tasks of this project: `cargo run -p xtask -- help`.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool prints to the standard streams"
)]

mod api;
mod budgets;
mod counter;
mod crates;
mod document;
mod drawings;
mod files;
mod firmware;
mod growth;
mod layers;
mod ledger;
mod no_std;
mod sizes;
mod source;
mod spec_facts;
mod tidy;
mod toolchain;

use std::process::ExitCode;

const HELP: &str = "\
Development tasks of this project.

cargo run -p xtask -- COMMAND

  api [--check]
      Writes the public API of each published crate, with all its features, to docs/api/CRATE.txt.
      Derived implementations and those of auto traits are left out.
      --check    writes nothing, and fails if a file is not up to date
  budgets [--write]
      Counts instructions, allocations and bytes on the heap for the scenarios of
      benches/budgets.tsv. Fails if instructions or bytes exceed their budget by more than 5 %, a
      tolerance for differences between compilers, or allocations at all. Each scenario is counted a
      second time with all features on and none of them used. Needs valgrind.
      --write    writes the counts as the new budgets, there and in docs/guide/performance.md
  drawings [--check]
      Draws two pictures in docs/guide: crates.svg, the crates and layers, and request.svg, the path of
      a request and its result. Fails if a box names a file or function that does not exist.
      --check    draws nothing, and fails if a file is not up to date
  firmware-size
      Builds examples/firmware and prints its use of flash and RAM, and its largest symbols. Fails
      if it exceeds the budget. The path of the image is printed last.
  growth [--write | --check]
      Counts instructions of messages while the number of other objects grows, and prints a table.
      Takes minutes. Needs valgrind.
      --write    writes the table to docs/guide/performance.md
      --check    counts up to a size of 1,000, which takes seconds, and fails if a cost grows with a
                 size that it should not depend on
  layers
      Checks that crates under core/ are `no_std`, depend on none outside, and hide no public item, and
      that no module of the machine names one in its own layer or above.
  ledger [--area AREA] [--missing] [--check]
      Counts the rules in docs/rules that code and tests cite, and reports invalid citations; their
      form is described in CONTRIBUTING.md.
      --area     only this area of the rules
      --missing  also lists the rules without code and those without a test
      --check    fails unless docs/rules/open.txt lists exactly the existing gaps; each line of it is
                 ID, `code` or `test` or `both`, and the reason; MAY rules need no line
  no-std [TARGET...]
      Builds the core for targets without a standard library, by default for all of these:
      thumbv7m-none-eabi thumbv6m-none-eabi riscv32imac-unknown-none-elf wasm32-unknown-unknown
  sizes
      Builds a small server on each adapter, and the examples for WebAssembly and microcontrollers.
      Prints the table of docs/guide/adapters.md: the number of crates and the size of each.
  spec-facts DIRECTORY [--check]
      Derives docs/rules/schema and docs/rules/pages.txt from the published specification in
      DIRECTORY, whose layout docs/rules/README.md describes.
      --check    writes nothing, and fails if a file is not up to date
  tidy
      Checks conventions that the compiler does not: length and names of files, ignored tests, tests
      per package, Markdown, and that the code shown in it equals that of the examples.
  help
      Prints this.

Exit status: 0 success, 1 the check failed, 2 the check could not be performed.
";

/// Why a command failed.
#[derive(Debug)]
enum Failure {
    /// The check found errors, which have already been printed. The text summarizes them.
    Failed(String),
    /// The check could not be performed.
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
        ["growth", rest @ ..] => growth::run(rest),
        ["layers"] => layers::run(),
        ["ledger", rest @ ..] => ledger::run(rest),
        ["no-std", rest @ ..] => no_std::run(rest),
        ["sizes"] => sizes::run(),
        ["spec-facts", rest @ ..] => spec_facts::run(rest),
        ["tidy"] => tidy::run(),
        [] => Err(Failure::Unable(format!("no command given\n\n{HELP}"))),
        _ => Err(Failure::Unable(format!("cannot read `{}`\n\n{HELP}", arguments.join(" ")))),
    }
}

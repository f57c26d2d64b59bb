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
Development tasks of this project. CONTRIBUTING.md says more about each.

cargo run -p xtask -- COMMAND

  api [--check]                    the public API of each published crate, to docs/api/CRATE.txt
  budgets [--write]                costs of the scenarios in benches/budgets.tsv
  drawings [--check]               crates.svg and request.svg in docs/guide
  firmware-size [fixed | http]     flash and RAM of examples/firmware*, the symbols and images
  growth [--write | --check]       instructions while the number of other objects grows, by valgrind
  layers                           what modules and crates under core/ name
  ledger [--area AREA] [--missing] [--check]
                                   the rules in docs/rules that code and tests cite
  no-std [TARGET...]               compiles the core without a standard library
  sizes                            the table of docs/guide/adapters.md
  spec-facts DIRECTORY [--check]   docs/rules/{schema,pages.txt}, from the specification
  tidy                             house rules that the compiler does not check
  help                             prints this

--check compares and writes nothing; `ledger --check` fails unless docs/rules/open.txt is exact.
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

/// Prints errors, and fails if there are any; `what` they are ends the summary.
fn reject(errors: &[String], what: &str) -> Result<(), Failure> {
    for error in errors {
        eprintln!("error: {error}");
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("{} {what}", errors.len())))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match api::as_rustdoc(&arguments).unwrap_or_else(|| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let (text, code) = match failure {
                Failure::Failed(text) => (text, 1),
                Failure::Unable(text) => (text, 2),
            };
            eprintln!("xtask: {text}");
            ExitCode::from(code)
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
        ["firmware-size"] => firmware::size("firmware"),
        ["firmware-size", kind @ ("fixed" | "http")] => firmware::size(&format!("firmware-{kind}")),
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

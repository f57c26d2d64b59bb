//! The program, from its command line.

mod command_line;
mod completions;
mod hostile_text;
mod listening;
mod terminal;

/// The program.
#[cfg(unix)]
const INSPECT: &str = env!("CARGO_BIN_EXE_mcp-inspect");

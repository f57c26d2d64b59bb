//! The program, from its command line.

mod command_line;
mod hostile_text;

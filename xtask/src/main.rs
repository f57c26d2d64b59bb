//! The chores of this project: `cargo run -p xtask -- help`.

fn main() {}

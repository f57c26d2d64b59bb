//! Does the same with ever more of something around it, for a counter of instructions.
//!
//! Prints a line for each measurement, in order, of values with tabs between them: what is done, how
//! much there is, and how often it was done. What is counted happens inside of [`measured`], once
//! for each line. `cargo run -p xtask -- growth` counts and draws.

#![allow(clippy::print_stdout, reason = "the lines are its result")]

use std::hint::black_box;

use benches::load::{CURVES, Curve};

/// How often each thing is done while it is counted, and as often before.
const RUNS: u32 = 32;

fn main() {
    for Curve { name, sizes, make } in CURVES {
        let mut load = make();
        for &size in *sizes {
            load.grow(size);
            let mut run = || (0..RUNS).for_each(|_| load.work());
            run();
            measured(&mut run);
            println!("{name}\t{size}\t{RUNS}");
        }
    }
}

/// The only place where instructions are counted.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    black_box(work)();
    black_box(());
}

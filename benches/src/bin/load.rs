//! Does the same with ever more of something around it, for a counter of instructions.
//!
//! Prints a line for each measurement, in order, of values with tabs between them: what there is
//! more and more of, what is done, how its cost is expected to go, how much there is, and how often
//! it was done. What is counted happens inside of [`measured`], once for each line.
//! `cargo run -p xtask -- growth` counts and draws. An argument is the largest size.

#![allow(clippy::print_stdout, reason = "the lines are its result")]

use std::hint::black_box;

use benches::load::{CURVES, Curve, Expected};

/// How often each thing is done while it is counted, and as often before.
const RUNS: u32 = 32;

fn main() {
    let most = std::env::args().nth(1).map(|most| most.parse().expect("a size"));
    for Curve { around, work, expected, sizes, make } in CURVES {
        let expected = match expected {
            Expected::Flat => "flat",
            Expected::Linear => "linear",
        };
        let mut load = make();
        for &size in sizes.iter().filter(|size| most.is_none_or(|most: usize| **size <= most)) {
            load.grow(size);
            let mut run = || (0..RUNS).for_each(|_| load.work());
            run();
            measured(&mut run);
            println!("{around}\t{work}\t{expected}\t{size}\t{RUNS}");
        }
    }
}

/// The only place where instructions are counted.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    black_box(work)();
    black_box(());
}

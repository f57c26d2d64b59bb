//! Repeats operations while the number of other objects grows, under an instruction counter.
//!
//! Prints one line per measurement, in order, with tab-separated values: the objects that grow in
//! number, the operation, the expected growth of its cost, the number of objects, and the number of
//! repetitions. Instructions are counted within [`measured`], which runs once per line.
//! `cargo run -p xtask -- growth` counts and draws. An optional argument is the largest size.

#![allow(clippy::print_stdout, reason = "the lines are the output")]

use std::hint::black_box;

use benches::load::{CURVES, Curve, Expected};

/// Repetitions of each operation while it is counted, and before that.
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

/// The only function whose instructions are counted.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    black_box(work)();
    black_box(());
}

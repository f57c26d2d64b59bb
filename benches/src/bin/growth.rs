//! Feeds hostile inputs of doubling sizes to the machines, for a counter of instructions.
//!
//! Prints a line for each measurement, in order: the input, its size step, and its length in bytes.
//! What is counted happens inside of [`measured`], once for each line. `.ci/growth` counts, and
//! judges how the work grows with the input.

#![allow(clippy::print_stdout, reason = "the lines are its result")]

use std::hint::black_box;

use benches::growth::{INPUTS, Input};

/// How much larger the last of a row of sizes is than the first, in steps.
const STEPS: [usize; 4] = [1, 2, 4, 8];

fn main() {
    for (name, input) in INPUTS {
        for step in STEPS {
            let Input { length, mut feed } = input(step);
            measured(&mut *feed);
            println!("{name} {step} {length}");
        }
    }
}

/// The only place where instructions are counted.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    black_box(work)();
    black_box(());
}

//! Feeds hostile inputs of doubling sizes to the machines, under an instruction counter.
//!
//! Prints one line per measurement, in order: the input, its size step, and its length in bytes.
//! Instructions are counted within [`measured`], which runs once per line. `.ci/growth` counts, and
//! checks how the work grows with the input.

#![allow(clippy::print_stdout, reason = "the lines are the output")]

use std::hint::black_box;

use benches::growth::{INPUTS, Input};

/// The sizes of an input, as multiples of the smallest.
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

/// The only function whose instructions are counted.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    black_box(work)();
    black_box(());
}

//! Runs what is counted on every change, for a counter of instructions.
//!
//! Prints a line for each measurement, in order, of values with tabs between them: its name, how
//! many operations it has, how many allocations they made, and how many bytes stay on the heap
//! where it opens something. What is counted happens inside of [`measured`], once for each line.
//! `cargo run -p xtask -- budgets` counts and compares.

#![allow(clippy::print_stdout, reason = "the lines are its result")]

mod allocator;

use std::fmt;
use std::hint::black_box;

use benches::budgets::{Opening, Scenario, openings, scenarios};

fn main() {
    for Scenario { name, operations, runs, make } in scenarios() {
        let mut work = make();
        let mut run = || (0..runs).for_each(|_| work());
        run();
        let before = allocator::count();
        measured(&mut run);
        let allocations = allocator::count() - before;
        println!("{name}\t{}\t{allocations}\t", operations * runs);
    }
    for Opening { name, open } in openings() {
        // What is made once for all is made by the first.
        drop(open());
        let (before, kept) = (allocator::count(), allocator::held());
        let mut opened: Option<Box<dyn fmt::Debug>> = None;
        measured(&mut || opened = Some(open()));
        let (allocations, kept) = (allocator::count() - before, allocator::held() - kept);
        println!("{name}\t1\t{allocations}\t{kept}");
        drop(opened);
    }
}

/// The only place where instructions are counted.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    black_box(work)();
    black_box(());
}

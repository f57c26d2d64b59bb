//! Runs the scenarios that are counted on every change, under an instruction counter.
//!
//! Prints one line per measurement, in order, with tab-separated values: its name, the number of
//! operations, their allocations, and the bytes that an opening retains on the heap. Instructions
//! are counted within [`measured`], which runs once per line. `cargo run -p xtask -- budgets`
//! counts and compares.

#![allow(clippy::print_stdout, reason = "the lines are the output")]

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
        // The first run initializes global state.
        drop(open());
        let (before, kept) = (allocator::count(), allocator::held());
        let mut opened: Option<Box<dyn fmt::Debug>> = None;
        measured(&mut || opened = Some(open()));
        let (allocations, kept) = (allocator::count() - before, allocator::held() - kept);
        println!("{name}\t1\t{allocations}\t{kept}");
        drop(opened);
    }
}

/// The only function whose instructions are counted.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    black_box(work)();
    black_box(());
}

//! What all servers of the comparison have in common: their command line, and the meter of their
//! round trips.

mod allocator;
mod meter;
mod task;

pub use meter::Meter;
pub use task::{Subject, Task, Work};

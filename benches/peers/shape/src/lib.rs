//! What all servers of the comparison have in common: their command line, the meter of their
//! round trips, and that of what they hold.

mod allocator;
mod memory_report;
mod meter;
mod task;

pub use memory_report::MemoryReport;
pub use meter::Meter;
pub use task::{Subject, Task, Work};

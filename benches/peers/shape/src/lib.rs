//! Shared code of all programs in the comparison: the command line, the meter for round trips, and
//! the memory report.

mod allocator;
mod memory_report;
mod meter;
mod task;

pub use memory_report::MemoryReport;
pub use meter::Meter;
pub use task::{Subject, Task, Work};

//! Tasks: tool calls that continue after their request is answered, both those of the extension
//! `io.modelcontextprotocol/tasks`, from 2026-07-28 on, and those of 2025-11-25.
//!
//! One table holds both. They differ in which side requests the task, how its input requests reach
//! the client, and how the client gets the result.

#[cfg(feature = "tasks")]
mod client_requested;
mod counts;
#[cfg(all(feature = "http", feature = "tasks"))]
mod ends;
#[cfg(feature = "tasks")]
mod entry;
mod factory;
#[cfg(all(feature = "http", feature = "tasks"))]
mod lookup;
#[cfg(all(feature = "http", feature = "tasks"))]
mod lookup_inputs;
#[cfg(all(feature = "http", feature = "tasks"))]
mod record;
#[cfg(feature = "tasks")]
mod related;
#[cfg(feature = "tasks")]
mod requestors;
#[cfg(feature = "tasks")]
mod requests;
#[cfg(feature = "tasks")]
mod settings;
#[cfg(all(feature = "http", feature = "tasks"))]
mod shared;
#[cfg(feature = "tasks")]
mod table;
mod tasks;
#[cfg(feature = "tasks")]
mod timestamp;

#[cfg(feature = "http")]
pub(super) use counts::TaskCounts;
pub(super) use factory::{OpenTasks, TaskFactory};
#[cfg(feature = "tasks")]
pub use settings::{TaskEvent, TaskSettings};
pub(super) use tasks::{ProgressReport, TaskHandler, TaskStart, Tasks, is_task_request};

//! Tasks: tool calls that continue after their request is answered, both those of the extension
//! `io.modelcontextprotocol/tasks`, from 2026-07-28 on, and those of 2025-11-25.
//!
//! One table holds both. They differ in which side requests the task, how its input requests reach
//! the client, and how the client gets the result.

mod client_requested;
mod entry;
#[cfg(feature = "http")]
mod lookup;
mod requestors;
mod settings;
#[cfg(feature = "http")]
mod shared;
mod table;
mod tasks;

pub(super) use settings::{OpenTasks, TaskFactory};
pub use settings::{TaskEvent, TaskSettings};
pub(super) use tasks::{
    ProgressReport, TaskHandler, TaskSharing, TaskStart, Tasks, is_task_request,
};

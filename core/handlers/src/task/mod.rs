//! Tasks: tool calls that continue after their request is answered, both those of the extension
//! `io.modelcontextprotocol/tasks`, from 2026-07-28 on, and those of 2025-11-25.
//!
//! One table holds both. They differ in which side requests the task, how its input requests reach
//! the client, and how the client gets the result.

mod client_requested;
mod counts;
#[cfg(feature = "http")]
mod ends;
mod entry;
mod factory;
#[cfg(feature = "http")]
mod lookup;
#[cfg(feature = "http")]
mod lookup_inputs;
#[cfg(feature = "http")]
mod record;
mod related;
mod requestors;
mod requests;
mod settings;
#[cfg(feature = "http")]
mod shared;
mod table;
mod tasks;
mod timestamp;

pub(super) use factory::{OpenTasks, TaskFactory};
pub use settings::{TaskEvent, TaskSettings};
pub(super) use tasks::{
    ProgressReport, TaskHandler, TaskSharing, TaskStart, Tasks, is_task_request,
};

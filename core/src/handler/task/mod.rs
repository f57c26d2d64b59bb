//! The tasks of the extension `io.modelcontextprotocol/tasks`, from 2026-07-28 on: calls of tools
//! that go on after their request is answered.
//!
//! The core tasks of 2025-11-25 are another, experimental thing, which the handlers do not serve:
//! there a call stays a call.

mod entry;
mod offer;
mod requests;
mod settings;
mod table;
mod tasks;
mod timestamp;

pub(super) use offer::Offer;
pub(super) use requests::is_of_tasks;
pub use settings::TaskSettings;
pub(super) use tasks::{Handler, Tasks};

//! The vocabulary of the protocol as data: revisions, methods, capabilities, typed messages.

pub mod capability;
pub mod method;
pub mod revision;

pub use capability::{Capabilities, Capability, Role};
pub use method::{Gate, Kind, Method, Phase, Refusal, Row, Side, TABLE};

//! The vocabulary of the protocol as data: revisions, methods, capabilities, typed messages.

pub mod revision;

//! The small way to write a server or a client: handlers on top of the machines, on any runtime.

mod endpoint;

pub use endpoint::Endpoint;

//! Code shared by the programs of this package: servers, and the choice of a runtime.

#![forbid(unsafe_code)]

pub mod bench;
pub mod http;
pub mod runtime;
mod seal;
pub mod server;

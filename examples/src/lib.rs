//! Shared code of the example programs: arguments, runtimes, a wire viewer, and servers.

#![forbid(unsafe_code)]

pub mod arguments;
pub mod authorization_server;
pub mod bench;
pub mod browser;
pub mod canned;
pub mod diagram;
pub mod everything;
pub mod exchanges;
pub mod http;
pub mod protected;
pub mod recording;
pub mod runtime;
mod seal;
pub mod serial;
pub mod together;
pub mod trace;
pub mod wire;

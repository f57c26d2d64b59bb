//! Shared code of the example programs: runtimes, servers, and an authorization server.

#![forbid(unsafe_code)]

pub mod authorization_server;
pub mod bench;
pub mod browser;
pub mod everything;
pub mod http;
pub mod protected;
pub mod runtime;
mod seal;
pub mod serial;

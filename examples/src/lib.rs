//! What the example programs share: arguments, runtimes, a look at the wire, and two servers.

#![forbid(unsafe_code)]

pub mod arguments;
pub mod authorization_server;
pub mod bench;
pub mod browser;
pub mod canned;
pub mod everything;
pub mod exchanges;
pub mod http;
pub mod protected;
pub mod runtime;
pub mod together;
pub mod wire;

//! Peers that mean harm: the machines survive them, say what the protocol wants, stay within what
//! their limits promise, and serve whoever behaves afterwards.

#![allow(unsafe_code, reason = "an allocator can only be replaced by unsafe code")]

#[path = "../memory/allocator.rs"]
mod allocator;
mod client;
#[cfg(feature = "http")]
mod http_client;
#[cfg(feature = "http")]
mod http_server;
mod server;

//! Malicious peers: the machines tolerate them, respond as the protocol requires, stay within the
//! memory of their limits, and serve well-behaved peers afterwards.

#![allow(unsafe_code, reason = "replacing the allocator requires unsafe code")]

#[path = "../memory/allocator.rs"]
mod allocator;
mod client;
#[cfg(feature = "http")]
mod http_client;
#[cfg(feature = "http")]
mod http_server;
mod server;

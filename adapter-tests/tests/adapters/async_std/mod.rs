//! The adapter for smol and async-std against real processes and sockets.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]
#![allow(clippy::print_stdout, reason = "figures shown with --no-capture")]

mod children;
mod http_client;
mod sockets;

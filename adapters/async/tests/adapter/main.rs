//! The tests of this crate that use its public API, in one program: most of what they link is the
//! same.

mod driver;
mod http_driver;
mod http_server;
mod own_runtime;

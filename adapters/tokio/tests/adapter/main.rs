//! The tests of this crate that use its public API, in one program: most of what they link is the
//! same.

mod connector;
mod http_service;
mod loopback;
mod names;
mod timer;
mod tower;

//! The tests of this crate that use its public API, in one program: most of what they link is the
//! same.

mod connector;
mod loopback;
mod names;
mod runtime;

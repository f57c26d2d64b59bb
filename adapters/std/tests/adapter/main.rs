//! The tests of this crate that use its public API, in one program: most of what they link is the
//! same.

#[cfg(feature = "auth")]
mod loopback;
mod names;
mod processes;
mod streams;

//! No connection uses more heap than the formulas allow, even when all limits are reached at once,
//! and the formulas are not much too high.

#![allow(unsafe_code, reason = "replacing the allocator requires unsafe code")]

mod allocator;
mod client;

mod limits;
mod server;

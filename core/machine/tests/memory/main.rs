//! No connection takes more heap than the formulas say, with every limit at its cap at once; and
//! the formulas are not idle.

#![allow(unsafe_code, reason = "an allocator can only be replaced by unsafe code")]

mod allocator;
mod client;

mod limits;
mod server;

//! Code shared by the command line programs: arguments, a view of the wire, recordings, and a host
//! without a user.

#![forbid(unsafe_code)]

pub mod arguments;
pub mod canned;
pub mod exchanges;
pub mod recording;
pub mod together;
pub mod wire;

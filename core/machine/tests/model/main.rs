//! A reference model of the protocol, and the machines held against it.
//!
//! The model is what stands in `gate`, `ids`, `server/model`, `client/model` and `stream/model`:
//! plain lists and matches, written from the specification, without a thought of speed or memory.
//! Each rule of it names the requirement that it states. The rest drives a model and a machine with
//! the same operations and compares everything that can be seen after each of them.
//!
//! `PROPTEST_CASES` sets the number of cases.

mod capabilities;
mod commands;
mod gate;
mod ids;
mod outcome;
mod question;
mod schema;
mod transcript;
mod wire;

mod client;
mod server;
#[cfg(feature = "http")]
mod stream;

//! A reference model of the protocol, compared with the machines.
//!
//! The model is in `gate`, `ids`, `server/model`, `client/model` and `stream/model`: plain lists
//! and matches, written from the specification, without regard for speed or memory. Each rule names
//! the requirement that it implements. The other modules apply the same operations to a model and a
//! machine, and compare everything observable after each of them.
//!
//! `PROPTEST_CASES` sets the number of cases.

mod capabilities;
mod commands;
#[path = "../schema/facts.rs"]
mod facts;
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

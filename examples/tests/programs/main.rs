//! Runs the built programs, as their users would.

mod failures;
mod fixtures;
mod handshakes;
mod misbehaviour;
mod process;
mod samples;
mod web_servers;

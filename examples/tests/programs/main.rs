//! Runs the built programs, as their users would.

mod authorization_server;
mod authorizations;
mod failures;
mod fixtures;
mod handshakes;
mod http;
mod misbehaviour;
mod process;
mod recordings;
mod samples;
mod sign_in;
mod site;
mod web_servers;

//! Runs the built programs, as their users would.

mod authorization_server;
mod authorizations;
mod failures;
mod fixtures;
mod handshakes;
mod http;
mod http_server_process;
mod misbehaviour;
mod process;
mod recordings;
mod samples;
mod sign_in;
mod web_servers;

/// What `everything-server` offers by template.
const TEMPLATES: [&str; 2] = ["test://template/{id}/data", "test://scoped/{id}/data"];

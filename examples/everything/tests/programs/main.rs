//! Runs the built example programs like their users.

mod applications;
mod apps_host;
mod authorization_server;
mod authorizations;
mod failures;
mod fixtures;
mod handshakes;
mod http;
mod http_server_process;
mod in_the_kit;
mod misbehaviour;
mod process;
mod recordings;
mod samples;
mod sign_in;
mod skills;
mod traces;
mod web_servers;

/// The resource templates of `everything-server`.
const TEMPLATES: [&str; 2] = ["test://template/{id}/data", "test://scoped/{id}/data"];

//! The blocking HTTP server against clients that write raw bytes to sockets: the tests of the tokio
//! server that apply to HTTP/1.1, and its own tests.

#[path = "../http_server/blocking.rs"]
mod blocking;
#[path = "../http_server/bodies.rs"]
mod bodies;
#[path = "../http_server/disconnects.rs"]
mod disconnects;
#[path = "../http_server/floods.rs"]
mod floods;
#[path = "../http_server/gate.rs"]
mod gate;
#[path = "../http_server/panics.rs"]
mod panics;
#[path = "../http_server/refusals.rs"]
mod refusals;
#[path = "../http_server/responses.rs"]
mod responses;
mod served;
#[path = "../http_server/shares.rs"]
mod shares;
#[path = "../http_server/shutdown.rs"]
mod shutdown;
#[path = "../http_server/slow_clients.rs"]
mod slow_clients;
mod smuggling;
#[path = "../http_server/surroundings.rs"]
mod surroundings;
mod tokens;
#[path = "../http_server/wire.rs"]
mod wire;

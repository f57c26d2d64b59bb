//! A server on HTTP with blocking calls, against clients that are bytes on sockets: the tests of the
//! server on tokio as far as they are about HTTP/1.1, and those of what is its own.

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
#[path = "../http_server/shutdown.rs"]
mod shutdown;
#[path = "../http_server/slow_clients.rs"]
mod slow_clients;
mod smuggling;
mod tokens;
#[path = "../http_server/wire.rs"]
mod wire;

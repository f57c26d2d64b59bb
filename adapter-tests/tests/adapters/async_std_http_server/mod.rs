//! An HTTP server on async-std against clients that write raw bytes to sockets: the tests of the
//! tokio server that apply to HTTP/1.1.

use adapter_tests::Runtime;
use mcp_sansio_async_std as adapter;

#[path = "../http_server/blocking.rs"]
mod blocking;
#[path = "../http_server/bodies.rs"]
mod bodies;
#[path = "../http_server/disconnects.rs"]
mod disconnects;
#[path = "../http_server/event_stores.rs"]
mod event_stores;
#[path = "../http_server/floods.rs"]
mod floods;
#[path = "../http_server/gate.rs"]
mod gate;
#[path = "../http_server/load.rs"]
mod load;
#[path = "../http_server/panics.rs"]
mod panics;
#[path = "../http_server/principals.rs"]
mod principals;
#[path = "../http_server/protected.rs"]
mod protected;
#[path = "../http_server/refusals.rs"]
mod refusals;
#[path = "../http_server/responses.rs"]
mod responses;
#[path = "../smol_http_server/served.rs"]
mod served;
#[path = "../http_server/shares.rs"]
mod shares;
#[path = "../http_server/shutdown.rs"]
mod shutdown;
#[path = "../http_server/slow_clients.rs"]
mod slow_clients;
#[path = "../http_server/smuggling.rs"]
mod smuggling;
#[path = "../http_server/surroundings.rs"]
mod surroundings;
#[path = "../http_server/wire.rs"]
mod wire;

const RUNTIME: Runtime = Runtime::AsyncStd;

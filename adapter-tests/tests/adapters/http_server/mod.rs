//! The HTTP server against clients that write raw bytes to sockets.

use mcp_sansio_tokio as adapter;

mod blocking;
mod bodies;
mod disconnects;
mod event_stores;
mod floods;
mod frames;
mod gate;
mod http2;
mod http2_floods;
mod http2_malformed;
mod http2_stalls;
mod load;
mod panics;
mod principals;
mod protected;
mod refusals;
mod responses;
mod served;
mod shared_stores;
mod shares;
mod shutdown;
mod slow_clients;
mod smuggling;
mod surroundings;
mod wire;

//! The adapters with real sockets and processes, in one program: most of what these tests link is the
//! same. `--test adapters http_server::` runs those of one module.

#![allow(
    clippy::duplicate_mod,
    reason = "the tests of servers on HTTP run once on each runtime: their modules are part of several"
)]

mod async_std;
mod async_std_http_server;
mod blocking_handlers;
mod certificates;
mod children;
mod eras;
mod http_client;
mod http_server;
mod launchers;
mod respawn;
mod several_transports;
mod smol_http_server;
mod sockets;
mod standard_streams;
mod static_tokens;
mod std_http_client;
mod std_http_server;
mod std_sockets;
mod unix_sockets;

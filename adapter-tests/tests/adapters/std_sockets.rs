//! The blocking adapter with client and server in one process.
#![cfg(unix)]

use std::os::unix::net::UnixStream;
use std::thread;

use adapter_tests::{panicking_host, panicking_server, survive};
use mcp_sansio_std::{block_on, now, seed, serve_stream};

#[test]
fn panics_on_both_sides_cost_their_requests_and_not_the_connection() {
    let (there, here) = UnixStream::pair().unwrap();
    let (client, endpoint) = panicking_host().connect(seed(), now());
    let server =
        thread::spawn(|| serve_stream(panicking_server().endpoint(seed()).unwrap(), there));
    let host = thread::spawn(|| serve_stream(endpoint, here));
    block_on(survive(client));
    host.join().unwrap().unwrap();
    server.join().unwrap().unwrap();
}

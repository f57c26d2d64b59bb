//! Recordings: old ones, damaged ones, and secrets that must not be recorded.
//!
//! The tests of the machines check that a replay gives the same output: they record each machine
//! and replay the recording, see `played.rs`.

mod played;

mod commands;
mod damage;
mod golden;
mod secrets;
mod session_items;

use mcp_sansio::Instant;
use mcp_sansio::Recorded;
use mcp_sansio::peer::{Server, ServerOptions};
use mcp_sansio::protocol::Implementation;

/// Returns a short recording: a ping, its response, and the end.
fn short() -> Vec<u8> {
    let (tape, played) = played::Played::new();
    let options = ServerOptions::new(Implementation::new("s", "1"));
    let mut server = Recorded::<Server>::new(options, 0, tape);
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    server.handle_message(ping, Instant::from_millis(1)).unwrap();
    while server.poll_transmit().is_some() {}
    server.handle_eof();
    while server.poll_event().is_some() {}
    played.bytes()
}

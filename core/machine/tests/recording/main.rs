//! Recordings: those of other days, those that were damaged, and what must not be in them.
//!
//! That machines do the same again is held by the tests of the machines: what they do there is
//! recorded and played, see `played.rs`.

mod played;

mod damage;
mod golden;
mod secrets;

use mcp_sansio::Instant;
use mcp_sansio::peer::{Server, ServerOptions};
use mcp_sansio::protocol::Implementation;
use mcp_sansio::recording::Recorded;

/// A short recording: a ping, its answer, the end.
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

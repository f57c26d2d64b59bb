//! Items for the session of a byte stream: a replay has another seed, and so another key.

use mcp_sansio::Instant;
use mcp_sansio::Recorded;
use mcp_sansio::catalog::{Audience, Catalog};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{Server, ServerOptions};
use mcp_sansio::protocol::{Implementation, Tool};

use crate::played::Played;

const LINES: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
];

fn tool(name: &str) -> Tool {
    Tool::new(name, RawJson::parse(r#"{"type":"object"}"#).unwrap())
}

#[test]
fn a_replay_of_a_stream_shows_and_announces_the_items_of_its_session() {
    let (tape, played) = Played::new();
    let mut catalog = Catalog::new();
    catalog.add_tool(tool("public")).unwrap();
    let options = ServerOptions::new(Implementation::new("s", "1")).catalog(catalog);
    let mut server = Recorded::<Server>::new(options, 7, tape);
    let mut said = String::new();
    let mut transmit = |server: &mut Recorded<Server>| {
        while let Some(bytes) = server.poll_transmit() {
            said.push_str(std::str::from_utf8(bytes).unwrap());
        }
        std::mem::take(&mut said)
    };
    for line in LINES {
        server.handle_message(line.as_bytes(), Instant::from_millis(1)).unwrap();
    }
    while server.poll_event().is_some() {}
    transmit(&mut server);
    let own = server.session_key();
    let other = mcp_sansio::SessionKey::from_number(3).unwrap();
    for (name, session) in [("own", own), ("other", other)] {
        server.edit_catalog(|catalog| {
            let id = catalog.add_tool(tool(name)).unwrap();
            catalog.restrict(id, Audience::new().session(session));
        });
        let told = transmit(&mut server).contains("notifications/tools/list_changed");
        assert_eq!(told, session == own);
    }
    let list = br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    server.handle_message(list, Instant::from_millis(2)).unwrap();
    let listed = transmit(&mut server);
    assert!(listed.contains(r#""own""#) && !listed.contains(r#""other""#), "{listed}");
    // The replay compares its output with this one.
    drop(played);
}

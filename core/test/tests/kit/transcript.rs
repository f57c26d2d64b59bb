use mcp_sansio::{Instant, Revision, Revisions, Side};
use mcp_sansio_handlers::{Host, NoArguments};
use mcp_sansio_test::{Transcript, connect};

use crate::server;

#[test]
fn the_outline_shows_the_kind_of_each_message() {
    let mut transcript = Transcript::default();
    for (from, line) in [
        (Side::Client, r#"{"method":"ping","id":1}"#),
        (Side::Server, r#"{"id":1,"result":{}}"#),
        (Side::Server, r#"{"id":1,"error":{"code":-32601,"message":""}}"#),
        (Side::Client, r#"[{"method":"a"},{"id":1,"result":{}}]"#),
        (Side::Client, r#"POST {"method":"ping","id":1}"#),
        (Side::Server, r#"data: {"id":1,"result":{}}"#),
        (Side::Server, "200"),
        (Side::Client, "{broken"),
    ] {
        transcript.push(from, line, Instant::ZERO);
    }
    transcript.push(Side::Client, "DELETE", Instant::from_millis(1500));
    assert_eq!(
        transcript.outline(),
        [
            "> ping",
            "< result",
            "< error -32601",
            "> [a, result]",
            "> POST ping",
            "< data: result",
            "< 200",
            "> {broken",
            "-- 1500 ms",
            "> DELETE"
        ]
    );
}

#[test]
fn a_transcript_is_the_text_of_the_messages() {
    let host = Host::new("test", "1.0.0").revisions(Revisions::only(Revision::V2025_11_25));
    let (client, mut pair) = connect(&server(), &host);
    pair.transcript.clear();
    pair.run(client.call_tool("now", &NoArguments {})).unwrap();
    let lines = [
        r#"> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"now","arguments":{}}}"#,
        r#"< {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"noon"}]}}"#,
    ];
    assert_eq!(pair.transcript.to_string(), lines.join("\n") + "\n");
}

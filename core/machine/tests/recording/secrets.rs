use mcp_sansio::Recorded;
use mcp_sansio::http::{
    Client, HttpClientOptions, HttpServerOptions, IncomingResponse, Location, RequestHead, Server,
    ServerTransmit,
};
use mcp_sansio::peer;
use mcp_sansio::peer::Status;
use mcp_sansio::protocol::Implementation;
use mcp_sansio::{Caller, Instant, Principal};

use crate::played::Played;

const NOW: Instant = Instant::from_millis(1);

fn initialize() -> String {
    let client = r#""capabilities":{},"clientInfo":{"name":"c","version":"1"}"#;
    let params = format!(r#"{{"protocolVersion":"2025-11-25",{client}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#)
}

fn server() -> (Recorded<Server>, Played) {
    let (tape, played) = Played::new();
    let peer = peer::ServerOptions::new(Implementation::new("s", "1"));
    let options = HttpServerOptions::new().legacy_sse("/sse", "/messages");
    (Recorded::<Server>::new(peer, options, [0xA5; 32], 0, tape).unwrap(), played)
}

fn head<'a>(method: &'a str, target: &'a str, more: &[(&'a str, &'a str)]) -> RequestHead<'a> {
    let mut head = RequestHead::new(method, target);
    let own = [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", "Bearer opensesame"),
        ("cookie", "opensesame"),
        ("x-api-key", "opensesame"),
    ];
    for (name, value) in own.iter().chain(more) {
        head.field(name, value.as_bytes());
    }
    head
}

#[test]
fn a_server_records_no_tokens_principals_or_session_ids() {
    // Rule: [SESS-005].
    let (mut server, played) = server();
    let user = Caller::from_principal(Principal::new("ada@example.com"));
    let target = "/mcp?token=opensesame";
    let body = initialize();
    let (exchange, _) =
        server.handle_request(&head("POST", target, &[]), body.as_bytes(), &user, NOW);
    let Some(ServerTransmit::Respond(response)) = server.poll_transmit(exchange, NOW) else {
        panic!()
    };
    let session: Vec<String> = response
        .head
        .fields()
        .filter(|(name, _)| *name == "mcp-session-id")
        .map(|(_, value)| value.into_owned())
        .collect();
    let fields = [("mcp-session-id", &*session[0])];
    let ping = br#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let (exchange, _) = server.handle_request(&head("POST", target, &fields), ping, &user, NOW);
    assert!(matches!(
        server.poll_transmit(exchange, NOW),
        Some(ServerTransmit::Respond(response)) if response.head.status == Status::OK
    ));
    let recording = String::from_utf8(played.bytes()).unwrap();
    for secret in ["opensesame", "ada@example.com", &session[0]] {
        assert!(!recording.contains(secret), "{secret}: {recording}");
    }
    assert_eq!(recording.matches("\"session\":\"").count(), 1, "{recording}");
}

#[test]
fn the_endpoint_of_an_sse_session_is_replaced_by_a_placeholder() {
    // Rule: [SESS-005].
    let (mut server, played) = server();
    let (stream, _) =
        server.handle_request(&head("GET", "/sse", &[]), b"", &Caller::ANONYMOUS, NOW);
    let mut text = String::new();
    while let Some(transmit) = server.poll_transmit(stream, NOW) {
        if let ServerTransmit::Chunk(bytes) = transmit {
            text.push_str(core::str::from_utf8(bytes).unwrap());
        }
    }
    let address = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let body = initialize();
    server.handle_request(&head("POST", &address, &[]), body.as_bytes(), &Caller::ANONYMOUS, NOW);
    while server.poll_transmit(stream, NOW).is_some() {}
    let recording = String::from_utf8(played.bytes()).unwrap();
    let (_, session) = address.split_once('=').unwrap();
    assert!(!recording.contains(session), "{recording}");
    assert!(recording.contains("/messages?sessionId="), "{recording}");
    assert!(recording.contains("protocolVersion"), "{recording}");
}

#[test]
fn a_client_records_no_queries_session_ids_or_headers_of_the_application() {
    // Rule: [SESS-005].
    let (tape, played) = Played::new();
    let url = Location::parse("https://example.com/mcp?token=opensesame").unwrap();
    let revisions = mcp_sansio::Revisions::LEGACY;
    let peer = peer::ClientOptions::new(Implementation::new("c", "1")).revisions(revisions);
    let options = HttpClientOptions::new(url).header("x-api-key", "opensesame").unwrap();
    let mut client = Recorded::<Client>::new(peer, options, 7, NOW, tape);
    let Some(mcp_sansio::http::ClientTransmit::Send(request)) = client.poll_transmit() else {
        panic!()
    };
    let mut head = IncomingResponse::new(Status::OK);
    head.field("content-type", b"application/json");
    head.field("mcp-session-id", b"opensesame");
    head.field("dpop-nonce", b"opensesame");
    client.handle_response(request.exchange, &head, NOW);
    let server = r#""capabilities":{},"serverInfo":{"name":"s","version":"1"}"#;
    let result = format!(r#"{{"protocolVersion":"2025-11-25",{server}}}"#);
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    client.handle_body(request.exchange, answer.as_bytes(), NOW);
    client.handle_body_end(request.exchange, NOW);
    let mut named = 0;
    while let Some(transmit) = client.poll_transmit() {
        let mcp_sansio::http::ClientTransmit::Send(request) = transmit else { continue };
        named +=
            request.fields().filter(|field| *field == ("mcp-session-id", "opensesame")).count();
        let mut head = IncomingResponse::new(Status::OK);
        if request.method == "GET" {
            head.field("content-type", b"text/event-stream");
        }
        client.handle_response(request.exchange, &head, NOW);
        // Some servers make it the id of each event. A stream may be split anywhere.
        for name in ["id:", "id: "] {
            let event = format!("{name}opensesame\r\ndata: {}\r\n\r\n", r#"{"jsonrpc":"2.0","#);
            client.handle_body(request.exchange, event.as_bytes(), NOW);
            for piece in 1..event.len() {
                for piece in event.as_bytes().chunks(piece) {
                    client.handle_body(request.exchange, piece, NOW);
                }
            }
        }
        client.handle_body(request.exchange, b"id: opensesam", NOW);
        client.handle_body_end(request.exchange, NOW);
    }
    assert!(named > 1, "the session is still in use");
    let recording = String::from_utf8(played.bytes()).unwrap();
    for part in ["opensesame", "opensesa", "nsesame"] {
        assert!(!recording.contains(part), "{part}: {recording}");
    }
    assert!(!recording.contains("x-api-key"), "{recording}");
    assert!(recording.contains("mcp-session-id"), "{recording}");
}

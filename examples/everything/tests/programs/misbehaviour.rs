//! Servers survive peers that violate the protocol.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::process::{RUNTIMES, Server};

#[test]
fn a_wrong_first_message_is_answered() {
    for runtime in RUNTIMES {
        let mut server = Server::start(runtime);
        let answer = server.ask("1", "tools/list", json!({}));
        assert!(answer["error"]["code"].is_i64(), "{answer}");
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server.send(&json!({ "jsonrpc": "2.0", "id": 5, "result": {} }));
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "t", "version": "1" },
        });
        let answer = server.ask("2", "initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(server.end().code(), Some(0));
    }
}

#[test]
fn invalid_parameters_and_unknown_methods_have_different_errors() {
    let bad = [
        ("tools/call", json!({})),
        ("tools/call", json!({ "name": 7 })),
        ("tools/call", json!({ "name": "no such tool" })),
        ("tools/call", json!({ "name": "echo", "arguments": "text" })),
        ("tools/list", json!({ "cursor": 7 })),
        ("tools/list", json!({ "cursor": "no such cursor" })),
        ("resources/read", json!({})),
        ("resources/subscribe", json!({ "uri": null })),
        ("prompts/get", json!({ "name": "test_prompt_with_arguments" })),
        ("prompts/get", json!({ "name": "no such prompt" })),
        ("logging/setLevel", json!({ "level": "loud" })),
        ("completion/complete", json!({ "ref": {}, "argument": 1 })),
        ("initialize", json!("none")),
    ];
    for runtime in RUNTIMES {
        let mut server = Server::open(runtime);
        for (method, params) in &bad {
            let answer = server.ask("bad", method, params.clone());
            let expected = if *method == "initialize" { -32600 } else { -32602 };
            assert_eq!(answer["error"]["code"], expected, "{method} {params}: {answer}");
        }
        for method in ["no/such/method", "server/discover/", "Tools/list", "", "roots/list"] {
            let answer = server.ask("unknown", method, json!({}));
            assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
        }
        server.assert_alive();
    }
}

#[test]
fn garbage_lines_are_answered_and_tolerated() {
    // The id is in the answer if it can be read.
    let garbage: [(&[u8], Value); 6] = [
        (b"hello\n", Value::Null),
        (b"{\n", Value::Null),
        (b"\"text\"\n", Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\n", json!(1)),
        (b"\xff\xfe\n", Value::Null),
        (b"[[[[\n", Value::Null),
    ];
    for runtime in RUNTIMES {
        let mut server = Server::open(runtime);
        server.send_bytes(b"\n\r\n");
        for (line, id) in &garbage {
            server.send_bytes(line);
            let answer = server.receive();
            assert!(answer["error"]["code"].is_i64(), "{answer}");
            assert_eq!(answer["id"], *id);
        }
        let deep = [&[b'['; 100_000][..], b"\n"].concat();
        server.send_bytes(&deep);
        assert!(server.receive()["error"]["code"].is_i64());
        server.assert_alive();
    }
}

#[test]
fn a_line_of_64_mebibytes_is_skipped() {
    for runtime in RUNTIMES {
        let mut server = Server::open(runtime);
        let chunk = vec![b'a'; 1024 * 1024];
        for _ in 0..64 {
            server.send_bytes(&chunk);
        }
        server.send_bytes(b"\n");
        let answer = server.receive();
        assert!(answer["error"]["code"].is_i64(), "{answer}");
        server.assert_alive();
    }
}

const OPENING: &str = r#"{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

#[test]
fn pings_before_the_first_read_are_all_answered() {
    const COUNT: usize = 100_000;
    for runtime in RUNTIMES {
        let mut server = Server::start(runtime);
        let mut pings = format!("{OPENING}\n");
        for id in 0..COUNT {
            pings += &format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        }
        server.send_bytes(pings.as_bytes());
        // Pings are answered independently of other requests, so the response to the first request
        // may come anywhere.
        let mut next = 0;
        for _ in 0..=COUNT {
            let answer = server.receive();
            if answer["id"] != "open" {
                assert_eq!(answer["id"], next);
                next += 1;
            }
        }
        assert_eq!(next, COUNT);
        server.assert_alive();
    }
}

#[test]
fn a_client_that_never_reads_does_not_delay_the_exit() {
    for runtime in RUNTIMES {
        let mut server = Server::start(runtime);
        server.send_bytes(format!("{OPENING}\n").as_bytes());
        for id in 0..100_000 {
            let ping = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
            server.send_bytes(ping.as_bytes());
        }
        assert_eq!(server.end().code(), Some(0));
    }
}

#[test]
fn a_client_that_closes_its_read_half_is_not_an_error() {
    for runtime in RUNTIMES {
        let mut server = Server::open(runtime);
        server.stop_listening();
        for id in 0..10 {
            // The server may have exited already.
            let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
            if !server.try_send(&ping) {
                break;
            }
        }
        assert_eq!(server.end().code(), Some(0));
    }
}

#[test]
fn equal_ids_of_both_sides_are_not_confused() {
    for runtime in RUNTIMES {
        let mut server = Server::open(runtime);
        let call = |id: &Value| {
            json!({
                "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": "test_streaming_elicitation" },
            })
        };
        // Learn the current id of the server, and use the next one.
        server.send(&call(&json!("first")));
        let question = server.receive();
        assert_eq!(question["method"], "elicitation/create");
        let answer = json!({ "action": "accept", "content": { "ok": true } });
        server.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer }));
        assert_eq!(server.receive()["id"], "first");
        let id = json!(question["id"].as_i64().unwrap() + 1);

        // The call and its elicitation request have the same id.
        server.send(&call(&id));
        let question = server.receive();
        assert_eq!((&question["method"], &question["id"]), (&json!("elicitation/create"), &id));
        // The client cancels its call, and the server cancels its request.
        server.send(&json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
        }));
        let cancelled = server.receive();
        assert_eq!(cancelled["method"], "notifications/cancelled", "{cancelled}");
        assert_eq!(cancelled["params"]["requestId"], id);
        // A late response and a second cancellation are both ignored.
        server.send(&json!({ "jsonrpc": "2.0", "id": id, "result": answer }));
        server.send(&json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
        }));
        server.assert_alive();
    }
}

// Rule: [STDIO-017].
#[test]
#[allow(clippy::disallowed_methods, reason = "the test measures time")]
fn the_end_of_the_input_ends_the_server() {
    let lines = [
        "",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"met",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"test_tool_with_logging\"}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"test_elicitation\",\"arguments\":{\"message\":\"m\"}}}\n",
    ];
    for runtime in RUNTIMES {
        for line in lines {
            let mut server = Server::open(runtime);
            server.send_bytes(line.as_bytes());
            let start = SystemTime::now();
            assert_eq!(server.end().code(), Some(0), "{line}");
            let took = start.elapsed().unwrap_or_default();
            assert!(took < Duration::from_secs(2), "{line}: {took:?}");
        }
    }
}

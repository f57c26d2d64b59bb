//! Malicious clients: what they make the server run out of is an error for them, and the next
//! message is served.

use mcp_sansio::envelope::Reason;
use mcp_sansio::framing::FrameError;
use mcp_sansio_fixed::{Connection, Fault, Server, TooSmall};
use seeded_random::Random;
use serde_json::{Value, json};

use crate::offers::{Fixed, SENSOR};

const LINE: usize = 512;
const OUTPUT: usize = 640;
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

/// Sends bytes in pieces of `piece`, and returns the answers and the faults.
fn exchange(
    connection: &mut Connection<'_, Fixed<0>>,
    bytes: &[u8],
    piece: usize,
) -> (Vec<Value>, Vec<Fault>) {
    let (mut written, mut faults) = (Vec::new(), Vec::new());
    for mut rest in bytes.chunks(piece) {
        loop {
            rest = &rest[connection.feed(rest)..];
            while let Some(part) = connection.poll_transmit() {
                // A slow line takes a few bytes at a time.
                let taken = part.len().min(7);
                written.extend_from_slice(&part[..taken]);
                connection.advance(taken);
            }
            faults.extend(connection.take_fault());
            if rest.is_empty() {
                break;
            }
        }
    }
    let text = String::from_utf8(written).expect("UTF-8");
    (text.lines().map(|line| serde_json::from_str(line).expect(line)).collect(), faults)
}

fn with_connection(check: impl FnOnce(&mut Connection<'_, Fixed<0>>)) {
    let (mut line, mut output) = ([0; LINE], [0; OUTPUT]);
    let mut connection = Connection::new(Fixed, &mut line, &mut output).expect("large enough");
    let opened = exchange(&mut connection, format!("{INITIALIZE}\n").as_bytes(), 100);
    assert_eq!(opened.0[0]["result"]["protocolVersion"], "2025-03-26");
    check(&mut connection);
    // It still serves.
    let (answers, faults) = exchange(&mut connection, &[PING, b"\n"].concat(), 1);
    assert_eq!(answers, [json!({"jsonrpc": "2.0", "id": "p", "result": {}})]);
    assert_eq!(faults, []);
}

#[test]
fn a_result_that_does_not_fit_is_an_error() {
    let call = |length| {
        let text = "\\u0001".repeat(length);
        let params = format!(r#"{{"name":"echo","arguments":{{"text":"{text}"}}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#) + "\n"
    };
    with_connection(|connection| {
        for length in 0..70 {
            let (answers, faults) = exchange(connection, call(length).as_bytes(), 64);
            let [answer] = &answers[..] else { panic!("{answers:?}") };
            assert_eq!(answer["id"], 7);
            assert_eq!(answer["result"]["content"][0]["text"], "\u{1}".repeat(length));
            assert_eq!(faults, []);
        }
    });
    let mut output = [0; 300];
    let mut server = Server::new(Fixed::<0>, &mut output).expect("large enough");
    server.handle_message(INITIALIZE.as_bytes());
    let handled = server.handle_message(call(60).as_bytes());
    assert_eq!(handled.fault, Some(Fault::OutputFull { capacity: 300 }));
    let answer: Value = serde_json::from_slice(handled.line.expect("an error")).expect("JSON");
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32603)));
    assert!(server.handle_message(PING).fault.is_none());
}

#[test]
fn lists_are_divided_into_pages_that_fit() {
    // Rule: [PAGE-001] [PAGE-007].
    for length in [480, 520, 560, 800] {
        let mut output = vec![0; length];
        let mut server = Server::new(Fixed::<0>, &mut output).expect("large enough");
        let (mut names, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let params = format!(
                r#"{cursor}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
            );
            let list = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{params}}}}}"#
            );
            let handled = server.handle_message(list.as_bytes());
            assert_eq!(handled.fault, None, "{length}");
            let page: Value = serde_json::from_slice(handled.line.expect("a page")).expect("JSON");
            let tools = page["result"]["tools"].as_array().expect("tools");
            names.extend(tools.iter().map(|tool| tool["name"].clone()));
            pages += 1;
            match page["result"]["nextCursor"].as_str() {
                Some(next) => cursor = format!(r#""cursor":"{next}","#),
                None => break,
            }
        }
        assert_eq!(names, ["add", "echo", "fail", "break"]);
        assert_eq!(pages > 1, length < 800, "{length}");
    }
}

#[test]
fn every_request_of_a_batch_is_answered_within_the_output() {
    // Rule: [BATCH-001] [BATCH-003].
    with_connection(|connection| {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
        let batch = format!("[{call},{ping},{call}]\n");
        let (answers, faults) = exchange(connection, batch.as_bytes(), 99);
        let codes = answers[0].as_array().expect("one array").iter();
        let codes: Vec<_> = codes.map(|answer| answer["error"]["code"].as_i64()).collect();
        assert_eq!(codes, [Some(-32603), None, None]);
        assert_eq!(faults, [Fault::OutputFull { capacity: OUTPUT }]);
        let batch = format!("[{}]\n", [ping; 4].join(","));
        let (answers, faults) = exchange(connection, batch.as_bytes(), 99);
        assert_eq!(answers[0]["error"]["code"], -32600);
        assert_eq!(faults, [Fault::Malformed(Reason::BatchTooLong { limit: 3 })]);
    });
}

#[test]
fn an_overlong_line_is_reported_and_skipped() {
    // Rule: [RPC-017].
    with_connection(|connection| {
        for length in [LINE - 1, LINE, LINE + 1, 20 * LINE] {
            let line = "x".repeat(length) + "\n";
            let (answers, faults) = exchange(connection, line.as_bytes(), 300);
            assert_eq!((answers.len(), faults.len()), (1, 1), "{length}");
            assert_eq!(answers[0]["error"]["code"], -32700);
            let too_long = Fault::Frame(FrameError::TooLong { limit: LINE });
            assert_eq!(faults[0] == too_long, length >= LINE, "{length}");
        }
    });
}

#[test]
fn an_id_of_any_length_is_refused_or_answered() {
    with_connection(|connection| {
        for length in 0..400 {
            let id = "\\\"".repeat(length / 2);
            let line = format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping"}}"#) + "\n";
            let (answers, _) = exchange(connection, line.as_bytes(), 300);
            assert_eq!(answers.len(), 1);
            assert_eq!(answers[0].get("result").is_some(), id.len() <= 64, "{length}");
        }
    });
}

#[test]
fn a_flood_of_garbage_is_answered_line_by_line() {
    let mut random = Random::new(3);
    with_connection(|connection| {
        for _ in 0..3000 {
            let length = random.index(600);
            let mut line: Vec<u8> =
                (0..length).map(|_| random.one_of(*b"{}[]\",:0e-\\ntfal\x00\xff u")).collect();
            line.push(b'\n');
            let (answers, _) = exchange(connection, &line, 50);
            assert!(answers.len() <= 1);
        }
    });
}

#[test]
fn an_output_too_small_for_errors_is_refused() {
    let mut output = [0; 191];
    let refused = Server::new(Fixed::<0>, &mut output).err();
    assert_eq!(refused, Some(TooSmall { least: 192 }));
}

#[test]
fn input_that_ends_within_a_line_is_reported() {
    let (mut line, mut output) = ([0; LINE], [0; OUTPUT]);
    let mut connection = Connection::new(Fixed::<0>, &mut line, &mut output).expect("large enough");
    assert_eq!(connection.feed(SENSOR.as_bytes()), SENSOR.len());
    assert_eq!(connection.poll_transmit(), None);
    connection.handle_eof();
    assert!(connection.poll_transmit().is_some_and(|line| line.ends_with(b"\n")));
    let cut = FrameError::Truncated { length: SENSOR.len() };
    assert_eq!(connection.take_fault(), Some(Fault::Frame(cut)));
}

#[test]
fn everything_before_the_end_of_input_is_answered() {
    let (mut line, mut output) = ([0; LINE], [0; OUTPUT]);
    let mut connection = Connection::new(Fixed::<0>, &mut line, &mut output).expect("large enough");
    let calls =
        "{\"id\":1,\"method\":\"a\"}\n{\"id\":2,\"method\":\"a\"}\n{\"id\":3,\"method\":\"a\"}";
    assert_eq!(connection.feed(calls.as_bytes()), calls.len());
    let (mut answers, mut has_ended) = (String::new(), false);
    while let Some(bytes) = connection.poll_transmit() {
        answers.push(bytes[0].into());
        connection.advance(1);
        if !has_ended {
            connection.handle_eof();
            has_ended = true;
        }
    }
    for id in 1..=3 {
        assert!(answers.contains(&format!("\"id\":{id},")), "{answers}");
    }
    assert_eq!(answers.lines().count(), 3, "{answers}");
}

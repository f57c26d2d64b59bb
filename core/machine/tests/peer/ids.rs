//! Ids of any length: accepted up to a limit; above it, refused with an error that has the id.

use mcp_sansio::Revision;
use mcp_sansio::peer::{Event, Limits, ServerMachine};

use crate::fixtures::*;
use crate::wire::server;

fn quoted(length: usize) -> String {
    format!("\"{}\"", "i".repeat(length))
}

#[test]
fn a_long_id_is_answered_like_a_short_one() {
    // Rule: [RPC-002] [RPC-006].
    let limit = Limits::DEFAULT.id_length_max;
    assert!(limit >= 1024);
    for length in [1, 64, 65, 300, limit] {
        let id = quoted(length);
        let mut wire = server_at(Revision::V2025_11_25, "{}", full_server());
        let params = format!(r#"{{"name":"t","_meta":{{"progressToken":{id}}}}}"#);
        wire.send(&request(&id, "tools/call", &params));
        let Event::Request(call) = wire.event() else { panic!("a request") };
        wire.machine.progress(call.handle, 1.0, None, None, wire.now);
        assert_eq!(wire.message()["params"]["progressToken"].to_string(), id);
        // A repeated id is distinguished from another id of the same length.
        wire.send(&request(&id, "ping", "{}"));
        wire.expect_error(&id, -32600);
        assert_eq!(wire.told(), format!("violation: request id {id} is in use"));
        wire.machine.respond_with(call.handle, &raw("{}"), wire.now).unwrap();
        assert_eq!(wire.message()["id"].to_string(), id);
        wire.send(&modern(&id, "tools/call", r#""name":"t""#));
        let Event::Request(call) = wire.event() else { panic!("a request") };
        let cancel = format!(r#"{{"requestId":{id}}}"#);
        wire.send(&notification("notifications/cancelled", &cancel));
        let Event::Cancelled(_) = wire.event() else { panic!("the call {call:?} is cancelled") };
        wire.expect_silence();
    }
}

#[test]
fn an_id_over_the_limit_is_refused_with_an_error_that_has_the_id() {
    // Rule: [RPC-006] [RPC-009].
    for (limits, limit) in [(Limits::DEFAULT, 1024), (Limits::SMALL, 64)] {
        assert_eq!(limits.id_length_max, limit);
        let mut wire = server(full_server().limits(limits));
        for length in [limit + 1, 20_000] {
            let id = quoted(length);
            for line in [
                modern(&id, "tools/call", r#""name":"t""#),
                request(&id, "initialize", "{}"),
                request(&id, "ping", "{}"),
            ] {
                wire.send(&line);
                let refused = wire.expect_error(&id, -32600);
                let message = format!("`id` is longer than {limit} bytes");
                assert_eq!(refused["error"]["message"], message);
                assert!(wire.told().starts_with("violation"));
            }
        }
    }
}

#[test]
fn a_progress_token_has_the_same_limit() {
    // Rule: [PROG-001].
    let limit = Limits::DEFAULT.id_length_max;
    let mut wire = server_at(Revision::V2025_11_25, "{}", full_server());
    let params = format!(r#"{{"name":"t","_meta":{{"progressToken":{}}}}}"#, quoted(limit + 1));
    wire.send(&request("7", "tools/call", &params));
    wire.expect_error("7", -32602);
    wire.expect_silence();
}

#[test]
fn a_batch_refuses_a_long_id_in_its_position() {
    // Rule: [BATCH-003] [RPC-009].
    let long = quoted(2000);
    let mut wire = server_at(Revision::V2025_03_26, "{}", full_server());
    let pings = [request("7", "ping", "{}"), request(&long, "ping", "{}")];
    wire.send(&format!("[{}]", pings.join(",")));
    let answers = wire.message();
    assert_eq!(answers[0]["id"], 7);
    assert_eq!(
        (answers[1]["id"].to_string(), answers[1]["error"]["code"].as_i64()),
        (long, Some(-32600))
    );
    assert!(wire.told().starts_with("violation"));
}

//! Tests for each sentence of the driving contract in the documentation of the machines.

use std::time::Duration;

use mcp_sansio::peer::{CallOptions, Client, ClientMachine, Server, ServerMachine};
use mcp_sansio::{Instant, Method, Revision, Revisions};

use crate::fixtures::*;
use crate::machine::Machine;
use crate::pair::Pair;

/// Makes calls that must have no effect, and checks the result.
fn pester(machine: &mut impl Machine, now: Instant) {
    let deadline = machine.deadline();
    for _ in 0..3 {
        machine.wake(now);
        assert_eq!(machine.transmit(), None);
        assert!(machine.event().is_none());
        assert_eq!(machine.deadline(), deadline);
    }
}

#[test]
fn extra_polls_and_spurious_wakes_do_nothing() {
    for revision in Revision::ALL {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        let options = CallOptions::default();
        pair.client.call(Method::ToolsCall, &echo(), &options, pair.now).unwrap();
        pair.drive();
        let before = pair.now + Duration::from_secs(1);
        pester(&mut pair.client, before);
        pester(&mut pair.server, before);
        let request = pair.request();
        pair.server.respond_with(request.handle, &raw("{}"), Instant::ZERO).unwrap();
        pair.drive();
        pester(&mut pair.client, before);
        pester(&mut pair.server, before);
        assert!(pair.ended().outcome.is_ok());
    }
}

#[test]
fn a_client_starts_with_pending_output_and_a_server_without() {
    let mut client = Client::new(plain_client(), 0, Instant::ZERO);
    assert!(client.poll_timeout().is_some());
    assert!(client.poll_transmit().is_some());
    assert_eq!(client.poll_transmit(), None);
    let (mut server, _played) = crate::played::server(bare_server());
    pester(&mut server, Instant::ZERO);
    assert_eq!(server.poll_timeout(), None);
}

#[test]
fn several_messages_are_sent_in_one_chunk_of_whole_lines() {
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    let options = CallOptions::default();
    for _ in 0..3 {
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    }
    let bytes = wire.machine.poll_transmit().unwrap();
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 3);
    assert!(bytes.ends_with(b"\n"));
    assert_eq!(wire.machine.poll_transmit(), None);
}

#[test]
fn a_driver_can_write_in_parts_without_interleaving() {
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    let options = CallOptions::default();
    wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    let whole = wire.machine.peek_transmit().to_vec();
    assert_eq!(wire.machine.peek_transmit(), whole, "peeking consumes nothing");
    wire.machine.consume_transmit(5);
    let line = request("9", "ping", "{}");
    wire.machine.handle_message(line.as_bytes(), wire.now).unwrap();
    assert_eq!(wire.machine.peek_transmit(), &whole[5..]);
    wire.machine.consume_transmit(whole.len());
    assert!(wire.machine.peek_transmit().starts_with(br#"{"jsonrpc":"2.0","id":9"#));
    wire.machine.consume_transmit(usize::MAX);
    assert_eq!(wire.machine.peek_transmit(), b"");
    wire.machine.consume_transmit(1);
    assert_eq!(wire.machine.poll_transmit(), None);
}

#[test]
fn a_late_wake_handles_all_expired_deadlines() {
    // `now` is the current time, not the deadline that fired.
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    for seconds in 1..=3 {
        let options = CallOptions::default().timeout(Duration::from_secs(seconds));
        wire.machine.call(Method::ToolsCall, &echo(), &options, wire.now).unwrap();
    }
    wire.advance(Duration::from_secs(9));
    for _ in 0..3 {
        assert!(wire.told().starts_with("failed: no answer and no progress in time"));
    }
    wire.expect_no_event();
}

#[test]
fn a_clock_that_jumps_back_only_causes_a_delay() {
    let mut wire = client_at(Revision::V2025_11_25, plain_client());
    let options = CallOptions::default().timeout(Duration::from_secs(1));
    let late = Instant::from_millis(10_000);
    wire.machine.call(Method::ToolsCall, &echo(), &options, late).unwrap();
    wire.machine.handle_timeout(Instant::ZERO);
    wire.expect_no_event();
    wire.machine.handle_timeout(Instant::from_millis(11_000));
    assert!(wire.told().starts_with("failed: no answer and no progress in time"));
}

#[test]
fn the_seed_does_not_affect_the_output() {
    let run = |seed| {
        let options = plain_client().revisions(Revisions::only(Revision::V2025_11_25));
        let mut client = Client::new(options, seed, Instant::ZERO);
        let mut server = Server::new(full_server(), seed ^ 7);
        let mut sent = Vec::new();
        for round in 0..4 {
            if round == 2 {
                for _ in 0..20 {
                    let options = CallOptions::default();
                    client.call(Method::ToolsCall, &echo(), &options, Instant::ZERO).unwrap();
                }
            }
            let lines = client.poll_transmit().map(<[u8]>::to_vec).unwrap_or_default();
            sent.extend_from_slice(&lines);
            for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                server.handle_message(line, Instant::ZERO).unwrap();
            }
            if round == 3 {
                server.close(Instant::ZERO);
            }
            let lines = server.poll_transmit().map(<[u8]>::to_vec).unwrap_or_default();
            sent.extend_from_slice(&lines);
            for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                client.handle_message(line, Instant::ZERO).unwrap();
            }
        }
        client.handle_eof();
        let mut ends = Vec::new();
        while let Some(event) = client.poll_event() {
            ends.push(format!("{event:?}"));
        }
        (sent, ends)
    };
    let first = run(1);
    assert!(first.1.len() > 20);
    assert_eq!(first, run(0xdead_beef));
}

#[test]
fn any_split_of_the_bytes_gives_the_same_conversation() {
    let run = |piece| {
        let mut pair = Pair::new(host(), full_server());
        pair.drive_in_pieces(piece);
        for _ in 0..3 {
            let options = CallOptions::default();
            pair.client.call(Method::ToolsCall, &echo(), &options, pair.now).unwrap();
        }
        pair.drive_in_pieces(piece);
        for _ in 0..3 {
            let request = pair.request();
            pair.server.respond_with(request.handle, &raw("{}"), Instant::ZERO).unwrap();
        }
        pair.drive_in_pieces(piece);
        pair.take_transcript()
    };
    let whole = run(usize::MAX);
    for piece in [1, 2, 3, 7, 100, 1000] {
        assert_eq!(run(piece), whole, "in pieces of {piece}");
    }
}

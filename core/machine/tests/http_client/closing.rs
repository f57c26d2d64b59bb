use mcp_sansio::peer::ClientMachine;
use std::time::Duration;

use mcp_sansio::{Instant, Revision};

use crate::net::{EVENTS, Net, http_options, peer_options};

#[test]
fn closing_deletes_the_session() {
    // Rule: [SESS-010] [SESS-011].
    for (status, revision) in
        [(200, Revision::V2025_03_26), (405, Revision::V2025_06_18), (404, Revision::V2025_11_25)]
    {
        let mut net = Net::legacy(revision);
        net.call_echo();
        net.sent();
        net.client.close(net.now);
        assert_eq!(net.told(), "call 1 failed: ConnectionLost\nclosed: closed by this side\n");
        let sent = net.sent();
        assert!(sent.contains("#3 abort\n") && sent.contains("#4 abort\n"), "{sent}");
        assert!(sent.lines().last().unwrap().starts_with("#5 DELETE"), "{sent}");
        assert_eq!(net.field(5, "mcp-session-id").as_deref(), Some("s1"));
        let version = (revision >= Revision::V2025_06_18).then(|| revision.to_string());
        assert_eq!(net.field(5, "mcp-protocol-version"), version);
        assert!(net.client.is_closed() && !net.client.is_drained());
        net.answer(5, status, &[], "");
        assert!(net.client.is_drained());
        assert_eq!(net.client.poll_timeout(), None);
        net.expect_silence();
    }
}

#[test]
fn a_server_that_does_not_answer_the_deletion_is_abandoned() {
    // Rule: [SESS-010].
    let mut net = Net::legacy(Revision::V2025_11_25);
    net.advance(Duration::from_secs(3600));
    net.client.close(net.now);
    net.sent();
    net.advance(Duration::from_millis(4999));
    assert!(!net.client.is_drained());
    net.advance(Duration::from_millis(1));
    assert_eq!(net.sent(), "#4 abort\n");
    assert!(net.client.is_drained());
    assert_eq!(net.client.poll_timeout(), None);
    let mut net = Net::legacy(Revision::V2025_11_25);
    net.client.close(net.now);
    net.sent();
    net.broken(4);
    assert!(net.client.is_drained());
}

#[test]
fn unsent_messages_are_not_sent_later() {
    let mut net = Net::plain();
    net.client.close(Instant::ZERO);
    assert_eq!(net.sent(), "");
    assert!(net.client.is_drained());
    let mut net = Net::legacy_with(Revision::V2025_11_25, peer_options(), http_options());
    net.call_echo();
    net.client.close(net.now);
    assert_eq!(net.sent().lines().map(|line| &line[3..]).collect::<Vec<_>>()[0], "abort");
}

#[test]
fn a_closed_client_does_nothing() {
    let mut net = Net::legacy(Revision::V2025_11_25);
    net.client.close(net.now);
    net.sent();
    net.told();
    net.answer(4, 200, &[], "");
    net.answer_head(3, 200, EVENTS);
    net.body(3, "data: x\n\n");
    net.end(3);
    net.broken(2);
    net.client.close(net.now);
    net.advance(Duration::from_secs(100));
    net.expect_silence();
    assert!(net.client.is_drained());
}

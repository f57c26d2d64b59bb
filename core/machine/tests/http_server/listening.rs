//! Streams of news that modern clients ask for.

use std::time::Duration;

use mcp_sansio::Revision;

use crate::reply::State;
use crate::words::*;

const FILTER: &str = r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}"#;

fn listen(id: u32) -> String {
    modern(id, "subscriptions/listen", FILTER)
}

#[test]
fn a_listen_stream_opens_with_its_acknowledgement_and_names_itself_in_all_that_follows() {
    // Rule: [SUBS-003] [SUBS-006] [HSRV-019].
    let mut site = site();
    let one = site.modern(&listen(7));
    let other = site.modern(&modern(8, "subscriptions/listen", r#""notifications":{}"#));
    site.expect_no_event();
    site.tools_changed();
    site.resource_updated("a:1");
    site.resource_updated("a:2");
    let messages = site.reply(one).messages();
    let methods: Vec<_> = messages.iter().map(|it| it["method"].as_str().unwrap()).collect();
    assert_eq!(
        methods,
        [
            "notifications/subscriptions/acknowledged",
            "notifications/tools/list_changed",
            "notifications/resources/updated"
        ]
    );
    for message in &messages {
        assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    }
    assert_eq!(site.reply(other).messages().len(), 1);
    assert_eq!(site.reply(one).state, State::UnderWay);
}

#[test]
fn progress_goes_with_its_request_and_not_to_a_listen_stream() {
    // Rule: [PROG-011].
    let mut site = site();
    let stream = site.modern(&listen(7));
    let reply = site.modern(&modern(8, "tools/call", r#""name":"t""#));
    let asked = site.asked();
    site.progress(asked.handle, 1.0);
    site.answer_to(asked.handle);
    assert_eq!(site.reply(stream).messages().len(), 1);
    assert_eq!(site.reply(reply).messages()[0]["method"], "notifications/progress");
}

#[test]
fn a_listen_stream_that_its_client_leaves_is_forgotten() {
    // Rule: [CANC-015].
    let mut site = site();
    for id in 0..100 {
        let stream = site.modern(&listen(id));
        site.disconnect(stream);
    }
    site.expect_no_event();
    site.expect_empty();
}

#[test]
fn a_server_that_closes_ends_listen_streams_with_a_result() {
    // Rule: [SUBS-008] [HSRV-028] [CANC-020].
    let mut site = site();
    let stream = site.modern(&listen(7));
    site.server.close(site.now);
    site.pump();
    let reply = site.reply(stream);
    assert_eq!(reply.state, State::Complete);
    let last = reply.messages().pop().unwrap();
    assert_eq!(last["id"], 7);
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    assert!(reply.messages().iter().all(|it| it["method"] != "notifications/cancelled"));
    assert!(site.server.is_drained());
    site.expect_empty();
}

#[test]
fn a_filter_that_cannot_be_read_opens_no_stream() {
    let mut site = site();
    for members in ["", r#""notifications":[]"#] {
        let reply = site.modern(&modern(1, "subscriptions/listen", members));
        assert_eq!(site.reply(reply).error(), (-32602, "1".into()));
    }
    site.events.clear();
    site.expect_empty();
}

#[test]
fn a_listen_stream_shows_life_and_goes_on_for_ever() {
    // Rule: [SSE-014].
    let mut site = site();
    let stream = site.modern(&listen(7));
    site.advance(Duration::from_secs(24 * 3600));
    let comments = site.reply(stream).events().iter().filter(|event| event.comment).count();
    assert_eq!(comments, 24 * 3600 / 15);
    assert_eq!(site.reply(stream).state, State::UnderWay);
}

#[test]
fn both_eras_hear_of_the_same_change() {
    let mut site = site();
    let session = site.open(Revision::V2025_06_18, "{}");
    let (legacy, modern) = (site.get(&session), site.modern(&listen(1)));
    site.tools_changed();
    assert_eq!(site.reply(legacy).messages().len(), 1);
    assert_eq!(site.reply(modern).messages().len(), 2);
}

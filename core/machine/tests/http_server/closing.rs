//! A server that takes its leave.

use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::http::ServerOptions;

use crate::answers::ask_for_roots;
use crate::reply::State;
use crate::words::*;

#[test]
fn new_requests_are_refused_and_those_under_way_are_answered() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, r#"{"roots":{}}"#);
    let stream = site.get(&session);
    let listening = site.modern(&modern(9, "subscriptions/listen", r#""notifications":{}"#));
    let replies = [site.post(&session, &call(1)), site.modern(&modern_call(1))];
    let (legacy, modern) = (site.asked(), site.asked());
    site.server.close(site.now);
    site.pump();
    assert!(site.server.is_closing() && !site.server.is_drained());
    assert_eq!(site.reply(stream).state, State::Complete);
    assert_eq!(site.reply(listening).state, State::Complete);
    let refused = [
        site.post(&session, &call(2)),
        site.modern(&modern_call(2)),
        site.get(&session),
        site.request("POST", "/mcp", &POST, &initialize(Revision::V2025_11_25, "{}")),
    ];
    for reply in refused {
        assert_eq!(site.reply(reply).status(), 503);
        assert_eq!(site.reply(reply).field("retry-after"), Some("10"));
    }
    assert_eq!(site.reply(refused[0]).error(), (-32600, "2".into()));
    // What is under way may still need its client.
    site.server.require_input(legacy, &ask_for_roots(), site.now).unwrap();
    site.pump();
    let question = site.reply(replies[0]).messages()[0]["id"].clone();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{question},"result":{{"roots":[]}}}}"#);
    let accepted = site.post(&session, &answer);
    assert_eq!(site.reply(accepted).status(), 202);
    let last = site.reply(replies[0]).last_id().unwrap();
    site.disconnect(replies[0]);
    let back = site.resume(&session, &last);
    assert_eq!(site.reply(back).status(), 200);
    site.answer();
    site.answer_to(modern.handle);
    assert_eq!(site.reply(back).messages().last().unwrap()["id"], 1);
    assert_eq!(site.reply(replies[1]).status(), 200);
    assert!(site.server.is_drained());
}

#[test]
fn a_stream_of_http_and_sse_stays_for_the_answers_under_way() {
    let mut site = site_with(ServerOptions::new().legacy_sse("/sse", "/messages"));
    let busy = site.request("GET", "/sse", &[HOST], "");
    let idle = site.request("GET", "/sse", &[HOST], "");
    let endpoint = site.reply(busy).events()[0].data.clone();
    for body in [&initialize(Revision::V2024_11_05, "{}"), INITIALIZED, &call(1)] {
        site.request("POST", &endpoint, &[HOST, JSON], body);
    }
    site.event();
    let asked = site.asked();
    site.server.close(site.now);
    site.pump();
    assert_eq!(site.reply(idle).state, State::Complete);
    assert_eq!(site.reply(busy).state, State::UnderWay);
    let refused = site.request("POST", &endpoint, &[HOST, JSON], &call(2));
    assert_eq!(site.reply(refused).status(), 503);
    site.answer_to(asked.handle);
    let last = site.reply(busy).events().pop().unwrap();
    assert!(last.data.contains(r#""id":1"#));
    assert_eq!(site.reply(busy).state, State::Complete);
    assert!(site.server.is_drained());
    site.expect_empty();
}

#[test]
fn a_stream_ends_after_what_it_holds() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let fields = join(&[HOST, ("Accept", "text/event-stream")], &session.fields());
    let slow = site.request_unread("GET", "/mcp", &fields, "");
    site.tools_changed();
    site.server.close(site.now);
    site.read(slow, usize::MAX);
    assert_eq!(site.reply(slow).messages().len(), 1);
    assert_eq!(site.reply(slow).state, State::Complete);
    site.advance(Duration::from_secs(1800));
    site.expect_empty();
}

#[test]
fn a_session_may_still_be_ended_by_its_client() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    site.server.close(site.now);
    let reply = site.delete(&session);
    assert_eq!(site.reply(reply).status(), 204);
    site.expect_empty();
}

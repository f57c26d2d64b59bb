//! The stream of a session for what belongs to no request.

use mcp_sansio::Revision;
use mcp_sansio::protocol::LoggingLevel;
use serde_json::Value;

use crate::reply::State;
use crate::site::{Site, Ticket};
use crate::words::*;

fn methods(site: &Site, ticket: Ticket) -> Vec<String> {
    let messages = site.reply(ticket).messages();
    messages.iter().map(|message| message["method"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_get_is_a_stream_of_events() {
    // Rule: [HSRV-001] [HSRV-013] [SSE-005].
    let mut site = site();
    for revision in RESUMING {
        let session = site.open(revision, "{}");
        let stream = site.get(&session);
        let primed = if revision == Revision::V2025_11_25 { "id=0-0 \n" } else { "id=0-0 alone\n" };
        let expected = format!("200 text/event-stream\n{primed}...");
        assert_eq!(site.reply(stream).transcript(), expected);
        assert_eq!(site.reply(stream).field("x-accel-buffering"), Some("no"));
    }
}

#[test]
fn news_that_belongs_to_no_request_goes_there_and_nowhere_else() {
    // Rule: [HSRV-014] [HSRV-015] [HSRV-016] [HSRV-017].
    let mut site = site();
    for revision in RESUMING {
        let session = site.open(revision, "{}");
        let stream = site.get(&session);
        let reply = site.post(&session, &call(1));
        let asked = site.asked();
        site.progress(asked.handle, 1.0);
        site.tools_changed();
        site.server.log(None, LoggingLevel::Error, None, "x", site.now).unwrap();
        site.pump();
        site.post(&session, &request(2, "resources/subscribe", r#"{"uri":"a:1"}"#));
        site.resource_updated("a:1");
        site.resource_updated("a:2");
        site.answer_to(asked.handle);
        assert_eq!(
            methods(&site, stream),
            [
                "notifications/tools/list_changed",
                "notifications/message",
                "notifications/resources/updated"
            ]
        );
        assert_eq!(site.reply(reply).messages().len(), 2);
        assert!(site.reply(stream).messages().iter().all(|it| it.get("id").is_none()));
        assert_eq!(site.reply(stream).state, State::UnderWay);
    }
}

#[test]
fn news_waits_until_a_stream_is_opened() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    site.tools_changed();
    site.server.log(None, LoggingLevel::Error, None, "x", site.now).unwrap();
    site.pump();
    let stream = site.get(&session);
    assert_eq!(
        methods(&site, stream),
        ["notifications/tools/list_changed", "notifications/message"]
    );
    assert_eq!(site.reply(stream).events()[0].data, "", "the priming event comes first");
    // The next one gets what follows, not the same again.
    site.disconnect(stream);
    site.tools_changed();
    let next = site.get(&session);
    assert_eq!(methods(&site, next), ["notifications/tools/list_changed"]);
    assert_eq!(site.reply(next).last_id().as_deref(), Some("0-3"));
}

#[test]
fn each_session_has_its_own() {
    // Rule: [HSRV-017].
    let mut site = site();
    let one = site.open(Revision::V2025_06_18, "{}");
    let other = site.open(Revision::V2025_06_18, "{}");
    site.post(&one, &request(1, "resources/subscribe", r#"{"uri":"a:1"}"#));
    let (first, second) = (site.get(&one), site.get(&other));
    site.resource_updated("a:1");
    assert_eq!(site.reply(first).messages().len(), 1);
    assert_eq!(site.reply(second).messages().len(), 0);
    site.tools_changed();
    assert_eq!(site.reply(first).messages().len(), 2);
    assert_eq!(site.reply(second).messages().len(), 1);
}

#[test]
fn a_second_get_takes_over_and_no_message_goes_twice() {
    // Rule: [HSRV-017].
    let mut site = site();
    for revision in RESUMING {
        let session = site.open(revision, "{}");
        let first = site.get(&session);
        site.tools_changed();
        let second = site.get(&session);
        assert_eq!(site.reply(first).state, State::Complete);
        site.tools_changed();
        assert_eq!(site.reply(first).messages().len(), 1);
        assert_eq!(site.reply(second).messages().len(), 1);
        assert!(site.reply(second).events()[0].data.is_empty(), "an id to come back with is first");
        site.delete(&session);
        site.events.clear();
    }
}

#[test]
fn a_reader_that_asks_again_and_again_costs_nothing() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    let fields = session.fields();
    let fields = join(&[HOST, ("Accept", "text/event-stream")], &fields);
    for _ in 0..1000 {
        let unread = site.request_unread("GET", "/mcp", &fields, "");
        site.disconnect(unread);
    }
    let (bytes, _) = site.server.retained();
    assert!(bytes < 100, "{bytes}");
}

#[test]
fn a_client_that_is_not_confirmed_gets_no_news() {
    let mut site = site();
    let session = site.open_unconfirmed(Revision::V2025_11_25, "{}");
    let stream = site.get(&session);
    site.tools_changed();
    assert_eq!(site.reply(stream).messages(), [] as [Value; 0]);
}

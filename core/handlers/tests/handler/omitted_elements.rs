//! Results of which a part is malformed.

use std::sync::{Arc, Mutex};

use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::peer::{Event, Violation};
use mcp_sansio::{Instant, PanicGuard, Revision, Revisions};
use mcp_sansio_handlers::middleware::{Calls, ClientRequest, MiddlewareResult, Next};
use mcp_sansio_handlers::{Client, ClientError, Host, NoArguments};
use mcp_sansio_test::{Pair, Script, Stream, Transport};

/// What was left out, by event.
type Omitted = Arc<Mutex<Vec<Vec<String>>>>;

const TOOLS: &str = r#"{"tools":[{"name":"bad"},{"name":"good","inputSchema":{},"icons":[{"src":"a:","sizes":"48x48"}]}]}"#;

fn host(omitted: &Omitted) -> Host {
    let omitted = Arc::clone(omitted);
    Host::new("h", "1").observe(move |event| {
        if let Event::Violation(Violation::ElementsOmitted(omissions)) = event {
            let each = omissions.iter().map(|omission| omission.pointer.clone());
            omitted.lock().unwrap().push(each.collect());
        }
    })
}

fn connect(script: Script, host: Host, revision: Revision) -> (Client, Pair<impl Transport>) {
    let (client, endpoint) = host.revisions(Revisions::only(revision)).connect(42, Instant::ZERO);
    let mut pair = Pair::new(Stream::new(script, endpoint));
    pair.run(client.opened()).unwrap();
    (client, pair)
}

#[test]
fn a_malformed_element_does_not_hide_the_others_and_is_reported() {
    for revision in Revision::ALL {
        let script = Script::server(revision)
            .expect(r#"{"method":"tools/list"}"#)
            .reply(TOOLS)
            .expect(r#"{"method":"tools/call"}"#)
            .reply(r#"{"content":[{"type":"text"},{"type":"text","text":"noon"},7]}"#)
            .expect(r#"{"method":"prompts/list"}"#)
            .reply(r#"{"prompts":{}}"#);
        let omitted = Omitted::default();
        let (client, mut pair) = connect(script, host(&omitted), revision);
        let tools = pair.run(client.all_tools()).unwrap();
        assert_eq!(tools.len(), 1);
        assert_eq!((tools[0].name.as_str(), tools[0].icons.as_deref()), ("good", Some(&[][..])));
        let result = pair.run(client.call_tool("good", &NoArguments {})).unwrap();
        assert_eq!(result.first_text(), Some("noon"));
        // What is malformed outside of a list still fails.
        let prompts = pair.run(client.all_prompts());
        assert!(matches!(prompts, Err(ClientError::InvalidResult(_))), "{prompts:?}");
        let omitted = omitted.lock().unwrap().clone();
        assert_eq!(omitted[0], ["/tools/0", "/tools/1/icons/0"], "{revision}");
        assert_eq!(omitted[1], ["/content/0", "/content/2"], "{revision}");
        assert_eq!(omitted.len(), 2);
    }
}

#[test]
fn a_report_reaches_the_observers_through_middleware_and_after_the_connection_has_closed() {
    async fn answer(_: ClientRequest, _: Next<Calls>) -> MiddlewareResult<Calls> {
        Ok(Json::from(RawJson::parse(TOOLS).unwrap()))
    }
    let (revision, omitted) = (Revision::V2025_11_25, Omitted::default());
    let layered = host(&omitted).call_middleware(answer);
    let (client, mut pair) = connect(Script::server(revision), layered, revision);
    assert_eq!(pair.run(client.list_tools(None)).unwrap().tools.len(), 1);
    assert_eq!(omitted.lock().unwrap().len(), 1);

    // The server ends right after its answer.
    let script = Script::server(revision).expect(r#"{"method":"tools/list"}"#).reply(TOOLS).close();
    let (client, mut pair) = connect(script, host(&omitted), revision);
    let call = client.list_tools(None).into_future();
    pair.run_until_idle();
    assert!(client.close_reason().is_some());
    assert_eq!(pair.run(call).unwrap().tools.len(), 1);
    assert_eq!(omitted.lock().unwrap().len(), 2);
}

#[test]
fn a_panic_of_an_observer_does_not_take_the_result_away() {
    let host = Host::new("h", "1").observe(|event| {
        assert!(!matches!(event, Event::Violation(Violation::ElementsOmitted(_))), "a panic");
    });
    let revision = Revision::V2025_11_25;
    let script = Script::server(revision).expect(r#"{"method":"tools/list"}"#).reply(TOOLS);
    let (client, mut endpoint) =
        host.revisions(Revisions::only(revision)).connect(42, Instant::ZERO);
    mcp_sansio::stream::Endpoint::catch_panics(
        &mut endpoint,
        PanicGuard::new(|function| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(function))
        }),
    );
    let mut pair = Pair::new(Stream::new(script, endpoint));
    pair.run(client.opened()).unwrap();
    assert_eq!(pair.run(client.list_tools(None)).unwrap().tools.len(), 1);
}

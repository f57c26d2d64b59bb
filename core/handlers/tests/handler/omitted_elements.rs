//! Results of which a part is malformed.

use std::sync::{Arc, Mutex};

use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::peer::{Event, Violation};
use mcp_sansio::protocol::{
    Annotations, CacheHints, CompleteParams, Completion, CompletionArgument, ContentBlock, Icon,
    ImageContent, PromptReference, Resource, TextContent, ToolAnnotations,
};
use mcp_sansio::{Instant, PanicGuard, Revision, Revisions};
use mcp_sansio_handlers::middleware::{Calls, ClientRequest, MiddlewareResult, Next};
use mcp_sansio_handlers::{Client, ClientError, Host, NoArguments};
use mcp_sansio_test::{Pair, Script, Stream, Transport};

/// What was left out, by event.
type Omitted = Arc<Mutex<Vec<Vec<String>>>>;

const TOOLS: &str = r#"{"tools":[{"name":"bad"},{"name":"good","inputSchema":{},
    "icons":[{"sizes":["48x48"]},{"src":"javascript:alert(1)"},{"src":"https"}]}]}"#;

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
    // Rule: [SEC-001].
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
        let icons = ["/tools/1/icons/0", "/tools/1/icons/1", "/tools/1/icons/2"];
        assert_eq!(omitted[0], [&["/tools/0"][..], &icons].concat(), "{revision}");
        assert_eq!(omitted[1], ["/content/0", "/content/2"], "{revision}");
        assert_eq!(omitted.len(), 2);
    }
}

#[test]
fn a_malformed_hint_costs_nothing_but_itself() {
    const TOOLS: &str = r#"{"ttlMs":"60000","cacheScope":1,"tools":[{
        "name":"t","inputSchema":{},"title":5,"icons":"x",
        "annotations":{"title":[],"readOnlyHint":"true","destructiveHint":0,"idempotentHint":"",
        "openWorldHint":false}},
        {"name":"u","inputSchema":{},"annotations":"x","icons":[{"src":"data:,","sizes":"48x48"}]},
        {"name":"v","inputSchema":{},"description":7},{"name":[],"inputSchema":{},"title":5}]}"#;
    const RESOURCES: &str = r#"{"resources":[{"uri":"a:","name":"a","size":-1,
        "annotations":{"audience":"user","priority":"0.5","lastModified":1}},
        {"uri":"b:","name":"b","size":12.5,"annotations":"x"},{"uri":7,"name":"c"}]}"#;
    const RESULT: &str = r#"{"content":[
        {"type":"text","text":"a","annotations":{"audience":"user","priority":0.5}},
        {"type":"image","data":"","mimeType":"image/png","annotations":7},
        {"type":"text","text":7,"annotations":{"audience":"user"}}]}"#;
    let sorted = |mut places: Vec<String>| {
        places.sort();
        places
    };
    for revision in Revision::ALL {
        let script = Script::server(revision)
            .expect(r#"{"method":"tools/list"}"#)
            .reply(TOOLS)
            .expect(r#"{"method":"resources/list"}"#)
            .reply(RESOURCES)
            .expect(r#"{"method":"tools/call"}"#)
            .reply(RESULT)
            .expect(r#"{"method":"completion/complete"}"#)
            .reply(r#"{"completion":{"values":["a",1,"b"],"total":"2","hasMore":0}}"#);
        let omitted = Omitted::default();
        let (client, mut pair) = connect(script, host(&omitted), revision);
        let page = pair.run(client.list_tools(None)).unwrap();
        assert_eq!(page.cache_hints(), CacheHints::default());
        let [first, second] = &page.tools[..] else { panic!("{:?}", page.tools) };
        let hints = first.annotations.as_ref().unwrap();
        assert_eq!(hints, &ToolAnnotations::new().open_world_hint(false));
        assert_eq!((first.display_name(), &first.icons), ("t", &None));
        assert_eq!((&*second.name, &second.annotations), ("u", &None));
        assert_eq!(second.icons, Some(vec![Icon::new("data:,")]));

        let resources = pair.run(client.list_resources(None)).unwrap().resources;
        let expected =
            [Resource::new("a:", "a").annotations(Annotations::new()), Resource::new("b:", "b")];
        assert_eq!(resources, expected);

        let result = pair.run(client.call_tool("t", &NoArguments {})).unwrap();
        let expected = [
            TextContent::new("a").annotations(Annotations::new().priority(0.5)).into(),
            ContentBlock::from(ImageContent::new("", "image/png")),
        ];
        assert_eq!(result.content, expected);

        let argument = CompletionArgument::new("a", "");
        let params = CompleteParams::new(PromptReference::new("p"), argument);
        let completion = pair.run(client.complete(&params)).unwrap().completion;
        assert_eq!(completion, Completion::new(["a", "b"].map(String::from)));

        let omitted: Vec<_> = omitted.lock().unwrap().drain(..).map(sorted).collect();
        let tools = [
            "/cacheScope",
            "/tools/0/annotations/destructiveHint",
            "/tools/0/annotations/idempotentHint",
            "/tools/0/annotations/readOnlyHint",
            "/tools/0/annotations/title",
            "/tools/0/icons",
            "/tools/0/title",
            "/tools/1/annotations",
            "/tools/1/icons/0/sizes",
            "/tools/2",
            "/tools/3",
            "/ttlMs",
        ];
        assert_eq!(omitted[0], tools, "{revision}");
        let resources = [
            "/resources/0/annotations/audience",
            "/resources/0/annotations/lastModified",
            "/resources/0/annotations/priority",
            "/resources/0/size",
            "/resources/1/annotations",
            "/resources/1/size",
            "/resources/2",
        ];
        assert_eq!(omitted[1], resources);
        let content = ["/content/0/annotations/audience", "/content/1/annotations", "/content/2"];
        assert_eq!(omitted[2], content);
        let values = ["/completion/hasMore", "/completion/total", "/completion/values/1"];
        assert_eq!(omitted[3], values);
    }
}

#[test]
fn null_is_a_list_without_elements() {
    let revision = Revision::V2025_11_25;
    let mut script = Script::server(revision);
    for (method, result) in [
        ("tools/list", r#"{"tools":null}"#),
        ("resources/list", r#"{"resources":null}"#),
        ("resources/templates/list", r#"{"resourceTemplates":null}"#),
        ("prompts/list", r#"{"prompts":null}"#),
        ("prompts/get", r#"{"messages":null}"#),
        ("resources/read", r#"{"contents":null}"#),
        ("completion/complete", r#"{"completion":{"values":null}}"#),
        ("tools/list", "{}"),
    ] {
        script = script.expect(&format!(r#"{{"method":"{method}"}}"#)).reply(result);
    }
    let omitted = Omitted::default();
    let (client, mut pair) = connect(script, host(&omitted), revision);
    assert_eq!(pair.run(client.all_tools()).unwrap(), []);
    assert_eq!(pair.run(client.all_resources()).unwrap(), []);
    assert_eq!(pair.run(client.all_resource_templates()).unwrap(), []);
    assert_eq!(pair.run(client.all_prompts()).unwrap(), []);
    assert_eq!(pair.run(client.get_prompt("p", [])).unwrap().messages, []);
    assert_eq!(pair.run(client.read_resource("a:")).unwrap().contents, []);
    let params = CompleteParams::new(PromptReference::new("p"), CompletionArgument::new("a", ""));
    assert_eq!(pair.run(client.complete(&params)).unwrap().completion, Completion::default());
    // A result without its list is not one.
    let error = pair.run(client.all_tools()).unwrap_err().to_string();
    assert_eq!(error, "the server's result is not valid: missing field `tools`");
    assert_eq!(omitted.lock().unwrap().len(), 0);
}

#[test]
fn a_refused_result_names_the_member_that_is_wrong() {
    let revision = Revision::V2025_11_25;
    for (result, expected) in [
        (r#"{"tools":[],"nextCursor":2}"#, "`/nextCursor`: invalid type: integer `2`"),
        (r#"{"tools":{}}"#, "`/tools`: invalid type: object"),
        (r#"{"tools":[{"name":7,"icons":7}],"_meta":[1]}"#, "`/_meta`: invalid type: array"),
    ] {
        let script = Script::server(revision).expect(r#"{"method":"tools/list"}"#).reply(result);
        let (client, mut pair) = connect(script, host(&Omitted::default()), revision);
        let error = pair.run(client.all_tools()).unwrap_err().to_string();
        let expected = format!("the server's result is not valid: {expected}");
        assert!(error.starts_with(&expected), "{error}");
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

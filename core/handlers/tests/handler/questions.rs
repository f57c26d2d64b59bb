use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use std::task::{Context, Waker};
use std::time::Duration;

use mcp_sansio::jsonrpc::Json;
use mcp_sansio::peer::Event;
use mcp_sansio::protocol::{
    CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, ElicitSchema,
    InputRequest, ListRootsParams, Map, Role, Root, SamplingContent, SamplingMessage, SerializeAt,
    StringSchema, ToolUseContent,
};
use mcp_sansio::{Era, ErrorCode, Instant, Revision};
use mcp_sansio_handlers::endpoint::Endpoint;
use mcp_sansio_handlers::{Call, Elicit, HandlerError, Host, HostRequest, NoArguments, Server};

use mcp_sansio_test::{Pair, Script, Stream};

use crate::{ASKING, connect, connect_host, text};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirmation {
    /// Whether to continue.
    sure: bool,
    /// An optional remark.
    remark: Option<String>,
}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Page {
    /// The URL of the page.
    url: String,
}

async fn book(table: u32) -> Result<String, std::fmt::Error> {
    Ok(format!("Booked table {table}."))
}

/// A server that works at every revision.
fn server() -> Server {
    Server::new("tables", "1")
        .tool("book", "Book a table", async |call: Call<NoArguments>| {
            match call.input::<Confirmation>("confirm")? {
                None => call
                    .require_input("confirm", Elicit::form::<Confirmation>("Book it?"))
                    .into_result(),
                Some(answer) if answer.accepted() => Ok(book(7).await?),
                Some(_) => Ok("Not booked.".into()),
            }
        })
        .tool("twice", "Asks twice", async |call: Call<NoArguments>| {
            let form = || Elicit::form::<Confirmation>("Sure?");
            match call.state() {
                None => call.require_input("first", form()).state("first").into_result(),
                Some("first") => {
                    let sure = call.input::<Confirmation>("first")?.is_some_and(|a| a.accepted());
                    assert!(call.input::<Confirmation>("second")?.is_none());
                    call.require_input("second", form())
                        .state(format!("second {sure}"))
                        .into_result()
                }
                Some(state) => {
                    let second = call.input::<Confirmation>("second")?.and_then(|a| a.content);
                    let second = second.ok_or_else(|| HandlerError::failed("no answer"))?;
                    Ok(format!("{state} {} {:?}", second.sure, second.remark))
                }
            }
        })
        .tool("think", "Asks the model", |call: Call<NoArguments>| {
            let Some(said) = call.sampled("thought")? else {
                let message = SamplingMessage::user(SamplingContent::text("2 + 2?"));
                let roots = ListRootsParams::default();
                let question = CreateMessageParams::new([message], 10);
                return call.require_input("thought", question).and("roots", roots).into_result();
            };
            let roots = call.roots("roots")?.map_or(0, |roots| roots.roots.len());
            Ok(format!("{} in {roots} roots", said.model))
        })
}

/// A host that works at every revision.
fn host(answer: fn() -> ElicitResult) -> Host {
    Host::new("host", "1")
        .on_elicit(move |question: HostRequest<ElicitParams>| async move {
            assert!(matches!(question.params, ElicitParams::Form(_)));
            Ok(answer())
        })
        .on_sample(|question: HostRequest<CreateMessageParams>| {
            assert_eq!(question.params.max_tokens, 10);
            CreateMessageResult::new(Role::Assistant, SamplingContent::text("4"), "abacus")
        })
        .on_roots(|_: HostRequest<()>| vec![Root::new("file:///a"), Root::new("file:///b")])
}

fn yes() -> ElicitResult {
    ElicitResult::accept([("sure".to_owned(), true.into())].into_iter().collect())
}

#[test]
fn a_handler_that_elicits_input_works_at_every_revision() {
    // Rule: [MRTR-009] [ELIC-002].
    for revision in ASKING {
        for (answer, expected) in
            [(yes as fn() -> _, "Booked table 7."), (ElicitResult::decline, "Not booked.")]
        {
            let (client, mut pair) = connect_host(&server(), host(answer), revision);
            let result = pair.run(client.call_tool("book", &NoArguments {})).unwrap();
            assert_eq!(text(&result), expected, "{revision}: {}", pair.transcript);
        }
    }
}

#[test]
fn handlers_and_observers_of_a_host_know_which_of_its_servers_asks() {
    // Rule: [ELIC-028].
    for revision in ASKING {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (form, roots, opened) = (Arc::clone(&asked), Arc::clone(&asked), Arc::clone(&asked));
        let host = Host::new("host", "1")
            .on_elicit(move |question: HostRequest<ElicitParams>| {
                form.lock().unwrap().push(("form", question.server));
                yes()
            })
            .on_sample(|_: HostRequest<CreateMessageParams>| {
                CreateMessageResult::new(Role::Assistant, SamplingContent::text("4"), "abacus")
            })
            .on_roots(move |question: HostRequest<()>| {
                roots.lock().unwrap().push(("roots", question.server));
                vec![]
            })
            .observe_servers(move |server, event| {
                if let Event::Opened(_) = event {
                    opened.lock().unwrap().push(("opened", server.map(Arc::from)));
                }
            });
        let named = |name| host.clone().for_server(name);
        for (host, name) in [(named("a"), Some("a")), (named("b"), Some("b")), (host.clone(), None)]
        {
            let (client, mut pair) = connect_host(&server(), host, revision);
            let _booked = pair.run(client.call_tool("book", &NoArguments {})).unwrap();
            let _thought = pair.run(client.call_tool("think", &NoArguments {})).unwrap();
            let name = name.map(Arc::from);
            let expected = ["opened", "form", "roots"].map(|what| (what, name.clone()));
            assert_eq!(std::mem::take(&mut *asked.lock().unwrap()), expected, "{revision}");
        }
    }
}

#[test]
fn the_state_is_kept_over_several_rounds() {
    // Rule: [MRTR-009] [MRTR-012].
    for revision in ASKING {
        let (client, mut pair) = connect_host(&server(), host(yes), revision);
        let result = pair.run(client.call_tool("twice", &NoArguments {})).unwrap();
        assert_eq!(text(&result), "second true true None", "{revision}: {}", pair.transcript);
    }
}

#[test]
fn sampling_and_roots_are_requested_in_one_round() {
    for revision in ASKING {
        let (client, mut pair) = connect_host(&server(), host(yes), revision);
        let result = pair.run(client.call_tool("think", &NoArguments {})).unwrap();
        assert_eq!(text(&result), "abacus in 2 roots", "{revision}: {}", pair.transcript);
    }
}

#[test]
fn a_host_declares_its_capabilities_with_each_modern_request() {
    // Rule: [CAP-010] [CAP-012] [STDIO-014].
    let (client, mut pair) = connect_host(&server(), host(yes), Revision::LATEST);
    pair.run(client.call_tool("book", &NoArguments {})).unwrap();
    let declared =
        r#"clientCapabilities":{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}"#;
    let calls = pair.transcript.count(r#""method":"tools/call""#);
    assert_eq!((calls, pair.transcript.count(declared)), (2, calls + 1), "{}", pair.transcript);
}

#[test]
fn a_malformed_root_does_not_hide_the_others_and_is_named_in_the_log() {
    let message = r#"{"role":"assistant","model":"m","content":{"type":"text","text":"4"}}"#;
    let roots = r#"{"roots":[{"uri":"file:///a"},{"name":"b"},{"uri":"file:///c"}]}"#;
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"}"#;
    let call = format!(
        r#"{{"name":"think","_meta":{meta},"inputResponses":{{"thought":{message},"roots":{roots}}}}}"#
    );
    let server = server().logging();
    let script = Script::new().request("tools/call", &call).expect(r#"{"method":"notifications/message","params":{"level":"warning","data":"left out of the answer to `roots`: `/roots/1`: missing field `uri`"}}"#);
    let script = script.expect_result(r#"{"content":[{"type":"text","text":"m in 2 roots"}]}"#);
    let mut pair = Pair::new(Stream::new(server.endpoint(42).unwrap(), script));
    pair.run_until_idle();
    pair.transport.client.expect("the script").assert_done();
}

#[test]
fn a_change_of_the_roots_is_sent_at_the_revisions_that_have_it() {
    // Rule: [ROOT-003] [ROOT-005].
    for revision in ASKING {
        let (client, mut pair) = connect_host(&server(), host(yes), revision);
        client.roots_changed().unwrap();
        pair.run_until_idle();
        let told = usize::from(revision < Revision::LATEST);
        assert_eq!(pair.transcript.count("notifications/roots/list_changed"), told, "{revision}");
    }
}

#[test]
fn roots_that_are_not_files_are_refused() {
    // Rule: [ROOT-002] [ROOT-006].
    const UNFIT: [&str; 7] = [
        "https://example.com/a",
        "file://a b",
        "file:///\n",
        "file:///x/../../etc",
        "file:///x/%2E./y",
        "file:///x/..%2f..%2Fetc",
        "file:///c:/x%5C..%5c..",
    ];
    for (revision, uri) in ASKING.into_iter().flat_map(|it| UNFIT.map(|uri| (it, uri))) {
        let host = host(yes).on_roots(move |_: HostRequest<()>| vec![Root::new(uri)]);
        let (client, mut pair) = connect_host(&server(), host, revision);
        let said = match pair.run(client.call_tool("think", &NoArguments {})) {
            Ok(result) => text(&result).to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(said.contains("not a `file://` URI"), "{revision}: {said}");
    }
}

fn tool_use() -> SamplingMessage {
    let input = Json::from_serialize(&NoArguments {}).unwrap();
    SamplingMessage::assistant(SamplingContent::from(ToolUseContent::new("1", "clock", input)))
}

#[test]
fn a_server_does_not_request_sampling_while_tool_results_are_missing() {
    // Rule: [SAMP-008] [SAMP-009].
    let server = Server::new("s", "1").tool("loop", "", |call: Call<NoArguments>| {
        let question = CreateMessageParams::new([tool_use()], 10);
        call.require_input("next", question).into_result::<String>()
    });
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (client, mut pair) = connect_host(&server, host(yes), revision);
        let error = pair.run(client.call_tool("loop", &NoArguments {})).unwrap_err();
        let refusal = error.as_refusal().unwrap();
        assert_eq!(refusal.code, ErrorCode::INTERNAL_ERROR, "{refusal}");
        assert!(refusal.message.contains("the tool use `1` has no result"), "{refusal}");
    }
}

#[test]
fn a_host_rejects_sampling_requests_with_missing_tool_results() {
    // Rule: [SAMP-011].
    let host = Host::new("host", "1").known_era(Era::Legacy).on_sample_with_tools(
        |_: HostRequest<CreateMessageParams>| -> CreateMessageResult {
            panic!("the request was dispatched")
        },
    );
    let question = CreateMessageParams::new([tool_use()], 10).to_json_at(Revision::V2025_11_25);
    let answer = answer_to("sampling/createMessage", question.unwrap().as_str(), &host);
    assert!(answer.contains("-32602") && answer.contains("`1` has no result"), "{answer}");
}

/// Returns the answer of a host at 2025-11-25 to a request of its server.
fn answer_to(method: &str, params: &str, host: &Host) -> String {
    let now = Instant::ZERO;
    let (_client, mut endpoint) = host.connect(1, now);
    let opened = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25",
        "capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    let question = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
    endpoint.handle_frame(Ok(opened), now);
    endpoint.handle_frame(Ok(question.as_bytes()), now);
    endpoint.poll_handlers(&mut Context::from_waker(Waker::noop()), now);
    let mut sent = Vec::new();
    endpoint.transmit(&mut |bytes| {
        sent.extend_from_slice(bytes);
        bytes.len()
    });
    let sent = String::from_utf8(sent).unwrap();
    sent.lines().find(|line| line.contains(r#""id":7"#)).unwrap().into()
}

/// URLs that a browser must not be sent to.
const BAD_URLS: [&str; 5] = ["", "not a url", "javascript:alert(1)", "file:///etc", "https:///x"];

#[test]
fn a_server_sends_no_elicitation_without_a_valid_url() {
    // Rule: [ELIC-014] [ELIC-015].
    let server = Server::new("s", "1").tool("go", "", |call: Call<Page>| {
        let question = Elicit::url("Go", call.arguments.url.clone());
        call.require_input("next", question).into_result::<String>()
    });
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for url in BAD_URLS {
            let (client, mut pair) = connect_host(&server, host(yes), revision);
            let page = Page { url: url.into() };
            let error = pair.run(client.call_tool("go", &page)).unwrap_err();
            let refusal = error.as_refusal().unwrap();
            assert_eq!(refusal.code, ErrorCode::INTERNAL_ERROR, "{url}: {refusal}");
            assert!(refusal.message.contains("the URL of the elicitation"), "{refusal}");
        }
    }
}

#[test]
fn a_host_is_not_asked_to_open_an_invalid_url() {
    // Rule: [ELIC-014] [ELIC-015].
    let host = Host::new("host", "1")
        .known_era(Era::Legacy)
        .on_elicit(|_: HostRequest<ElicitParams>| ElicitResult::accept_url());
    let ask = |url: &str| {
        let params = format!(r#"{{"mode":"url","message":"m","elicitationId":"e","url":"{url}"}}"#);
        answer_to("elicitation/create", &params, &host)
    };
    for url in BAD_URLS {
        let answer = ask(url);
        assert!(answer.contains("-32602") && answer.contains("the URL"), "{url}: {answer}");
    }
    for url in ["https://a.example/x?y#z", "HTTP://localhost:8080"] {
        assert!(ask(url).contains(r#""action":"accept""#), "{url}");
    }
}

#[test]
fn a_host_that_refuses_ends_the_call_with_its_reason() {
    for revision in ASKING {
        let host = Host::new("host", "1").on_elicit(
            async |_: HostRequest<ElicitParams>| -> Result<ElicitResult, HandlerError> {
                Err(HandlerError::failed("the host is busy"))
            },
        );
        let (client, mut pair) = connect_host(&server(), host, revision);
        let said = match pair.run(client.call_tool("book", &NoArguments {})) {
            Ok(result) => {
                assert_eq!(result.is_error, Some(true));
                text(&result).to_owned()
            }
            Err(error) => error.to_string(),
        };
        assert!(said.contains("the host is busy"), "{revision}: {said}");
    }
}

#[test]
fn input_is_not_requested_from_a_host_without_the_capability() {
    // Rule: [MRTR-005] [ELIC-001].
    for revision in ASKING {
        for (tool, capability) in [("book", "elicitation"), ("think", "sampling")] {
            let (client, mut pair) = connect(&server(), revision);
            let said = match pair.run(client.call_tool(tool, &NoArguments {})) {
                // Revisions without a protocol error for it return a tool error. Rule: [CAP-022].
                Ok(result) => {
                    assert_eq!(result.is_error, Some(true));
                    text(&result).to_owned()
                }
                Err(error) => {
                    assert_eq!(revision, Revision::V2026_07_28);
                    error.as_refusal().unwrap().message.clone().into_owned()
                }
            };
            let needs = format!("the client capability `{capability}`, which the client did not");
            assert!(said.contains(&needs), "{revision}: {said}");
            assert_eq!(pair.transcript.count("elicitation/create"), 0);
            assert_eq!(pair.transcript.count("sampling/createMessage"), 0);
        }
    }
}

#[test]
fn an_answer_that_does_not_match_its_schema_is_an_error() {
    // Rule: [ELIC-013] [MRTR-016].
    // The form asks for a text, and the handler reads something else.
    let server = Server::new("s", "1").tool("book", "", |call: Call<NoArguments>| {
        let form = ElicitSchema::new().field("sure", StringSchema::new());
        match call.input::<Confirmation>("confirm")? {
            None => call.require_input("confirm", Elicit::form_with("?", form)).into_result(),
            Some(_) => Ok("read"),
        }
    });
    for revision in ASKING {
        let nonsense = || ElicitResult::accept(Map::new().with("sure", "5"));
        let (client, mut pair) = connect_host(&server, host(nonsense), revision);
        let error = pair.run(client.call_tool("book", &NoArguments {})).unwrap_err();
        assert!(error.to_string().contains("the answer to `confirm`"), "{error}");
    }
}

#[test]
fn cancelling_a_call_withdraws_its_input_requests() {
    struct Counted(Arc<AtomicU32>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    for revision in ASKING {
        let dropped = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&dropped);
        let host = Host::new("host", "1").on_elicit(move |_: HostRequest<ElicitParams>| {
            let counted = Counted(Arc::clone(&seen));
            async move {
                std::future::pending::<()>().await;
                drop(counted);
                Ok(ElicitResult::cancel())
            }
        });
        let (client, mut pair) = connect_host(&server(), host, revision);
        {
            let mut call = Box::pin(client.call_tool("book", &NoArguments {}).into_future());
            assert!(pair.poll(call.as_mut()).is_none());
            assert_eq!(dropped.load(Ordering::SeqCst), 0);
        }
        pair.run_until_idle();
        assert_eq!(dropped.load(Ordering::SeqCst), 1, "{revision}: {}", pair.transcript);
    }
}

#[test]
fn a_form_that_cannot_be_shown_is_an_error_of_the_handler() {
    // Rule: [ELIC-007].
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nested {
        #[expect(dead_code, reason = "only the type is used")]
        inner: std::collections::BTreeMap<String, String>,
    }
    let server = Server::new("s", "1")
        .tool("nested", "", |call: Call<NoArguments>| {
            call.require_input("it", Elicit::form::<Nested>("?")).into_result::<()>()
        })
        .tool("text", "", |call: Call<NoArguments>| {
            call.require_input("it", Elicit::form::<String>("?")).into_result::<()>()
        });
    for revision in ASKING {
        let (client, mut pair) = connect_host(&server, host(yes), revision);
        for (tool, field) in [("nested", "inner"), ("text", "string")] {
            let error = pair.run(client.call_tool(tool, &NoArguments {})).unwrap_err();
            let refusal = error.as_refusal().unwrap();
            assert_eq!(refusal.code, ErrorCode::INTERNAL_ERROR);
            let message = format!("`it`: a form cannot have a field such as `{field}`");
            assert_eq!(refusal.message, message);
        }
    }
}

#[test]
fn fields_of_a_form_may_be_enums_and_optional() {
    // Rule: [ELIC-007] [ELIC-009].
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    enum Meal {
        Lunch,
        Dinner,
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Seat {
        /// At the window
        Window,
        Aisle,
        Any,
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "only the type is used")]
    struct Form {
        meal: Meal,
        second: Option<Meal>,
        guests: Option<u8>,
        seat: Option<Seat>,
    }
    let form = Elicit::form::<Form>("?");
    let text = SerializeAt::to_json_at(&form, Revision::LATEST).unwrap();
    let [text, params] = [text.as_raw(), text.as_raw().get("params").unwrap().into_owned()];
    assert_eq!(text.get("method").unwrap().as_str(), r#""elicitation/create""#);
    let schema = params.get("requestedSchema").unwrap();
    assert_eq!(schema.get("required").unwrap().as_str(), r#"["meal"]"#);
    let properties = schema.get("properties").unwrap();
    let second = properties.get("second").unwrap();
    assert!(second.as_str().contains(r#""enum":["Lunch","Dinner"]"#), "{}", second.as_str());
    let seat = properties.get("seat").unwrap();
    let choices = r#""oneOf":[{"const":"aisle","title":"aisle"},{"const":"any","title":"any"},{"const":"window","title":"At the window"}]"#;
    assert!(seat.as_str().contains(choices), "{}", seat.as_str());
    assert_eq!(seat.get("type").unwrap().as_str(), r#""string""#);
    // In the order of the declaration, which is not that of the alphabet.
    let names: Vec<_> = properties.members().map(|member| member.name().into_owned()).collect();
    assert_eq!(names, ["meal", "second", "guests", "seat"]);
}

#[test]
fn an_answer_that_does_not_fit_its_form_is_not_sent() {
    // Rule: [ELIC-007].
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Party {
        #[schemars(range(min = 1))]
        guests: u8,
    }
    let server = Server::new("s", "1").tool("book", "", |call: Call<NoArguments>| {
        match call.input::<Party>("party")? {
            None => call.require_input("party", Elicit::form::<Party>("?")).into_result(),
            Some(answer) => Ok(answer.content.map_or(0, |party| party.guests).to_string()),
        }
    });
    for revision in ASKING {
        for (guests, expected) in [(4_i64, Ok("4")), (0, Err("`guests` is less than 1"))] {
            let host = Host::new("h", "1").on_elicit(move |_: HostRequest<ElicitParams>| {
                ElicitResult::accept(Map::new().with("guests", guests))
            });
            let (client, mut pair) = connect_host(&server, host, revision);
            let result = pair.run(client.call_tool("book", &NoArguments {}));
            match (expected, result) {
                (Ok(expected), Ok(result)) => assert_eq!(text(&result), expected),
                (Err(expected), result) => {
                    let told = format!("{result:?}");
                    assert!(told.contains(expected), "{told}");
                }
                (_, result) => panic!("{revision}: {result:?}"),
            }
        }
    }
}

/// The URLs that a user was sent to, and the id of each elicitation.
type Visits = Arc<Mutex<Vec<(String, Option<String>)>>>;

fn tickets() -> Server {
    let pay = || Elicit::url("Pay here", "https://pay.example/cart/7");
    Server::new("tickets", "1").tool("pay", "", move |call: Call<NoArguments>| {
        let seat = || Elicit::url("Choose here", "https://seats.example/7");
        match (call.input::<Json>("pay")?, call.state()) {
            (None, _) => call.require_input("pay", pay()).and("seat", seat()).into_result(),
            // The user opened the URL, but has not paid yet.
            (Some(_), None) => call.require_input("pay", pay()).state("again").into_result(),
            (Some(_), Some(_)) => Ok("paid".to_owned()),
        }
    })
}

/// Returns the URLs that a user is sent to by `calls` calls at a revision, with a server of this
/// seed.
fn visits(seed: u64, revision: Revision, calls: usize) -> Vec<(String, Option<String>)> {
    let visits = Visits::default();
    let seen = Arc::clone(&visits);
    let host = Host::new("host", "1").on_elicit(move |question: HostRequest<ElicitParams>| {
        let ElicitParams::Url(params) = &question.params else { panic!("{question:?}") };
        let visit = (params.url.clone(), params.elicitation_id.clone());
        seen.lock().expect("a list").push(visit);
        ElicitResult::accept_url()
    });
    let host = host.revisions(mcp_sansio::Revisions::only(revision));
    let (client, endpoint) = host.connect(7, Instant::ZERO);
    let server = tickets().endpoint(seed).expect("a server");
    let mut pair = Pair::new(Stream::new(server, endpoint));
    pair.run(client.opened()).expect("a session");
    for _ in 0..calls {
        let result = pair.run(client.call_tool("pay", &NoArguments {})).expect("a result");
        assert_eq!(text(&result), "paid");
    }
    let visits = visits.lock().expect("a list");
    visits.clone()
}

#[test]
fn the_id_of_a_url_elicitation_is_unguessable() {
    // Rule: [ELIC-014] [ELIC-015].
    let seen = visits(7, Revision::V2025_11_25, 2);
    let ids: Vec<&str> = seen.iter().map(|it| it.1.as_deref().expect("an id")).collect();
    assert_eq!(ids.len(), 6, "{seen:?}");
    for (url, id) in &seen {
        let id = id.as_deref().expect("an id");
        assert!(!url.contains(id) && !id.contains("example"), "{id}");
        assert_eq!(id.len(), 22, "128 bits: {id}");
    }
    // The same input request of one call keeps its elicitation id in every round.
    let (first, second) = ids.split_at(3);
    for round in [first, second] {
        assert_eq!(round[2], round[0], "{seen:?}");
        assert_ne!(round[1], round[0], "{seen:?}");
    }
    assert!(first.iter().all(|id| !second.contains(id)), "{seen:?}");
    // The same seed gives the same ids, and another seed gives other ids.
    assert_eq!(visits(7, Revision::V2025_11_25, 2), seen);
    let other = visits(8, Revision::V2025_11_25, 2);
    assert!(other.iter().all(|it| !seen.contains(it)), "{other:?}");
    // The modern revision has no elicitation ids.
    let modern = visits(7, Revision::V2026_07_28, 1);
    assert!(modern.len() == 3 && modern.iter().all(|it| it.1.is_none()), "{modern:?}");
}

/// Returns a script in which a 2025-11-25 client opens a connection with these capabilities, and
/// calls the tool `think`.
fn thinking_client(capabilities: &str) -> Script {
    let opening = format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}"#
    );
    Script::new()
        .request("initialize", &opening)
        .expect_result(r#"{"protocolVersion":"2025-11-25"}"#)
        .send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .request("tools/call", r#"{"name":"think"}"#)
}

#[test]
fn a_malformed_part_of_an_answer_of_the_model_does_not_hide_the_rest() {
    let block = r#"{"type":"text","text":"4","annotations":{"priority":"high"}}"#;
    let several = format!(r#"[{{"type":"text"}},{block}]"#);
    for content in [block, &several] {
        let server = Server::new("s", "1").tool("think", "", |call: Call<NoArguments>| {
            let Some(said) = call.sampled("thought")? else {
                let question = CreateMessageParams::new([SamplingMessage::user("2 + 2?")], 10);
                return call.require_input("thought", question).into_result();
            };
            Ok(said.first_text().unwrap_or("nothing").to_owned())
        });
        let answer = format!(r#"{{"role":"assistant","content":{content},"model":"abacus"}}"#);
        let client = thinking_client(r#"{"sampling":{}}"#)
            .expect(r#"{"method":"sampling/createMessage"}"#)
            .reply(&answer)
            .expect_result(r#"{"content":[{"text":"4"}]}"#);
        let mut pair = Pair::new(Stream::new(server.endpoint(42).unwrap(), client));
        pair.run_until_idle();
        pair.transport.client.expect("the script").assert_done();
    }
}

#[test]
fn a_handler_that_asks_for_a_task_gets_the_result_of_the_task() {
    // Rule: [TASK-001] [TASK-002] [TASK-012] [TASK-013].
    let server = Server::new("s", "1").tool("think", "", |call: Call<NoArguments>| {
        let Some(said) = call.sampled("thought")? else {
            let question = CreateMessageParams::new([SamplingMessage::user("2 + 2?")], 10);
            let question = InputRequest::from(question).as_task(Some(Duration::from_secs(60)));
            return call.require_input("thought", question).into_result();
        };
        Ok(said.model)
    });
    let task = |status: &str| {
        format!(
            r#"{{"taskId":"t","status":"{status}","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":60000,"pollInterval":500}}"#
        )
    };
    let answer = r#"{"role":"assistant","content":{"type":"text","text":"4"},"model":"abacus","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#;
    let with_tasks = r#"{"sampling":{},"tasks":{"requests":{"sampling":{"createMessage":{}}}}}"#;
    let question = r#"{"method":"sampling/createMessage","params":{"task":{"ttl":60000}}}"#;
    let follows = thinking_client(with_tasks)
        .expect(question)
        .reply(&format!(r#"{{"task":{}}}"#, task("working")))
        .expect(r#"{"method":"tasks/get","params":{"taskId":"t"}}"#)
        .reply(&task("working"))
        .expect(r#"{"method":"tasks/get","params":{"taskId":"t"}}"#)
        .reply(&task("completed"))
        .expect(r#"{"method":"tasks/result","params":{"taskId":"t"}}"#)
        .reply(answer)
        .expect_result(r#"{"content":[{"text":"abacus"}]}"#);
    let plain = thinking_client(r#"{"sampling":{}}"#)
        .expect(r#"{"method":"sampling/createMessage"}"#)
        .reply(answer)
        .expect_result(r#"{"content":[{"text":"abacus"}]}"#);
    for client in [follows, plain] {
        let mut pair = Pair::new(Stream::new(server.endpoint(42).unwrap(), client));
        pair.run_until_idle();
        for _ in 0..2 {
            pair.advance(Duration::from_millis(500));
            pair.run_until_idle();
        }
        pair.transport.client.expect("the script").assert_done();
    }
    // The same handler works at every revision, with the hosts of this library.
    for revision in Revision::ALL {
        let (client, mut pair) = connect_host(&server, host(yes), revision);
        let result = pair.run(client.call_tool("think", &NoArguments {})).unwrap();
        assert_eq!(text(&result), "abacus", "{revision}");
    }
}

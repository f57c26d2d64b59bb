//! Panics in functions of the application.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::peer::Event;
use mcp_sansio::protocol::{
    ElicitParams, ElicitResult, Resource, ResourceTemplate, TextResourceContents,
};
use mcp_sansio::{ErrorCode, Revision};
use mcp_sansio_handlers::endpoint::{Endpoint, PanicGuard};
use mcp_sansio_handlers::{
    Call, Client, ClientError, Elicit, Host, HostRequest, NoArguments, ReadResource, Server,
    blocking,
};

use crate::task_client::{Gate, TaskClient, settings};
use crate::{ASKING, Both, connect, connect_host, text};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirmation {
    sure: bool,
}

/// The text of the panics, which no peer may see.
const SECRET: &str = "the password is 1234";

/// The panics that observers have seen.
#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<String>>>);

impl Reports {
    fn observer(&self) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
        let reports = self.clone();
        move |event| {
            if let Event::HandlerPanicked(panicked) = event {
                reports.0.lock().unwrap().push(panicked.to_string());
            }
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Panics when it is dropped.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("panic in a destructor");
    }
}

pub(crate) fn guard() -> PanicGuard {
    PanicGuard::new(|function| catch_unwind(AssertUnwindSafe(function)))
}

/// Sets a panic guard on both sides.
fn guarded(mut both: Both) -> Both {
    both.1.transport.server.as_mut().unwrap().catch_panics(guard());
    both.1.transport.client.as_mut().unwrap().catch_panics(guard());
    both
}

/// Is ready at the second poll.
async fn pause() {
    let mut first = true;
    std::future::poll_fn(move |cx| {
        cx.waker().wake_by_ref();
        if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
}

fn server() -> Server {
    Server::new("s", "1")
        .tool("plain", "", |_: Call<NoArguments>| "plain")
        .tool("at-once", "", |_: Call<NoArguments>| -> &str { panic!("{SECRET}") })
        .tool("first", "", async |_: Call<NoArguments>| -> &str { panic!("{SECRET}") })
        .tool("later", "", async |_: Call<NoArguments>| -> &str {
            pause().await;
            panic!("{SECRET}")
        })
        .tool("blocking", "", blocking(|_: Call<NoArguments>| -> &str { panic!("{SECRET}") }))
        .prompt("draft", "", |_: Call<NoArguments>| -> String { panic!("{SECRET}") })
        .resource(
            Resource::new("mem://note", "note"),
            |_: Call<ReadResource>| -> TextResourceContents { panic!("{SECRET}") },
        )
        .resource_template(
            ResourceTemplate::new("mem://notes/{id}", "notes"),
            |_: Call<ReadResource>| -> TextResourceContents { panic!("{SECRET}") },
        )
        .request("vendor/sum", async |_: Call<Json>| -> Json { panic!("{SECRET}") })
        .tool("edit", "", |call: Call<NoArguments>| {
            call.edit_catalog(|_| panic!("in an edit")).map_or("refused", |()| "edited")
        })
        .tool("fragile", "", async |_: Call<NoArguments>| {
            let _fragile = PanicsOnDrop;
            std::future::pending::<()>().await;
        })
        .tool("report", "", |call: Call<NoArguments>| {
            call.progress(1.0, None, "");
            call.progress(2.0, None, "");
            "reported"
        })
        .tool("ask", "", |call: Call<NoArguments>| match call.input::<Confirmation>("sure")? {
            None => call.require_input("sure", Elicit::form::<Confirmation>("Sure?")).into_result(),
            Some(answer) => Ok(answer.content.is_some_and(|it| it.sure).to_string()),
        })
}

fn plain(client: &Client) -> impl Future<Output = String> + use<> {
    let call = client.call_tool("plain", &NoArguments {});
    async move { text(&call.await.unwrap()).to_owned() }
}

#[test]
fn a_handler_that_panics_is_an_internal_error_and_the_connection_stays_open() {
    for revision in Revision::ALL {
        let reports = Reports::default();
        let server = server().observe(reports.observer());
        let (client, mut pair) = guarded(connect(&server, revision));
        let check = |error: ClientError, handler: &str| {
            let refusal = error.as_refusal().unwrap();
            assert_eq!(refusal.code, ErrorCode::INTERNAL_ERROR, "{revision} {handler}");
            assert_eq!(refusal.message, format!("the handler of {handler} panicked"));
            let report = format!("the handler of {handler} panicked: {SECRET}");
            assert_eq!(reports.take(), [report], "{revision}");
        };
        for tool in ["at-once", "first", "later", "blocking"] {
            let error = pair.run(client.call_tool(tool, &NoArguments {})).unwrap_err();
            check(error, &format!("tool `{tool}`"));
            assert_eq!(pair.run(plain(&client)), "plain");
        }
        check(pair.run(client.get_prompt("draft", [])).unwrap_err(), "prompt `draft`");
        for (uri, handler) in [
            ("mem://note", "resource `mem://note`"),
            ("mem://notes/7", "resource template `mem://notes/{id}`"),
        ] {
            check(pair.run(client.read_resource(uri)).unwrap_err(), handler);
        }
        let other = client.call_other("vendor/sum", RawJson::EMPTY_OBJECT);
        check(pair.run(other).unwrap_err(), "`vendor/sum`");
        assert_eq!(pair.transcript.count(SECRET), 0);
        let edited = pair.run(client.call_tool("edit", &NoArguments {})).unwrap();
        assert_eq!(text(&edited), "edited");
        assert_eq!(pair.run(plain(&client)), "plain");
    }
}

#[test]
fn a_panic_while_dropping_a_handler_is_contained() {
    let (client, mut pair) = guarded(connect(&server(), Revision::LATEST));
    let mut fragile = Box::pin(client.call_tool("fragile", &NoArguments {}).into_future());
    assert!(pair.poll(fragile.as_mut()).is_none());
    drop(fragile);
    pair.run_until_idle();
    assert_eq!(pair.run(plain(&client)), "plain");
}

#[test]
fn without_a_guard_a_panic_propagates() {
    let (client, mut pair) = connect(&server(), Revision::LATEST);
    let call = client.call_tool("at-once", &NoArguments {});
    assert!(catch_unwind(AssertUnwindSafe(|| pair.run(call))).is_err());
}

#[test]
fn an_observer_that_panics_makes_the_request_an_internal_error() {
    let server = server().observe(|event| {
        if let Event::Request(request) = event {
            assert!(!request.params.as_str().contains("report"), "an observer's panic");
        }
    });
    let (client, mut pair) = guarded(connect(&server, Revision::LATEST));
    let error = pair.run(client.call_tool("report", &NoArguments {})).unwrap_err();
    assert_eq!(error.as_refusal().unwrap().code, ErrorCode::INTERNAL_ERROR);
    assert_eq!(pair.run(plain(&client)), "plain");
}

#[test]
fn a_host_that_panics_answers_the_request_with_an_internal_error() {
    for revision in ASKING {
        let at_once = Host::new("h", "1")
            .on_elicit(|_: HostRequest<ElicitParams>| -> ElicitResult { panic!("{SECRET}") });
        let later =
            Host::new("h", "1").on_elicit(async |_: HostRequest<ElicitParams>| -> ElicitResult {
                pause().await;
                panic!("{SECRET}")
            });
        let blocks = Host::new("h", "1").on_elicit(blocking(
            |_: HostRequest<ElicitParams>| -> ElicitResult { panic!("{SECRET}") },
        ));
        for host in [at_once, later, blocks] {
            let reports = Reports::default();
            let host = host.observe(reports.observer());
            let (client, mut pair) = guarded(connect_host(&server(), host, revision));
            let mut asking = Box::pin(client.call_tool("ask", &NoArguments {}).into_future());
            let asked = pair.poll(asking.as_mut()).expect("the call ends");
            assert!(asked.as_ref().map_or(true, |it| text(it) != "true"), "{asked:?}");
            let report = format!("the handler of `elicitation/create` panicked: {SECRET}");
            assert_eq!(reports.take(), [report]);
            assert_eq!(pair.transcript.count(SECRET), 0);
            if revision < Revision::LATEST {
                let answer = r#"> {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"#;
                assert_eq!(pair.transcript.count(answer), 1, "{}", pair.transcript);
            }
            assert_eq!(pair.run(plain(&client)), "plain", "{revision}");
        }
    }
}

#[test]
fn a_progress_callback_that_panics_is_not_called_again_and_the_call_continues() {
    let seen = Arc::new(Mutex::new(0));
    let sink = Arc::clone(&seen);
    let (client, mut pair) = guarded(connect(&server(), Revision::LATEST));
    let call = client.call_tool("report", &NoArguments {}).on_progress(move |_| {
        *sink.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
        panic!("in a callback");
    });
    assert_eq!(text(&pair.run(call).unwrap()), "reported");
    assert_eq!(pair.transcript.count("notifications/progress"), 2);
    assert_eq!(*seen.lock().unwrap(), 1);
}

#[test]
fn a_task_whose_handler_panics_fails() {
    let gate = Gate::default();
    let waits = gate.clone();
    let server =
        Server::new("s", "1").tasks(settings()).tool("late", "", move |call: Call<NoArguments>| {
            let gate = waits.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                assert!(!call.accepts_task(), "as a task");
            }
        });
    let mut client = TaskClient::new(&server);
    client.endpoint.catch_panics(guard());
    let created = client.call("late");
    let task = created["taskId"].as_str().unwrap();
    assert_eq!(client.status(task), "working");
    gate.open();
    let failed = client.get(task);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&"failed".into(), &(-32603).into()));
    assert_eq!(failed["error"]["message"], "the handler of tool `late` panicked");
}

//! The operation as handlers see it.

use std::task::Poll;

use mcp_sansio::Revision;
use mcp_sansio::protocol::{ElicitParams, ElicitResult};
use mcp_sansio_handlers::{Call, Host, HostRequest, NoArguments, Server, blocking};
use mcp_sansio_telemetry::OperationInfo;
use mcp_sansio_test::{Identity, connect, connect_http};
use opentelemetry::Context;
use opentelemetry::trace::{SpanKind, TraceContextExt as _};

use super::exported::Exported;
use super::host;

fn current_span() -> String {
    Context::current().span().span_context().span_id().to_string()
}

/// A future that is pending once.
async fn pause() {
    let mut polled = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A server whose tools return the id of the current span.
fn server() -> Server {
    Server::new("s", "1")
        .tool("plain", "", |_: Call<NoArguments>| current_span())
        .tool("waits", "", async |_: Call<NoArguments>| {
            pause().await;
            current_span()
        })
        .tool("blocks", "", blocking(|_: Call<NoArguments>| current_span()))
}

#[test]
fn a_handler_runs_in_the_context_of_its_request() {
    for revision in [Revision::V2025_11_25, Revision::LATEST] {
        for name in ["plain", "waits", "blocks"] {
            let there = Exported::new();
            let server = server()
                .spawner(|job| drop(std::thread::spawn(job).join()))
                .observe_operations(there.telemetry.clone());
            let (client, mut pair) = connect(&server, &host(revision));
            let stream = pair.run(client.call_tool(name, &NoArguments {})).unwrap();
            let span = there.span(&format!("tools/call {name}"), SpanKind::Server);
            assert_eq!(
                stream.first_text(),
                Some(&*span.span_context.span_id().to_string()),
                "{name}"
            );

            let there = Exported::new();
            let server = server.observe_operations(there.telemetry.clone());
            let (client, mut pair) = connect_http(&server, &host(revision), None);
            let http = pair.run(client.call_tool(name, &NoArguments {})).unwrap();
            let span = there.span(&format!("tools/call {name}"), SpanKind::Server);
            assert_eq!(
                http.first_text(),
                Some(&*span.span_context.span_id().to_string()),
                "{name}"
            );
        }
    }
    assert_eq!(current_span(), "0000000000000000");
}

#[test]
fn a_handler_of_a_host_runs_in_the_context_of_its_request() {
    let here = Exported::new();
    let (sender, receiver) = std::sync::mpsc::channel();
    let host = Host::new("h", "1")
        .revisions(mcp_sansio::Revisions::only(Revision::V2025_11_25))
        .on_elicit(move |_: HostRequest<ElicitParams>| {
            sender.send(current_span()).unwrap();
            ElicitResult::decline()
        })
        .observe_operations(here.telemetry.clone());
    let (client, mut pair) = connect(&super::server(), &host);
    pair.run(client.call_tool("ask", &NoArguments {})).unwrap();
    let span = here.span("elicitation/create", SpanKind::Server);
    assert_eq!(receiver.recv().unwrap(), span.span_context.span_id().to_string());
}

#[test]
fn a_handler_can_name_its_request() {
    for (revision, has_session) in [(Revision::V2025_11_25, true), (Revision::LATEST, false)] {
        let server = Server::new("s", "1")
            .tool("who", "", |_: Call<NoArguments>| {
                let request = OperationInfo::current().unwrap();
                format!(
                    "{} {} {} {} {}",
                    request.method(),
                    request.request_id().is_some(),
                    request.session_id().is_some(),
                    request.principal().unwrap_or("nobody"),
                    request.revision().unwrap(),
                )
            })
            .observe_operations(Exported::new().telemetry);
        let (client, mut pair) = connect_http(&server, &host(revision), Identity::new("ann"));
        let result = pair.run(client.call_tool("who", &NoArguments {})).unwrap();
        let expected = format!("tools/call true {has_session} ann {revision}");
        assert_eq!(result.first_text(), Some(&*expected));
        assert!(OperationInfo::current().is_none());
    }
}

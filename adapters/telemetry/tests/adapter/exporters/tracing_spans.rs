//! Spans of `tracing`, as a subscriber receives them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_handlers::{Call, Client, HandlerError, Host, NoArguments, Server};
use mcp_sansio_telemetry::Telemetry;
use mcp_sansio_test::{Pair, Transport, connect, connect_http};
use opentelemetry::metrics::noop::NoopMeterProvider;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

/// A span as a subscriber knows it.
#[derive(Clone, Debug, Default)]
struct Seen {
    name: &'static str,
    target: String,
    fields: BTreeMap<&'static str, String>,
    /// The `otel.name` of the parent, or its name.
    parent: Option<String>,
    is_closed: bool,
}

impl Seen {
    fn title(&self) -> String {
        self.fields.get("otel.name").map_or_else(|| self.name.to_owned(), Clone::clone)
    }
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

/// Stores all spans, by their ids in the order of their beginning.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<(u64, Seen)>>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        let (name, target) = (metadata.name(), metadata.target().to_owned());
        let mut seen = Seen { name, target, ..Seen::default() };
        attributes.record(&mut seen);
        let parent = context.span(id).and_then(|span| Some(span.parent()?.id().into_u64()));
        let mut all = self.0.lock().unwrap();
        seen.parent = parent.and_then(|parent| {
            all.iter().rev().find(|(id, _)| *id == parent).map(|(_, seen)| seen.title())
        });
        all.push((id.into_u64(), seen));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut all = self.0.lock().unwrap();
        let (_, seen) = all.iter_mut().rev().find(|(known, _)| *known == id.into_u64()).unwrap();
        values.record(seen);
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        let mut all = self.0.lock().unwrap();
        let (_, seen) = all.iter_mut().rev().find(|(known, _)| *known == id.into_u64()).unwrap();
        seen.is_closed = true;
    }
}

impl Spans {
    /// Returns the spans of this name.
    fn of(&self, name: &str) -> Vec<Seen> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|(_, seen)| seen.name == name).map(|(_, seen)| seen.clone()).collect()
    }

    /// Returns the only span with this name and title.
    #[track_caller]
    fn one(&self, name: &str, title: &str) -> Seen {
        let mut found = self.of(name);
        let titles: Vec<_> = found.iter().map(Seen::title).collect();
        found.retain(|it| it.title() == title);
        assert_eq!(found.len(), 1, "{title} of {titles:?}");
        found.remove(0)
    }
}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Secret {
    secret: String,
}

fn server() -> Server {
    Server::new("s", "1")
        .tool("now", "", |call: Call<Secret>| {
            tracing::info_span!("plain").in_scope(|| ());
            format!("noon {}", call.arguments.secret)
        })
        .tool("wait", "", async |_: Call<NoArguments>| {
            let mut polled = false;
            std::future::poll_fn(|cx| {
                cx.waker().wake_by_ref();
                if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            tracing::info_span!("waited").in_scope(|| "waited")
        })
        .tool("fail", "", |_: Call<NoArguments>| Err::<String, _>(HandlerError::failed("closed")))
}

fn secret() -> Secret {
    Secret { secret: "swordfish".into() }
}

fn act<T: Transport>(client: &Client, pair: &mut Pair<T>) {
    let run = tracing::info_span!("application");
    // The call belongs to the span in which it is made.
    let call = run.in_scope(|| client.call_tool("now", &secret()).into_future());
    run.in_scope(|| pair.run(call)).unwrap();
    pair.run(client.call_tool("wait", &NoArguments {})).unwrap();
    pair.run(client.call_tool("fail", &NoArguments {})).unwrap();
    pair.run(client.list_tools(None)).unwrap();
    pair.run(client.call_tool("unknown", &NoArguments {})).unwrap_err();
}

/// Acts on both sides with spans of `tracing` alone, over a stream or HTTP.
fn observed(revision: Revision, http: bool, telemetry: &Telemetry) -> Spans {
    let spans = Spans::default();
    let subscriber = tracing_subscriber::registry().with(spans.clone());
    tracing::subscriber::with_default(subscriber, || {
        let server = server().observe_operations(telemetry.clone());
        let host = Host::new("h", "1").revisions(Revisions::only(revision));
        let host = host.observe_operations(telemetry.clone());
        if http {
            let (client, mut pair) = connect_http(&server, &host, None);
            act(&client, &mut pair);
        } else {
            let (client, mut pair) = connect(&server, &host);
            act(&client, &mut pair);
        }
    });
    spans
}

#[test]
fn both_sides_have_a_span_with_the_attributes_of_the_conventions() {
    // Rule: [TRACE-008] [TRACE-009] [TRACE-013] [TRACE-014] [TRACE-017] [TRACE-022].
    for (revision, http) in [(Revision::V2025_11_25, false), (Revision::LATEST, false)]
        .into_iter()
        .chain([(Revision::V2025_11_25, true), (Revision::LATEST, true)])
    {
        let spans = observed(revision, http, &Telemetry::tracing_only());
        for (name, kind) in [("mcp.client", "client"), ("mcp.server", "server")] {
            let call = spans.one(name, "tools/call now");
            assert_eq!(call.target, "mcp_sansio::operation");
            let field = |name| call.fields.get(name).map(String::as_str);
            assert_eq!(field("otel.kind"), Some(kind));
            assert_eq!(field("mcp.method.name"), Some("tools/call"));
            assert_eq!(field("gen_ai.tool.name"), Some("now"));
            assert_eq!(field("gen_ai.operation.name"), Some("execute_tool"));
            assert_eq!(field("mcp.protocol.version"), Some(revision.as_str()));
            assert_eq!(field("network.transport"), Some(if http { "tcp" } else { "pipe" }));
            assert!(field("jsonrpc.request.id").is_some());
            let has_session = http && revision != Revision::LATEST;
            assert_eq!(field("mcp.session.id").is_some(), has_session, "{call:?}");
            assert!(field("error.type").is_none() && field("otel.status_code").is_none());

            let failed = spans.one(name, "tools/call fail");
            assert_eq!(failed.fields["error.type"], "tool_error");
            assert_eq!(failed.fields["otel.status_code"], "ERROR");
            let unknown = spans.one(name, "tools/call unknown");
            assert_eq!(unknown.fields["rpc.response.status_code"], "-32602");
            // Only the sender counts it as a failure.
            assert_eq!(unknown.fields.contains_key("error.type"), kind == "client");
            // The machine answers it. On HTTP a modern client also reads it before the first call of
            // a tool, for the arguments to mirror.
            assert!(spans.of(name).iter().any(|span| span.title() == "tools/list"));
            assert!(spans.of(name).iter().all(|span| span.is_closed), "{:?}", spans.of(name));
        }
        let all = format!("{:?}", spans.0.lock().unwrap());
        assert!(!all.contains("swordfish"), "{all}");
    }
}

#[test]
fn a_handler_runs_in_the_span_of_its_request_and_a_call_in_that_of_its_caller() {
    for (revision, http) in [(Revision::V2025_11_25, true), (Revision::LATEST, false)] {
        let spans = observed(revision, http, &Telemetry::tracing_only());
        let parent = |name, title| spans.one(name, title).parent;
        assert_eq!(parent("plain", "plain").as_deref(), Some("tools/call now"));
        assert_eq!(parent("waited", "waited").as_deref(), Some("tools/call wait"));
        assert_eq!(parent("mcp.client", "tools/call now").as_deref(), Some("application"));
        assert_eq!(parent("mcp.client", "tools/call wait"), None);
    }
}

#[test]
fn payloads_are_recorded_on_request_and_a_foreign_method_is_not_a_name() {
    // Rule: [TRACE-037].
    let telemetry = Telemetry::tracing_only().payloads(true);
    let spans = observed(Revision::LATEST, false, &telemetry);
    for name in ["mcp.client", "mcp.server"] {
        let call = spans.one(name, "tools/call now");
        assert_eq!(call.fields["gen_ai.tool.call.arguments"], r#"{"secret":"swordfish"}"#);
        assert!(call.fields["gen_ai.tool.call.result"].contains("noon swordfish"));
    }

    let spans = Spans::default();
    let subscriber = tracing_subscriber::registry().with(spans.clone());
    tracing::subscriber::with_default(subscriber, || {
        let server = Server::new("s", "1").observe_operations(Telemetry::tracing_only());
        let (client, mut pair) = connect(&server, &Host::new("h", "1"));
        let params = RawJson::EMPTY_OBJECT;
        pair.run(client.call_other("com.example/any", params)).unwrap_err();
    });
    let foreign = spans.one("mcp.server", "_OTHER");
    assert_eq!(foreign.fields["mcp.method.name"], "com.example/any");
}

#[test]
fn spans_of_tracing_are_written_in_addition_on_request() {
    let exporter = InMemorySpanExporter::default();
    let tracers = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let telemetry = Telemetry::new(&tracers, &NoopMeterProvider::new());
    let none = observed(Revision::LATEST, false, &telemetry);
    assert!(none.of("mcp.server").is_empty(), "off by default");
    exporter.reset();
    let spans = observed(Revision::LATEST, false, &telemetry.tracing_spans(true));
    let exported = exporter.get_finished_spans().unwrap();
    let titles = |name| spans.of(name).iter().map(Seen::title).collect::<Vec<_>>();
    let mut written = [titles("mcp.client"), titles("mcp.server")].concat();
    let mut expected: Vec<_> = exported.iter().map(|span| span.name.to_string()).collect();
    written.sort_unstable();
    expected.sort_unstable();
    assert_eq!(written, expected);
}

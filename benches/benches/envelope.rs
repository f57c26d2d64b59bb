//! Throughput of envelopes in bytes per second: parsing the envelope of a message, compared with a
//! baseline, `serde_json` reading the same text into a struct of borrowed raw values; and writing
//! the response to a short request, which includes receiving it.

use std::borrow::Cow;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mcp_sansio::Instant;
use mcp_sansio::envelope::ParseLimits;
use mcp_sansio::jsonrpc::{RawJson, parse};
use mcp_sansio::peer::{Event, Server, ServerMachine, ServerOptions};
use mcp_sansio::protocol::{Implementation, ServerCapabilities, ToolsCapability};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[expect(dead_code, reason = "only reading is measured")]
struct Baseline<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

fn envelope(criterion: &mut Criterion) {
    let messages = [
        ("ping", benches::ping()),
        ("echo_64", benches::echo(64)),
        ("echo_64k", benches::echo(64 * 1024)),
        ("tool_list_20", benches::tool_list(20)),
    ];
    let mut group = criterion.benchmark_group("envelope");
    for (name, message) in &messages {
        let bytes = message.as_bytes();
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_with_input(BenchmarkId::new("parse", name), bytes, |bencher, bytes| {
            bencher.iter(|| parse(black_box(bytes), ParseLimits::default()).expect("a message"));
        });
        group.bench_with_input(BenchmarkId::new("floor", name), bytes, |bencher, bytes| {
            bencher
                .iter(|| serde_json::from_slice::<Baseline<'_>>(black_box(bytes)).expect("JSON"));
        });
    }
    group.finish();
}

fn respond(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("respond");
    let mut server = open_server();
    let request = benches::echo(0);
    let list = benches::tool_list(20);
    let results = [
        ("echo_64", benches::echo_params(64)),
        ("echo_64k", benches::echo_params(64 * 1024)),
        // Many small values, each of which is written.
        ("tool_list_20", RawJson::parse(&list).expect("JSON")),
    ];
    for (name, result) in &results {
        group.throughput(Throughput::Bytes(result.as_str().len() as u64));
        group.bench_function(*name, |bencher| {
            bencher.iter(|| {
                let event = server.handle_message(request.as_bytes(), Instant::ZERO);
                let Ok(Some(Event::Request(request))) = event else { panic!("{event:?}") };
                server
                    .respond_with(request.handle, black_box(result), Instant::ZERO)
                    .expect("pending");
                while server.poll_transmit().is_some() {}
            });
        });
    }
    group.finish();
}

/// Returns a server whose client has opened the session.
fn open_server() -> Server {
    let offers = ServerCapabilities::new().tools(ToolsCapability::new());
    let options = ServerOptions::new(Implementation::new("bench", "1.0.0")).capabilities(offers);
    let mut server = Server::new(options, 1);
    for opening in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ] {
        server.handle_message(opening.as_bytes(), Instant::ZERO).expect("valid");
        while server.poll_transmit().is_some() {}
    }
    server
}

criterion_group!(all, envelope, respond);
criterion_main!(all);

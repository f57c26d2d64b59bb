//! Throughput of envelopes in bytes per second: parsing the envelope of a message, compared with a
//! baseline, `serde_json` reading the same text into a struct of borrowed raw values; and writing
//! one.

use std::borrow::Cow;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mcp_sansio::jsonrpc::{ParseLimits, RawJson, RequestId, parse, write_request, write_result};
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

fn write(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("envelope_write");
    let mut out = String::new();
    for (name, length) in [("echo_64", 64), ("echo_64k", 64 * 1024)] {
        let (id, params) = (RequestId::from(12345), benches::echo_params(length));
        group.throughput(Throughput::Bytes(length as u64));
        group.bench_function(BenchmarkId::new("request", name), |bencher| {
            bencher.iter(|| {
                out.clear();
                write_request(&mut out, &id, "tools/call", Some(black_box(&params)))
            });
        });
        group.bench_function(BenchmarkId::new("result", name), |bencher| {
            bencher.iter(|| {
                out.clear();
                write_result(&mut out, &id, black_box(&params))
            });
        });
    }
    // Many small values, each of which is written.
    let list = benches::tool_list(20);
    let list = RawJson::parse(&list).expect("JSON");
    group.throughput(Throughput::Bytes(list.as_str().len() as u64));
    group.bench_function(BenchmarkId::new("result", "tool_list_20"), |bencher| {
        bencher.iter(|| {
            out.clear();
            write_result(&mut out, &RequestId::from(12345), black_box(&list))
        });
    });
    group.finish();
}

criterion_group!(all, envelope, write);
criterion_main!(all);

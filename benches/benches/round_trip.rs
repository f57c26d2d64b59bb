//! Time of round trips between a client and a server in one process: a `ping`, and calls of a tool
//! that echoes its argument, with one, some or many in flight; between the machines, with handlers,
//! and over HTTP.

use benches::{Echo, Endpoints, HttpLink, Link, REVISIONS};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mcp_sansio::Revision;

const SHORT: usize = 64;
const LONG: usize = 64 * 1024;
const IN_FLIGHT: [u32; 3] = [1, 16, 256];

fn machines(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("machines");
    for revision in REVISIONS {
        // The modern era has no ping.
        if revision < Revision::V2026_07_28 {
            let mut link = Link::open_at(revision);
            group.throughput(Throughput::Elements(1));
            group.bench_function(BenchmarkId::new("ping", revision), |bencher| {
                bencher.iter(|| link.ping());
            });
        }
        for in_flight in IN_FLIGHT {
            let mut link = Link::open_at(revision);
            let params = benches::echo_params(SHORT);
            group.throughput(Throughput::Elements(in_flight.into()));
            let name = format!("echo_64, {in_flight} in flight");
            group.bench_function(BenchmarkId::new(name, revision), |bencher| {
                bencher.iter(|| link.echo_at_once(&params, in_flight));
            });
        }
        let mut link = Link::open_at(revision);
        let params = benches::echo_params(LONG);
        group.throughput(Throughput::Bytes(2 * LONG as u64));
        group.bench_function(BenchmarkId::new("echo_64k", revision), |bencher| {
            bencher.iter(|| link.echo(&params));
        });
        group.throughput(Throughput::Elements(100));
        let params = benches::echo_params(SHORT);
        group.bench_function(BenchmarkId::new("progress_100", revision), |bencher| {
            bencher.iter(|| link.echo_with_progress(&params, 100));
        });
    }
    group.finish();
}

fn handlers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("handlers");
    for revision in REVISIONS {
        for in_flight in IN_FLIGHT {
            let mut endpoints = Endpoints::open_at(revision);
            let echo = Echo::new(SHORT);
            group.throughput(Throughput::Elements(in_flight.into()));
            let name = format!("echo_64, {in_flight} in flight");
            group.bench_function(BenchmarkId::new(name, revision), |bencher| {
                bencher.iter(|| endpoints.echo_at_once(&echo, in_flight as usize));
            });
        }
        let mut endpoints = Endpoints::open_at(revision);
        let echo = Echo::new(LONG);
        group.throughput(Throughput::Bytes(2 * LONG as u64));
        group.bench_function(BenchmarkId::new("echo_64k", revision), |bencher| {
            bencher.iter(|| endpoints.echo(&echo));
        });
    }
    group.finish();
}

fn http(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("http");
    for revision in &REVISIONS[1..] {
        for in_flight in IN_FLIGHT {
            let mut web = HttpLink::open_at(*revision);
            let params = benches::echo_params(SHORT);
            group.throughput(Throughput::Elements(in_flight.into()));
            let name = format!("echo_64, {in_flight} in flight");
            group.bench_function(BenchmarkId::new(name, revision), |bencher| {
                bencher.iter(|| web.echo_at_once(&params, in_flight));
            });
        }
    }
    group.finish();
}

criterion_group!(all, machines, handlers, http);
criterion_main!(all);

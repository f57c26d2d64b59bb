//! Time of one round trip between a client and a server in one process: a `ping`, and calls of a
//! tool that gives its argument back.

use benches::Link;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mcp_sansio::Revision;

const REVISIONS: [Revision; 3] =
    [Revision::V2024_11_05, Revision::V2025_11_25, Revision::V2026_07_28];

fn round_trip(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("round_trip");
    for revision in REVISIONS {
        // The modern era has no ping.
        if revision < Revision::V2026_07_28 {
            let mut link = Link::open_at(revision);
            group.bench_function(BenchmarkId::new("ping", revision), |bencher| {
                bencher.iter(|| link.ping());
            });
        }
        for (name, length) in [("echo_64", 64), ("echo_64k", 64 * 1024)] {
            let mut link = Link::open_at(revision);
            let params = benches::echo_params(length);
            group.throughput(Throughput::Bytes(2 * length as u64));
            group.bench_function(BenchmarkId::new(name, revision), |bencher| {
                bencher.iter(|| link.echo(&params));
            });
        }
    }
    group.finish();
}

criterion_group!(all, round_trip);
criterion_main!(all);

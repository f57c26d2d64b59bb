//! Time of server operations without a client: checking whether a message is allowed, listing
//! tools, and replaying missed events.

use core::num::NonZeroUsize;
use std::hint::black_box;

use benches::budgets::{MISSED, missed};
use benches::{Link, REVISIONS, tools};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mcp_sansio::peer::Limits;
use mcp_sansio::{Capabilities, Method, Revision, Side};

const TOOLS: usize = 10_000;

fn gate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gate");
    let (client, server) = (Capabilities::default(), Capabilities::default());
    group.throughput(Throughput::Elements(Method::ALL.len() as u64));
    group.bench_function("all methods", |bencher| {
        bencher.iter(|| {
            let may = |method: &&Method| {
                let row = black_box(**method).row();
                row.check(Side::Client, Revision::LATEST, client, server).is_ok()
            };
            Method::ALL.iter().filter(may).count()
        });
    });
    let names: Vec<&str> = Method::ALL.iter().map(|method| method.as_str()).collect();
    group.bench_function("names of all methods", |bencher| {
        bencher
            .iter(|| names.iter().filter(|name| Method::parse(black_box(name)).is_some()).count());
    });
    group.finish();
}

fn lists(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("list_10000_tools");
    group.throughput(Throughput::Elements(TOOLS as u64));
    for (name, page) in [("pages of 100", 100), ("pages of 1000", 1000)] {
        for revision in &REVISIONS[1..] {
            let page = NonZeroUsize::new(page).expect("not zero");
            let catalog = tools::catalog(TOOLS, page);
            let mut link = Link::open_with(*revision, catalog, Limits::DEFAULT);
            assert_eq!(tools::list_all(&mut link), TOOLS / page.get(), "all pages come");
            group.bench_function(BenchmarkId::new(name, revision), |bencher| {
                bencher.iter(|| tools::list_all(&mut link));
            });
        }
    }
    group.finish();
}

fn replay(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("replay");
    let (mut harness, session, last) = missed();
    let listening = harness.listen(&session, Some(&last));
    harness.disconnect(&listening);
    group.throughput(Throughput::Bytes(listening.length as u64));
    group.bench_function(format!("{MISSED} events"), |bencher| {
        bencher.iter(|| {
            let listening = harness.listen(&session, Some(&last));
            harness.disconnect(&listening);
        });
    });
    group.finish();
}

criterion_group!(all, gate, lists, replay);
criterion_main!(all);

//! Throughput of Server-Sent Events in bytes per second: writing them, and reading them in reads of
//! 16 KiB, compared with two other crates and with a baseline that copies each read and searches it
//! for line endings.

use std::convert::Infallible;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use benches::sse::{EVENT_MAX, READ, decode, encode, stream};
use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use eventsource_stream::EventStream;
use futures_core::Stream;
use mcp_sansio::framing::SseDecoder;
use memchr::memchr2;
use sse_stream::SseStream;

fn baseline(storage: &mut [u8], stream: &[u8]) -> usize {
    let mut count = 0;
    let mut filled = 0;
    for read in stream.chunks(READ) {
        if filled + read.len() > storage.len() {
            filled = 0;
        }
        let mut rest = &mut storage[filled..filled + read.len()];
        rest.copy_from_slice(read);
        filled += read.len();
        while let Some(end) = memchr2(b'\r', b'\n', rest) {
            rest = &mut rest[end + 1..];
            count += 1;
        }
    }
    count
}

/// A stream whose reads are immediately ready.
struct Reads(std::vec::IntoIter<Bytes>);

impl Reads {
    fn new(stream: &Bytes) -> Self {
        let read = |start: usize| stream.slice(start..stream.len().min(start + READ));
        Self((0..stream.len()).step_by(READ).map(read).collect::<Vec<_>>().into_iter())
    }
}

impl Stream for Reads {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}

fn count<T, E>(stream: impl Stream<Item = Result<T, E>>) -> usize {
    let mut stream = pin!(stream);
    let mut context = Context::from_waker(Waker::noop());
    let mut count = 0;
    while let Poll::Ready(Some(event)) = stream.as_mut().poll_next(&mut context) {
        count += usize::from(black_box(event).is_ok());
    }
    count
}

fn read(criterion: &mut Criterion) {
    let inputs = [
        ("data_100", stream(10_000, 100, false), true),
        ("named_100", stream(10_000, 100, true), true),
        ("data_64k", stream(64, 64 * 1024, false), true),
        ("data_4m", stream(2, 4 * 1024 * 1024, false), false),
    ];
    let mut group = criterion.benchmark_group("sse_read");
    group.sample_size(20);
    for (name, stream, others) in inputs {
        let stream = Bytes::from(stream);
        group.throughput(Throughput::Bytes(stream.len() as u64));
        let mut decoder = SseDecoder::growing(EVENT_MAX);
        group.bench_with_input(BenchmarkId::new("growing", name), &stream, |bencher, stream| {
            bencher.iter(|| decode(&mut decoder, stream));
        });
        let mut storage = vec![0; EVENT_MAX];
        let mut decoder = SseDecoder::lent(&mut storage);
        group.bench_with_input(BenchmarkId::new("lent", name), &stream, |bencher, stream| {
            bencher.iter(|| decode(&mut decoder, stream));
        });
        let mut storage = vec![0; if others { 128 * 1024 } else { EVENT_MAX }];
        group.bench_with_input(BenchmarkId::new("floor", name), &stream, |bencher, stream| {
            bencher.iter(|| baseline(&mut storage, stream));
        });
        group.bench_with_input(BenchmarkId::new("sse-stream", name), &stream, |bencher, stream| {
            bencher.iter(|| count(SseStream::from_bytes_stream(Reads::new(stream))));
        });
        // It parses its whole buffer again for each read: minutes for a long event.
        if others {
            let name = BenchmarkId::new("eventsource-stream", name);
            group.bench_with_input(name, &stream, |bencher, stream| {
                bencher.iter(|| count(EventStream::new(Reads::new(stream))));
            });
        }
    }
    group.finish();
}

fn write(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sse_write");
    for (name, count, length) in [("named_100", 10_000, 100), ("named_4m", 2, 4 * 1024 * 1024)] {
        let data = benches::echo(length);
        let mut out = Vec::new();
        encode(&mut out, count, data.as_bytes(), true);
        group.throughput(Throughput::Bytes(out.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                encode(&mut out, count, data.as_bytes(), true);
            });
        });
    }
    group.finish();
}

criterion_group!(all, read, write);
criterion_main!(all);

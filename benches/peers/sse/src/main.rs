//! Decoders of Server-Sent Events in the comparison: `NAME small|long SECONDS` prints how many
//! bytes per second a decoder processes, with events in reads of 16 KiB.

use std::convert::Infallible;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use eventsource_stream::EventStream;
use futures_core::Stream;
use mcp_sansio::framing::SseDecoder;
use sse_stream::SseStream;

const READ_LENGTH: usize = 16 * 1024;
/// More than the longest event.
const LIMIT: usize = 8 * 1024 * 1024;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, input, seconds] = &*arguments else { panic!("usage: NAME small|long SECONDS") };
    let (count, text) = match &**input {
        "small" => (20_000, stream(20_000, 100)),
        "long" => (2, stream(2, 4 * 1024 * 1024)),
        _ => panic!("unknown input {input}: use small or long"),
    };
    let time = Duration::from_secs_f64(seconds.parse().expect("a number"));
    let mut growing = SseDecoder::growing(LIMIT);
    let mut storage = vec![0; LIMIT];
    let each = || match &**name {
        "mcp-sansio" => decode(&mut growing, &text),
        "sse-stream" => ready(SseStream::from_bytes_stream(Reads::new(&text))),
        "eventsource-stream" => ready(EventStream::new(Reads::new(&text))),
        "scan" => scan(&mut storage, &text) / 2,
        _ => panic!("unknown decoder {name}"),
    };
    println!("{}", bytes_a_second(each, count, text.len(), time));
}

/// Decodes repeatedly for some time. Every pass must find all events.
fn bytes_a_second(
    mut pass: impl FnMut() -> usize,
    count: usize,
    length: usize,
    time: Duration,
) -> f64 {
    // One pass to warm up the caches.
    pass();
    let (start, mut passes) = (Instant::now(), 0.0);
    loop {
        assert_eq!(pass(), count);
        passes += 1.0;
        let elapsed = start.elapsed();
        if elapsed >= time {
            return length as f64 * passes / elapsed.as_secs_f64();
        }
    }
}

fn stream(count: usize, length: usize) -> Bytes {
    let event = format!("data: {}\n\n", "x".repeat(length));
    Bytes::from(event.repeat(count))
}

fn decode(decoder: &mut SseDecoder<'_>, stream: &[u8]) -> usize {
    let mut count = 0;
    for mut read in stream.chunks(READ_LENGTH) {
        while !read.is_empty() {
            read = &read[decoder.feed(read)..];
            while let Some(event) = decoder.next_event() {
                black_box(event.expect("it fits"));
                count += 1;
            }
        }
    }
    count
}

/// Copies each read and searches it for line ends.
fn scan(storage: &mut [u8], stream: &[u8]) -> usize {
    let (mut count, mut filled) = (0, 0);
    for read in stream.chunks(READ_LENGTH) {
        if filled + read.len() > storage.len() {
            filled = 0;
        }
        let place = &mut storage[filled..filled + read.len()];
        place.copy_from_slice(read);
        filled += read.len();
        count += memchr::memchr2_iter(b'\r', b'\n', place).count();
    }
    count
}

/// A stream of reads that are immediately ready.
struct Reads(std::vec::IntoIter<Bytes>);

impl Reads {
    fn new(stream: &Bytes) -> Self {
        let read = |start: usize| stream.slice(start..stream.len().min(start + READ_LENGTH));
        Self((0..stream.len()).step_by(READ_LENGTH).map(read).collect::<Vec<_>>().into_iter())
    }
}

impl Stream for Reads {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}

/// Counts the events of a stream that is always ready.
fn ready<T, E>(stream: impl Stream<Item = Result<T, E>>) -> usize {
    let mut stream = pin!(stream);
    let mut context = Context::from_waker(Waker::noop());
    let mut count = 0;
    while let Poll::Ready(Some(event)) = stream.as_mut().poll_next(&mut context) {
        count += usize::from(black_box(event).is_ok());
    }
    count
}

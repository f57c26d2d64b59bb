//! The memory that connections can cost at worst, counted: each test in a process of its own, as
//! `cargo nextest` runs them.

#![allow(unsafe_code, reason = "an allocator can only be replaced by unsafe code")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_sansio::http::ServerOptions;
use mcp_sansio::http::server::ServerTimeouts;

use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frames, HEADERS, INITIAL_WINDOW_SIZE, block,
    fields,
};
use crate::served::{HandlerGate, Served, gated};
use crate::wire::{Post, Wire};

#[allow(dead_code, reason = "a part of it is used")]
#[path = "../http_server/frames.rs"]
mod frames;
#[allow(dead_code, reason = "a part of it is used")]
#[path = "../http_server/gate.rs"]
mod gate;
#[allow(dead_code, reason = "a part of it is used")]
#[path = "../http_server/served.rs"]
mod served;
#[allow(dead_code, reason = "a part of it is used")]
#[path = "../http_server/wire.rs"]
mod wire;

/// What the listener says of the buffers of a connection, and of streams on HTTP/2.
const CONNECTION: usize = 200 * 1024;
const STREAM: usize = 4 * 1024;
const FIELD: usize = 256;

static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

async fn serve(gate: &std::sync::Arc<HandlerGate>) -> Served {
    let mut timeouts = ServerTimeouts::default();
    timeouts.open_stream = None;
    Served::with(gated(gate), ServerOptions::new().timeouts(timeouts), |listener| listener).await
}

/// The bytes that `count` connections hold, each of which does what `attack` does, when they hold the
/// most.
async fn cost<T>(served: &Served, count: usize, attack: impl AsyncFn(&Served) -> T) -> usize {
    // Whatever is made once is not counted.
    let _first = attack(served).await;
    let before = live();
    let (mut connections, mut most) = (Vec::with_capacity(count), 0);
    for _ in 0..count {
        connections.push(attack(served).await);
        most = most.max(live().saturating_sub(before));
    }
    // What was sent last may be on its way.
    for _ in 0..20 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        most = most.max(live().saturating_sub(before));
    }
    most
}

/// Holds the bytes of each connection against a bound that is not far from them.
fn report(what: &str, bytes: usize, count: usize, most: usize) {
    let each = bytes / count;
    assert!(each <= most, "{what}: {each} of {most} bytes each");
    assert!(each * 20 >= most, "{what}: {each} of {most} bytes each: a bound that says nothing");
}

#[tokio::test]
async fn a_connection_of_http_1_holds_a_head_and_what_follows_it() {
    let gate = HandlerGate::new();
    let served = serve(&gate).await;
    // Short of the longest head, and of that many fields.
    let long = "y".repeat(60 * 1024);
    let unfinished = async |served: &Served| {
        let mut wire = Wire::connect(served.address).await;
        wire.send(format!("POST /mcp HTTP/1.1\r\nX: {long}")).await;
        wire
    };
    report("unfinished", cost(&served, 32, unfinished).await, 32, CONNECTION);
    let followed = async |served: &Served| {
        let mut wire = Wire::connect(served.address).await;
        wire.send(Post::call("wait").with("X", &long).bytes()).await;
        gate.arrival().await;
        wire.send(format!("POST /mcp HTTP/1.1\r\nX: {long}")).await;
        wire
    };
    report("followed", cost(&served, 32, followed).await, 32, CONNECTION);
}

#[tokio::test]
async fn a_connection_of_http_2_holds_a_head_in_pieces() {
    let served = serve(&HandlerGate::new()).await;
    let pieces = async |served: &Served| {
        let mut frames = Frames::connect(served, &[]).await;
        let head = block(&fields(&Post::call("plain").with("X", "y".repeat(60 * 1024))));
        let mut pieces = head.chunks(16_384);
        frames.send(HEADERS, END_STREAM, 1, pieces.next().unwrap()).await;
        for piece in pieces {
            frames.send(CONTINUATION, 0, 1, piece).await;
        }
        frames
    };
    report("pieces", cost(&served, 32, pieces).await, 32, CONNECTION);
}

#[tokio::test]
async fn requests_of_http_2_under_way_hold_no_more_than_they_count() {
    let gate = HandlerGate::new();
    let served = serve(&gate).await;
    let mut post = Post::call("wait");
    for number in 0..200 {
        // Names that are kept for each.
        post.fields.push((Box::leak(format!("x-{number:0>8}").into_boxed_str()), "y".into()));
    }
    let fields = fields(&post);
    let text: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    let each = STREAM + fields.len() * FIELD + text;
    let waiting = async |served: &Served| {
        let mut frames = Frames::connect(served, &[]).await;
        for stream in (1..129).step_by(2) {
            frames.send(HEADERS, END_HEADERS, stream, &block(&fields)).await;
            frames.send(DATA, END_STREAM, stream, post.body.as_bytes()).await;
        }
        for _ in 0..64 {
            gate.arrival().await;
        }
        frames
    };
    report("waiting", cost(&served, 2, waiting).await, 2, CONNECTION + 64 * each);
}

#[tokio::test]
async fn responses_of_http_2_that_are_not_taken_hold_no_more_than_they_count() {
    let served = serve(&HandlerGate::new()).await;
    let post = Post::call("plain");
    let fields = fields(&post);
    let text: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    let each = STREAM + fields.len() * FIELD + text;
    let unread = async |served: &Served| {
        let mut frames = Frames::connect(served, &[(INITIAL_WINDOW_SIZE, 0)]).await;
        for stream in (1..257).step_by(2) {
            frames.post(stream, &post).await;
        }
        for _ in 0..128 {
            frames.next_of(HEADERS).await;
        }
        frames
    };
    report("unread", cost(&served, 2, unread).await, 2, CONNECTION + 128 * each);
}

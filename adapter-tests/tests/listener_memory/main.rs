//! The worst-case memory of connections, counted by the allocator. The tests of this file take
//! turns, as they count the bytes of the process.

#![allow(unsafe_code, reason = "an allocator can only be replaced by unsafe code")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use mcp_sansio::http::{HttpServerOptions, ServerTimeouts};

use crate::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frames, HEADERS, INITIAL_WINDOW_SIZE, block,
    fields,
};
use crate::served::{HandlerGate, Served, gated};
use crate::wire::{Post, Wire};

#[allow(dead_code, reason = "only a part is used")]
#[path = "../adapters/http_server/frames.rs"]
mod frames;
#[allow(dead_code, reason = "only a part is used")]
#[path = "../adapters/http_server/gate.rs"]
mod gate;
#[allow(dead_code, reason = "only a part is used")]
#[path = "../adapters/http_server/served.rs"]
mod served;
#[allow(dead_code, reason = "only a part is used")]
#[path = "../adapters/http_server/wire.rs"]
mod wire;

/// The documented bounds of the listener: the buffers of a connection, of an HTTP/2 stream, and of
/// a header field.
const CONNECTION: usize = 200 * 1024;
const STREAM: usize = 4 * 1024;
const FIELD: usize = 256;

static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Runs a test after the runtime of the previous test has ended.
fn run(test: impl Future<Output = ()>) {
    static COUNTING: Mutex<()> = Mutex::new(());
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test);
}

async fn serve(gate: &std::sync::Arc<HandlerGate>) -> Served {
    let mut timeouts = ServerTimeouts::default();
    timeouts.open_stream = None;
    Served::with(gated(gate), HttpServerOptions::new().timeouts(timeouts), |listener| listener)
        .await
}

/// Returns the peak number of bytes held by `count` connections, each of which runs `attack`.
async fn cost<T>(served: &Served, count: usize, attack: impl AsyncFn(&Served) -> T) -> usize {
    // The first connection excludes one-time allocations.
    let _first = attack(served).await;
    let before = live();
    let (mut connections, mut most) = (Vec::with_capacity(count), 0);
    for _ in 0..count {
        connections.push(attack(served).await);
        most = most.max(live().saturating_sub(before));
    }
    // The last bytes sent may still be in transit.
    for _ in 0..20 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        most = most.max(live().saturating_sub(before));
    }
    most
}

/// Checks that the bytes of each connection stay within a bound, and that the bound is not too
/// loose.
fn report(what: &str, bytes: usize, count: usize, most: usize) {
    let each = bytes / count;
    assert!(each <= most, "{what}: {each} of {most} bytes each");
    assert!(each * 20 >= most, "{what}: {each} of {most} bytes each: the bound is too loose");
}

#[test]
fn an_http_1_connection_holds_a_head_and_the_following_bytes() {
    run(async {
        let gate = HandlerGate::new();
        let served = serve(&gate).await;
        // Slightly below the limits for the length of a head and for the number of its fields.
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
    });
}

#[test]
fn an_http_2_connection_holds_an_unfinished_head() {
    run(async {
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
    });
}

#[test]
fn pending_http_2_requests_hold_no_more_than_is_counted() {
    run(async {
        let gate = HandlerGate::new();
        let served = serve(&gate).await;
        let mut post = Post::call("wait");
        for number in 0..200 {
            // Distinct names that are stored for each request.
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
    });
}

#[test]
fn unread_http_2_responses_hold_no_more_than_is_counted() {
    run(async {
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
    });
}

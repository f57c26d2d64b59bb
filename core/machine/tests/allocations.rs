//! Traffic in a steady state allocates nothing inside the machines.
//!
//! Allocations are counted per thread, so that other threads of the test harness do not affect the
//! count.

#![allow(unsafe_code, reason = "replacing the allocator requires unsafe code")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    CallOptions, Client, ClientMachine, ClientOptions, Event, Server, ServerMachine, ServerOptions,
};
use mcp_sansio::protocol::{
    ClientCapabilities, Implementation, RootsCapability, ServerCapabilities, ToolsCapability,
};
use mcp_sansio::{Era, Instant, Method, Revision, Revisions};

/// The system allocator, with a count of allocations per thread.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has no counter. It is never a measured thread.
    let _gone = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is passed to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A client and a server with an open connection, and a buffer for the lines between them.
struct Link {
    client: Client,
    server: Server,
    now: Instant,
    answer: RawJson<'static>,
}

impl Link {
    fn open_at(revision: Revision, capabilities: ClientCapabilities) -> Self {
        let client = ClientOptions::new(Implementation::new("c", "1"))
            .revisions(Revisions::only(revision))
            .capabilities(capabilities);
        let offers = ServerCapabilities::new().tools(ToolsCapability::new());
        let server = ServerOptions::new(Implementation::new("s", "1")).capabilities(offers);
        let mut link = Self {
            client: Client::new(client, 1, Instant::ZERO),
            server: Server::new(server, 2),
            now: Instant::ZERO,
            answer: answer(),
        };
        for _ in 0..3 {
            link.exchange();
        }
        assert_eq!(link.client.session().unwrap().revision(), revision);
        link
    }

    /// Transfers the output of the client to the server, answers its requests, and transfers the
    /// output of the server back. Returns how many calls ended.
    fn exchange(&mut self) -> u32 {
        let Self { client, server, now, answer } = self;
        let mut ended = 0;
        while let Some(bytes) = client.poll_transmit() {
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let event = server.handle_message(line, *now).unwrap();
                if let Some(Event::Request(request)) = event {
                    server.respond_with(request.handle, answer, *now).unwrap();
                }
                assert!(server.poll_event().is_none());
            }
        }
        while let Some(bytes) = server.poll_transmit() {
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                if let Some(Event::Ended(end)) = client.handle_message(line, *now).unwrap() {
                    assert!(end.outcome.is_ok());
                    ended += 1;
                }
            }
        }
        ended
    }

    fn round_trip(&mut self, method: Method, params: &RawJson<'_>) {
        self.now = self.now + core::time::Duration::from_millis(1);
        self.client.call(method, params, &CallOptions::default(), self.now).unwrap();
        assert_eq!(self.exchange(), 1);
        self.client.handle_timeout(self.now);
        assert!(self.client.poll_timeout().is_none());
    }

    /// Returns the number of allocations in a thousand round trips, after a thousand to warm up.
    fn allocations(&mut self, method: Method, params: &RawJson<'_>) -> u64 {
        for _ in 0..1000 {
            self.round_trip(method, params);
        }
        let before = COUNT.get();
        for _ in 0..1000 {
            self.round_trip(method, params);
        }
        COUNT.get() - before
    }
}

fn answer() -> RawJson<'static> {
    RawJson::parse(r#"{"content":[{"type":"text","text":"hello"}]}"#).unwrap()
}

fn echo() -> RawJson<'static> {
    RawJson::parse(r#"{"name":"echo","arguments":{"text":"hello"}}"#).unwrap()
}

#[test]
fn the_counter_counts() {
    let before = COUNT.get();
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(COUNT.get() - before, 1);
}

#[test]
fn a_ping_allocates_nothing() {
    for revision in [Revision::V2024_11_05, Revision::V2025_11_25] {
        let mut link = Link::open_at(revision, ClientCapabilities::new());
        assert_eq!(link.allocations(Method::Ping, &RawJson::EMPTY_OBJECT), 0, "{revision}");
    }
}

#[test]
fn a_tool_call_allocates_nothing() {
    // A modern server may repeat a call with a state, even for a client without capabilities.
    let modern = echo().into_owned();
    for revision in Revision::ALL {
        let legacy = revision.era() == Era::Legacy;
        let params = if legacy { echo() } else { modern.clone() };
        let mut link = Link::open_at(revision, ClientCapabilities::new());
        assert_eq!(link.allocations(Method::ToolsCall, &params), 0, "{revision}");
    }
}

#[test]
fn a_tool_call_that_may_need_input_allocates_nothing_if_its_text_is_shared() {
    // The text is kept for later rounds by reference count, without a copy.
    let params = echo().into_owned();
    for revision in Revision::ALL {
        let host = ClientCapabilities::new().roots(RootsCapability::new());
        let mut link = Link::open_at(revision, host);
        assert_eq!(link.allocations(Method::ToolsCall, &params), 0, "{revision}");
    }
}

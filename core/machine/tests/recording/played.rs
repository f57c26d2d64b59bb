//! Machines that are recorded, and replayed when the test drops them. The replay must give the same
//! bytes.

#![allow(dead_code, reason = "each test crate uses some of the machines")]

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_sansio::Instant;
use mcp_sansio::http;
use mcp_sansio::peer::{self, ClientOptions, ServerOptions};
use mcp_sansio::recording::Replay;
use mcp_sansio::{Recorded, Tape};

pub(crate) type Client = Recorded<peer::Client>;
pub(crate) type HttpClient = Recorded<http::Client>;

pub(crate) type Server = Recorded<peer::Server>;
pub(crate) type HttpServer = Recorded<http::Server>;

/// Returns a server and the guard that replays it.
pub(crate) fn server(options: ServerOptions) -> (Server, Played) {
    let (tape, played) = Played::begin();
    (Server::new(options, 0, tape), played)
}

/// Returns a client and the guard that replays it.
pub(crate) fn client(options: ClientOptions) -> (Client, Played) {
    let (tape, played) = Played::begin();
    (Client::new(options, 0, Instant::ZERO, tape), played)
}

/// Returns an HTTP server and the guard that replays it.
pub(crate) fn http_server(
    peer: ServerOptions,
    options: http::HttpServerOptions,
) -> (HttpServer, Played) {
    http_server_on(Played::begin(), peer, options)
}

/// Returns an HTTP server that is recorded, whichever machine of its test it is.
pub(crate) fn recorded_http_server(
    peer: ServerOptions,
    options: http::HttpServerOptions,
) -> (HttpServer, Played) {
    let (tape, played) = Played::new();
    http_server_on((Some(tape), played), peer, options)
}

fn http_server_on(
    (tape, played): (Option<Tape>, Played),
    peer: ServerOptions,
    options: http::HttpServerOptions,
) -> (HttpServer, Played) {
    let server = HttpServer::new(peer, options, [7; 32], 0, tape);
    (server.expect("valid tools"), played)
}

/// Returns an HTTP client and the guard that replays it.
pub(crate) fn http_client(
    peer: ClientOptions,
    options: http::HttpClientOptions,
    seed: u64,
    now: Instant,
) -> (HttpClient, Played) {
    let (tape, played) = Played::begin();
    (HttpClient::new(peer, options, seed, now, tape), played)
}

/// The first machines of a test are all recorded, and then one in `ONE_IN`: some tests create
/// thousands.
const ALL_UNTIL: usize = 2;
const ONE_IN: usize = 251;

thread_local! {
    /// The machines of this thread, which runs one test.
    static BEGUN: Cell<usize> = const { Cell::new(0) };
}

/// A recording that is replayed when it is dropped.
#[derive(Debug)]
pub(crate) struct Played(Arc<Mutex<Vec<u8>>>);

impl Played {
    /// Returns a tape for some of the machines.
    pub(crate) fn begin() -> (Option<Tape>, Self) {
        let begun = BEGUN.replace(BEGUN.get() + 1);
        let (tape, played) = Self::new();
        ((begun < ALL_UNTIL || begun.is_multiple_of(ONE_IN)).then_some(tape), played)
    }

    pub(crate) fn new() -> (Tape, Self) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let tape = Tape::new(move |line| sink.lock().unwrap().extend_from_slice(line));
        (tape, Self(lines))
    }

    /// Discards the recording: code that is not part of it has changed what the machine does.
    pub(crate) fn discard(&mut self) {
        self.0 = Arc::default();
    }

    /// Returns the recording so far.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let recording = self.bytes();
        if recording.is_empty() {
            return;
        }
        let mut replay = Replay::new(&recording).expect("a valid recording");
        loop {
            match replay.step() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => panic!("{error}\n{}", String::from_utf8_lossy(&recording)),
            }
        }
    }
}

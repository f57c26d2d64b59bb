//! Machines that are recorded if the feature is enabled, and replayed when the test drops them. The
//! replay must give the same bytes.

#![allow(dead_code, reason = "each test crate uses some of the machines")]

use mcp_sansio::Instant;
#[cfg(feature = "http")]
use mcp_sansio::http;
use mcp_sansio::peer::{self, ClientOptions, ServerOptions};
#[cfg(feature = "recording")]
use mcp_sansio::recording::Recorded;

#[cfg(feature = "recording")]
pub(crate) use recorded::Played;
#[cfg(not(feature = "recording"))]
pub(crate) use unrecorded::Played;

#[cfg(feature = "recording")]
pub(crate) type Client = Recorded<peer::Client>;
#[cfg(not(feature = "recording"))]
pub(crate) type Client = peer::Client;
#[cfg(all(feature = "http", feature = "recording"))]
pub(crate) type HttpClient = Recorded<http::Client>;
#[cfg(all(feature = "http", not(feature = "recording")))]
pub(crate) type HttpClient = http::Client;

#[cfg(feature = "recording")]
pub(crate) type Server = Recorded<peer::Server>;
#[cfg(not(feature = "recording"))]
pub(crate) type Server = peer::Server;
#[cfg(all(feature = "http", feature = "recording"))]
pub(crate) type HttpServer = Recorded<http::Server>;
#[cfg(all(feature = "http", not(feature = "recording")))]
pub(crate) type HttpServer = http::Server;

/// Returns a server and the guard that replays it.
pub(crate) fn server(options: ServerOptions) -> (Server, Played) {
    #[cfg(feature = "recording")]
    {
        let (tape, played) = Played::begin();
        (Server::new(options, 0, tape), played)
    }
    #[cfg(not(feature = "recording"))]
    (Server::new(options, 0), Played)
}

/// Returns a client and the guard that replays it.
pub(crate) fn client(options: ClientOptions) -> (Client, Played) {
    #[cfg(feature = "recording")]
    {
        let (tape, played) = Played::begin();
        (Client::new(options, 0, Instant::ZERO, tape), played)
    }
    #[cfg(not(feature = "recording"))]
    (Client::new(options, 0, Instant::ZERO), Played)
}

/// Returns an HTTP server and the guard that replays it.
#[cfg(feature = "http")]
pub(crate) fn http_server(
    peer: ServerOptions,
    options: http::HttpServerOptions,
) -> (HttpServer, Played) {
    #[cfg(feature = "recording")]
    {
        let (tape, played) = Played::begin();
        let server = HttpServer::new(peer, options, [7; 32], 0, tape);
        (server.expect("valid tools"), played)
    }
    #[cfg(not(feature = "recording"))]
    {
        let server = HttpServer::new(peer, options, [7; 32], 0);
        (server.expect("valid tools"), Played)
    }
}

/// Returns an HTTP client and the guard that replays it.
#[cfg(feature = "http")]
pub(crate) fn http_client(
    peer: ClientOptions,
    options: http::HttpClientOptions,
    seed: u64,
    now: Instant,
) -> (HttpClient, Played) {
    #[cfg(feature = "recording")]
    {
        let (tape, played) = Played::begin();
        (HttpClient::new(peer, options, seed, now, tape), played)
    }
    #[cfg(not(feature = "recording"))]
    (HttpClient::new(peer, options, seed, now), Played)
}

#[cfg(feature = "recording")]
mod recorded {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};

    use mcp_sansio::recording::{Replay, Tape};

    /// The first machines of a test crate are all recorded, and then one in `ONE_IN`: some tests
    /// create thousands.
    const ALL_UNTIL: usize = 8;
    const ONE_IN: usize = 251;

    static BEGUN: AtomicUsize = AtomicUsize::new(0);

    /// A recording that is replayed when it is dropped.
    #[derive(Debug)]
    pub(crate) struct Played(Arc<Mutex<Vec<u8>>>);

    impl Played {
        /// Returns a tape for some of the machines.
        pub(crate) fn begin() -> (Option<Tape>, Self) {
            let begun = BEGUN.fetch_add(1, Ordering::Relaxed);
            let (tape, played) = Self::new();
            ((begun < ALL_UNTIL || begun.is_multiple_of(ONE_IN)).then_some(tape), played)
        }

        pub(crate) fn new() -> (Tape, Self) {
            let lines = Arc::new(Mutex::new(Vec::new()));
            let sink = Arc::clone(&lines);
            let tape = Tape::new(move |line| sink.lock().unwrap().extend_from_slice(line));
            (tape, Self(lines))
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
}

#[cfg(not(feature = "recording"))]
mod unrecorded {
    /// Recording is disabled.
    #[derive(Debug)]
    pub(crate) struct Played;
}

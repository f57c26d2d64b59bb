use core::task::Context;

use alloc::string::String;
use alloc::vec::Vec;
use mcp_sansio::{Instant, PanicGuard, Side, Spawner};
use mcp_sansio_handlers::endpoint::{ClientEndpoint, Endpoint, ServerEndpoint};
use mcp_sansio_handlers::handler::Threading;
use mcp_sansio_handlers::{Client, Host, Server, ThreadSafe};

use super::faults::{Faults, Wire};
use super::pair::{Pair, Transport, VirtualClock};
use super::transcript::Transcript;

/// A server and a client on a byte stream.
pub type StreamPair<K = ThreadSafe, H = ThreadSafe> =
    Pair<Stream<ServerEndpoint<K>, ClientEndpoint<H>>>;

/// Connects `host` to `server` over a byte stream and opens the connection.
///
/// To test one revision, set it in the host or the server with `revisions`.
///
/// ```
/// use mcp_sansio::{Revision, Revisions};
/// use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
///
/// let server = Server::new("clock", "1.0.0").tool("now", "The time", |_: Call<NoArguments>| "noon");
/// for revision in Revision::ALL {
///     let host = Host::new("test", "1.0.0").revisions(Revisions::only(revision));
///     let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
///     let result = pair.run(client.call_tool("now", &NoArguments {}))?;
///     assert_eq!(result.content[0].as_text(), Some("noon"), "{revision}");
/// }
/// # Ok::<(), mcp_sansio_handlers::ClientError>(())
/// ```
///
/// # Panics
///
/// If an item of the server's catalog is invalid, or the connection cannot be opened, for example
/// because the two sides have no revision in common.
#[track_caller]
pub fn connect<K: Threading, H: Threading>(
    server: &Server<K>,
    host: &Host<H>,
) -> (Client, StreamPair<K, H>) {
    let server = server.endpoint(super::SEED).unwrap_or_else(|error| panic!("{error}"));
    let (client, endpoint) = host.connect(super::SEED, Instant::ZERO);
    let mut pair = Pair::new(Stream::new(server, endpoint));
    super::open(&client, &mut pair);
    (client, pair)
}

/// A server and a client on a byte stream in memory, message by message.
///
/// A side is any [`Endpoint`], for example a [`Script`](crate::Script). A side that is `None`
/// receives nothing: take one to drop it, or to stop it for a time. A side that is drained ends the
/// input of the other, as a driver that closes its output does.
///
/// ```
/// use mcp_sansio::Instant;
/// use mcp_sansio_handlers::{Host, Server};
/// use mcp_sansio_test::{Pair, Stream};
///
/// let (client, endpoint) = Host::new("test", "1.0.0").connect(42, Instant::ZERO);
/// let mut pair = Pair::new(Stream::new(Server::new("s", "1.0.0").endpoint(42)?, endpoint));
/// pair.transport.server = None;
/// assert!(pair.poll(core::pin::pin!(client.opened())).is_none());
/// # Ok::<(), mcp_sansio::catalog::CatalogError>(())
/// ```
#[derive(Debug)]
pub struct Stream<S, C> {
    /// The server's side.
    pub server: Option<S>,
    /// The client's side.
    pub client: Option<C>,
    wire: Wire<(Side, Part)>,
    /// Whether the output has ended, for the client and the server.
    ended: [bool; 2],
}

/// A part of a byte stream.
#[derive(Debug)]
enum Part {
    Frame(Vec<u8>),
    End,
}

impl<S: Endpoint, C: Endpoint> Stream<S, C> {
    /// Connects two endpoints.
    pub fn new(server: S, client: C) -> Self {
        Self { server: Some(server), client: Some(client), wire: Wire::new(), ended: [false; 2] }
    }

    fn side(&mut self, side: Side) -> Option<&mut dyn Endpoint> {
        match side {
            Side::Client => self.client.as_mut().map(|it| it as &mut dyn Endpoint),
            Side::Server => self.server.as_mut().map(|it| it as &mut dyn Endpoint),
        }
    }

    /// Runs the handlers of one side and sends its output.
    fn collect(&mut self, from: Side, cx: &mut Context<'_>, now: Instant) {
        let ended = self.ended[from as usize];
        let Some(endpoint) = self.side(from) else { return };
        endpoint.poll_handlers(cx, now);
        let mut bytes = Vec::new();
        endpoint.transmit(&mut |waiting| {
            bytes.extend_from_slice(waiting);
            waiting.len()
        });
        let ends = endpoint.is_drained();
        if ended {
            return;
        }
        for frame in bytes.split(|byte| *byte == b'\n').filter(|frame| !frame.is_empty()) {
            for _ in 0..=usize::from(self.wire.is_duplicate()) {
                let lane = (!self.wire.reorders()).then_some((0, from));
                self.wire.send(lane, (from, Part::Frame(frame.to_vec())), now);
            }
        }
        if ends {
            self.ended[from as usize] = true;
            self.wire.send(Some((0, from)), (from, Part::End), now);
        }
    }

    fn deliver(&mut self, now: Instant, transcript: &mut Transcript) -> bool {
        let mut delivered = false;
        while let Some((from, part)) = self.wire.poll(now) {
            delivered = true;
            if let Part::Frame(frame) = &part {
                transcript.push(from, String::from_utf8_lossy(frame), now);
            }
            let to = from.peer();
            match (self.side(to), part) {
                (Some(to), Part::Frame(frame)) => to.handle_frame(Ok(&frame), now),
                (Some(to), Part::End) => to.handle_eof(now),
                (None, _) => {}
            }
        }
        if self.wire.take_cut() {
            self.cut(now);
        }
        delivered
    }
}

impl<S: Endpoint, C: Endpoint> Transport for Stream<S, C> {
    fn step(&mut self, cx: &mut Context<'_>, now: Instant, transcript: &mut Transcript) -> bool {
        self.collect(Side::Client, cx, now);
        let to_server = self.deliver(now, transcript);
        self.collect(Side::Server, cx, now);
        self.deliver(now, transcript) || to_server
    }

    fn handle_timeout(&mut self, now: Instant) {
        for side in [Side::Client, Side::Server] {
            if let Some(endpoint) = self.side(side) {
                endpoint.handle_timeout(now);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let client = self.client.as_ref().and_then(Endpoint::poll_timeout);
        let server = self.server.as_ref().and_then(Endpoint::poll_timeout);
        [client, server, self.wire.next()].into_iter().flatten().min()
    }

    fn set_spawner(&mut self, spawn: Spawner) {
        for side in [Side::Client, Side::Server] {
            self.side(side).into_iter().for_each(|it| it.set_spawner(spawn.clone()));
        }
    }

    fn set_clock(&mut self, clock: &VirtualClock) {
        for side in [Side::Client, Side::Server] {
            self.side(side).into_iter().for_each(|it| it.set_unix_time(clock.to_unix_time()));
        }
    }

    fn catch_panics(&mut self, guard: PanicGuard) {
        for side in [Side::Client, Side::Server] {
            self.side(side).into_iter().for_each(|it| it.catch_panics(guard));
        }
    }

    fn set_faults(&mut self, faults: Faults) {
        self.wire.set_faults(faults);
    }

    fn cut(&mut self, now: Instant) {
        self.wire.clear();
        self.ended = [true; 2];
        for side in [Side::Client, Side::Server] {
            if let Some(endpoint) = self.side(side) {
                endpoint.handle_eof(now);
            }
        }
    }

    fn is_drained(&self) -> bool {
        self.client.as_ref().is_none_or(Endpoint::is_drained)
    }

    fn assert_consistent(&self) {
        self.client.iter().for_each(Endpoint::assert_consistent);
        self.server.iter().for_each(Endpoint::assert_consistent);
    }
}

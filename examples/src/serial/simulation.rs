//! Two stations, the line between them, and a virtual clock that jumps to the next event.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio_handlers::endpoint::Endpoint;

use super::line::{Line, LineCounts, Noise};
use super::station::Station;

/// The time limit of a simulation, on its own clock.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A client and a server at the two ends of a line. It never blocks, and the same seeds produce the
/// same conversation.
#[derive(Debug)]
pub struct Simulation<C, S> {
    client: Station<C>,
    server: Station<S>,
    to_server: Line,
    to_client: Line,
    now: Instant,
    wake_flag: Arc<WakeFlag>,
}

/// Whether a task was woken.
#[derive(Debug, Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<C: Endpoint, S: Endpoint> Simulation<C, S> {
    /// Connects both endpoints with a line whose noise is derived from `seed`. The clock starts at
    /// zero.
    #[must_use]
    pub fn new(client: C, server: S, noise: Noise, seed: u64) -> Self {
        let now = Instant::ZERO;
        Self {
            client: Station::new(client, now),
            server: Station::new(server, now),
            to_server: Line::new(noise, seed),
            to_client: Line::new(noise, !seed),
            now,
            wake_flag: Arc::default(),
        }
    }

    /// Returns the client side.
    #[must_use]
    pub const fn client(&self) -> &Station<C> {
        &self.client
    }

    /// Returns the server side.
    #[must_use]
    pub const fn server(&self) -> &Station<S> {
        &self.server
    }

    /// Returns the current time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns the counts of the disturbed packets in both directions.
    #[must_use]
    pub const fn counts(&self) -> LineCounts {
        let (one, other) = (self.to_server.counts(), self.to_client.counts());
        LineCounts {
            lost: one.lost + other.lost,
            doubled: one.doubled + other.doubled,
            damaged: one.damaged + other.damaged,
        }
    }

    /// Cuts the line.
    pub fn cut(&mut self) {
        self.to_server.cut();
        self.to_client.cut();
    }

    /// Runs the simulation until `future` is ready. Returns `None` if it does not become ready
    /// within the time limit.
    pub fn run<F: IntoFuture>(&mut self, future: F) -> Option<F::Output> {
        let mut future = pin!(future.into_future());
        let waker = Waker::from(Arc::clone(&self.wake_flag));
        let mut cx = Context::from_waker(&waker);
        let end = self.now + PATIENCE;
        while self.now < end {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return Some(output);
            }
            if !self.step(&mut cx) {
                return None;
            }
        }
        None
    }

    /// Runs the simulation until both sides have ended. Returns whether they have.
    pub fn run_to_end(&mut self) -> bool {
        let waker = Waker::from(Arc::clone(&self.wake_flag));
        let mut cx = Context::from_waker(&waker);
        let end = self.now + PATIENCE;
        while self.now < end && self.step(&mut cx) {}
        self.client.link().is_over() && self.server.link().is_over()
    }

    /// Advances both sides at the current time. If no task was woken, jumps to the next event.
    /// Returns `false` if there is no next event.
    fn step(&mut self, cx: &mut Context<'_>) -> bool {
        self.client.turn(cx, self.now);
        send(&mut self.client, &mut self.to_server, self.now);
        self.server.turn(cx, self.now);
        send(&mut self.server, &mut self.to_client, self.now);
        if self.wake_flag.0.swap(false, Ordering::Relaxed) {
            return true;
        }
        let Some(next) = self.next() else { return false };
        self.now = next;
        while let Some(bytes) = self.to_server.receive(next) {
            self.server.handle_bytes(&bytes, next);
        }
        while let Some(bytes) = self.to_client.receive(next) {
            self.client.handle_bytes(&bytes, next);
        }
        self.client.handle_timeout(next);
        self.server.handle_timeout(next);
        true
    }

    /// Returns the time of the next event.
    fn next(&self) -> Option<Instant> {
        let lines = [&self.to_server, &self.to_client];
        let busy = lines.map(|line| Some(line.free_at()).filter(|at| *at > self.now));
        let arrivals = lines.map(Line::arrives_at);
        let timeouts = [self.client.poll_timeout(), self.server.poll_timeout()];
        busy.into_iter().chain(arrivals).chain(timeouts).flatten().min()
    }
}

/// Sends a packet if one is pending and the line accepts it.
fn send<E: Endpoint>(station: &mut Station<E>, line: &mut Line, now: Instant) {
    if line.free_at() <= now
        && let Some(packet) = station.poll_transmit(now)
    {
        line.send(packet, now);
    }
}

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::task::Wake;
use core::fmt;
use core::future::{Future, IntoFuture, poll_fn};
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use mcp_sansio::{Instant, Job, PanicGuard, Spawner};
use mcp_sansio_sync::Mutex;

use super::faults::Faults;
use super::transcript::Transcript;

/// More steps than a test needs: beyond them a loop would not end.
const STEPS_MAX: usize = 10_000;

/// A client and a server that are connected in memory: [`Stream`](crate::Stream) or
/// [`Http`](crate::Http).
///
/// Implement it to test another transport of yours in a [`Pair`].
pub trait Transport {
    /// Runs the handlers of both sides once, and delivers the messages that have arrived. Returns
    /// whether a message was delivered or a handler finished.
    fn step(&mut self, cx: &mut Context<'_>, now: Instant, transcript: &mut Transcript) -> bool;

    /// Fires the timers of both sides.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the time of the next timer or the next arrival of a message.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Runs blocking handlers with `spawn`: see
    /// [`Endpoint::set_spawner`](mcp_sansio_handlers::endpoint::Endpoint::set_spawner).
    fn set_spawner(&mut self, spawn: Spawner) {
        let _ = spawn;
    }

    /// Sets the clock of both sides for the time of day: see
    /// [`Endpoint::set_unix_time`](mcp_sansio_handlers::endpoint::Endpoint::set_unix_time). Does
    /// nothing by default.
    fn set_clock(&mut self, clock: &VirtualClock) {
        let _ = clock;
    }

    /// Runs the functions of both sides in `guard`: see [`Pair::catch_panics`]. Does nothing by
    /// default.
    fn catch_panics(&mut self, guard: PanicGuard) {
        let _ = guard;
    }

    /// Sets the faults of the messages sent from now on.
    fn set_faults(&mut self, faults: Faults);

    /// Breaks the connection; the messages under way are lost.
    fn cut(&mut self, now: Instant);

    /// Whether the client's side is closed and has nothing left to send.
    fn is_drained(&self) -> bool;

    /// Checks that the tables of both sides match each other; a [`Pair`] does so after every step.
    /// Checks nothing by default.
    ///
    /// # Panics
    ///
    /// The tables disagree, which is a bug of the library.
    fn assert_consistent(&self) {}
}

/// A client and a server in one process, driven by the test: no I/O, no runtime, and a clock that
/// only moves when the test waits.
///
/// Create one with [`connect`](crate::connect), with [`connect_http`](crate::connect_http), or from
/// endpoints of your own with [`new`](Self::new).
///
/// A handler that panics fails the test, unless the test [catches](Self::catch_panics) panics.
///
/// [`blocking`](mcp_sansio_handlers::blocking()) handlers run in the thread of the test, one in
/// each step in which nothing else happens. As in production, other requests are answered
/// meanwhile, and a cancellation can arrive first; unlike there, the order is the same in every run.
/// A handler that waits for a later message never ends this way: give the server threads with
/// [`Server::spawner`](mcp_sansio_handlers::Server::spawner), or test it on an adapter.
///
/// ```
/// use mcp_sansio_handlers::{Call, ClientError, Host, NoArguments, Server};
///
/// let server = Server::new("slow", "1.0.0").tool("wait", "Never ends", async |_: Call<NoArguments>| {
///     core::future::pending::<String>().await
/// });
/// let (client, mut pair) = mcp_sansio_test::connect(&server, &Host::new("test", "1.0.0"));
/// // Nothing else can happen, so 60 seconds pass at once.
/// let result = pair.run(client.call_tool("wait", &NoArguments {}));
/// assert!(matches!(result, Err(ClientError::TimedOut { .. })));
/// assert_eq!(pair.clock().elapsed().as_secs(), 60);
/// ```
#[derive(Debug)]
pub struct Pair<T> {
    /// Both sides and their connection.
    pub transport: T,
    /// The messages that were delivered.
    pub transcript: Transcript,
    clock: VirtualClock,
    wakeups: Arc<CountingWaker>,
    jobs: Jobs,
}

/// Blocking handlers that have not run yet.
#[derive(Clone, Default)]
struct Jobs(Arc<Mutex<VecDeque<Job>>>);

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Jobs").field(&self.0.lock(|jobs| jobs.len())).finish()
    }
}

/// Counts wake-ups.
#[derive(Debug, Default)]
struct CountingWaker(AtomicUsize);

impl CountingWaker {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<T: Transport> Pair<T> {
    /// Creates a pair with a clock of its own. Nothing has been sent yet.
    pub fn new(transport: T) -> Self {
        Self::with_clock(transport, VirtualClock::default())
    }

    /// Creates a pair that moves `clock`.
    pub fn with_clock(mut transport: T, clock: VirtualClock) -> Self {
        let jobs = Jobs::default();
        let queue = Arc::clone(&jobs.0);
        transport.set_spawner(Spawner::new(move |job| queue.lock(|jobs| jobs.push_back(job))));
        transport.set_clock(&clock);
        let (transcript, wakeups) = (Transcript::default(), Arc::default());
        Self { transport, transcript, clock, wakeups, jobs }
    }

    /// Catches the panics of handlers, callbacks and observers of both sides from now on, as
    /// adapters do: the request is answered with an internal error, observers see the text of the
    /// panic, and the connection stays open. Without it a panic fails the test.
    ///
    /// `guard` is the `panic_guard()` of an adapter, because to catch a panic takes the standard
    /// library.
    ///
    /// ```
    /// use mcp_sansio::PanicGuard;
    /// use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
    /// use std::panic::{AssertUnwindSafe, catch_unwind};
    ///
    /// let server = Server::new("s", "1.0.0")
    ///     .tool("fail", "", |_: Call<NoArguments>| -> String { panic!("out of paper") });
    /// let (client, mut pair) = mcp_sansio_test::connect(&server, &Host::new("test", "1.0.0"));
    /// // With an adapter: `pair.catch_panics(mcp_sansio_tokio::panic_guard())`.
    /// pair.catch_panics(PanicGuard::new(|run| catch_unwind(AssertUnwindSafe(run))));
    ///
    /// let error = pair.run(client.call_tool("fail", &NoArguments {})).unwrap_err();
    /// assert_eq!(error.as_refusal().map(|it| it.code.0), Some(-32603));
    /// ```
    pub fn catch_panics(&mut self, guard: PanicGuard) {
        self.transport.catch_panics(guard);
    }

    /// Returns a handle of the clock.
    #[must_use]
    pub fn clock(&self) -> VirtualClock {
        self.clock.clone()
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Sets the faults of the messages sent from now on.
    pub fn set_faults(&mut self, faults: Faults) {
        self.transport.set_faults(faults);
    }

    /// Breaks the connection; the messages under way are lost. Both sides of a stream see its end.
    /// On HTTP all exchanges fail, and the client may begin others.
    pub fn cut(&mut self) {
        self.transport.cut(self.now());
    }

    /// Runs both sides once. Returns whether there was progress.
    pub fn step(&mut self) -> bool {
        let before = self.wakeups.count();
        let (waker, now) = (self.waker(), self.now());
        let mut cx = Context::from_waker(&waker);
        let stepped = self.transport.step(&mut cx, now, &mut self.transcript) || self.run_job();
        self.transport.assert_consistent();
        stepped || self.wakeups.count() > before
    }

    /// Runs both sides until there is no more progress at the current time.
    ///
    /// # Panics
    ///
    /// If there still is progress after 10,000 steps.
    #[track_caller]
    pub fn run_until_idle(&mut self) {
        let idle = (0..STEPS_MAX).any(|_| !self.step());
        assert!(idle, "no end after {STEPS_MAX} steps:\n{}", self.transcript);
    }

    /// Runs both sides until `future` is ready, and returns its output. When there is no progress,
    /// the clock moves to the next timer or the next arrival of a message.
    ///
    /// # Panics
    ///
    /// If nothing can make the future ready any more, or it is not ready after 10,000 timers.
    #[track_caller]
    pub fn run<F: IntoFuture>(&mut self, future: F) -> F::Output {
        let mut output = None;
        let is_ready = {
            let future = future.into_future();
            self.try_run(pin!(async { output = Some(future.await) }))
        };
        match output {
            Some(output) if is_ready => output,
            _ => panic!("the future is never ready:\n{}", self.transcript),
        }
    }

    /// Like [`run`](Self::run), and returns whether the future became ready.
    pub(crate) fn try_run(&mut self, mut future: Pin<&mut (dyn Future<Output = ()> + '_)>) -> bool {
        for _ in 0..STEPS_MAX {
            if self.poll(future.as_mut()).is_some() {
                return true;
            }
            let Some(next) = self.transport.poll_timeout() else { break };
            self.advance_to(next);
        }
        false
    }

    /// Runs both sides until `future` is ready or there is no more progress at the current time.
    ///
    /// # Panics
    ///
    /// If there still is progress after 10,000 steps.
    #[track_caller]
    pub fn poll<F: Future + ?Sized>(&mut self, mut future: Pin<&mut F>) -> Option<F::Output> {
        let waker = self.waker();
        for _ in 0..STEPS_MAX {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Some(output);
            }
            if !self.step() {
                return None;
            }
        }
        panic!("no end after {STEPS_MAX} steps:\n{}", self.transcript)
    }

    /// Starts a call: runs both sides until there is no more progress, and returns the future of
    /// the answer. `future` must not be ready yet.
    ///
    /// # Panics
    ///
    /// If the future is ready, or there still is progress after 10,000 steps.
    #[track_caller]
    pub fn start<F: IntoFuture>(&mut self, future: F) -> Pin<Box<F::IntoFuture>> {
        let mut future = Box::pin(future.into_future());
        let output = self.poll(future.as_mut());
        assert!(output.is_none(), "the future is ready already:\n{}", self.transcript);
        future
    }

    /// Advances the clock by `time`, stopping at each timer and each arrival of a message.
    ///
    /// # Panics
    ///
    /// If there still is progress after 10,000 steps or timers.
    #[track_caller]
    pub fn advance(&mut self, time: Duration) {
        let end = self.now() + time;
        self.run_until_idle();
        for _ in 0..STEPS_MAX {
            let next = self.transport.poll_timeout().filter(|next| *next <= end);
            self.advance_to(next.unwrap_or(end));
            self.run_until_idle();
            if next.is_none() {
                return;
            }
        }
        panic!("no end after {STEPS_MAX} timers:\n{}", self.transcript);
    }

    /// Drives both sides as a task of a runtime, for handlers that need its timers or sockets.
    /// Completes when the client is closed. The clock of the pair stands still, so its timeouts do
    /// not expire and delayed messages do not arrive.
    ///
    /// ```no_run
    /// # use mcp_sansio_handlers::{Host, NoArguments, Server};
    /// # let server = Server::new("files", "1.0.0");
    /// # fn spawn(_: impl Future + Send + 'static) {}
    /// # async {
    /// let (client, pair) = mcp_sansio_test::connect(&server, &Host::new("test", "1.0.0"));
    /// spawn(pair.drive()); // for example `tokio::spawn`
    /// let result = client.call_tool("read", &NoArguments {}).await?;
    /// # Ok::<(), mcp_sansio_handlers::ClientError>(()) };
    /// ```
    pub async fn drive(mut self) {
        poll_fn(|cx| {
            let now = self.now();
            if self.transport.step(cx, now, &mut self.transcript) || self.run_job() {
                // Other tasks run in between.
                cx.waker().wake_by_ref();
            }
            if self.transport.is_drained() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Runs the next blocking handler. Returns whether there was one.
    fn run_job(&self) -> bool {
        let Some(job) = self.jobs.0.lock(VecDeque::pop_front) else { return false };
        job();
        true
    }

    fn advance_to(&mut self, time: Instant) {
        self.clock.advance_to(time);
        self.transport.handle_timeout(self.now());
        self.transport.assert_consistent();
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.wakeups))
    }
}

/// A clock that moves only when a [`Pair`] moves it. Clones show the same time.
///
/// Servers take the [time of day](Self::unix_time) from it, unless they have a clock of their own.
/// Pass a clone to functions of your application that need the time, and create the pair with
/// [`Pair::with_clock`](crate::Pair::with_clock).
///
/// ```
/// use mcp_sansio_test::VirtualClock;
///
/// let clock = VirtualClock::default();
/// let now = { let clock = clock.clone(); move || clock.unix_time() };
/// assert_eq!(now(), 1_800_000_000);
/// ```
#[derive(Clone, Default)]
pub struct VirtualClock(Arc<Mutex<Instant>>);

impl VirtualClock {
    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.0.lock(|now| *now)
    }

    /// Returns the time since the creation of the clock.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.now().saturating_since(Instant::ZERO)
    }

    /// Returns the seconds since 1970: 1,800,000,000, which is in January 2027, and those elapsed.
    #[must_use]
    pub fn unix_time(&self) -> u64 {
        1_800_000_000 + self.elapsed().as_secs()
    }

    /// The clock for [`Endpoint::set_unix_time`].
    ///
    /// [`Endpoint::set_unix_time`]: mcp_sansio_handlers::endpoint::Endpoint::set_unix_time
    pub(crate) fn to_unix_time(&self) -> Box<dyn Fn() -> u64 + Send + Sync> {
        let clock = self.clone();
        Box::new(move || clock.unix_time())
    }

    /// Moves the clock to a later time.
    pub(crate) fn advance_to(&self, time: Instant) {
        self.0.lock(|now| *now = time.max(*now));
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VirtualClock").field(&self.elapsed()).finish()
    }
}

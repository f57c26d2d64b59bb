/// A client and a server in memory, driven by the caller: no runtime, no sleep, and a clock that
/// only moves in [`Pair::pass`].
pub(crate) struct Pair<S, C> {
    pub(crate) server: Option<S>,
    pub(crate) client: Option<C>,
    pub(crate) now: mcp_sansio::Instant,
    /// Every line that was sent: `<` marks those of the server, `>` those of the client.
    pub(crate) wire: Vec<String>,
    wakeups: std::sync::Arc<CountingWaker>,
}

/// Counts wake-ups.
#[derive(Default)]
pub(crate) struct CountingWaker(std::sync::atomic::AtomicUsize);

impl std::task::Wake for CountingWaker {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[allow(dead_code, reason = "examples use fewer of its methods than tests")]
impl<S: mcp_sansio_handlers::endpoint::Endpoint, C: mcp_sansio_handlers::endpoint::Endpoint>
    Pair<S, C>
{
    pub(crate) fn new(server: S, client: C) -> Self {
        let now = mcp_sansio::Instant::ZERO;
        Self {
            server: Some(server),
            client: Some(client),
            now,
            wire: Vec::new(),
            wakeups: Default::default(),
        }
    }

    /// Runs both drivers once. Returns whether there was progress, or a task was woken.
    pub(crate) fn turn(&mut self) -> bool {
        let rung = || self.wakeups.0.load(std::sync::atomic::Ordering::SeqCst);
        let (before, lines) = (rung(), self.wire.len());
        let waker = std::task::Waker::from(std::sync::Arc::clone(&self.wakeups));
        let mut cx = std::task::Context::from_waker(&waker);
        let from = drive(self.client.as_mut(), &mut cx, self.now);
        deliver('>', &from, self.server.as_mut(), &mut self.wire, self.now);
        let from = drive(self.server.as_mut(), &mut cx, self.now);
        deliver('<', &from, self.client.as_mut(), &mut self.wire, self.now);
        self.wire.len() > lines || rung() > before
    }

    /// Runs until there is no more progress.
    pub(crate) fn pump(&mut self) {
        for _ in 0..1000 {
            if !self.turn() {
                return;
            }
        }
        panic!("no end after 1000 rounds");
    }

    /// Runs until `future` is ready.
    pub(crate) fn run<F: IntoFuture>(&mut self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future.into_future());
        self.poll(future.as_mut()).unwrap_or_else(|| panic!("stuck after {:#?}", self.wire))
    }

    /// Runs until `future` is ready or there is no more progress.
    pub(crate) fn poll<F: Future + ?Sized>(
        &mut self,
        mut future: std::pin::Pin<&mut F>,
    ) -> Option<F::Output> {
        let waker = std::task::Waker::from(std::sync::Arc::clone(&self.wakeups));
        for _ in 0..1000 {
            let mut cx = std::task::Context::from_waker(&waker);
            if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return Some(output);
            }
            if !self.turn() {
                return None;
            }
        }
        panic!("no end after 1000 rounds");
    }

    /// Advances the clock.
    pub(crate) fn pass(&mut self, time: std::time::Duration) {
        self.now = self.now + time;
        let now = self.now;
        if let Some(client) = &mut self.client {
            client.handle_timeout(now);
        }
        if let Some(server) = &mut self.server {
            server.handle_timeout(now);
        }
        self.pump();
    }

    /// Returns how many lines that were sent contain `text`.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.wire.iter().filter(|line| line.contains(text)).count()
    }
}

fn drive(
    endpoint: Option<&mut impl mcp_sansio_handlers::endpoint::Endpoint>,
    cx: &mut std::task::Context<'_>,
    now: mcp_sansio::Instant,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(endpoint) = endpoint {
        endpoint.poll_handlers(cx, now);
        endpoint.transmit(&mut |waiting| {
            bytes.extend_from_slice(waiting);
            waiting.len()
        });
    }
    bytes
}

fn deliver(
    from: char,
    bytes: &[u8],
    to: Option<&mut impl mcp_sansio_handlers::endpoint::Endpoint>,
    wire: &mut Vec<String>,
    now: mcp_sansio::Instant,
) {
    let mut decoder = mcp_sansio::framing::LineDecoder::growing(1 << 20);
    let (mut to, mut rest) = (to, bytes);
    while !rest.is_empty() {
        let taken = decoder.feed(rest);
        rest = &rest[taken..];
        while let Some(frame) = decoder.next_frame() {
            wire.push(format!("{from} {}", String::from_utf8_lossy(frame.unwrap())));
            if let Some(to) = &mut to {
                to.handle_frame(frame, now);
            }
        }
    }
}

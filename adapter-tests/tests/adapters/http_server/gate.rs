//! Handlers controlled by the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_sansio::peer::Limits;
use mcp_sansio_handlers::{Call, NoArguments, Server};
use tokio::sync::Semaphore;

use super::wire::in_time;

/// Synchronizes a test with its handlers.
#[derive(Debug)]
pub(crate) struct HandlerGate {
    /// Handlers that wait at the gate or have passed it.
    pub(crate) arrived: Semaphore,
    /// How many handlers may pass.
    pub(crate) open: Semaphore,
    /// Handlers that have finished or were dropped.
    pub(crate) gone: Semaphore,
    /// Handlers that ran to completion.
    pub(crate) finished: AtomicUsize,
}

impl HandlerGate {
    pub(crate) fn new() -> Arc<Self> {
        let [arrived, open, gone] = [(); 3].map(|()| Semaphore::new(0));
        Arc::new(Self { arrived, open, gone, finished: AtomicUsize::new(0) })
    }

    /// Waits until a handler arrives at the gate.
    pub(crate) async fn arrival(&self) {
        in_time(self.arrived.acquire()).await.unwrap().forget();
    }

    /// Waits until a handler has finished or was dropped.
    pub(crate) async fn departure(&self) {
        in_time(self.gone.acquire()).await.unwrap().forget();
    }

    /// Lets the next handler pass. Returns whether it ran to completion; otherwise it was dropped.
    pub(crate) async fn let_pass(&self) -> bool {
        self.arrival().await;
        let before = self.finished();
        self.open.add_permits(1);
        self.departure().await;
        self.finished() > before
    }

    pub(crate) fn finished(&self) -> usize {
        self.finished.load(Ordering::SeqCst)
    }

    async fn pass(self: &Arc<Self>) {
        let _leaving = DepartureGuard(Arc::clone(self));
        self.arrived.add_permits(1);
        self.open.acquire().await.unwrap().forget();
        self.finished.fetch_add(1, Ordering::SeqCst);
    }
}

/// Releases a `gone` permit when dropped.
struct DepartureGuard(Arc<HandlerGate>);

impl Drop for DepartureGuard {
    fn drop(&mut self) {
        self.0.gone.add_permits(1);
    }
}

/// Returns a server with a tool `plain` and with tools that wait at the gate: `wait`; `progress`
/// with progress before and after; `release`, which releases the connection first; `flood`, which
/// sends a megabyte of progress each time the gate opens; `block`, which blocks its thread.
pub(crate) fn gated(gate: &Arc<HandlerGate>) -> Server {
    let mut limits = Limits::default();
    limits.progress_per_second_max = u32::MAX;
    let [wait, progress, release, flood, block] = [(); 5].map(|()| Arc::clone(gate));
    Server::new("gated", "1")
        .limits(limits)
        .tool("plain", "Answers", |_: Call<NoArguments>| "plain")
        .tool("wait", "Waits", move |_: Call<NoArguments>| {
            let gate = Arc::clone(&wait);
            async move {
                gate.pass().await;
                "waited"
            }
        })
        .tool("progress", "Reports, waits, reports", move |call: Call<NoArguments>| {
            let gate = Arc::clone(&progress);
            async move {
                call.progress(1.0, None, "before");
                gate.pass().await;
                call.progress(2.0, None, "after");
                "reported"
            }
        })
        .tool("release", "Lets go", move |call: Call<NoArguments>| {
            let gate = Arc::clone(&release);
            async move {
                call.release_connection(std::time::Duration::from_millis(1));
                gate.pass().await;
                "came back"
            }
        })
        .tool("flood", "Reports a lot", move |call: Call<NoArguments>| {
            let gate = Arc::clone(&flood);
            async move {
                let message = "x".repeat(16 * 1024);
                for step in 0.. {
                    call.progress(f64::from(step), None, &message);
                    if step % 64 == 63 {
                        gate.pass().await;
                    }
                }
                "never"
            }
        })
        .tool("block", "Holds its thread", move |_: Call<NoArguments>| {
            block.arrived.add_permits(1);
            // This blocks a thread of the runtime. Nothing else may depend on that thread.
            while block.open.try_acquire().map(tokio::sync::SemaphorePermit::forget).is_err() {
                std::thread::yield_now();
            }
            "blocked"
        })
}

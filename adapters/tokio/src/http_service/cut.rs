use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use hyper::rt::Executor;

/// Ends the task that sends a response from outside. A response that is to be broken off cannot do
/// so by itself: hyper asks a body for nothing as long as the client takes nothing, and a client
/// that takes nothing is the reason.
#[derive(Debug, Default)]
pub(super) struct Cut {
    is_cut: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

tokio::task_local! {
    static CUT: Arc<Cut>;
}

/// What ends the task that this is; `None` in a framework that has tasks of its own.
pub(super) fn current() -> Option<Arc<Cut>> {
    CUT.try_with(Arc::clone).ok()
}

impl Cut {
    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::Release);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether it is cut; whoever asks is woken when it is.
    fn poll(&self, waker: &Waker) -> bool {
        {
            let mut known = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
            if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
                *known = Some(waker.clone());
            }
        }
        self.is_cut.load(Ordering::Acquire)
    }
}

/// Runs `future` until it is done or cut off.
pub(super) async fn cuttable(future: impl Future) {
    let cut = Arc::<Cut>::default();
    let until_cut = async {
        let mut future = pin!(future);
        poll_fn(|cx| {
            if cut.poll(cx.waker()) {
                return Poll::Ready(());
            }
            future.as_mut().poll(cx).map(drop)
        })
        .await;
    };
    CUT.scope(Arc::clone(&cut), until_cut).await;
}

/// Spawns what serves one stream of HTTP/2, so that it can be cut off without the others of its
/// connection: to drop it resets the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams;

impl<F: Future + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        tokio::spawn(cuttable(stream));
    }
}

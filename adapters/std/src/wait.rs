use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Waits for a future on the calling thread.
pub trait Wait: IntoFuture + Sized {
    /// Parks the thread until the future is ready.
    ///
    /// For futures that another thread drives, such as calls of a client whose connection runs in
    /// the [`BackgroundDriver`](crate::BackgroundDriver). Calling it on the thread of that
    /// connection, that is in one of its handlers, would deadlock. A future that reads and writes
    /// needs [`block_on`](crate::block_on) instead.
    fn wait(self) -> Self::Output {
        let parker = Arc::new(Parker { thread: thread::current(), woken: AtomicBool::new(false) });
        let waker = Waker::from(Arc::clone(&parker));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(self.into_future());
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            // Other code may unpark the thread, too.
            while !parker.woken.swap(false, Ordering::Acquire) {
                thread::park();
            }
        }
    }
}

impl<F: IntoFuture> Wait for F {}

#[derive(Debug)]
struct Parker {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::Release) {
            self.thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{poll_fn, ready};

    use super::*;

    #[test]
    fn a_future_that_another_thread_completes_is_waited_for() {
        assert_eq!(ready(1).wait(), 1);
        let done = Arc::new(AtomicBool::new(false));
        let mut thread = None;
        poll_fn(|cx| {
            thread.get_or_insert_with(|| {
                let (done, waker) = (Arc::clone(&done), cx.waker().clone());
                // After a spurious unpark, the thread keeps waiting.
                thread::current().unpark();
                thread::spawn(move || {
                    done.store(true, Ordering::Release);
                    waker.wake();
                })
            });
            if done.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
        .wait();
        thread.unwrap().join().unwrap();
    }
}

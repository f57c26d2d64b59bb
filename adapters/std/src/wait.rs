use std::future::IntoFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_lite::future::block_on;
use mcp_sansio_async::StopHandle;

/// Waits for a future on the calling thread.
pub trait Wait: IntoFuture + Sized {
    /// Parks the thread until the future is ready.
    ///
    /// For futures that another thread drives, such as calls of a client whose connection runs in
    /// the [`BackgroundDriver`](crate::BackgroundDriver). Calling it on the thread of that
    /// connection, that is in one of its handlers, would deadlock. For a future that reads and
    /// writes, [`block_on`](crate::block_on()) is faster.
    fn wait(self) -> Self::Output {
        block_on(self.into_future())
    }

    /// Like [`wait`](Self::wait), until another thread cancels it through `handle`. Then it drops
    /// the future and returns `None`: a call is cancelled at the server, or not sent if it was
    /// cancelled before.
    ///
    /// ```no_run
    /// use mcp_sansio_std::{CancelHandle, Client, ClientError, NoArguments, Wait};
    ///
    /// # fn run(client: &Client, on_interrupt: impl Fn(Box<dyn Fn() + Send>)) -> Result<(), ClientError> {
    /// let cancel = CancelHandle::new();
    /// let interrupt = cancel.clone();
    /// on_interrupt(Box::new(move || interrupt.cancel()));
    /// match client.call_tool("build", &NoArguments {}).wait_or_cancel(&cancel) {
    ///     Some(result) => println!("{:?}", result?.content),
    ///     None => println!("cancelled"),
    /// }
    /// # Ok(()) }
    /// ```
    fn wait_or_cancel(self, handle: &CancelHandle) -> Option<Self::Output> {
        let registered = Registered::new(handle);
        // Converting a call into a future sends it, so it is converted at the first poll.
        block_on(registered.stop.until_stopped(async { self.await }))
    }
}

impl<F: IntoFuture> Wait for F {}

/// Cancels [waits](Wait::wait_or_cancel) from another thread: the current ones, and all later ones.
/// Clones cancel the same waits.
#[derive(Clone, Debug, Default)]
pub struct CancelHandle(Arc<Mutex<Waits>>);

#[derive(Debug, Default)]
struct Waits {
    are_cancelled: bool,
    /// The current ones.
    handles: Vec<StopHandle>,
}

impl CancelHandle {
    /// Creates a handle that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels all waits, now and in the future.
    pub fn cancel(&self) {
        let mut waits = self.waits();
        waits.are_cancelled = true;
        let handles = std::mem::take(&mut waits.handles);
        drop(waits);
        handles.iter().for_each(StopHandle::stop);
    }

    /// Returns whether the handle is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.waits().are_cancelled
    }

    // A panic elsewhere leaves no inconsistent state.
    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registers a wait until it is dropped.
struct Registered<'a> {
    handle: &'a CancelHandle,
    stop: StopHandle,
}

impl<'a> Registered<'a> {
    fn new(handle: &'a CancelHandle) -> Self {
        let stop = StopHandle::default();
        let mut waits = handle.waits();
        if waits.are_cancelled {
            stop.stop();
        } else {
            waits.handles.push(stop.clone());
        }
        drop(waits);
        Self { handle, stop }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.stop.stop();
        self.handle.waits().handles.retain(|handle| !handle.is_stopped());
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::task::Poll;
    use std::thread;

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

    #[test]
    fn every_waiting_thread_is_cancelled() {
        let (handle, (told, tell)) = (CancelHandle::new(), channel());
        let threads = [(); 3].map(|()| {
            let (handle, told) = (handle.clone(), told.clone());
            thread::spawn(move || {
                let mut polls = 0;
                let never = poll_fn(|_| -> Poll<()> {
                    polls += 1;
                    if polls == 1 {
                        told.send(()).unwrap();
                    }
                    Poll::Pending
                });
                never.wait_or_cancel(&handle)
            })
        });
        for _ in 0..3 {
            tell.recv().unwrap();
        }
        handle.cancel();
        assert_eq!(threads.map(|thread| thread.join().unwrap()), [None; 3]);
        assert!(handle.waits().handles.is_empty());
    }

    #[test]
    fn a_result_counts_if_it_comes_before_the_cancellation() {
        let handle = CancelHandle::new();
        assert_eq!(ready(1).wait_or_cancel(&handle), Some(1));
        let cancels_itself = poll_fn(|_| {
            handle.cancel();
            Poll::Ready(2)
        });
        assert_eq!(cancels_itself.wait_or_cancel(&handle), Some(2));
        // From now on, nothing is polled.
        assert_eq!(poll_fn(|_| -> Poll<()> { panic!("polled") }).wait_or_cancel(&handle), None);
        assert_eq!(pending::<()>().wait_or_cancel(&handle), None);
    }

    #[test]
    fn nothing_is_sent_after_the_cancellation() {
        /// Like a call, which is sent by its conversion into a future.
        struct Sent;

        impl IntoFuture for Sent {
            type Output = ();
            type IntoFuture = std::future::Ready<()>;

            fn into_future(self) -> std::future::Ready<()> {
                panic!("sent")
            }
        }

        let handle = CancelHandle::new();
        handle.cancel();
        assert_eq!(Sent.wait_or_cancel(&handle), None);
    }
}

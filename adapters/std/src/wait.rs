use std::future::IntoFuture;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
        match wait(self, || false, &Parker::new()) {
            Some(output) => output,
            None => unreachable!("nothing cancels the wait"),
        }
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
        let parker = Parker::new();
        let _registered = Registered::new(handle, &parker);
        if handle.is_cancelled() {
            return None;
        }
        wait(self, || handle.is_cancelled(), &parker)
    }
}

/// Polls the future until it is ready or `is_cancelled`, and parks the thread in between.
fn wait<F: IntoFuture>(
    future: F,
    is_cancelled: impl Fn() -> bool,
    parker: &Arc<Parker>,
) -> Option<F::Output> {
    let waker = Waker::from(Arc::clone(parker));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future.into_future());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        if is_cancelled() {
            return None;
        }
        // Other code may unpark the thread, too.
        while !parker.woken.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

/// Cancels [waits](Wait::wait_or_cancel) from another thread: the current ones, and all later ones.
/// Clones cancel the same waits.
#[derive(Clone, Debug, Default)]
pub struct CancelHandle(Arc<Cancel>);

#[derive(Debug, Default)]
struct Cancel {
    is_cancelled: AtomicBool,
    /// The waiting threads.
    waiting: Mutex<Vec<Arc<Parker>>>,
}

impl CancelHandle {
    /// Creates a handle that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels all waits, now and in the future.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
        for parker in self.waiting().iter() {
            parker.wake_by_ref();
        }
    }

    /// Returns whether the handle is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    // A panic elsewhere leaves no inconsistent state.
    fn waiting(&self) -> MutexGuard<'_, Vec<Arc<Parker>>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registers a waiting thread until it is dropped.
struct Registered<'a> {
    handle: &'a CancelHandle,
    parker: &'a Arc<Parker>,
}

impl<'a> Registered<'a> {
    fn new(handle: &'a CancelHandle, parker: &'a Arc<Parker>) -> Self {
        handle.waiting().push(Arc::clone(parker));
        Self { handle, parker }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.handle.waiting().retain(|other| !Arc::ptr_eq(other, self.parker));
    }
}

impl<F: IntoFuture> Wait for F {}

#[derive(Debug)]
struct Parker {
    thread: Thread,
    woken: AtomicBool,
}

impl Parker {
    fn new() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), woken: AtomicBool::new(false) })
    }
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
    use std::future::{pending, poll_fn, ready};
    use std::sync::mpsc::channel;

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
        assert!(handle.waiting().is_empty());
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
}

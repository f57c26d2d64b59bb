//! Runs one future on the calling thread, which sleeps while there is no work.

mod notifier;
pub(crate) mod reactor;

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use notifier::Notifier;

/// Consecutive polls of a future that wakes itself, before descriptors and timers are checked. 64:
/// one more system call for that many polls is negligible, and nothing waits for long.
const POLLS_MAX: u32 = 64;

/// Runs `future` to completion on this thread, which also watches the descriptors and timers that
/// it waits for: those of [`FdStream`](crate::FdStream), [`PipeStream`](crate::PipeStream) and
/// [`Clock`](crate::Clock). The future need not be `Send`; its wakers work from any thread.
///
/// The future must not block the thread for long, since everything else in it waits meanwhile. A
/// nested `block_on` is allowed, but blocks the outer one.
///
/// # Errors
///
/// The system is out of descriptors (up to three are needed), or fails to wait for them. The future
/// is dropped with its progress.
pub fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    let notifier = Arc::new(Notifier::new()?);
    let waker = Waker::from(Arc::clone(&notifier));
    let mut context = Context::from_waker(&waker);
    let _entered = reactor::enter();
    let mut future = pin!(future);
    let mut turns = 0;
    loop {
        notifier.reset();
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        turns += 1;
        if turns == POLLS_MAX {
            turns = 0;
            reactor::wait(&notifier, reactor::WaitMode::NoWait)?;
            reactor::wake_due();
        }
        while notifier.park() {
            turns = 0;
            let waited = reactor::wait(&notifier, reactor::WaitMode::UntilWoken);
            notifier.unpark();
            waited?;
            reactor::wake_due();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn a_future_that_is_ready_is_polled_once() {
        assert_eq!(block_on(async { 7 }).unwrap(), 7);
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again() {
        let mut left = 1000;
        block_on(poll_fn(|cx| {
            left -= 1;
            cx.waker().wake_by_ref();
            if left == 0 { Poll::Ready(()) } else { Poll::Pending }
        }))
        .unwrap();
    }

    #[test]
    fn a_waker_works_from_another_thread_and_after_the_end() {
        let done = Arc::new(AtomicBool::new(false));
        let mut thread = None;
        block_on(poll_fn(|cx| {
            if done.load(Ordering::Acquire) {
                return Poll::Ready(());
            }
            thread.get_or_insert_with(|| {
                let (done, waker) = (Arc::clone(&done), cx.waker().clone());
                thread::spawn(move || {
                    done.store(true, Ordering::Release);
                    waker.wake_by_ref();
                    waker
                })
            });
            Poll::Pending
        }))
        .unwrap();
        thread.unwrap().join().unwrap().wake();
    }

    #[test]
    fn concurrent_wakes_are_not_lost() {
        const ROUNDS: u32 = 5_000;
        let count = Arc::new(AtomicU32::new(0));
        let (sender, receiver) = std::sync::mpsc::channel::<Waker>();
        let thread = thread::spawn({
            let count = Arc::clone(&count);
            move || {
                for waker in receiver {
                    count.fetch_add(1, Ordering::Release);
                    waker.wake();
                }
            }
        });
        let mut seen = 0;
        block_on(poll_fn(|cx| {
            let counted = count.load(Ordering::Acquire);
            if counted == ROUNDS {
                return Poll::Ready(());
            }
            if counted == seen {
                seen += 1;
                sender.send(cx.waker().clone()).unwrap();
            }
            Poll::Pending
        }))
        .unwrap();
        drop(sender);
        thread.join().unwrap();
    }

    #[test]
    fn one_block_on_may_be_inside_of_another() {
        assert_eq!(block_on(async { block_on(async { 7 }).unwrap() }).unwrap(), 7);
    }
}

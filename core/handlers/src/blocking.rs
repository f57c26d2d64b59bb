//! Handlers that may block, on threads of their own.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use mcp_sansio::Job;
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio_sync::Mutex;
use mcp_sansio_sync::atomic::{AtomicBool, Ordering};

use super::context::{FromRequest, RequestParts};
use super::fallible::{Fallible, FallibleMarker, WithError};
use super::function::{Handler, HandlerInput, decode};
use super::reply::{IntoOutcome, Outcome};
use super::threading::{Step, ThreadSafe, Threading};

/// Runs a job where it may block.
pub(super) type Spawner = Arc<dyn Fn(Job) + Send + Sync>;

/// A plain function as a handler that may block; returned by [`blocking`].
#[derive(Clone, Copy, Debug)]
pub struct Blocking<F>(pub(super) F);

/// Wraps a long-running or blocking function as a handler.
///
/// The function runs where [`Server::spawner`](super::Server::spawner) puts it, or on the adapter's
/// [threads for blocking work](super::endpoint::Endpoint::set_spawner), in parallel to the connection; its
/// messages are sent at once. With neither it runs where the connection is driven, which then waits
/// for it. It cannot be interrupted: when its request is cancelled,
/// [`is_cancelled`](super::Context::is_cancelled) returns `true`.
pub const fn blocking<F>(function: F) -> Blocking<F> {
    Blocking(function)
}

/// Marks a blocking function from `In` to `Out`.
#[derive(Debug)]
pub struct BlockingMarker<In, Out>(PhantomData<fn(In) -> Out>);

impl<In, Out> HandlerInput for BlockingMarker<In, Out> {
    type In = In;
    type Out = Out;
}

#[diagnostic::do_not_recommend]
impl<F, In, R, Of> Handler<ThreadSafe, Of, BlockingMarker<In, R>> for Blocking<F>
where
    F: Fn(In) -> R + Send + Sync + 'static,
    In: FromRequest<Of> + Send + 'static,
    R: IntoOutcome<Of>,
{
    fn into_function(self) -> <ThreadSafe as Threading>::Function {
        let function = Arc::new(self.0);
        Arc::new(move |mut received: RequestParts<'_, '_>| {
            let default_spawner = received.default_spawner;
            let spawner: &dyn Fn(Job) = match (received.spawner, &default_spawner) {
                (Some(spawner), _) => &**spawner,
                (None, Some(spawner)) => spawner,
                (None, None) => {
                    let input = decode(received);
                    return Step::Ready(
                        input.map_or_else(|done| *done, |i| function(i).into_outcome()),
                    );
                }
            };
            let cancelled = Arc::new(AtomicBool::new(false));
            received.cancelled = Some(Arc::clone(&cancelled));
            let observation = received.observation.cloned();
            let input: In = match decode(received) {
                Ok(input) => input,
                Err(done) => return Step::Ready(*done),
            };
            let answer = Arc::new(JobResult::default());
            let (function, promise) = (Arc::clone(&function), JobGuard(Some(Arc::clone(&answer))));
            if let Some(observation) = observation {
                let mut work = Some(move || promise.complete(function(input).into_outcome()));
                let mut run = move || work.take().into_iter().for_each(|work| work());
                spawner(Box::new(move || observation.run(&mut run)));
                let task: <ThreadSafe as Threading>::Task =
                    Box::pin(JobFuture { answer, cancelled });
                return Step::Pending(task);
            }
            spawner(Box::new(move || promise.complete(function(input).into_outcome())));
            let task: <ThreadSafe as Threading>::Task = Box::pin(JobFuture { answer, cancelled });
            Step::Pending(task)
        })
    }
}

// `blocking(fallible(function))` is `fallible(blocking(function))`. The bounds are those of the inner
// `blocking`: to name it would make the search for an implementation endless.
#[diagnostic::do_not_recommend]
impl<F, In, R, Of> Handler<ThreadSafe, Of, FallibleMarker<BlockingMarker<In, R>>>
    for Blocking<Fallible<F>>
where
    F: Fn(In) -> R + Send + Sync + 'static,
    In: FromRequest<Of> + Send + 'static,
    R: IntoOutcome<WithError<Of>>,
{
    fn into_function(self) -> <ThreadSafe as Threading>::Function {
        let function = Blocking(self.0.0);
        Handler::<ThreadSafe, WithError<Of>, BlockingMarker<In, R>>::into_function(function)
    }
}

/// The outcome of a job, shared with the driver.
#[derive(Default)]
struct JobResult(Mutex<(Option<Outcome>, Option<Waker>)>);

impl JobResult {
    fn set(&self, outcome: Outcome) {
        let waker = self.0.lock(|(answer, waker)| {
            *answer = Some(outcome);
            waker.take()
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Guarantees an answer: dropping it unfinished sets an error.
struct JobGuard(Option<Arc<JobResult>>);

impl JobGuard {
    fn complete(mut self, outcome: Outcome) {
        if let Some(answer) = self.0.take() {
            answer.set(outcome);
        }
    }
}

impl Drop for JobGuard {
    fn drop(&mut self) {
        if let Some(answer) = self.0.take() {
            answer.set(Outcome::Error(ErrorObject::internal("the handler did not finish")));
        }
    }
}

/// The future of the request that waits for the job. Dropped with the request.
struct JobFuture {
    answer: Arc<JobResult>,
    cancelled: Arc<AtomicBool>,
}

impl Future for JobFuture {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        // Wakers are cloned and dropped outside of the lock, because they run foreign code.
        let mut waker = Some(cx.waker().clone());
        let polled = self.answer.0.lock(|(answer, known)| match answer.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                core::mem::swap(known, &mut waker);
                Poll::Pending
            }
        });
        drop(waker);
        polled
    }
}

impl Drop for JobFuture {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

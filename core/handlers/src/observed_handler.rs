//! Handlers that run in the context of their observed request.

use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use mcp_sansio::peer::Observation;

use super::panics::Panicked;
use super::reply::Outcome;
use super::threading::{Step, Threading};

/// The observation of a request, shared with its machine.
pub(super) type SharedObservation = Arc<dyn Observation>;

/// Calls a handler in the context of its observation, if it has one.
pub(super) fn call_observed<K: Threading>(
    observation: Option<SharedObservation>,
    call: impl FnOnce() -> Step<K>,
) -> Step<K> {
    let Some(observation) = observation else { return call() };
    let (mut call, mut step) = (Some(call), None);
    observation.run(&mut || {
        if let Some(call) = call.take() {
            step = Some(call());
        }
    });
    match step {
        Some(Step::Pending(task)) => Step::Pending(K::observed(task, observation)),
        Some(step) => step,
        // The observer has broken its contract.
        None => Step::Ready(Panicked.into()),
    }
}

/// A pending handler that is polled in the context of its observation.
pub(super) struct ObservedTask<F> {
    task: F,
    observation: SharedObservation,
}

impl<F> ObservedTask<F> {
    pub(super) const fn new(task: F, observation: SharedObservation) -> Self {
        Self { task, observation }
    }
}

impl<F: Future<Output = Outcome> + Unpin> Future for ObservedTask<F> {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let Self { task, observation } = &mut *self;
        let mut polled = Poll::Pending;
        observation.run(&mut || polled = Pin::new(&mut *task).poll(cx));
        polled
    }
}

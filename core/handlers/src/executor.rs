//! Polls the pending handlers of a connection, in the context of their observation.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{Event, HandlerPanicked, Observation};
use mcp_sansio_sync::atomic::{AtomicBool, Ordering};

use super::mailbox::Mailbox;
use super::reply::Outcome;
use super::server::Observers;
use super::threading::{Step, Threading};

pub(super) use mcp_sansio::{PanicGuard, Panicked};

/// The running handlers, each in the slot of its request and with its data. `F` is the future of a
/// handler, `C` the command type of the driver's mailbox.
///
/// They run where the driver runs: no task is spawned, and dropping a handler cancels it.
pub(super) struct Executor<F, C, T> {
    places: Vec<Slot<F, C, T>>,
    /// Handlers that outlive their request.
    detached: Vec<Slot<F, C, T>>,
    mailbox: Arc<Mailbox<C>>,
    /// The guard that handlers run in.
    pub(super) guard: PanicGuard,
}

/// The result of a handler, with its data.
pub(super) type Done<T, R> = (T, Result<R, Panicked>);

/// Marks a slot that does not belong to a request in flight.
pub(super) const DETACHED: u32 = 1 << 31;

struct Slot<F, C, T> {
    task: Option<(F, T)>,
    signal: Arc<HandlerWaker<C>>,
    waker: Waker,
}

/// Wakes the driver for one slot. Allocated once per slot and reused by later calls; a late wake-up
/// of an earlier handler costs one needless poll of the current one.
struct HandlerWaker<C> {
    place: u32,
    ready: AtomicBool,
    mailbox: Arc<Mailbox<C>>,
}

impl<C: Send> Wake for HandlerWaker<C> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.ready.swap(true, Ordering::AcqRel) {
            self.mailbox.wake(self.place);
        }
    }
}

impl<F: Future + Unpin, C: Send + 'static, T> Executor<F, C, T> {
    pub(super) const fn new(mailbox: Arc<Mailbox<C>>) -> Self {
        Self { places: Vec::new(), detached: Vec::new(), mailbox, guard: PanicGuard::NONE }
    }

    /// Puts a handler into the slot `place` and polls it; returns its result if it is done at once.
    pub(super) fn start(&mut self, place: u32, task: F, with: T) -> Option<Done<T, F::Output>> {
        self.put(place, task, with);
        self.poll(place)
    }

    /// Moves a handler to another slot and schedules it, as its old waker no longer reaches it.
    pub(super) fn relocate(&mut self, from: u32, to: u32) {
        if let Some((task, with)) = self.take(from) {
            self.put(to, task, with).wake_by_ref();
        }
    }

    fn put(&mut self, place: u32, task: F, with: T) -> &Arc<HandlerWaker<C>> {
        let (part, index) = (place & DETACHED, (place & !DETACHED) as usize);
        let places = if part == 0 { &mut self.places } else { &mut self.detached };
        while places.len() <= index {
            let next =
                u32::try_from(places.len()).expect("the number of slots fits into 32 bits") | part;
            let mailbox = Arc::clone(&self.mailbox);
            let signal =
                Arc::new(HandlerWaker { place: next, ready: AtomicBool::new(false), mailbox });
            let waker = Waker::from(Arc::clone(&signal));
            places.push(Slot { task: None, signal, waker });
        }
        places[index].task = Some((task, with));
        &places[index].signal
    }

    /// Returns how many handlers are ready. Those that become ready during this pass wait for the
    /// next pass: a handler that wakes itself must not delay the other handlers or the stream.
    pub(super) fn ready(&self) -> usize {
        if self.mailbox.take_missed() {
            for place in self.places.iter().chain(&self.detached) {
                if place.signal.ready.load(Ordering::Acquire) {
                    self.mailbox.requeue(place.signal.place);
                }
            }
        }
        self.mailbox.ready()
    }

    /// Polls the first of the ready handlers; returns its result if it is done.
    pub(super) fn poll_next(&mut self) -> Option<Done<T, F::Output>> {
        let place = self.mailbox.take_ready()?;
        let ready = &self.place(place)?.signal.ready;
        if ready.load(Ordering::Acquire) { self.poll(place) } else { None }
    }

    fn poll(&mut self, place: u32) -> Option<Done<T, F::Output>> {
        let guard = self.guard;
        let Slot { task, signal, waker } = self.place(place)?;
        signal.ready.swap(false, Ordering::AcqRel);
        let (running, _) = task.as_mut()?;
        let polled = guard.run(|| Pin::new(running).poll(&mut Context::from_waker(waker)));
        let outcome = match polled {
            Ok(Poll::Pending) => return None,
            Ok(Poll::Ready(outcome)) => Ok(outcome),
            Err(panicked) => Err(panicked),
        };
        let (running, with) = task.take()?;
        guard.drop(running);
        Some((with, outcome))
    }

    fn place(&mut self, place: u32) -> Option<&mut Slot<F, C, T>> {
        let places = if place & DETACHED == 0 { &mut self.places } else { &mut self.detached };
        places.get_mut((place & !DETACHED) as usize)
    }

    /// Returns the data of the handler in `place`.
    pub(super) fn get(&mut self, place: u32) -> Option<&T> {
        self.place(place)?.task.as_ref().map(|(_, with)| with)
    }

    /// Returns the running handlers, by their slot.
    pub(super) fn running(&self) -> impl Iterator<Item = (u32, &T)> {
        let places = self.places.iter().chain(&self.detached);
        places.filter_map(|slot| Some((slot.signal.place, &slot.task.as_ref()?.1)))
    }

    fn take(&mut self, place: u32) -> Option<(F, T)> {
        self.place(place)?.task.take()
    }

    /// Drops the handler in `place`, whose request was cancelled.
    pub(super) fn cancel(&mut self, place: u32) {
        if let Some((running, _)) = self.take(place) {
            self.guard.drop(running);
        }
    }

    /// Drops all handlers, as their results are no longer needed.
    pub(super) fn cancel_all(&mut self) {
        for place in self.places.iter_mut().chain(&mut self.detached) {
            if let Some((running, _)) = place.task.take() {
                self.guard.drop(running);
            }
        }
    }
}

impl<F, C, T> core::fmt::Debug for Executor<F, C, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let running =
            self.places.iter().chain(&self.detached).filter(|place| place.task.is_some()).count();
        f.debug_struct("Executor").field("running", &running).finish_non_exhaustive()
    }
}

// ------------------------------------------------------------------ observed handlers

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
        None => Step::Ready(Outcome::Error(ErrorObject::internal(UNFINISHED))),
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

// ------------------------------------------------------------------ panics

impl From<Panicked> for Outcome {
    fn from(panicked: Panicked) -> Self {
        Self::Panicked(panicked)
    }
}

/// Shows the panic of a handler to the observers, and returns the error for the peer.
#[cold]
pub(super) fn report_panic(
    observers: &Observers,
    handler: String,
    panicked: Panicked,
    guard: PanicGuard,
) -> ErrorObject<'static> {
    let report = HandlerPanicked::new(handler, panicked);
    let error = report.to_error();
    // The request is answered also if an observer panics.
    let _shown = observers.show(&Event::HandlerPanicked(report), guard);
    error
}

/// The error of a handler that was never run, or whose future is lost.
pub(super) const UNFINISHED: &str = "the handler did not finish";

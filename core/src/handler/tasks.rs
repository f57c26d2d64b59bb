use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use super::kind::Kind;
use super::mailbox::Mailbox;
use super::reply::Outcome;

/// The handlers that are not done yet, each in the place of its request, with what belongs to it.
///
/// They run where the driver runs: nothing is spawned, and a handler that is dropped is cancelled.
pub(super) struct Tasks<K: Kind, C, T> {
    places: Vec<Place<K, T>>,
    running: usize,
    mailbox: Arc<Mailbox<C>>,
}

struct Place<K: Kind, T> {
    task: Option<(K::Task, T)>,
    waker: Waker,
}

/// Wakes the driver for one place. Made once a place and kept, so that a call needs none.
struct PlaceWaker<C> {
    place: u32,
    mailbox: Arc<Mailbox<C>>,
}

impl<C: Send> Wake for PlaceWaker<C> {
    fn wake(self: Arc<Self>) {
        self.mailbox.wake(self.place);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.mailbox.wake(self.place);
    }
}

impl<K: Kind, C: Send + 'static, T> Tasks<K, C, T> {
    pub(super) const fn new(mailbox: Arc<Mailbox<C>>) -> Self {
        Self { places: Vec::new(), running: 0, mailbox }
    }

    pub(super) const fn len(&self) -> usize {
        self.running
    }

    /// Puts a handler into `place` and lets it begin; what it came to, if it is done at once.
    pub(super) fn start(&mut self, place: u32, task: K::Task, with: T) -> Option<(T, Outcome)> {
        while self.places.len() <= place as usize {
            let next = u32::try_from(self.places.len()).expect("as many as requests in flight");
            let waker = PlaceWaker { place: next, mailbox: Arc::clone(&self.mailbox) };
            self.places.push(Place { task: None, waker: Waker::from(Arc::new(waker)) });
        }
        self.places[place as usize].task = Some((task, with));
        self.running += 1;
        self.poll(place)
    }

    /// Lets the handler in `place` go on; what it came to, if it is done.
    pub(super) fn poll(&mut self, place: u32) -> Option<(T, Outcome)> {
        let Place { task, waker } = self.places.get_mut(place as usize)?;
        let (running, _) = task.as_mut()?;
        let mut context = Context::from_waker(waker);
        match Pin::new(running).poll(&mut context) {
            Poll::Pending => None,
            Poll::Ready(outcome) => {
                self.running -= 1;
                task.take().map(|(_, with)| (with, outcome))
            }
        }
    }

    /// Drops the handler in `place`: its request was cancelled.
    pub(super) fn cancel(&mut self, place: u32) {
        let task = self.places.get_mut(place as usize).and_then(|place| place.task.take());
        if task.is_some() {
            self.running -= 1;
        }
    }
}

impl<K: Kind, C, T> core::fmt::Debug for Tasks<K, C, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tasks").field("running", &self.running).finish_non_exhaustive()
    }
}

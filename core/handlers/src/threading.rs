use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;

use super::context::RequestParts;
use super::middleware::{Layers, Next, ServerLayers, ServerRequest};
use super::reply::Outcome;
use super::state::StateMap;

/// Whether the handlers of a server or a host may move between threads, or stay on one:
/// [`ThreadSafe`] or [`Local`].
pub trait Threading: sealed::Sealed + Sized + 'static {
    /// A stored handler.
    type Function: Clone + core::ops::Deref<Target: Fn(RequestParts<'_, '_>) -> Step<Self>>;
    /// A stored middleware.
    type Middleware: Clone
        + core::ops::Deref<Target: Fn(ServerRequest, Next<Self>) -> Self::Future<Outcome>>;
    /// The middleware of a server, without the type of the list.
    type Layers: Clone + core::ops::Deref<Target: ServerLayers<Self>>;
    /// The states that handlers share.
    type States: Clone;
    /// The future of a handler or another function of the application.
    type Future<T: 'static>: Future<Output = T> + Unpin;
    /// Another stored function of the application.
    type Callback<In: 'static, Out: 'static>: Clone
        + Unpin
        + core::ops::Deref<Target: Fn(In) -> Out>;

    /// Converts a thread-safe handler into this kind.
    fn from_thread_safe(function: <ThreadSafe as Threading>::Function) -> Self::Function;

    /// Erases the type of a middleware list.
    fn layers(list: Layers<Self>) -> Self::Layers;

    /// Converts a future that may move between threads.
    fn from_send_future<T: 'static>(
        future: Pin<Box<dyn Future<Output = T> + Send>>,
    ) -> Self::Future<T>;

    /// Converts the output of a future.
    fn map<T: 'static, U: 'static>(future: Self::Future<T>, map: fn(T) -> U) -> Self::Future<U>;
}

/// Handlers that are `Send` and `Sync`, as a multi-threaded runtime requires.
#[derive(Clone, Copy, Debug)]
pub enum ThreadSafe {}

/// Handlers without these bounds: they may hold an `Rc` or borrow a peripheral, and run on the
/// thread that drives the connection.
#[derive(Clone, Copy, Debug)]
pub enum Local {}

/// The state of a handler or another function of the application after its call.
#[derive(Debug)]
pub enum Step<K: Threading, T: 'static = Outcome> {
    /// The function is done.
    Ready(T),
    /// The function is pending and must be polled.
    Pending(K::Future<T>),
}

impl Threading for ThreadSafe {
    type Function = Arc<dyn Fn(RequestParts<'_, '_>) -> Step<Self> + Send + Sync>;
    type Middleware = Arc<dyn Fn(ServerRequest, Next<Self>) -> Self::Future<Outcome> + Send + Sync>;
    type Layers = Arc<dyn ServerLayers<Self> + Send + Sync>;
    type States = Arc<dyn StateMap + Send + Sync>;
    type Future<T: 'static> = Pin<Box<dyn Future<Output = T> + Send>>;
    type Callback<In: 'static, Out: 'static> = Arc<dyn Fn(In) -> Out + Send + Sync>;

    fn from_thread_safe(function: Self::Function) -> Self::Function {
        function
    }

    fn layers(list: Layers<Self>) -> Self::Layers {
        Arc::new(list)
    }

    fn from_send_future<T: 'static>(
        future: Pin<Box<dyn Future<Output = T> + Send>>,
    ) -> Self::Future<T> {
        future
    }

    fn map<T: 'static, U: 'static>(future: Self::Future<T>, map: fn(T) -> U) -> Self::Future<U> {
        Box::pin(async move { map(future.await) })
    }
}

impl Threading for Local {
    type Function = Rc<dyn Fn(RequestParts<'_, '_>) -> Step<Self>>;
    type Middleware = Rc<dyn Fn(ServerRequest, Next<Self>) -> Self::Future<Outcome>>;
    type Layers = Rc<dyn ServerLayers<Self>>;
    type States = Rc<dyn StateMap>;
    type Future<T: 'static> = Pin<Box<dyn Future<Output = T>>>;
    type Callback<In: 'static, Out: 'static> = Rc<dyn Fn(In) -> Out>;

    fn from_thread_safe(function: <ThreadSafe as Threading>::Function) -> Self::Function {
        Rc::new(move |received: RequestParts<'_, '_>| match function(received) {
            Step::Ready(outcome) => Step::Ready(outcome),
            Step::Pending(task) => {
                let task: Self::Future<Outcome> = task;
                Step::Pending(task)
            }
        })
    }

    fn layers(list: Layers<Self>) -> Self::Layers {
        Rc::new(list)
    }

    fn from_send_future<T: 'static>(
        future: Pin<Box<dyn Future<Output = T> + Send>>,
    ) -> Self::Future<T> {
        future
    }

    fn map<T: 'static, U: 'static>(future: Self::Future<T>, map: fn(T) -> U) -> Self::Future<U> {
        Box::pin(async move { map(future.await) })
    }
}

mod sealed {
    use super::{Local, Outcome, StateMap, ThreadSafe, Threading};

    type States<K> = <K as Threading>::States;
    type Task<K> = <K as Threading>::Future<Outcome>;

    /// Requirements of this crate on a kind.
    #[allow(unnameable_types, reason = "sealed: other crates cannot implement it")]
    pub trait Sealed {
        /// Returns a view of the states that is independent of the kind.
        fn state_map(states: &States<Self>) -> &dyn StateMap
        where
            Self: Threading;

        /// Polls a pending handler in the context of its observation.
        fn observed(
            task: Task<Self>,
            observation: crate::executor::SharedObservation,
        ) -> Task<Self>
        where
            Self: Threading;
    }

    impl Sealed for ThreadSafe {
        fn state_map(states: &States<Self>) -> &dyn StateMap {
            &**states
        }

        fn observed(
            task: Task<Self>,
            observation: crate::executor::SharedObservation,
        ) -> Task<Self> {
            alloc::boxed::Box::pin(crate::executor::ObservedTask::new(task, observation))
        }
    }

    impl Sealed for Local {
        fn state_map(states: &States<Self>) -> &dyn StateMap {
            &**states
        }

        fn observed(
            task: Task<Self>,
            observation: crate::executor::SharedObservation,
        ) -> Task<Self> {
            alloc::boxed::Box::pin(crate::executor::ObservedTask::new(task, observation))
        }
    }
}

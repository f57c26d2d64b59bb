use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;

#[cfg(feature = "protection")]
use mcp_sansio_oauth::TokenCheck;

#[cfg(feature = "auth")]
use super::authorization::ActionOutput;
use super::context::RequestParts;
use super::reply::Outcome;
#[cfg(feature = "protection")]
use super::token_handler::{TokenResult, TokenStep};

/// What kind of handlers a server or a host has: such that may move between threads, or such that
/// stay on one. [`ThreadSafe`] or [`Local`].
pub trait Threading: sealed::Sealed + Sized + 'static {
    /// A handler that goes on later.
    type Task: Future<Output = Outcome> + Unpin;
    /// A handler, ready to be called.
    type Function: Clone + core::ops::Deref<Target: Fn(RequestParts<'_, '_>) -> Step<Self>>;
    /// A check of a token that goes on later.
    #[cfg(feature = "protection")]
    type TokenTask: Future<Output = TokenResult> + Unpin;
    /// What checks tokens, ready to be called.
    #[cfg(feature = "protection")]
    type TokenFunction: Clone + Unpin + core::ops::Deref<Target: Fn(TokenCheck) -> TokenStep<Self>>;
    /// An answer to what an [`Authorization`](super::Authorization) asks, on its way.
    #[cfg(feature = "auth")]
    type ActionFuture: Future<Output = ActionOutput> + Unpin;
    /// A function that answers, ready to be called.
    #[cfg(feature = "auth")]
    type ActionFunction<In: 'static>: Clone + core::ops::Deref<Target: Fn(In) -> Self::ActionFuture>;

    /// A handler that may run on any thread, as one of this kind.
    fn from_thread_safe(function: <ThreadSafe as Threading>::Function) -> Self::Function;

    /// The answer of a store, which is for any thread.
    #[cfg(feature = "auth")]
    fn from_store_future(
        answer: Pin<Box<dyn Future<Output = ActionOutput> + Send>>,
    ) -> Self::ActionFuture;
}

/// Handlers that are `Send` and `Sync`: what a runtime with several threads needs.
#[derive(Clone, Copy, Debug)]
pub enum ThreadSafe {}

/// Handlers without such bounds: they may hold an `Rc` or borrow a peripheral, and run where the
/// connection runs.
#[derive(Clone, Copy, Debug)]
pub enum Local {}

/// What a handler comes to when it is called.
#[derive(Debug)]
pub enum Step<K: Threading> {
    /// It is done.
    Ready(Outcome),
    /// It goes on: to be polled.
    Pending(K::Task),
}

impl Threading for ThreadSafe {
    type Task = Pin<Box<dyn Future<Output = Outcome> + Send>>;
    type Function = Arc<dyn Fn(RequestParts<'_, '_>) -> Step<Self> + Send + Sync>;
    #[cfg(feature = "protection")]
    type TokenTask = Pin<Box<dyn Future<Output = TokenResult> + Send>>;
    #[cfg(feature = "protection")]
    type TokenFunction = Arc<dyn Fn(TokenCheck) -> TokenStep<Self> + Send + Sync>;
    #[cfg(feature = "auth")]
    type ActionFuture = Pin<Box<dyn Future<Output = ActionOutput> + Send>>;
    #[cfg(feature = "auth")]
    type ActionFunction<In: 'static> = Arc<dyn Fn(In) -> Self::ActionFuture + Send + Sync>;

    fn from_thread_safe(function: Self::Function) -> Self::Function {
        function
    }

    #[cfg(feature = "auth")]
    fn from_store_future(
        answer: Pin<Box<dyn Future<Output = ActionOutput> + Send>>,
    ) -> Self::ActionFuture {
        answer
    }
}

impl Threading for Local {
    type Task = Pin<Box<dyn Future<Output = Outcome>>>;
    type Function = Rc<dyn Fn(RequestParts<'_, '_>) -> Step<Self>>;
    #[cfg(feature = "protection")]
    type TokenTask = Pin<Box<dyn Future<Output = TokenResult>>>;
    #[cfg(feature = "protection")]
    type TokenFunction = Rc<dyn Fn(TokenCheck) -> TokenStep<Self>>;
    #[cfg(feature = "auth")]
    type ActionFuture = Pin<Box<dyn Future<Output = ActionOutput>>>;
    #[cfg(feature = "auth")]
    type ActionFunction<In: 'static> = Rc<dyn Fn(In) -> Self::ActionFuture>;

    fn from_thread_safe(function: <ThreadSafe as Threading>::Function) -> Self::Function {
        Rc::new(move |received: RequestParts<'_, '_>| match function(received) {
            Step::Ready(outcome) => Step::Ready(outcome),
            Step::Pending(task) => {
                let task: Self::Task = task;
                Step::Pending(task)
            }
        })
    }

    #[cfg(feature = "auth")]
    fn from_store_future(
        answer: Pin<Box<dyn Future<Output = ActionOutput> + Send>>,
    ) -> Self::ActionFuture {
        answer
    }
}

mod sealed {
    #[allow(unnameable_types, reason = "so that nobody else implements it")]
    pub trait Sealed {}
    impl Sealed for super::ThreadSafe {}
    impl Sealed for super::Local {}
}

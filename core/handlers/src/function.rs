//! Functions as handlers: plain, `async`, blocking, and with errors of the application.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::error::Error;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio_sync::Mutex;
use mcp_sansio_sync::atomic::{AtomicBool, Ordering};

use super::context::{FromRequest, RequestParts};
use super::executor::UNFINISHED;
use super::reply::{HandlerError, IntoOutcome, Outcome};
use super::state::StateTypes;
use super::threading::{Local, Step, ThreadSafe, Threading};

/// A function that can be a handler: a closure or a function, plain or `async`, that takes a
/// [`Call`](super::Call), then up to three [`State`](super::State)s, or a
/// [`HostRequest`](super::HostRequest), and returns a suitable result.
///
/// `Of` is the kind of request, named by its result: [`CallToolResult`](mcp_sansio::protocol::CallToolResult),
/// `GetPromptResult`, `ReadResourceResult`, `CompleteResult`; `ElicitResult`, `CreateMessageResult`
/// and `ListRootsResult` at a host; [`Json`](mcp_sansio::jsonrpc::Json) for other methods, and
/// `ExtensionMethod<P, R>` for those of an extension. `M` tells a plain function from an `async`
/// one. The compiler infers both.
#[diagnostic::on_unimplemented(
    message = "this function cannot be registered as a handler here",
    label = "not a handler: wrong parameter or wrong result",
    note = "a tool (`CallToolResult`) takes `Call<Arguments>`, and `Arguments` derives `Deserialize` and `JsonSchema`; it returns text, content, or `Structured`",
    note = "a prompt (`GetPromptResult`) takes `Call<Arguments>` and returns a `String` or `PromptMessage`s; a resource (`ReadResourceResult`) takes `Call<ReadResource>` and returns `TextResourceContents` or `BlobResourceContents`",
    note = "at a host, `on_elicit` takes `HostRequest<ElicitParams>` and returns an `ElicitResult`, `on_sample` `HostRequest<CreateMessageParams>` and a `CreateMessageResult`, `on_roots` `HostRequest<()>` and a `Vec<Root>`",
    note = "the method `ExtensionMethod<P, R>` of an extension takes `Call<P>`, at a host `HostRequest<P>`, and returns `R`; `P` derives `Deserialize` and `R` derives `Serialize`",
    note = "each may return its result in a `Result` with `HandlerError`, or, wrapped by `fallible`, with an error that implements `IntoHandlerError` (`fallible(blocking(f))` if it blocks as well); it may be `async`; those of tools, prompts, resources, completions and `Server::request` may take up to three parameters `State<T>` after `Call`",
    note = "values that it captures are `Send` and `Sync`, and `Clone` if it is `async`; an `async` function holds no `Rc` and no lock of `std` across an `.await`; `Server::local` has no such bounds"
)]
pub trait Handler<K: Threading, Of, M> {
    /// Converts the function into the stored form.
    fn into_function(self) -> K::Function;

    /// Returns the states that the function takes.
    fn states(&self) -> StateTypes {
        StateTypes::NONE
    }
}

/// The mark of a plain function from `In` to `Out`: its own type.
pub(super) type Plain<In, Out = ()> = fn(In) -> Out;

/// Marks an `async` function from `In` to `Out`.
#[derive(Debug)]
pub struct Async<In, Out = ()>(PhantomData<fn(In) -> Out>);

/// The parameter and the result of a handler.
pub trait HandlerInput {
    /// The parameter of the function.
    type In;
    /// The result of the function; of its future, if it is `async`.
    type Out;
}

impl<In, Out> HandlerInput for fn(In) -> Out {
    type In = In;
    type Out = Out;
}

impl<In, Out> HandlerInput for Async<In, Out> {
    type In = In;
    type Out = Out;
}

/// Decodes the parameter of the function; a failure is returned as the outcome.
#[inline(always)]
pub(super) fn decode<Of, In: FromRequest<Of>>(
    received: RequestParts<'_, '_>,
) -> Result<In, Box<Outcome>> {
    In::from_request(received).map_err(|error| Box::new(error.into_outcome()))
}

impl<F, In, R, Of> Handler<ThreadSafe, Of, fn(In) -> R> for F
where
    F: Fn(In) -> R + Send + Sync + 'static,
    In: FromRequest<Of>,
    R: IntoOutcome<Of>,
{
    fn into_function(self) -> <ThreadSafe as Threading>::Function {
        Arc::new(move |received: RequestParts<'_, '_>| {
            Step::Ready(
                decode(received).map_or_else(|done| *done, |input| self(input).into_outcome()),
            )
        })
    }
}

// Each call clones the function, so that an `async move` closure may capture values: its future
// owns them and is `Send` if they are. Such a closure is not an `Fn`, because its future would
// borrow from the closure.
impl<F, In, R, Of> Handler<ThreadSafe, Of, Async<In, R::Output>> for F
where
    F: FnOnce(In) -> R + Clone + Send + Sync + 'static,
    In: FromRequest<Of>,
    R: Future<Output: IntoOutcome<Of>> + Send + 'static,
{
    fn into_function(self) -> <ThreadSafe as Threading>::Function {
        Arc::new(move |received: RequestParts<'_, '_>| match decode(received) {
            Err(done) => Step::Ready(*done),
            Ok(input) => {
                let answer = self.clone()(input);
                let task: <ThreadSafe as Threading>::Future<Outcome> =
                    Box::pin(async move { answer.await.into_outcome() });
                Step::Pending(task)
            }
        })
    }
}

impl<F, In, R, Of> Handler<Local, Of, fn(In) -> R> for F
where
    F: Fn(In) -> R + 'static,
    In: FromRequest<Of>,
    R: IntoOutcome<Of>,
{
    fn into_function(self) -> <Local as Threading>::Function {
        Rc::new(move |received: RequestParts<'_, '_>| {
            Step::Ready(
                decode(received).map_or_else(|done| *done, |input| self(input).into_outcome()),
            )
        })
    }
}

impl<F, In, R, Of> Handler<Local, Of, Async<In, R>> for F
where
    F: AsyncFn(In) -> R + 'static,
    In: FromRequest<Of> + 'static,
    R: IntoOutcome<Of>,
{
    fn into_function(self) -> <Local as Threading>::Function {
        let function = Rc::new(self);
        Rc::new(move |received: RequestParts<'_, '_>| match decode(received) {
            Err(done) => Step::Ready(*done),
            Ok(input) => {
                let function = Rc::clone(&function);
                let task: <Local as Threading>::Future<Outcome> =
                    Box::pin(async move { function(input).await.into_outcome() });
                Step::Pending(task)
            }
        })
    }
}

// ------------------------------------------------------------------ other functions of the application

/// A function of the application that is not a handler, such as a check of tokens: a closure or a
/// function, plain or `async`, that takes `In` and returns `Out`.
///
/// `M` tells a plain function from an `async` one; the compiler infers it.
#[diagnostic::on_unimplemented(
    message = "this function cannot be called with `{In}` here",
    note = "it takes `{In}` and returns `{Out}`, and may be `async`"
)]
pub trait Callback<K: Threading, In: 'static, Out: 'static, M> {
    /// Converts the function into the stored form.
    fn into_callback(self) -> K::Callback<In, Step<K, Out>>;
}

impl<F, In: 'static, Out: 'static> Callback<ThreadSafe, In, Out, Plain<In>> for F
where
    F: Fn(In) -> Out + Send + Sync + 'static,
{
    fn into_callback(self) -> <ThreadSafe as Threading>::Callback<In, Step<ThreadSafe, Out>> {
        Arc::new(move |input| Step::Ready(self(input)))
    }
}

impl<F, In: 'static, Out: 'static, R> Callback<ThreadSafe, In, Out, Async<In>> for F
where
    F: Fn(In) -> R + Send + Sync + 'static,
    R: Future<Output = Out> + Send + 'static,
{
    fn into_callback(self) -> <ThreadSafe as Threading>::Callback<In, Step<ThreadSafe, Out>> {
        Arc::new(move |input| {
            let task: <ThreadSafe as Threading>::Future<Out> = Box::pin(self(input));
            Step::Pending(task)
        })
    }
}

impl<F, In: 'static, Out: 'static> Callback<Local, In, Out, Plain<In>> for F
where
    F: Fn(In) -> Out + 'static,
{
    fn into_callback(self) -> <Local as Threading>::Callback<In, Step<Local, Out>> {
        Rc::new(move |input| Step::Ready(self(input)))
    }
}

impl<F, In: 'static, Out: 'static> Callback<Local, In, Out, Async<In>> for F
where
    F: AsyncFn(In) -> Out + 'static,
{
    fn into_callback(self) -> <Local as Threading>::Callback<In, Step<Local, Out>> {
        let function = Rc::new(self);
        Rc::new(move |input| {
            let function = Rc::clone(&function);
            let task: <Local as Threading>::Future<Out> =
                Box::pin(async move { function(input).await });
            Step::Pending(task)
        })
    }
}

// ------------------------------------------------------------------ handlers that may block, on threads of their own

/// A plain function as a handler that may block; returned by [`blocking`].
#[derive(Clone, Copy, Debug)]
pub struct Blocking<F>(pub(super) F);

/// Wraps a long-running or blocking function as a handler.
///
/// The function runs where [`Server::spawner`](super::Server::spawner) puts it, or on the adapter's
/// [threads for blocking work](super::endpoint::Endpoint::set_spawner), in parallel to the
/// connection; its messages are sent at once. With neither it runs where the connection is driven,
/// which then waits for it. It cannot be interrupted: when its request is cancelled,
/// [`is_cancelled`](super::Context::is_cancelled) returns `true`.
///
/// If it returns an error of the application, [`fallible`] goes around it:
/// `fallible(blocking(function))`.
pub const fn blocking<F>(function: F) -> Blocking<F> {
    Blocking(function)
}

impl<M: HandlerInput> HandlerInput for Blocking<M> {
    type In = M::In;
    type Out = M::Out;
}

#[diagnostic::do_not_recommend]
impl<F, In, R, Of> Handler<ThreadSafe, Of, Blocking<fn(In) -> R>> for Blocking<F>
where
    F: Fn(In) -> R + Send + Sync + 'static,
    In: FromRequest<Of> + Send + 'static,
    R: IntoOutcome<Of>,
{
    fn into_function(self) -> <ThreadSafe as Threading>::Function {
        let function = Arc::new(self.0);
        Arc::new(move |mut received: RequestParts<'_, '_>| {
            let Some(spawner) = received.spawner else {
                let input = decode(received);
                return Step::Ready(
                    input.map_or_else(|done| *done, |i| function(i).into_outcome()),
                );
            };
            let cancelled = Arc::new(AtomicBool::new(false));
            received.cancelled = Some(Arc::clone(&cancelled));
            let (observation, guard) = (received.observation.cloned(), received.guard);
            let input: In = match decode(received) {
                Ok(input) => input,
                Err(done) => return Step::Ready(*done),
            };
            let answer = Arc::new(JobResult::default());
            let (function, promise) = (Arc::clone(&function), JobGuard(Some(Arc::clone(&answer))));
            let work = move || {
                let outcome = guard.run(|| function(input).into_outcome());
                promise.complete(outcome.unwrap_or_else(Outcome::from));
            };
            spawner.spawn(match observation {
                Some(observation) => {
                    let mut work = Some(work);
                    let mut run = move || work.take().into_iter().for_each(|work| work());
                    Box::new(move || observation.run(&mut run))
                }
                None => Box::new(work),
            });
            let task: <ThreadSafe as Threading>::Future<Outcome> =
                Box::pin(JobFuture { answer, cancelled });
            Step::Pending(task)
        })
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
            answer.set(Outcome::Error(ErrorObject::internal(UNFINISHED)));
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

// ------------------------------------------------------------------ handlers that return an error of the application

/// An error of the application that a [`fallible`] handler can return: it decides what the client
/// sees.
///
/// It is implemented for texts, which the client sees unchanged, and for `Box<dyn Error>` and (with
/// the feature `anyhow`) `anyhow::Error`, which are [internal](HandlerError::Internal) errors.
///
/// ```
/// use mcp_sansio::ErrorCode;
/// use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
/// use mcp_sansio_handlers::{HandlerError, IntoHandlerError};
///
/// #[derive(Debug)]
/// enum StoreError { NoSuchNote(String), Quota, Disk(std::io::Error) }
///
/// impl IntoHandlerError for StoreError {
///     fn into_handler_error(self) -> HandlerError {
///         match self {
///             // The model can try another title.
///             Self::NoSuchNote(title) => HandlerError::failed(format!("no note {title:?}")),
///             // A protocol error, for the program of the client.
///             Self::Quota => {
///                 let error = ErrorObject::new(ErrorCode(429), "too many notes");
///                 HandlerError::Protocol(error.with_data(RawJson::EMPTY_OBJECT))
///             }
///             // A detail that no client should see.
///             Self::Disk(_) => HandlerError::failed("the notes cannot be read now"),
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "it is not known how a handler shows the error `{Self}`",
    note = "implement `IntoHandlerError` for it"
)]
pub trait IntoHandlerError {
    /// Converts the error into the one that the client gets.
    fn into_handler_error(self) -> HandlerError;
}

impl IntoHandlerError for HandlerError {
    fn into_handler_error(self) -> HandlerError {
        self
    }
}

macro_rules! shown_texts {
    ($($text:ty)+) => { $(
        impl IntoHandlerError for $text {
            fn into_handler_error(self) -> HandlerError {
                HandlerError::failed(self)
            }
        }
    )+ };
}

shown_texts!(String &'static str Cow<'static, str>);

// A `HandlerError` that `?` put into one of these errors is taken out again unchanged.
macro_rules! any_errors {
    ($($(#[$feature:meta])? $error:ty, $from:expr;)+) => { $(
        $(#[$feature])?
        impl IntoHandlerError for $error {
            fn into_handler_error(self) -> HandlerError {
                match self.downcast::<Carried>() {
                    Ok(carried) => carried.into_inner(),
                    Err(error) => HandlerError::Internal(error.to_string()),
                }
            }
        }

        $(#[$feature])?
        impl From<HandlerError> for $error {
            fn from(error: HandlerError) -> Self {
                $from(Carried(error))
            }
        }
    )+ };
}

any_errors! {
    Box<dyn Error + Send + Sync>, Box::new;
    Box<dyn Error>, Box::new;
    #[cfg(feature = "anyhow")] anyhow::Error, anyhow::Error::new;
}

/// A handler's error as a standard error. `HandlerError` does not implement [`Error`], so that `?`
/// can convert any standard error into it.
struct Carried(HandlerError);

impl Carried {
    fn into_inner(self) -> HandlerError {
        self.0
    }
}

impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Error for Carried {}

/// A handler that returns an error of the application; returned by [`fallible`].
#[derive(Clone, Copy, Debug)]
pub struct Fallible<F>(pub(super) F);

/// Wraps a handler that returns a `Result` with an error of the application, whose
/// [`IntoHandlerError`] decides what the client sees.
///
/// Other handlers return [`HandlerError`], into which `?` converts any error. Because that is the
/// only error of theirs, the compiler infers it for a closure that ends with `Ok(..)`.
///
/// ```
/// use mcp_sansio_handlers::{Call, HandlerError, IntoHandlerError, NoArguments, Server, fallible};
///
/// #[derive(Debug)]
/// struct Unplugged;
///
/// impl IntoHandlerError for Unplugged {
///     fn into_handler_error(self) -> HandlerError {
///         HandlerError::failed("the sensor is unplugged: plug it in and try again")
///     }
/// }
///
/// async fn read(_: Call<NoArguments>) -> Result<String, Unplugged> {
///     Err(Unplugged)
/// }
///
/// type AnyError = Box<dyn std::error::Error + Send + Sync>;
///
/// fn calibrate(_: Call<NoArguments>) -> Result<String, AnyError> {
///     Ok(format!("offset {}", "0.5".parse::<f32>()?))
/// }
///
/// let server = Server::new("thermometer", "1.0.0")
///     .tool("read", "The temperature", fallible(read))
///     .tool("calibrate", "Calibrates the sensor", fallible(calibrate));
/// # let host = mcp_sansio_handlers::Host::new("demo", "1.0.0");
/// # let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
/// # let result = pair.run(client.call_tool("read", &NoArguments {}))?;
/// # assert_eq!(result.is_error, Some(true));
/// # let result = pair.run(client.call_tool("calibrate", &NoArguments {}))?;
/// # assert_eq!(result.first_text(), Some("offset 0.5"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub const fn fallible<F>(function: F) -> Fallible<F> {
    Fallible(function)
}

impl<M: HandlerInput> HandlerInput for Fallible<M> {
    type In = M::In;
    type Out = M::Out;
}

#[diagnostic::do_not_recommend]
impl<K, Of, M, F> Handler<K, Of, Fallible<M>> for Fallible<F>
where
    K: Threading,
    F: Handler<K, Fallible<Of>, M>,
{
    fn into_function(self) -> K::Function {
        self.0.into_function()
    }

    fn states(&self) -> StateTypes {
        self.0.states()
    }
}

impl<Of, In: FromRequest<Of>> FromRequest<Fallible<Of>> for In {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        <Self as FromRequest<Of>>::from_request(received)
    }
}

impl<Of, T, E> IntoOutcome<Fallible<Of>> for Result<T, E>
where
    E: IntoHandlerError,
    Result<T, HandlerError>: IntoOutcome<Of>,
{
    fn into_outcome(self) -> Outcome {
        self.map_err(IntoHandlerError::into_handler_error).into_outcome()
    }
}

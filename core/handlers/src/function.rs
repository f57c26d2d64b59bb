use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use core::future::Future;
use core::marker::PhantomData;

use super::context::{FromRequest, RequestParts};
use super::reply::{IntoOutcome, Outcome};
use super::state::StateTypes;
use super::threading::{Local, Step, ThreadSafe, Threading};

/// A function that can be a handler: a closure or a function, plain or `async`, that takes a
/// [`Call`](super::Call), then up to three [`State`](super::State)s, or a
/// [`HostRequest`](super::HostRequest), and returns a suitable result.
///
/// `Of` is the kind of request ([`ForTool`](super::handler::ForTool) and the like), `M` tells a plain
/// function from an `async` one; the compiler infers both.
#[diagnostic::on_unimplemented(
    message = "this function cannot be registered as a handler here",
    label = "not a handler: wrong parameter or wrong result",
    note = "a tool's handler takes `Call<Arguments>`, and `Arguments` derives `Deserialize` and `JsonSchema`; a prompt's takes `Call<Arguments>`, a resource's `Call<ReadResource>`; up to three parameters `State<T>` may follow",
    note = "it returns text, content, `Structured`, or a `Result` of these with `HandlerError`, or, wrapped by `fallible`, with an error that implements `IntoHandlerError`; it may be `async`",
    note = "the handler of an extension's method `ExtensionMethod<P, R>` takes `Call<P>` and returns `R`, or a `Result` of it; `P` derives `Deserialize` and `R` derives `Serialize`",
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

/// Marks a plain function from `In` to `Out`.
#[derive(Debug)]
pub struct Plain<In, Out = ()>(PhantomData<fn(In) -> Out>);

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

impl<In, Out> HandlerInput for Plain<In, Out> {
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

impl<F, In, R, Of> Handler<ThreadSafe, Of, Plain<In, R>> for F
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

// Each call clones the function, so that an `async move` closure may capture values: its future owns
// them and is `Send` if they are. Such a closure is not an `Fn`, because its future would borrow from
// the closure.
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
                let task: <ThreadSafe as Threading>::Task =
                    Box::pin(async move { answer.await.into_outcome() });
                Step::Pending(task)
            }
        })
    }
}

impl<F, In, R, Of> Handler<Local, Of, Plain<In, R>> for F
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
                let task: <Local as Threading>::Task =
                    Box::pin(async move { function(input).await.into_outcome() });
                Step::Pending(task)
            }
        })
    }
}

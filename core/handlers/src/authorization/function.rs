use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use core::future::{Future, ready};

use mcp_sansio_oauth::client::ActionFailure;

use crate::function::{Async, Plain};
use crate::threading::{Local, ThreadSafe, Threading};

use super::action::{ActionOutput, ActionRequest};

/// A stored function.
pub(super) type ActionFunction<K, In> =
    <K as Threading>::Callback<In, <K as Threading>::Future<ActionOutput>>;

/// A function that performs an action for an [`Authorization`](super::Authorization): a closure or
/// a function, plain or `async`, that takes `In` and returns a `Result` with its answer or an
/// [`ActionFailure`].
///
/// `M` tells a plain function from an `async` one; the compiler infers it.
#[diagnostic::on_unimplemented(
    message = "this function cannot answer `{In}`",
    note = "it takes `{In}` and returns a `Result` with `ActionFailure`: of a `String` for a redirect or an assertion, of a `Vec<u8>` for a signature"
)]
pub trait AuthorizationFunction<K: Threading, In: 'static, M> {
    /// Converts the function into the stored form.
    fn into_action_function(self) -> ActionFunction<K, In>;
}

impl<F, In> AuthorizationFunction<ThreadSafe, In, Plain<In>> for F
where
    F: Fn(In) -> Result<In::Answer, ActionFailure> + Send + Sync + 'static,
    In: ActionRequest,
{
    fn into_action_function(self) -> ActionFunction<ThreadSafe, In> {
        Arc::new(move |asked| -> <ThreadSafe as Threading>::Future<ActionOutput> {
            Box::pin(ready(In::into_output(self(asked))))
        })
    }
}

impl<F, In, R> AuthorizationFunction<ThreadSafe, In, Async<In>> for F
where
    F: Fn(In) -> R + Send + Sync + 'static,
    In: ActionRequest,
    R: Future<Output = Result<In::Answer, ActionFailure>> + Send + 'static,
{
    fn into_action_function(self) -> ActionFunction<ThreadSafe, In> {
        Arc::new(move |asked| -> <ThreadSafe as Threading>::Future<ActionOutput> {
            let answer = self(asked);
            Box::pin(async move { In::into_output(answer.await) })
        })
    }
}

impl<F, In> AuthorizationFunction<Local, In, Plain<In>> for F
where
    F: Fn(In) -> Result<In::Answer, ActionFailure> + 'static,
    In: ActionRequest,
{
    fn into_action_function(self) -> ActionFunction<Local, In> {
        Rc::new(move |asked| -> <Local as Threading>::Future<ActionOutput> {
            Box::pin(ready(In::into_output(self(asked))))
        })
    }
}

impl<F, In> AuthorizationFunction<Local, In, Async<In>> for F
where
    F: AsyncFn(In) -> Result<In::Answer, ActionFailure> + 'static,
    In: ActionRequest,
{
    fn into_action_function(self) -> ActionFunction<Local, In> {
        let function = Rc::new(self);
        Rc::new(move |asked| -> <Local as Threading>::Future<ActionOutput> {
            let function = Rc::clone(&function);
            Box::pin(async move { In::into_output(function(asked).await) })
        })
    }
}

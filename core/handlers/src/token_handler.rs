use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;

use mcp_sansio_oauth::protected_resource::{TokenCheck, TokenRefusal, VerifiedToken};

use super::function::{Async, Plain};
use super::threading::{Local, ThreadSafe, Threading};

/// The result of a token check.
pub type TokenResult = Result<VerifiedToken, TokenRefusal>;

/// A function that can check tokens: a closure or a function, plain or `async`, that takes a
/// [`TokenCheck`] and returns a [`TokenResult`].
///
/// `M` tells a plain function from an `async` one; the compiler infers it.
#[diagnostic::on_unimplemented(
    message = "this function cannot check tokens here",
    note = "it takes a `TokenCheck` and returns `Result<VerifiedToken, TokenRefusal>`"
)]
pub trait TokenHandler<K: Threading, M> {
    /// Converts the function into the stored form.
    fn into_token_function(self) -> K::Callback<TokenCheck, TokenStep<K>>;
}

/// The state of a token check after its function was called.
pub enum TokenStep<K: Threading> {
    /// The check is done.
    Ready(TokenResult),
    /// The check is pending and must be polled.
    Pending(K::Future<TokenResult>),
}

impl<K: Threading> fmt::Debug for TokenStep<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready(_) => "Ready",
            Self::Pending(_) => "Pending",
        })
    }
}

impl<F> TokenHandler<ThreadSafe, Plain<TokenCheck>> for F
where
    F: Fn(TokenCheck) -> TokenResult + Send + Sync + 'static,
{
    fn into_token_function(
        self,
    ) -> <ThreadSafe as Threading>::Callback<TokenCheck, TokenStep<ThreadSafe>> {
        Arc::new(move |check| TokenStep::Ready(self(check)))
    }
}

impl<F, R> TokenHandler<ThreadSafe, Async<TokenCheck>> for F
where
    F: Fn(TokenCheck) -> R + Send + Sync + 'static,
    R: Future<Output = TokenResult> + Send + 'static,
{
    fn into_token_function(
        self,
    ) -> <ThreadSafe as Threading>::Callback<TokenCheck, TokenStep<ThreadSafe>> {
        Arc::new(move |check| {
            let task: <ThreadSafe as Threading>::Future<TokenResult> = Box::pin(self(check));
            TokenStep::Pending(task)
        })
    }
}

impl<F> TokenHandler<Local, Plain<TokenCheck>> for F
where
    F: Fn(TokenCheck) -> TokenResult + 'static,
{
    fn into_token_function(self) -> <Local as Threading>::Callback<TokenCheck, TokenStep<Local>> {
        Rc::new(move |check| TokenStep::Ready(self(check)))
    }
}

impl<F> TokenHandler<Local, Async<TokenCheck>> for F
where
    F: AsyncFn(TokenCheck) -> TokenResult + 'static,
{
    fn into_token_function(self) -> <Local as Threading>::Callback<TokenCheck, TokenStep<Local>> {
        let function = Rc::new(self);
        Rc::new(move |check| {
            let function = Rc::clone(&function);
            let task: <Local as Threading>::Future<TokenResult> =
                Box::pin(async move { function(check).await });
            TokenStep::Pending(task)
        })
    }
}

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use core::fmt;

/// Runs application functions and catches their panics.
///
/// This crate is `no_std` and cannot catch panics, so an adapter with the standard library provides
/// the function: see [`stream::Endpoint::catch_panics`](crate::stream::Endpoint::catch_panics). If
/// a handler panics, its request is answered with an internal error, `-32603`, or its task fails;
/// the connection continues. Without such a function, or if the program aborts on panic, a panic is
/// not caught.
#[derive(Clone, Copy, Default)]
pub struct PanicGuard(Option<Run>);

/// Runs a function, and returns the payload of its panic.
type Run = fn(&mut dyn FnMut()) -> Result<(), Box<dyn Any + Send>>;

/// An application function panicked. The panic hook has already reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked(Cow<'static, str>);

impl Panicked {
    /// Returns the text of the panic, which is empty if the payload is no text. Do not send it to a
    /// peer: it may contain details of the program.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    fn from_payload(payload: Box<dyn Any + Send>) -> Self {
        let text = payload.downcast::<String>().map(|text| Cow::Owned(*text));
        let text =
            text.or_else(|payload| payload.downcast::<&'static str>().map(|text| (*text).into()));
        Self(text.unwrap_or_default())
    }
}

impl PanicGuard {
    /// A guard that catches no panics.
    pub const NONE: Self = Self(None);

    /// Creates a guard that runs functions with `run`. `run` must not panic, and returns the
    /// payload of its function's panic.
    ///
    /// ```
    /// use std::panic::{AssertUnwindSafe, catch_unwind};
    /// use mcp_sansio::PanicGuard;
    ///
    /// let guard = PanicGuard::new(|function| catch_unwind(AssertUnwindSafe(function)));
    /// let panicked = guard.run(|| -> u32 { panic!("out of paper") }).unwrap_err();
    /// assert_eq!(panicked.text(), "out of paper");
    /// ```
    #[must_use]
    pub const fn new(run: Run) -> Self {
        Self(Some(run))
    }

    /// Runs `function`.
    ///
    /// # Errors
    ///
    /// Fails if `function` panicked and the guard catches panics.
    #[inline]
    pub fn run<T>(self, function: impl FnOnce() -> T) -> Result<T, Panicked> {
        // Without unwinding there is nothing to catch, and an image is a kilobyte smaller.
        let Some(run) = self.0.filter(|_| cfg!(panic = "unwind")) else { return Ok(function()) };
        let (mut function, mut returned) = (Some(function), None);
        run(&mut || returned = function.take().map(|function| function()))
            .map_err(Panicked::from_payload)?;
        returned.ok_or(Panicked(Cow::Borrowed("")))
    }

    /// Drops a value of the application.
    pub fn drop<T>(self, value: T) {
        // The panic hook has already reported a panic, and no caller is waiting for the result.
        let _dropped = self.run(|| drop(value));
    }
}

impl fmt::Debug for PanicGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "PanicGuard" } else { "PanicGuard::NONE" })
    }
}

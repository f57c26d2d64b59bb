use core::fmt;

/// Runs functions of the application, and stops their panics.
///
/// The crate has no standard library to catch a panic with, so an adapter that has one lends it:
/// see [`stream::Endpoint::catch_panics`](crate::stream::Endpoint::catch_panics). A request whose
/// handler panics is then answered with an internal error, `-32603`, a task fails, and the
/// connection goes on. Where nothing is lent, or the program aborts when it panics, a panic does
/// what it does anywhere.
#[derive(Clone, Copy, Default)]
pub struct PanicGuard(Option<Run>);

/// Runs a function, and says whether it came to its end.
type Run = fn(&mut dyn FnMut()) -> bool;

/// A function of the application panicked. The panic hook has reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panicked;

impl PanicGuard {
    /// Stops no panic.
    pub const NONE: Self = Self(None);

    /// One that runs functions with `run`, which returns whether the function that it was given
    /// came to its end, and does not panic itself.
    ///
    /// ```
    /// use std::panic::{AssertUnwindSafe, catch_unwind};
    /// use mcp_sansio::PanicGuard;
    ///
    /// let guard = PanicGuard::new(|function| catch_unwind(AssertUnwindSafe(function)).is_ok());
    /// # let _ = guard;
    /// ```
    #[must_use]
    pub const fn new(run: fn(&mut dyn FnMut()) -> bool) -> Self {
        Self(Some(run))
    }

    /// Runs `function`.
    ///
    /// # Errors
    ///
    /// It panicked, and the guard stops panics.
    pub fn run<T>(self, function: impl FnOnce() -> T) -> Result<T, Panicked> {
        let Some(run) = self.0 else { return Ok(function()) };
        let (mut function, mut returned) = (Some(function), None);
        let completed = run(&mut || returned = function.take().map(|function| function()));
        if completed { returned.ok_or(Panicked) } else { Err(Panicked) }
    }

    /// Drops what the application has made.
    pub fn drop<T>(self, value: T) {
        // The panic hook has reported it, and there is nobody else to tell.
        let _dropped = self.run(|| drop(value));
    }
}

impl fmt::Debug for PanicGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "PanicGuard" } else { "PanicGuard::NONE" })
    }
}

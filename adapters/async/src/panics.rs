use std::panic::{AssertUnwindSafe, catch_unwind};

use mcp_sansio::PanicGuard;

/// Stops the panics of handlers, by unwinding. The drivers of this crate lend it to what they drive;
/// who drives an endpoint by hand may do the same. Where the program aborts when it panics, it stops
/// nothing.
///
/// What a function of the application leaves half done when it panics is the application's own: the
/// endpoint lends it nothing but the queue of its reports and commands, which is whole at each step.
#[must_use]
pub const fn panic_guard() -> PanicGuard {
    PanicGuard::new(|function| catch_unwind(AssertUnwindSafe(function)).is_ok())
}

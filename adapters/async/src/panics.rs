use std::panic::{AssertUnwindSafe, catch_unwind};

use mcp_sansio::PanicGuard;

/// Returns a guard that catches the panics of handlers by unwinding. The drivers of this crate
/// install it in their endpoints; applications that drive an endpoint directly may do the same. It
/// has no effect if the program aborts on panic.
///
/// A panicking function may leave the application's own state inconsistent. It cannot damage the
/// endpoint, which only shares its queue of reports and commands, and that is consistent at each
/// step.
#[must_use]
pub const fn panic_guard() -> PanicGuard {
    PanicGuard::new(|function| catch_unwind(AssertUnwindSafe(function)).is_ok())
}

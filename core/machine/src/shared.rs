//! Shared ownership, on every target.

#[cfg(target_has_atomic = "ptr")]
pub(crate) use alloc::sync::Arc as Shared;
#[cfg(not(target_has_atomic = "ptr"))]
pub(crate) use portable_atomic_util::Arc as Shared;

//! The processes that a child started, by the means of the operating system.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::{Members, has_exited};
#[cfg(windows)]
pub(super) use windows::Members;

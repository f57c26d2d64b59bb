//! The Model Context Protocol as a pure, synchronous state machine.
//!
//! The input is bytes, commands and the current time; the output is frames, events and the next
//! deadline. The crate does no I/O, reads no clock, uses no randomness, spawns no tasks and never
//! blocks.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod binding;
mod caller;
pub mod catalog;
pub mod framing;
#[cfg(feature = "http")]
pub mod http;
mod instant;
mod job;
pub mod jsonrpc;
mod panic_guard;
pub mod peer;
mod principal;
pub mod protocol;
#[cfg(feature = "recording")]
pub mod recording;
#[cfg(feature = "seal")]
pub mod seal;
pub mod stream;

pub use caller::Caller;
#[cfg(target_has_atomic = "ptr")]
pub use caller::Credentials;
pub use instant::Instant;
pub use job::Job;
pub use panic_guard::{PanicGuard, Panicked};
pub use principal::Principal;
pub use protocol::revision::{Era, Revision, Revisions, UnknownRevision};

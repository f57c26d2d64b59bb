//! What goes into a machine and what comes out of it, on a tape, and the same once more from there.
//!
//! The machines are functions of what they are made of and of their inputs, time included. So a
//! file with these is all that there is to know of a session: [`Replay`] makes the machine anew and
//! has it do the same again, byte for byte, at a desk far away from where it happened.
//!
//! [`Recorded`] wraps a machine and notes on a [`Tape`] what it is asked, what goes in and what comes
//! out. Servers and hosts of `mcp-sansio-handlers` have a builder for that, so that each adapter can
//! record. The format of the file is described in `docs/guide/recording.md`.
//!
//! A recording holds the contents of all messages. What names a session of HTTP, who a user is and
//! the tokens that requests bring along are not in it: stand-ins are, or nothing.

mod arguments;
mod call;
mod catalog;
mod client;
mod error;
mod event;
mod every_revision;
#[cfg(feature = "http")]
pub(crate) mod exchange;
mod handle;
#[cfg(feature = "http")]
mod http_client;
#[cfg(feature = "http")]
mod http_server;
mod payload;
mod recorded;
mod replay;
mod server;
mod start;
mod tape;

pub use error::{Difference, RecordingError, ReplayError};
pub use recorded::Recorded;
pub use replay::{Replay, Step};
pub use start::FORMAT;
pub use tape::Tape;

use arguments::{Unperformable, decoded};
use every_revision::whole;

//! Recording the inputs and outputs of a machine, and replaying them.
//!
//! The output of a machine depends only on its settings and its inputs, time included. A file with
//! both is a complete description of a session: [`Replay`] creates the machine again and reproduces
//! its behavior byte for byte, on another computer.
//!
//! [`Recorded`](crate::Recorded) wraps a machine and records its commands, inputs and outputs on a
//! [`Tape`](crate::Tape). The
//! servers and hosts of `mcp-sansio-handlers` have a builder method for it, so that every adapter
//! can record. The format of the file is described in `docs/guide/recording.md`.
//!
//! A recording contains all messages in full. HTTP session ids, user names and the tokens of
//! requests are left out or replaced by stand-ins.

mod call;
mod exchange;
mod recorder;
mod replay;
mod settings;

pub use replay::{Difference, Replay, ReplayError, ReplayStep};
pub use settings::FORMAT;

use crate::peer::command::handle_format as handle;

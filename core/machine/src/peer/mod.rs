//! One connection's protocol state, for either role: lifecycle, ids, deadlines, the gate, input
//! rounds, subscriptions.
//!
//! [`Client`] and [`Server`] are the machines. They know nothing of threads, sockets and clocks:
//! frames, commands and the time go in; lines of text, events and the next deadline come out.
//!
//! What every implementation has to have is here, in each of the five revisions.
// MCP 2026-07-28 basic/index#message-patterns [RPC-032]
// MCP 2025-11-25 basic/index#messages [RPC-033]

pub(crate) mod attachment;
mod augmentation;
mod binding;
mod calls;
pub mod client;
pub(crate) mod connection;
pub(crate) mod deadlines;
mod error;
mod event;
mod limits;
pub(crate) mod members;
mod memory;
pub(crate) mod metadata;
pub(crate) mod outbox;
mod outgoing;
mod pieces;
mod policy;
mod questions;
pub(crate) mod queue;
pub(crate) mod requests;
pub mod server;
pub(crate) mod slab;
pub(crate) mod terms;
mod transport;

pub use client::{Client, ClientOptions};
pub use error::{AnswerError, CallError, ConnectionClosed};
#[cfg(feature = "recording")]
pub(crate) use event::InputSource;
pub use event::{
    CallHandle, Cancelled, CloseReason, Ended, Event, Failure, Input, InputHandle, Inputs,
    MethodName, Notification, Opened, OpeningFailure, Progress, Request, RequestHandle, Subject,
    Subscribed, Violation,
};
pub use limits::{Limits, Timeouts};
pub use memory::MessageLengths;
pub use outgoing::CallOptions;
pub use policy::{IncompleteInitialize, Policy, Reaction, UnknownMethods};
pub use server::{Server, ServerOptions};
pub use transport::TransportFailure;

//! The protocol state of one connection, for either role: lifecycle, ids, deadlines, capability
//! checks, input rounds and subscriptions.
//!
//! [`Client`] and [`Server`] are the machines. They use no threads, sockets or clocks: the input is
//! frames, commands and the current time; the output is lines of text, events and the next
//! deadline.
//!
//! This module implements the required protocol features of all five revisions.
// MCP 2026-07-28 basic/index#message-patterns [RPC-032]
// MCP 2025-11-25 basic/index#messages [RPC-033]

mod augmentation;
mod calls;
mod changed_params;
#[cfg(feature = "client")]
pub(crate) mod client;
pub(crate) mod command;
pub(crate) mod connection;
mod error;
mod event;
mod handle;
mod input_support;
mod limits;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod method_name;
mod middleware;
mod observed;
mod operation;
pub(crate) mod options;
pub(crate) mod outbox;
mod outgoing;
mod passing;
mod pieces;
mod policy;
pub(crate) mod queue;
pub(crate) mod requests;
#[cfg(feature = "client")]
mod response_cache;
#[cfg(feature = "server")]
pub(crate) mod server;

pub use crate::binding::OperationTransport;
pub use crate::binding::{HeaderFields, HttpRejection, InvalidHeader, Status, TransportFailure};
#[cfg(feature = "client")]
pub use client::{Client, ClientOptions, ClientRole, ClientSession};
pub use command::{Body, MaybeOwned};
#[cfg(feature = "client")]
pub use command::{ClientCommand, ClientMachine};
#[cfg(feature = "server")]
pub use command::{ServerCommand, ServerMachine};
pub use error::{CommandError, ConnectionClosed, OpeningFailure};
pub use event::{
    Cancelled, CloseReason, DeliveryFailed, Ended, Event, Failure, HandlerPanicked, InputRequested,
    InputResponseParams, Notification, Opened, Progress, Request, Subject, Subscribed, Violation,
};
pub use handle::{CallHandle, InputHandle, RequestHandle};
pub use limits::{Limits, Timeouts};
pub use machine::{Applied, Machine, StreamMachine};
pub use memory::MessageLengths;
pub use method_name::MethodName;
pub use middleware::{
    MessageMiddleware, MiddlewareMessage, MiddlewareResponse, NotificationAction, RequestAction,
    ResponseAction,
};
pub use operation::CallContext;
pub use operation::{
    Cause, Direction, Observation, Operation, OperationEnd, OperationObserver, OperationOutcome,
};
pub use options::ConnectionOptions;
pub use outgoing::CallOptions;
pub use policy::{Policy, Reaction};
pub use requests::ProgressLimiter;
#[cfg(feature = "client")]
pub use response_cache::{CacheOptions, ResponseCache};
#[cfg(feature = "server")]
pub use server::{Server, ServerOptions, ServerRole, ServerSession};

use passing::{Exchanged, Passed};

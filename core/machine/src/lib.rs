//! The Model Context Protocol as a pure, synchronous state machine.
//!
//! The input is bytes, commands and the current time; the output is frames, events and the next
//! deadline. The crate does no I/O, reads no clock, uses no randomness, spawns no tasks and never
//! blocks.
//!
//! A program that drives the protocol itself meets these items, in this order:
//!
//! 1. [`peer::ServerOptions`] or [`peer::ClientOptions`]: the name of this side, its capabilities,
//!    [limits](peer::Limits) and [revisions](Revisions). A server also has a [`catalog::Catalog`]
//!    of tools, resources and prompts.
//! 2. [`peer::Server`] or [`peer::Client`]: the machine of one connection. Their pages describe how
//!    to drive them. The features `server` and `client` select them, and both are on by default.
//! 3. [`stream::StreamConnection`]: runs a machine on a byte stream. With the feature `http`,
//!    `http::Server` and `http::Client` take and send HTTP exchanges instead.
//! 4. [`peer::Event`]: reports to the application, which answers with the methods of
//!    [`peer::ServerMachine`] or [`peer::ClientMachine`].
//! 5. [`protocol`]: the typed messages, which [`jsonrpc::RawJson::decode`] reads from an event.
//!
//! ```
//! use mcp_sansio::Instant;
//! use mcp_sansio::catalog::Catalog;
//! use mcp_sansio::jsonrpc::RawJson;
//! use mcp_sansio::peer::{Event, Server, ServerMachine, ServerOptions};
//! use mcp_sansio::protocol::{CallToolResult, Implementation, Tool};
//!
//! let mut catalog = Catalog::new();
//! catalog.add_tool(Tool::new("now", RawJson::parse(r#"{"type":"object"}"#)?))?;
//! let options = ServerOptions::new(Implementation::new("clock", "1.0.0")).catalog(catalog);
//! let mut server = Server::new(options, 42);
//!
//! let now = Instant::ZERO;
//! # let initialize = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
//! # server.handle_message(initialize, now)?;
//! # server.handle_message(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, now)?;
//! # while server.poll_transmit().is_some() {}
//! let frame = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"now"}}"#;
//! if let Some(Event::Request(request)) = server.handle_message(frame, now)? {
//!     server.respond(request.handle, &CallToolResult::text("about noon"), now)?;
//! }
//! let line = server.poll_transmit().expect("the response");
//! # assert!(std::str::from_utf8(line)?.contains("about noon"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The other modules are [`framing`] for decoders of lines, packets and Server-Sent Events;
//! [`envelope`] and [`gate`], the reader of messages and the table of methods, which need no
//! allocator; `recording` (feature `recording`) to record a machine and replay it; `seal` (feature
//! `http`) to protect the state that a client returns.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![cfg_attr(
    not(all(feature = "client", feature = "server", feature = "recording")),
    allow(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "only the other role or recordings use some items"
    )
)]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

#[cfg(feature = "alloc")]
mod backoff;
#[cfg(feature = "alloc")]
mod binding;
#[cfg(feature = "alloc")]
mod caller;
#[cfg(feature = "alloc")]
pub mod catalog;
pub mod envelope;
pub mod framing;
pub mod gate;
#[cfg(feature = "http")]
pub mod http;
mod instant;
#[cfg(feature = "alloc")]
mod invalid_value;
#[cfg(feature = "alloc")]
pub mod jsonrpc;
#[cfg(feature = "alloc")]
mod panic_guard;
#[cfg(feature = "alloc")]
pub mod peer;
mod printable;
#[cfg(feature = "alloc")]
pub mod protocol;
#[cfg(feature = "alloc")]
mod recorded;
#[cfg(feature = "recording")]
pub mod recording;
#[cfg(feature = "http")]
pub mod seal;
#[cfg(feature = "alloc")]
pub mod stream;

#[cfg(feature = "alloc")]
pub use self::{
    backoff::{Attempts, Backoff},
    caller::{Caller, Credentials, Principal, SessionKey},
    invalid_value::InvalidValue,
    panic_guard::{PanicGuard, Panicked},
    recorded::{Recorded, Tape},
    stream::endpoint::{Job, Spawner},
};
pub use envelope::malformed::ErrorCode;
pub use gate::{
    capability::{Capabilities, Capability, Side},
    metadata::LoggingLevel,
    method::Method,
    revision::{Era, Revision, Revisions},
};
pub use instant::Instant;
pub use printable::Printable;

/// Implements `Debug` for a type that does not print all of its fields: because they are secret, or
/// do not implement `Debug`.
///
/// The braces list the fields that are printed:
///
/// ```ignore
/// // Server { handlers: Handlers, .. }
/// partial_debug! { impl<K: Threading> Debug for Server<K> { handlers, .. } }
/// // Password(..)
/// partial_debug! {
///     /// Omits the secret.
///     impl Debug for Password(..)
/// }
/// // Tape
/// partial_debug! { impl Debug for Tape }
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! partial_debug {
    ($(#[$doc:meta])* impl $(<$($parameter:ident $(: $bound:path)?),+>)? Debug
    for $name:ident $(<$($argument:tt),+>)? { $($field:ident,)* .. }) => {
        impl $(<$($parameter $(: $bound)?),+>)? ::core::fmt::Debug for $name $(<$($argument),+>)? {
            $(#[$doc])*
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    };
    ($(#[$doc:meta])* impl Debug for $name:ident $(($dots:tt))?) => {
        impl ::core::fmt::Debug for $name {
            $(#[$doc])*
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(concat!(stringify!($name) $(, "(", stringify!($dots), ")")?))
            }
        }
    };
}

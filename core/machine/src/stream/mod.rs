//! The byte-stream binding: pipes, sockets, serial lines.
//!
//! A [`StreamConnection`] runs an [`Endpoint`] on a byte stream: it splits the input into frames,
//! decides when to read, write and stop, and closes the connection in order. Its driver only
//! transfers bytes and provides the time:
//!
//! ```
//! use core::task::{Context, Waker};
//! use std::io::{self, Read, Write};
//! use mcp_sansio::Instant;
//! use mcp_sansio::peer;
//! use mcp_sansio::protocol::Implementation;
//! use mcp_sansio::stream::{Action, StreamConnection, OnEvent, StreamSettings};
//!
//! # let mut input = &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"[..];
//! # let mut output = Vec::new();
//! # let now = || Instant::ZERO;
//! let machine = peer::Server::new(peer::ServerOptions::new(Implementation::new("by-hand", "1")), 7);
//! let endpoint = OnEvent::new(machine, |event, machine, now| { /* the application */ });
//! let mut connection = StreamConnection::<_, io::Error>::new(endpoint, StreamSettings::DEFAULT);
//! let mut cx = Context::from_waker(Waker::noop());
//! let mut buffer = [0; 1024];
//! loop {
//!     match connection.advance(&mut cx, now()) {
//!         Action::Write => {
//!             while let length @ 1.. = connection.fill(&mut buffer) {
//!                 output.write_all(&buffer[..length])?;
//!             }
//!             output.flush()?;
//!             connection.handle_flushed();
//!         }
//!         // No longer than until `connection.poll_timeout()`, if the stream can do that.
//!         Action::Wait => {
//!             let length = input.read(connection.space())?;
//!             connection.handle_read(Ok(length), now());
//!         }
//!         Action::Yield => connection.reset_budget(),
//!         Action::Close | Action::Restart | Action::Done => break,
//!     }
//! }
//! # assert!(String::from_utf8(output)?.starts_with(r#"{"jsonrpc":"2.0","id":1,"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod connection;
pub(crate) mod endpoint;
mod on_event;
mod settings;

pub use connection::{Action, Fault, StreamConnection};
pub use endpoint::Endpoint;
pub use on_event::OnEvent;
pub use settings::StreamSettings;

//! An MCP server without an allocator.
//!
//! The tools and resources are constants of the program ([`Service`]), and the memory for lines in
//! and out is lent. When it does not suffice, the client gets an error, the program a [`Fault`],
//! and the next message is handled as usual. Messages are read, checked and refused by the same code
//! as in the machines of `mcp_sansio` with an allocator.
//!
//! ```
//! use mcp_sansio_fixed::{Call, Connection, Failure, Service, Text, Tool};
//!
//! struct Thermometer {
//!     millidegrees: i32,
//! }
//!
//! impl Service for Thermometer {
//!     const NAME: &'static str = "thermometer";
//!     const VERSION: &'static str = "1.0.0";
//!     const TOOLS: &'static [Tool<Self>] =
//!         &[Tool::new("read", r#"{"type":"object"}"#, Self::read).description("Reads the sensor")];
//! }
//!
//! impl Thermometer {
//!     fn read(&mut self, _: &Call<'_>, out: &mut Text<'_, '_>) -> Result<(), Failure> {
//!         out.push_integer(self.millidegrees.into());
//!         Ok(())
//!     }
//! }
//!
//! let (mut line, mut output) = ([0; 1024], [0; 512]);
//! let thermometer = Thermometer { millidegrees: 21_500 };
//! let mut connection = Connection::new(thermometer, &mut line, &mut output)?;
//!
//! let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","_meta":{
//!     "io.modelcontextprotocol/protocolVersion":"2026-07-28",
//!     "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
//! # let call = &call.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect::<Vec<_>>();
//! assert_eq!(connection.feed(call), call.len());
//! assert_eq!(connection.feed(b"\n"), 1);
//! let answer = connection.poll_transmit().expect("the answer");
//! assert!(core::str::from_utf8(answer)?.contains(r#""text":"21500""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An image contains what its service needs: a revision that is not in [`Service::REVISIONS`], and
//! the lists and calls of a kind without items, are removed with the constants that turn them off.
//!
//! Handlers run to completion, one after the other, so nothing is in progress when a cancellation
//! arrives. The server sends no requests, and its lists do not change.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

#[cfg(test)]
extern crate std;

mod connection;
mod output;
mod server;
mod service;

pub use connection::Connection;
pub use output::{Text, TooSmall};
pub use server::{Fault, Handled, Server};
pub use service::{Call, CallTool, Failure, ReadResource, Resource, Service, Tool};

//! Drives an [`Endpoint`](mcp_sansio::stream::Endpoint) on a microcontroller, over the byte
//! streams of `embedded-io`: a UART, USB serial, a socket.
//!
//! A program meets these items, in this order:
//!
//! 1. [`Server`], or `Host` with the feature `client`, which creates the endpoint, with
//!    [`Limits::SMALL`](mcp_sansio::peer::Limits::SMALL).
//! 2. [`Driver`], with an executor: over the halves of `embedded-io-async`, with a [`Clock`]. The
//!    feature `embassy-time` has one for Embassy, `EmbassyClock`.
//! 3. [`PolledDriver`], in a bare loop: over `embedded-io`, with the time as a parameter. Each poll
//!    returns [`NextPoll`].
//! 4. [`DriveError`]: why a connection failed.
//! 5. [`StreamSettings`]: how many failed reads are tolerated, and how much work a poll does.
//! 6. [`packets`], if the other side of the line expects COBS or SLIP in place of lines.
//!
//! With the feature `http`, a device serves Streamable HTTP: an `HttpService` has the handlers and
//! timers of all clients, and an `HttpConnection` is one socket, in lent memory, polled in a bare
//! loop or run on an executor. Anything but programs on the device itself needs a token by default:
//! see `HttpAccess`.
//!
//! Both drivers read lines into a buffer of the caller, whose length limits a line: a longer one is
//! reported to the endpoint and skipped, and the stream continues. Neither allocates to move bytes;
//! the protocol in `mcp-sansio` does, within its [`Limits`](mcp_sansio::peer::Limits), and
//! [`Limits::SMALL`](mcp_sansio::peer::Limits::SMALL) is meant for devices.
//!
//! It requires a processor with compare-and-swap, since handlers do.
//!
//! ```
//! use mcp_sansio_embedded::jsonrpc::RawJson;
//! use mcp_sansio_embedded::peer::Limits;
//! use mcp_sansio_embedded::protocol::Tool;
//! use mcp_sansio_embedded::{Call, Instant, NextPoll, NoArguments, PolledDriver, Server};
//! # #[derive(Default)]
//! # struct Uart { input: std::collections::VecDeque<u8>, output: Vec<u8> }
//! # impl embedded_io::ErrorType for Uart { type Error = core::convert::Infallible; }
//! # impl embedded_io::Read for Uart {
//! #     fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Self::Error> {
//! #         Ok(self.input.read(buffer).unwrap())
//! #     }
//! # }
//! # impl embedded_io::ReadReady for Uart {
//! #     fn read_ready(&mut self) -> Result<bool, Self::Error> { Ok(true) }
//! # }
//! # impl embedded_io::Write for Uart {
//! #     fn write(&mut self, bytes: &[u8]) -> Result<usize, Self::Error> {
//! #         self.output.extend_from_slice(bytes);
//! #         Ok(bytes.len())
//! #     }
//! #     fn flush(&mut self) -> Result<(), Self::Error> { Ok(()) }
//! # }
//! # use std::io::Read as _;
//! # let mut receiver = Uart::default();
//! # receiver.input.extend(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
//! # receiver.input.extend(b"\n");
//! # let mut sender = Uart::default();
//! # let now = || Instant::ZERO;
//! # let sleep_until = |_: Option<Instant>| {};
//!
//! let server = Server::new("thermometer", "1.0.0").limits(Limits::SMALL).tool_with(
//!     Tool::new("read", RawJson::parse(r#"{"type":"object"}"#)?).description("Reads it"),
//!     |_: Call<NoArguments>| "21.5 °C",
//! );
//! let mut line = [0; 1024];
//! let mut driver = PolledDriver::new(server.endpoint(42)?, &mut receiver, &mut sender, &mut line);
//! loop {
//!     match driver.poll(now())? {
//!         NextPoll::Now => {}
//!         NextPoll::Wait(until) => sleep_until(until),
//!         NextPoll::Closed => break,
//!     }
//! }
//! # drop(driver);
//! # assert!(String::from_utf8(sender.output)?.starts_with(r#"{"jsonrpc":"2.0","id":1,"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

extern crate alloc;

mod driver;
#[cfg(feature = "embassy-time")]
mod embassy_clock;
#[cfg(feature = "http")]
mod http_connection;
#[cfg(feature = "http")]
mod http_service;
mod polled;

pub use driver::{Clock, DriveError, Driver, PacketReader, PacketWriter, packets};
#[cfg(feature = "embassy-time")]
pub use embassy_clock::EmbassyClock;
#[cfg(feature = "http")]
pub use http_connection::HttpConnection;
#[cfg(feature = "http")]
pub use http_service::{HttpAccess, HttpBuffers, HttpService, HttpServiceError};
pub use mcp_sansio::framing::PacketFraming;
#[cfg(feature = "http")]
pub use mcp_sansio::http;
pub use mcp_sansio::stream::StreamSettings;
pub use mcp_sansio::{
    Capabilities, Capability, ErrorCode, Instant, LoggingLevel, Method, Revision, Revisions, Side,
    catalog, jsonrpc, peer, protocol, stream,
};
#[doc(inline)]
pub use mcp_sansio_handlers::*;
#[cfg(feature = "macros")]
pub use mcp_sansio_macros::{
    embedded_prompt as prompt, embedded_tool as tool, embedded_tools as tools,
};
pub use polled::{NextPoll, PolledDriver};

//! Tests of servers and clients in one process: no I/O, no runtime, and a virtual clock.
//!
//! A test meets these items, in this order:
//!
//! 1. [`connect`] or [`connect_http`] connects a `Host` to a `Server` and
//!    returns a `Client` and a [`Pair`].
//! 2. [`Pair`]: runs both sides until a call has its result. Requests take the same path as in
//!    production: schemas, decoding, errors and revisions. Its [`VirtualClock`] moves when nothing
//!    else can happen.
//! 3. [`Transcript`]: the messages as text, for assertions and snapshots.
//! 4. [`Identity`]: the principal, the credentials and the scopes that a handler sees.
//! 5. [`call()`]: a `Call` made by hand, to test a handler as a function.
//! 6. [`Faults`]: delays, duplicates, reorders and cuts, from a seed.
//! 7. [`Script`]: a peer that expects and sends messages of your choice.
//! 8. [`Recording`] and [`assert_replays`]: a regression test of a
//!    session.
//! 9. [`transport::check`]: the conformance harness for a transport of your own.
//!
//! [`Stream`] and `Http` are the transports of a pair, for endpoints of your own.
//!
//! Everything runs in one thread, so the same seed and the same inputs give the same bytes.
//!
//! ```
//! use mcp_sansio_handlers::{Call, Host, Server};
//!
//! #[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
//! struct Place { location: String }
//!
//! let server = Server::new("weather", "1.0.0")
//!     .tool("forecast", "Weather at a place", |call: Call<Place>| {
//!         format!("Sunny in {}", call.arguments.location)
//!     });
//! let (client, mut pair) = mcp_sansio_test::connect(&server, &Host::new("test", "1.0.0"));
//!
//! let result = pair.run(client.call_tool("forecast", &Place { location: "Oslo".into() }))?;
//! assert_eq!(result.content[0].as_text(), Some("Sunny in Oslo"));
//!
//! // The arguments do not fit the schema: the handler is not called.
//! let result = pair.run(client.call_tool("forecast", &[("place", "Oslo")]));
//! assert!(result.is_err() || result.is_ok_and(|result| result.is_error == Some(true)));
//! # Ok::<(), mcp_sansio_handlers::ClientError>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

extern crate alloc;

mod call;
mod faults;
mod http;
mod identity;
mod pair;
mod recording;
mod script;
mod stream;
mod transcript;
pub mod transport;

pub use call::call;
pub use faults::Faults;
pub use http::{Http, HttpPair, URL, connect_http};
pub use identity::Identity;
pub use pair::{Pair, Transport, VirtualClock};
pub use recording::{Recording, assert_replays};
pub use script::Script;
pub use stream::{Stream, StreamPair, connect};
pub use transcript::Transcript;

/// The seed of both sides of a connection.
const SEED: u64 = 7;

/// Opens the connection of a client.
#[track_caller]
fn open<T: Transport>(client: &mcp_sansio_handlers::Client, pair: &mut Pair<T>) {
    if let Err(reason) = pair.run(client.opened()) {
        panic!("the connection was not opened: {reason:?}\n{}", pair.transcript);
    }
    // The server is notified that the client is ready.
    pair.run_until_idle();
}

//! Streamable HTTP, and the HTTP+SSE that came before it, as machines over exchanges.
//!
//! An exchange is one HTTP request and its response. The machines never see a socket: an adapter
//! performs the exchanges with an HTTP library and knows no rule of the protocol. [`Server`] takes
//! requests and says, exchange by exchange, what to respond; [`Client`] says which requests to send
//! and takes what comes back.

mod authority;
mod backoff;
pub mod client;
mod exchange;
#[cfg_attr(not(test), expect(dead_code, reason = "used by the machines"))]
mod field_value;
mod head;
mod location;
#[cfg_attr(not(test), expect(dead_code, reason = "used by the machines"))]
mod media;

pub use authority::{Origin, Scheme};
pub use backoff::Backoff;
pub use client::{
    Client, ClientLimits, ClientOptions, ExchangeFailure, LostSession, OutgoingRequest,
    ResponseHeadIn, Transmit,
};
pub use exchange::{ExchangeId, Principal, SessionId};
pub use head::{Content, RequestHead, Response, ResponseHead, Status};
pub use location::{InvalidUrl, LOCATION_LENGTH_MAX, Location};

//! Streamable HTTP, and the HTTP+SSE that came before it, as machines over exchanges.
//!
//! An exchange is one HTTP request and its response. The machines never see a socket: an adapter
//! performs the exchanges with an HTTP library and knows no rule of the protocol. [`Server`] takes
//! requests and says, exchange by exchange, what to respond; [`Client`] says which requests to send
//! and takes what comes back.

mod backoff;
mod exchange;
#[cfg_attr(not(test), expect(dead_code, reason = "used by the machines"))]
mod field_value;
mod head;
#[cfg_attr(not(test), expect(dead_code, reason = "used by the machines"))]
mod media;

pub use backoff::Backoff;
pub use exchange::{ExchangeId, Principal, SessionId};
pub use head::{Content, RequestHead, Response, ResponseHead, Status};

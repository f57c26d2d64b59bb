//! Streamable HTTP, and the HTTP+SSE that came before it, as machines over exchanges.
//!
//! An exchange is one HTTP request and its response. The machines never see a socket: an adapter
//! performs the exchanges with an HTTP library and knows no rule of the protocol. [`Server`] takes
//! requests and says, exchange by exchange, what to respond; [`Client`] says which requests to send
//! and takes what comes back.

mod exchange;
mod head;

pub use exchange::{ExchangeId, Principal, SessionId};
pub use head::{Content, RequestHead, Response, ResponseHead, Status};

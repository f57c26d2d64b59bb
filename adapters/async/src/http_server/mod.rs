//! A server on HTTP, on any runtime.
//!
//! [`HttpService`] answers requests as [`http`] has them. A [`Runtime`](crate::Runtime) brings the time, and runs
//! handlers that go on; an HTTP library brings the requests. For a listener there is what is the same
//! with every runtime: a [`Socket`] for hyper that does not wait for its client for ever, [`Cut`],
//! which ends what is stuck in sending, a [`Budget`] of what connections hold, and [`Http2Streams`].

mod alarm;
mod archive;
mod body;
mod budget;
mod caller;
mod cut;
mod http2;
mod keeper;
mod place;
mod request;
mod response;
mod running;
mod runtime;
mod send_body;
mod sending;
mod service;
mod site;
mod socket;

pub use archive::EventArchive;
pub use body::{ServedBody, Unread};
pub use budget::Budget;
pub use cut::Cut;
pub use http2::{Due, Http2Streams, Http2Times};
pub use send_body::{Chunk, SendBody};
pub use service::HttpService;
pub use socket::Socket;

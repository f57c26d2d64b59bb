//! A server on HTTP, on any runtime.
//!
//! [`HttpService`] answers requests as [`http`] has them. A [`Runtime`] brings the time, and runs
//! handlers that go on; an HTTP library brings the requests. For a listener there is what is the same
//! with every runtime: a [`Socket`] for hyper that does not wait for its client for ever, and [`Cut`],
//! which ends what is stuck in sending.

mod alarm;
mod archive;
mod body;
mod caller;
mod cut;
mod keeper;
mod place;
mod request;
mod response;
mod running;
mod runtime;
mod service;
mod site;
mod socket;

pub use archive::EventArchive;
pub use body::{ServedBody, Unread};
pub use cut::Cut;
pub use runtime::{Runtime, Task};
pub use service::HttpService;
pub use socket::Socket;

//! Functions around the calls of a client.
//!
//! A middleware is an `async` function that takes the [`ClientRequest`] and the [`NextCall`] step,
//! and returns the result. It may change the request, answer without calling `next`, wait before it,
//! call it again, limit its time by dropping it, and look at its result or change it:
//!
#![cfg_attr(feature = "schemars", doc = "```")]
#![cfg_attr(not(feature = "schemars"), doc = "```ignore")]
//! use mcp_sansio_handlers::client_middleware::{CallResult, ClientRequest, NextCall};
//! use mcp_sansio_handlers::{ClientError, Host};
//! # use mcp_sansio_handlers::{Call, NoArguments, Server};
//!
//! async fn with_project(mut request: ClientRequest, next: NextCall) -> CallResult {
//!     request.insert_meta("com.example/project", &"apollo")?;
//!     let result = next.run(request.clone()).await;
//!     match result {
//!         // Try once more.
//!         Err(ClientError::Failed(_)) if request.is_read() => next.run(request).await,
//!         result => result,
//!     }
//! }
//!
//! let host = Host::new("editor", "1.0.0").call_middleware(with_project);
//! # let server = Server::new("s", "1.0.0").tool("build", "", |_: Call<NoArguments>| "done");
//! # let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
//! # pair.run(client.call_tool("build", &NoArguments {}))?;
//! # assert_eq!(pair.transcript.count("apollo"), 1);
//! # Ok::<(), ClientError>(())
//! ```
//!
//! [`Host::call_middleware`](super::Host::call_middleware) registers it for all calls of the clients
//! of a host: the typed ones, those of the `all_` methods page by page, [`Client::call`] and
//! [`Client::call_other`]. The first that is registered is the outermost. Results from the
//! [cache](super::Host::cache) pass it as well: the cache is inside. Input rounds are inside too, so
//! a call passes once, however often the server asks.
//!
//! Subscriptions, notifications, pings of the keep-alive and the handshake do not pass it. With the
//! feature `extensions` they pass `Host::message_middleware`.
//!
//! Middleware runs in the task that awaits the call. Dropping the call drops the middleware where it
//! waits, and cancels the call at the server if it was sent. A panic is one of that task.
//!
//! The middleware of servers can be registered here as well: [`AccessLog`], [`ConcurrencyLimit`],
//! [`RateLimit`], [`ResultCache`] and [`Timeout`]. A timeout that progress extends is an option of the
//! request: [`ClientRequest::set_timeout`].
//!
//! [`AccessLog`]: super::middleware::AccessLog
//! [`ConcurrencyLimit`]: super::middleware::ConcurrencyLimit
//! [`RateLimit`]: super::middleware::RateLimit
//! [`ResultCache`]: super::middleware::ResultCache
//! [`Timeout`]: super::middleware::Timeout
//! [`Client::call`]: super::Client::call
//! [`Client::call_other`]: super::Client::call_other

mod layers;
mod next_call;
mod request;

pub use layers::ClientMiddleware;
pub use next_call::{CallResult, NextCall};
pub use request::ClientRequest;

pub(super) use layers::{CallLayers, ConnectionLayers, EventObserver};
pub(super) use next_call::SentCall;

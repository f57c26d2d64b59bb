//! Functions around the handlers of a server.
//!
//! A middleware is an `async` function that takes the [`ServerRequest`] and the [`Next`] step, and
//! returns the result. It may answer without calling `next`, wait before it, call it again, limit
//! its time by dropping it, and look at its result:
//!
#![cfg_attr(feature = "schemars", doc = "```")]
#![cfg_attr(not(feature = "schemars"), doc = "```ignore")]
//! use core::time::Duration;
//! use mcp_sansio::protocol::Method;
//! use mcp_sansio_handlers::middleware::{MiddlewareResult, Next, ServerRequest, Timeout};
//! use mcp_sansio_handlers::{Call, HandlerError, NoArguments, Server};
//!
//! async fn office_hours(request: ServerRequest, next: Next) -> MiddlewareResult {
//!     if *request.method() == Method::ToolsCall && is_night() {
//!         return Err(HandlerError::failed("The tools are available from 8 to 18 o'clock."));
//!     }
//!     next.run().await
//! }
//! # fn is_night() -> bool { true }
//!
//! let server = Server::new("weather", "1.0.0")
//!     .middleware(office_hours)
//!     .middleware(Timeout::new(Duration::from_secs(30)))
//!     .tool("forecast", "The weather", |_: Call<NoArguments>| "Sunny");
//! # let host = mcp_sansio_handlers::Host::new("demo", "1.0.0");
//! # let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
//! # let result = pair.run(client.call_tool("forecast", &NoArguments {}))?;
//! # assert_eq!(result.is_error, Some(true));
//! # Ok::<(), mcp_sansio_handlers::ClientError>(())
//! ```
//!
//! [`Server::middleware`](super::Server::middleware) registers it for all requests that reach a
//! handler: `tools/call`, `prompts/get`, `resources/read`, `completion/complete` and the methods of
//! [`Server::request`](super::Server::request). The first that is registered is the outermost. A
//! request that the protocol layer answers, such as a call with invalid arguments, does not reach a
//! handler. Lists are answered by it, too, unless
//! [`Server::lists_through_middleware`](super::Server::lists_through_middleware) is set. A request with input rounds passes the middleware once for each round.
//!
//! | To | Use |
//! | --- | --- |
//! | bound the number of running handlers | [`ConcurrencyLimit`] |
//! | bound the requests of each caller | [`RateLimit`] |
//! | bound the time of a handler | [`Timeout`] |
//! | answer repeated reads without the handler | [`ResultCache`] |
//! | log requests without their contents | [`AccessLog`] |
//! | apply one of them to some requests only | [`when`](when()) |
//! | look at notifications, change or drop them | `Server::notification_middleware` |
//! | look at all messages, change them, answer or refuse requests | `Server::message_middleware` |
//!
//! The last two, which hosts have as well, need the feature `extensions`. They are plain functions
//! around the messages of the protocol layer, with the requests that it answers itself, such as
//! `initialize` and `ping`.
//!
//! # Time
//!
//! This crate has no clock: [`ServerRequest::now`] is the time at which the adapter last polled the
//! handler or passed an input. So it does not advance while a plain function computes.

mod access_log;
mod caller_key;
mod concurrency_limit;
mod endpoint_clock;
mod layers;
mod limit_error;
mod next;
#[cfg(feature = "extensions")]
mod notification;
mod rate_limit;
mod result_cache;
mod server_request;
mod timeout;
mod when;

pub use access_log::{AccessLog, AccessOutcome, AccessRecord};
pub use concurrency_limit::ConcurrencyLimit;
pub use endpoint_clock::Sleep;
pub use layers::{FunctionMarker, LayerMarker, Middleware};
pub use limit_error::LimitError;
pub use next::{MiddlewareResult, Next};
pub use rate_limit::RateLimit;
pub use result_cache::ResultCache;
pub use server_request::ServerRequest;
pub use timeout::Timeout;
pub use when::{When, WhenMarker, when};

pub use super::reply::ResultBody;
#[cfg(feature = "extensions")]
pub use mcp_sansio::peer::{
    MessageMiddleware, MiddlewareMessage, MiddlewareResponse, NotificationAction, RequestAction,
    ResponseAction,
};

pub(super) use endpoint_clock::EndpointClock;
#[cfg(feature = "extensions")]
pub(super) use layers::Layer;
pub(super) use layers::{LayerList, Layers};
#[cfg(feature = "extensions")]
pub(super) use notification::NotificationFunction;
#[cfg(feature = "http")]
pub(super) use server_request::Wrapped;

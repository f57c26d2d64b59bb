//! Functions around the handlers of a server, and around the calls of a client.
//!
//! A middleware is an `async` function that takes a request and the [`Next`] step, and returns the
//! result. It may change the request, answer without calling `next`, wait before it, call it again,
//! limit its time by dropping it, and look at its result or change it:
//!
//! ```
//! use core::time::Duration;
//! use mcp_sansio::Method;
//! use mcp_sansio_handlers::middleware::{MiddlewareResult, Next, RateLimit, ServerRequest};
//! use mcp_sansio_handlers::{Call, HandlerError, NoArguments, Server};
//!
//! async fn office_hours(request: ServerRequest, next: Next) -> MiddlewareResult {
//!     if *request.method() == Method::ToolsCall && is_night() {
//!         return Err(HandlerError::failed("The tools are available from 8 to 18 o'clock."));
//!     }
//!     next.run(request).await
//! }
//! # fn is_night() -> bool { true }
//!
//! let server = Server::new("weather", "1.0.0")
//!     .middleware(office_hours)
//!     .middleware(RateLimit::new(60, Duration::from_secs(60)))
//!     .tool("forecast", "The weather", |_: Call<NoArguments>| "Sunny");
//! # let host = mcp_sansio_handlers::Host::new("demo", "1.0.0");
//! # let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
//! # let result = pair.run(client.call_tool("forecast", &NoArguments {}))?;
//! # assert_eq!(result.is_error, Some(true));
//! # Ok::<(), mcp_sansio_handlers::ClientError>(())
//! ```
//!
//! | To | Use |
//! | --- | --- |
//! | bound the requests of each caller | [`RateLimit`] |
//! | log requests without their contents | [`AccessLog`] |
//! | apply one of them to some requests only | [`when`](when()) |
//! | bound the time or the number of requests | layers of `tower`, on tokio |
//! | keep results | `Host::cache` |
//! | look at notifications, change or drop them | `Server::notification_middleware` |
//! | look at all messages, change them, answer or refuse requests | `Server::message_middleware` |
//!
//! The last two, which hosts have as well, are plain functions around the messages of the protocol
//! layer, with the requests that it answers itself, such as `initialize` and `ping`.
//!
//! # Around the handlers of a server
//!
//! [`Server::middleware`](super::Server::middleware) registers it for all requests that reach a
//! handler: calls of tools, requests for prompts, reads of resources, those that fill in arguments,
//! and the methods of [`Server::request`](super::Server::request). The first that is registered is
//! the outermost. A request that the protocol layer answers, such as a call with invalid arguments,
//! does not reach a handler. Lists are answered by it, too, unless
//! [`Server::lists_through_middleware`](super::Server::lists_through_middleware) is set. A request
//! with input rounds passes the middleware once for each round.
//!
//! # Around the calls of a client
//!
//! `Host::call_middleware` registers it for all calls of the clients of a host: the typed ones,
//! those of the `all_` methods page by page, `Client::call` and `Client::call_other`. Its functions
//! take a `ClientRequest` and a `Next<Calls>`:
//!
//! ```
//! use mcp_sansio_handlers::middleware::{Calls, ClientRequest, MiddlewareResult, Next};
//! use mcp_sansio_handlers::{ClientError, Host};
//! # use mcp_sansio_handlers::{Call, NoArguments, Server};
//!
//! async fn with_project(mut request: ClientRequest, next: Next<Calls>) -> MiddlewareResult<Calls> {
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
//! The first that is registered is the outermost. Results from the cache of the host pass it as
//! well: the cache is inside. Input rounds are inside too, so a call passes once, however often the
//! server asks. Subscriptions, notifications, pings of the keep-alive and the handshake do not pass
//! it, only `Host::message_middleware`.
//!
//! It runs in the task that awaits the call. Dropping the call drops the middleware where it
//! waits, and cancels the call at the server if it was sent. A panic is one of that task. A timeout
//! that progress extends is an option of the request: `ClientRequest::set_timeout`.
//!
//! # Time
//!
//! This crate has no clock: [`ServerRequest::now`] is the time at which the adapter last polled the
//! handler or passed an input. So it does not advance while a plain function computes.

pub(super) mod access_log;
pub(super) mod around;
mod handlers;
pub(super) mod rate_limit;
mod server_request;

#[cfg(feature = "client")]
pub use super::client::middleware::{Calls, ClientRequest};
pub use access_log::{AccessLog, AccessOutcome, AccessRecord};
pub(super) use around::Layers;
pub use around::{Around, AroundSend, Middleware, MiddlewareResult, Next, When, when};
pub(super) use handlers::ServerLayers;
pub use mcp_sansio::peer::{
    MessageMiddleware, MiddlewareMessage, MiddlewareResponse, NotificationAction, RequestAction,
    ResponseAction,
};
pub use rate_limit::RateLimit;
pub(super) use server_request::EndpointClock;
pub use server_request::ServerRequest;
#[cfg(feature = "http")]
pub(super) use server_request::Wrapped;

// ------------------------------------------------------------------ notification

/// A function around notifications as middleware.
pub(crate) struct NotificationFunction<F>(pub(crate) F);

impl<F> MessageMiddleware for NotificationFunction<F>
where
    F: Fn(&MiddlewareMessage<'_>) -> NotificationAction + Send + Sync,
{
    fn notification(&self, message: &MiddlewareMessage<'_>) -> NotificationAction {
        (self.0)(message)
    }
}

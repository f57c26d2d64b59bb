//! Servers and clients from handler functions, on top of the sans-IO machines and on any runtime.
//!
//! A [`Server`] contains the catalog of a server and the handlers of its items; a [`Host`] contains
//! the capabilities of a client and their handlers. Each creates an
//! [`Endpoint`](endpoint::Endpoint) per connection, which an adapter drives; a host also returns a
//! [`Client`], which makes calls. Differences between the revisions are handled here: the same
//! handler serves all revisions.
//!
//! | To | Use |
//! | --- | --- |
//! | offer tools, resources and prompts | [`Server`], with handlers that take a [`Call`] |
//! | describe an item in detail | [`ServerItem`] |
//! | share a database or a configuration between handlers | [`State`], [`Server::state`] |
//! | answer in a handler | text, content, [`Structured`], [`HandlerError`] |
//! | return an error of your own from a handler | [`fallible`](fallible()), [`IntoHandlerError`] |
//! | report progress, log, and know the client in a handler | [`Context`] |
//! | ask the user, the model or the host | [`Elicit`], [`InputRequired`] |
//! | change a running server | [`ServerHandle`], [`Connections`], [`CatalogEdit`] |
//! | run code around all handlers, limit them, log them | [`middleware`] |
//! | connect to a server, and answer its requests | [`Host`], [`HostRequest`] |
//! | use several servers as one | [`Servers`], [`MergedList`], [`ServersConfig`] |
//! | call it | [`Client`], [`ClientCall`], [`ClientError`], [`Subscription`] |
//! | add methods and capabilities to the protocol | `extension` |
//! | let calls continue as tasks | [`TaskSettings`], [`ClientTask`] |
//! | accept other functions and results as handlers | [`handler`] |
//! | write an adapter | [`endpoint`] |
//!
//! ```
//! use mcp_sansio_handlers::{Call, Host, Server};
//! use mcp_sansio::Instant;
//!
//! #[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
//! struct Place { /** City name or postal code */ location: String }
//!
//! let server = Server::new("weather", "1.0.0")
//!     .tool("forecast", "Weather at a place", async |call: Call<Place>| {
//!         call.progress(1.0, Some(2.0), "asking the station");
//!         Ok(format!("Sunny in {}", call.arguments.location))
//!     });
//!
//! let (client, endpoint) = Host::new("demo", "1.0.0").connect(42, Instant::ZERO);
//! # use mcp_sansio_test::{Pair, Stream};
//! # let mut pair = Pair::new(Stream::new(server.endpoint(42)?, endpoint));
//! # let application = async {
//! client.opened().await?;
//! let report = client.call_tool("forecast", &Place { location: "Oslo".into() })
//!     .on_progress(|progress| println!("{}", progress.progress)).await?;
//! assert_eq!(report.first_text(), Some("Sunny in Oslo"));
//! # Ok::<(), Box<dyn std::error::Error>>(()) };
//! # pair.run(application)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Handlers
//!
//! A handler is a function or a closure, plain or `async`, that takes a [`Call`] of its arguments
//! and returns what fits: text, content, [`Structured`] values, or a `Result` of these with
//! [`HandlerError`], into which `?` turns any error; a handler in [`fallible`](fallible()) has an
//! error of its own. It runs where the connection is driven, so a plain one must be quick;
//! [`blocking`](blocking()) handlers go to threads of their own. An `async` one is dropped where it
//! waits when its request is cancelled.
//!
//! What handlers share is a [`State`] of the server: a handler takes it after the call. A handler
//! also owns the values that its closure captures by `move`. An `async` closure is cloned for each
//! call, and so are its values.
//!
//! # Questions
//!
//! A handler that needs the user, the host's model or its roots returns the questions, and is
//! called again with the answers:
//!
//! ```
//! use mcp_sansio_handlers::{Call, Elicit, Host, NoArguments, HostRequest, Server};
//! use mcp_sansio::protocol::{ElicitParams, ElicitResult};
//! # use mcp_sansio::{Revision, Revisions};
//! # async fn book() -> Result<String, std::fmt::Error> { Ok("Booked.".into()) }
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Confirmation { sure: bool }
//!
//! let server = Server::new("tables", "1.0.0")
//!     .tool("book", "Book a table", async |call: Call<NoArguments>| {
//!         match call.input::<Confirmation>("confirm")? {
//!             None => call.require_input("confirm", Elicit::form::<Confirmation>("Book it?")).into_result(),
//!             Some(answer) if answer.content.as_ref().is_some_and(|form| form.sure) => {
//!                 Ok(book().await?)
//!             }
//!             Some(_) => Ok("Not booked.".into()),
//!         }
//!     });
//!
//! let host = Host::new("demo", "1.0.0").on_elicit(async |question: HostRequest<ElicitParams>| {
//!     // Here the user is shown `question.params` and decides.
//! #   let _ = question;
//!     Ok(ElicitResult::decline())
//! });
//! # for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
//! #     let host = Host::new("demo", "1.0.0").on_elicit(|_: HostRequest<ElicitParams>| {
//! #         ElicitResult::accept([("sure".to_owned(), true.into())].into_iter().collect())
//! #     });
//! #     let host = host.revisions(Revisions::only(revision));
//! #     let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
//! #     let result = pair.run(client.call_tool("book", &NoArguments {}))?;
//! #     assert_eq!(result.first_text(), Some("Booked."));
//! # }
//! # let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
//! # let result = pair.run(client.call_tool("book", &NoArguments {}))?;
//! # assert_eq!(result.first_text(), Some("Not booked."));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each round contains the answers to its own input requests only. Store data that must outlast a
//! round with [`InputRequired::state`].
//!
//! # Subscriptions
//!
//! A client that [subscribes](Client::subscribe) awaits its notifications in order:
//!
//! ```
//! use mcp_sansio::protocol::SubscriptionFilter;
//! # use mcp_sansio_handlers::{Call, Client, ClientError, Host, NoArguments, Server};
//!
//! # async fn application(client: Client) -> Result<(), ClientError> {
//! let mut subscription = client.subscribe(SubscriptionFilter::new().tools_list_changed(true));
//! subscription.honoured().await?;
//! # client.call_tool("change", &NoArguments {}).await?;
//! if let Some(notification) = subscription.next().await? {
//!     assert_eq!(notification.method.as_str(), "notifications/tools/list_changed");
//! }
//! # Ok(())
//! # }
//! # let server = Server::new("tools", "1.0.0")
//! #     .tool("change", "Removes itself", |call: Call<NoArguments>| {
//! #         call.edit_catalog(|catalog| drop(catalog.remove_tool("change")))?;
//! #         Ok("done")
//! #     });
//! # let (client, mut pair) = mcp_sansio_test::connect(&server, &Host::new("demo", "1.0.0"));
//! # pair.run(application(client))?;
//! # Ok::<(), ClientError>(())
//! ```
//!
//! # Tasks
//!
//! A handler of a long-running call can return a task to clients that support
//! [tasks](Server::tasks), with [`call.run_as_task()`](Context::run_as_task); the client fetches
//! the result later. Other clients get the answer as usual.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![cfg_attr(
    not(all(feature = "client", feature = "http")),
    allow(dead_code, unused_imports, reason = "only clients or HTTP use some items")
)]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod arguments;
mod ask;
#[cfg(all(feature = "client", feature = "http"))]
mod authorization;
#[cfg(feature = "client")]
mod client;
mod connection_options;
mod connections;
mod context;
mod dispatch;
pub mod endpoint;
mod executor;
pub mod extension;
mod function;
pub mod handler;
#[cfg(feature = "http")]
mod http_call;
#[cfg(feature = "http")]
mod http_server;
mod mailbox;
pub mod middleware;
#[cfg(feature = "http")]
mod protection;
#[cfg(test)]
mod received_requests;
mod recorder;
mod reply;
#[cfg(feature = "schemars")]
mod schema;
#[cfg(feature = "http")]
mod sealing;
mod server;
mod server_binding;
#[cfg(feature = "http")]
mod server_card;
mod server_endpoint;
mod server_item;
#[cfg(all(test, shuttle))]
mod shuttle_tests;
mod state;
mod task;
mod threading;

pub use ask::{Elicit, ElicitResponse, InputRequired};
#[cfg(all(feature = "client", feature = "http"))]
pub use authorization::{Authorization, CredentialLock, CredentialStore, MemoryStore};
#[cfg(feature = "client")]
pub use client::{
    CallFuture, Client, ClientCall, ClientError, ClientTask, ConnectionError, Host, HostRequest,
    MergedItem, MergedList, ServerConnection, ServerSpec, ServerState, Servers, ServersConfig,
    ServersError, Session, Subscription, TaskCall, TaskFuture,
};
pub use connections::Connections;
pub use connections::ServerHandle;
pub use context::{Call, Context, NoArguments, ReadResource};
pub use function::blocking;
pub use function::{IntoHandlerError, fallible};
pub use mailbox::SendError;
#[cfg(feature = "http")]
pub use protection::TokenRequirement;
pub use reply::{HandlerError, Structured};
pub use server::Server;
#[cfg(feature = "http")]
pub use server_card::{RemoteEndpoint, ServerCard};
pub use server_item::CatalogEdit;
pub use server_item::ServerItem;
pub use state::State;
pub use task::{TaskEvent, TaskSettings};
pub use threading::{Local, ThreadSafe};

#[cfg(all(feature = "client", feature = "http"))]
use authorization::AuthorizationState;

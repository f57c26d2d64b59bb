//! The small way to write a server or a client: handlers on top of the machines, on any runtime.

mod ask;
mod blocking;
mod client;
mod client_endpoint;
mod context;
mod endpoint;
mod function;
mod host;
mod kind;
mod mailbox;
mod opening;
mod pending;
mod reply;
#[cfg(feature = "schemars")]
mod schema;
mod server;
mod server_endpoint;
mod tasks;

pub use ask::{Answer, Ask, Elicit};
pub use blocking::{Blocking, Blocks, Job, blocking};
pub use client::{Client, ClientError, OpenedFuture, Session};
pub use client_endpoint::ClientEndpoint;
pub use context::{Call, Context, FromReceived, NoArguments, Question, Read, Received};
pub use endpoint::Endpoint;
pub use function::{Async, Handler, Plain, Takes};
pub use host::Host;
pub use kind::{Kind, Local, Shared, Step};
pub use pending::{CallFuture, ClientCall, Subscription};
pub use reply::{
    Body, Error, IntoOutcome, OfCompletion, OfElicitation, OfPrompt, OfRequest, OfResource,
    OfRoots, OfSampling, OfTool, Outcome, Structured,
};
#[cfg(feature = "schemars")]
pub use server::Described;
pub use server::Server;
pub use server_endpoint::{Remote, ServerEndpoint};

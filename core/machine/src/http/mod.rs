//! Streamable HTTP, and its predecessor HTTP+SSE, as state machines over exchanges.
//!
//! An exchange is one HTTP request and its response. The machines never access a socket: an adapter
//! performs the exchanges with an HTTP library and needs no knowledge of the protocol. `Server`
//! takes requests and decides how to respond to each exchange; [`Client`] decides which requests to
//! send and takes their responses.

mod authority;
#[cfg(feature = "client")]
pub(crate) mod client;
mod exchange;
pub(crate) mod field_value;
pub(crate) mod head;
mod header_params;
mod location;
mod media;
pub(crate) mod origin;
mod remote_address;
#[cfg(feature = "server")]
pub(crate) mod server;

/// The maximum length of a document other than a message that is fetched or read from a server, in
/// bytes: metadata, tokens, keys. 256 KiB: such documents take a few KiB.
pub const DOCUMENT_LENGTH_MAX: usize = 256 * 1024;

pub use crate::binding::{Field, is_token_byte};
pub(crate) use crate::binding::{HttpRejection, Status};
pub use authority::{Origin, Scheme};
#[cfg(feature = "client")]
pub use client::{
    Client, ClientLimits, ClientTransmit, ExchangeFailure, HttpClientOptions, IncomingResponse,
    LostSession, OutgoingRequest,
};
pub use exchange::{ExchangeId, SessionId};
pub use head::{AuthorizationField, Content, RequestHead, Response, ResponseHead};
pub use location::{InvalidUrl, LOCATION_LENGTH_MAX, Location};
pub use origin::AllowedHosts;
pub use remote_address::RemoteAddress;
#[cfg(feature = "server")]
pub use server::{
    ActionId, Admission, CallerHandle, EventPosition, EventStore, Exhausted, HttpServerOptions,
    Lease, MailboxShare, NodeId, NotStored, ParsedBody, ProofId, ReadId, ReadRequest, RefusedHead,
    RequestReader, ResponseMode, Server, ServerLimits, ServerTimeouts, ServerTransmit,
    SessionRecord, SharedLimit, SharedOptions, SharedResource, StoreAction, StoreError, StoreReply,
    StoredEvent, TaskCommand, TaskKey, TaskMessage, TaskPage, TaskRecord, TaskStoreEvent,
};

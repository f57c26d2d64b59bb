//! Public names common to all runtimes: the adapter for each runtime exports all of them.

#[cfg(feature = "messages")]
pub use crate::MessageStream;
#[cfg(feature = "jsonschema")]
pub use crate::SchemaValidator;
#[cfg(feature = "client")]
pub use crate::child::{
    ExitReport, GracePeriods, SpawnError, SpawnOptions, Stderr, TransferDirection,
};
pub use crate::clock::unix_time;
#[cfg(feature = "http")]
pub use crate::http_client::{
    ConnectorError, FetchError, HttpConnection, connect_with, drive_http,
};
#[cfg(feature = "http-client")]
pub use crate::http_client::{Proxy, ResponseBody};
#[cfg(feature = "http-server")]
pub use crate::http_server::{
    ExternalEventStore, ResponseNotRead, ServedBody, SharedStore, StoreOutcome,
};
#[cfg(feature = "skills")]
pub use crate::skills;
pub use crate::{ByteStream, DriveError, Driver, Error, StreamSettings, Timer, seed};
#[cfg(feature = "http")]
pub use crate::{Exchange, Exchanger, HttpDriver};
#[cfg(all(unix, feature = "http-server"))]
pub use crate::{UnixSocket, UnixSocketError};
#[cfg(any(feature = "http", feature = "http-server"))]
pub use mcp_sansio::http;
#[cfg(feature = "http-server")]
pub use mcp_sansio::http::{AllowedHosts, HttpServerOptions, SharedOptions};
#[cfg(feature = "http")]
pub use mcp_sansio::http::{HttpClientOptions, InvalidHeader, Location};
#[cfg(feature = "recording")]
pub use mcp_sansio::recording;
#[cfg(feature = "seal")]
pub use mcp_sansio::seal;
pub use mcp_sansio::{
    Backoff, Caller, Credentials, Era, Instant, Principal, Printable, Revision, Revisions, catalog,
    jsonrpc, peer, protocol,
};
#[cfg(any(feature = "sign", feature = "verify"))]
pub use mcp_sansio_auth::{Algorithm, UnknownAlgorithm};
#[cfg(feature = "auth")]
pub use mcp_sansio_auth::{
    BrowserError, FileStore, FileStoreError, UntrustedPath, loopback::InvalidRedirectAddress,
    open_in_browser, with_system_support,
};
#[cfg(feature = "verify")]
pub use mcp_sansio_auth::{JwtError, JwtVerifier, dpop_verifier};
#[cfg(feature = "sign")]
pub use mcp_sansio_auth::{KeyError, KeyFileError, SignError, Signer};
#[cfg(feature = "apps")]
pub use mcp_sansio_extensions::apps;
pub use mcp_sansio_handlers::*;
#[cfg(any(feature = "auth", feature = "http-server"))]
pub use mcp_sansio_oauth as auth;
#[cfg(feature = "auth")]
pub use mcp_sansio_oauth::client::{
    ActionFailure, AssertionRequest, AuthorizationRequest, Credential, CredentialKey,
    SigningRequest,
};
#[cfg(feature = "http-server")]
pub use mcp_sansio_oauth::protected_resource::{
    DpopVerifier, InvalidStaticToken, Operation, ProtectedResource, StaticTokens, TokenCheck,
    TokenRefusal, VerifiedToken,
};

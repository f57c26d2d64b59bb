//! OAuth for MCP as pure functions and types: the authorization of a client, and the token checks
//! of a server.
//!
//! A server that requires a token answers 401 with challenges ([`challenge`]). Its metadata and
//! that of its authorization server ([`metadata`], located by [`discovery`]) say where to get one,
//! for which resource ([`resource`]). Each authorization has its secrets ([`pkce`]) and its
//! [`response`]. [`client_document()`] writes the metadata of an application that is identified by
//! a URL.
//!
//! [`client`] is a state machine for the whole flow.
//!
//! [`protected_resource`] is the server's side. Servers with handlers use it through
//! `mcp_sansio_handlers::Server::protect`.
//!
//! Each side is a feature, `client` and `server`; the common parts are always compiled.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(feature = "client")]
mod challenge;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "client")]
mod client_authentication;
#[cfg(feature = "client")]
mod client_document;
#[cfg(feature = "client")]
mod credential;
mod discovery;
#[cfg(feature = "client")]
mod dpop;
mod endpoint;
#[cfg(feature = "client")]
mod entropy;
#[cfg(feature = "client")]
mod form;
#[cfg(feature = "client")]
mod json_response;
#[cfg(feature = "client")]
mod jwt;
#[cfg(feature = "client")]
mod metadata;
#[cfg(feature = "client")]
mod pkce;
#[cfg(feature = "server")]
pub mod protected_resource;
#[cfg(feature = "client")]
mod redirect_uri;
#[cfg(feature = "client")]
mod registration;
mod resource;
#[cfg(feature = "client")]
mod response;
#[cfg(feature = "client")]
mod scopes;
#[cfg(feature = "client")]
mod token;

#[cfg(feature = "client")]
pub use challenge::{
    BearerChallenge, CHALLENGES_LENGTH_MAX, CHALLENGES_MAX, Challenge, ChallengeScheme,
    PARAMETERS_MAX,
};
#[cfg(feature = "client")]
pub use client_authentication::NoAuthenticationMethod;
#[cfg(feature = "client")]
pub use client_document::{InvalidClientDocument, client_document};
pub use discovery::{DefaultEndpoints, InvalidIssuer, MetadataUrls};
#[cfg(feature = "client")]
pub use dpop::InvalidDpopKey;
pub use endpoint::InvalidEndpoint;
#[cfg(feature = "client")]
pub use form::DuplicateParameter;
#[cfg(feature = "client")]
pub use json_response::InvalidResponse;
#[cfg(feature = "client")]
pub use metadata::{AuthorizationServerMetadata, MetadataFault, ProtectedResourceMetadata};
#[cfg(feature = "client")]
pub use pkce::{CodeVerifier, ENTROPY_LENGTH, State};
#[cfg(feature = "client")]
pub use redirect_uri::{InvalidRedirectUri, check_redirect_uri};
#[cfg(feature = "client")]
pub use registration::{RegistrationError, RegistrationFault};
pub use resource::{ResourceMismatch, ResourceUri, is_same_resource};
#[cfg(feature = "client")]
pub use response::{
    AuthorizationCode, AuthorizationError, AuthorizationResponse, ExpectedResponse,
    REDIRECT_LENGTH_MAX, ResponseFault,
};
#[cfg(feature = "client")]
pub use scopes::TooManyScopes;
#[cfg(feature = "client")]
pub use token::{TokenError, TokenFault};

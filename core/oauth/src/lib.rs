//! OAuth for MCP as pure functions and types: the authorization of a client, and the token checks
//! of a server.
//!
//! A client that signs in meets these items, in this order:
//!
//! 1. `client::AuthorizationOptions`: how it gets tokens, for example with
//!    `AuthorizationOptions::code` and a user, and as which `client::RegisteredClient`.
//! 2. `client::AuthorizationClient`: a state machine for the whole flow, between the HTTP client
//!    and the network.
//! 3. `client::AuthorizationAction`: work for the application, such as sending the user to a URL or
//!    storing a `client::Credential`.
//! 4. `client::AuthorizationEvent` and `client::AuthorizationFailure`: progress and errors.
//!
//! A server that checks tokens has a `protected_resource::ProtectedResource`; servers with handlers
//! use it through `mcp_sansio_handlers::Server::protect`.
//!
//! The items at the root are the steps of the flow as functions and types, for programs with a flow
//! of their own. A server that requires a token answers 401 with a `Challenge`. Its
//! `ProtectedResourceMetadata`, and the `AuthorizationServerMetadata` of its authorization server,
//! say where to get one, for which [`ResourceUri`]; [`MetadataUrls`] locates them. Each
//! authorization has its secrets, `CodeVerifier` and `State`, and its `AuthorizationResponse`.
//! `client_document` writes the metadata of an application that is identified by a URL.
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
pub mod client;
mod discovery;
#[cfg(any(feature = "client", feature = "server"))]
mod dpop;
#[cfg(feature = "server")]
pub mod protected_resource;
mod resource;

#[cfg(feature = "client")]
pub use client::{
    challenge::{
        BearerChallenge, CHALLENGES_LENGTH_MAX, CHALLENGES_MAX, Challenge, PARAMETERS_MAX,
    },
    metadata::{AuthorizationServerMetadata, MetadataFault, ProtectedResourceMetadata},
    registration::client_document,
    response::{
        AuthorizationCode, AuthorizationResponse, CodeVerifier, ENTROPY_LENGTH,
        REDIRECT_LENGTH_MAX, ResponseFault, State, check_redirect_uri,
    },
    token::{AnswerFault, ErrorResponse},
};
pub use discovery::{MetadataUrls, UrlFault};
pub use resource::{ResourceUri, is_same_resource};

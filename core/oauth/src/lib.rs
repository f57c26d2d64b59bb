//! What a client needs to authorize itself with OAuth, and a server to take tokens, as pure functions
//! and types.
//!
//! A server that wants a token answers 401 with challenges ([`challenge`]). Its metadata and that of
//! its authorization server ([`metadata`], to be found by [`discovery`]) say where to get one, for
//! which resource ([`resource`]). Each authorization has its secrets ([`pkce`]) and its
//! [`response`]. [`client_document()`] writes what an application says of itself where it is known by
//! the URL of that.
//!
//! [`client`] is a machine that does all of it.
//!
//! The other side is [`protected_resource`]. Servers that are written as handlers have it by
//! `mcp_sansio_handlers::Server::protect`.

#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod answer;
pub mod challenge;
pub mod client;
mod client_authentication;
mod client_document;
mod credential;
pub mod discovery;
mod dpop;
mod entropy;
mod form;
mod jwt;
pub mod metadata;
pub mod pkce;
pub mod protected_resource;
mod redirect_uri;
mod registration;
pub mod resource;
pub mod response;
mod scopes;
mod token;

pub use answer::AnswerFault;
pub use challenge::{BearerChallenge, Challenge, ChallengeScheme};
pub use client_authentication::NoAuthenticationMethod;
pub use client_document::{InvalidClientDocument, client_document};
pub use discovery::{DefaultEndpoints, InvalidIssuer, MetadataUrls};
pub use dpop::InvalidDpopKey;
pub use form::DuplicateParameter;
pub use metadata::{
    AuthorizationServerMetadata, InvalidEndpoint, MetadataFault, ProtectedResourceMetadata,
};
pub use pkce::{CodeVerifier, State};
pub use protected_resource::{
    Grant, InvalidResource, Operation, ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken,
};
pub use redirect_uri::{InvalidRedirectUri, check_redirect_uri};
pub use registration::{RegistrationError, RegistrationFault};
pub use resource::{ResourceMismatch, ResourceUri, is_same_resource};
pub use response::{
    AuthorizationCode, AuthorizationError, AuthorizationResponse, ExpectedResponse, ResponseFault,
};
pub use scopes::TooManyScopes;
pub use token::{TokenError, TokenFault};

//! What a client needs to authorize itself with OAuth, as pure functions and types.
//!
//! A server that wants a token answers 401 with challenges ([`challenge`]). Its metadata and that of
//! its authorization server ([`metadata`], to be found by [`discovery`]) say where to get one, for
//! which resource ([`resource`]). Each authorization has its secrets ([`pkce`]) and its
//! [`response`].

pub mod challenge;
pub mod discovery;
pub mod metadata;
pub mod pkce;
pub mod protected_resource;
pub mod resource;
pub mod response;

pub use challenge::{BearerChallenge, Challenge, ChallengeScheme};
pub use discovery::{DefaultEndpoints, InvalidIssuer, MetadataUrls};
pub use metadata::{
    AuthorizationServerMetadata, InvalidEndpoint, MetadataFault, ProtectedResourceMetadata,
};
pub use pkce::{CodeVerifier, State};
pub use protected_resource::{
    Grant, InvalidResource, Operation, ProtectedResource, TokenCheck, TokenRefusal, VerifiedToken,
};
pub use resource::{ResourceMismatch, ResourceUri};
pub use response::{
    AuthorizationCode, AuthorizationError, AuthorizationResponse, ExpectedResponse, ResponseFault,
};

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio_oauth::client::{
    ActionFailure, AssertionRequest, AuthorizationRequest, Credential, SigningRequest,
};

use super::CredentialLock;

/// The result of an action that the application or its store performed.
#[allow(unnameable_types, reason = "passed on inside of this crate only")]
pub enum ActionOutput {
    /// The URL that the user was redirected to.
    Redirect(Result<String, ActionFailure>),
    /// A signature.
    Signature(Result<Vec<u8>, ActionFailure>),
    /// An assertion.
    Assertion(Result<String, ActionFailure>),
    /// The stored credential, if the store has one.
    Loaded(Result<Option<Credential>, ActionFailure>),
    /// The stored credential, if the store has one, and its lock.
    Locked(CredentialLock, Result<Option<Credential>, ActionFailure>),
    /// A credential was saved or removed.
    Stored,
}

impl fmt::Debug for ActionOutput {
    /// Prints no fields: all of them are secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ActionOutput(..)")
    }
}

/// A request of an authorization to the application, with the type of its answer.
#[allow(unnameable_types, reason = "sealed: other crates cannot implement it")]
pub trait ActionRequest: 'static {
    /// The type that a function returns for this request.
    type Answer;

    /// Converts the answer into the form that is passed on.
    fn into_output(answer: Result<Self::Answer, ActionFailure>) -> ActionOutput;
}

impl ActionRequest for AuthorizationRequest {
    type Answer = String;

    fn into_output(answer: Result<String, ActionFailure>) -> ActionOutput {
        ActionOutput::Redirect(answer)
    }
}

impl ActionRequest for SigningRequest {
    type Answer = Vec<u8>;

    fn into_output(answer: Result<Vec<u8>, ActionFailure>) -> ActionOutput {
        ActionOutput::Signature(answer)
    }
}

impl ActionRequest for AssertionRequest {
    type Answer = String;

    fn into_output(answer: Result<String, ActionFailure>) -> ActionOutput {
        ActionOutput::Assertion(answer)
    }
}

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio_oauth::client::{
    ActionFailure, AssertionRequest, AuthorizationRequest, Credential, SigningRequest,
};

/// What the application, or its store, came to.
#[allow(unnameable_types, reason = "passed on inside of this crate only")]
pub enum ActionOutput {
    /// Where the user came back to.
    Redirect(Result<String, ActionFailure>),
    /// A signature.
    Signature(Result<Vec<u8>, ActionFailure>),
    /// An assertion.
    Assertion(Result<String, ActionFailure>),
    /// What was kept.
    Loaded(Result<Option<Credential>, ActionFailure>),
    /// Something is kept, or dropped.
    Stored,
}

impl fmt::Debug for ActionOutput {
    /// Leaves everything out that is secret, which is everything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ActionOutput(..)")
    }
}

/// What an authorization asks of the application, and what it wants in return.
#[allow(unnameable_types, reason = "so that nobody else implements it")]
pub trait ActionRequest: 'static {
    /// What a function returns that does it.
    type Answer;

    /// The answer in the form that is passed on.
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

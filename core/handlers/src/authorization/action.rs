use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_oauth::client::{ActionFailure, Credential};

use super::CredentialLock;

/// The result of an action that the application or its store performed.
pub(super) enum ActionOutput {
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

mcp_sansio::partial_debug! {
    /// Prints no fields: all of them are secret.
    impl Debug for ActionOutput(..)
}

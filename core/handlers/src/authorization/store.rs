use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::{Future, ready};
use core::pin::Pin;

use mcp_sansio_oauth::client::{ActionFailure, Credential, CredentialKey};

use super::CredentialLock;
use super::action::ActionOutput;

/// Storage for credentials: an operating system key ring, a file that only the user can read, a
/// database table. A reader of a credential can act for the user.
// MCP 2026-07-28 basic/authorization/security-considerations#token-theft [AUTHC-046]
// MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-062]
pub trait CredentialStore: Send + Sync + 'static {
    /// Loads the credential stored under `key`; `None` if the store has no such credential.
    ///
    /// # Errors
    ///
    /// The store is unavailable. The client continues as if it were empty, except for
    /// [`CredentialKey::Issuer`], where the authorization fails.
    fn load(
        &self,
        key: &CredentialKey,
    ) -> impl Future<Output = Result<Option<Credential>, ActionFailure>> + Send;

    /// Saves `credential` and replaces the previous one. The connection does not notice a failure
    /// and continues with its own copy; the store reports the failure to the user or to a log.
    fn save(&self, key: &CredentialKey, credential: Credential) -> impl Future<Output = ()> + Send;

    /// Removes the credential stored under `key`, which is no longer valid.
    fn remove(&self, key: &CredentialKey) -> impl Future<Output = ()> + Send;

    /// Waits until no other connection and no other process holds the lock on the credential stored
    /// under `key`, and returns the lock. A client holds it while it renews a token, rarely longer
    /// than its timeout for one exchange. Loads and saves do not need it. Stop waiting when the
    /// future is dropped.
    ///
    /// The default implementation does not lock. It is sufficient if one connection uses the store,
    /// or if the authorization server accepts a refresh token repeatedly. Otherwise two renewals at
    /// once may send the same refresh token, and the user has to sign in again.
    ///
    /// # Errors
    ///
    /// The credential cannot be locked. The client renews the token without the lock.
    fn lock(
        &self,
        key: &CredentialKey,
    ) -> impl Future<Output = Result<CredentialLock, ActionFailure>> + Send {
        let _ = key;
        ready(Ok(CredentialLock::none()))
    }
}

/// A future of a store's answer.
type Answer = Pin<Box<dyn Future<Output = ActionOutput> + Send>>;

/// An object-safe [`CredentialStore`].
pub(super) trait DynStore: Send + Sync {
    fn load(&self, key: CredentialKey) -> Answer;
    fn save(&self, key: CredentialKey, credential: Credential) -> Answer;
    fn remove(&self, key: CredentialKey) -> Answer;
    fn lock(&self, key: CredentialKey) -> Answer;
}

/// A store, shared with the futures that it returns.
pub(super) struct SharedStore<S>(Arc<S>);

impl<S> SharedStore<S> {
    pub(super) fn new(store: S) -> Self {
        Self(Arc::new(store))
    }
}

impl<S: CredentialStore> DynStore for SharedStore<S> {
    fn load(&self, key: CredentialKey) -> Answer {
        let store = Arc::clone(&self.0);
        Box::pin(async move { ActionOutput::Loaded(store.load(&key).await) })
    }

    fn save(&self, key: CredentialKey, credential: Credential) -> Answer {
        let store = Arc::clone(&self.0);
        Box::pin(async move {
            store.save(&key, credential).await;
            ActionOutput::Stored
        })
    }

    fn remove(&self, key: CredentialKey) -> Answer {
        let store = Arc::clone(&self.0);
        Box::pin(async move {
            store.remove(&key).await;
            ActionOutput::Stored
        })
    }

    fn lock(&self, key: CredentialKey) -> Answer {
        let store = Arc::clone(&self.0);
        Box::pin(async move {
            // Without the lock another client may renew at the same time, but a credential that it
            // saved before is read.
            let lock = store.lock(&key).await.unwrap_or_else(|_| CredentialLock::none());
            ActionOutput::Locked(lock, store.load(&key).await)
        })
    }
}

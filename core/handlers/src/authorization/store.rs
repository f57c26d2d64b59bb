use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;

use mcp_sansio_oauth::client::{ActionFailure, Credential, CredentialKey};
use mcp_sansio_sync::Mutex;

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
}

/// The most credentials that a [`MemoryStore`] keeps: far more than the number of servers of one
/// user. Servers name authorization servers, so without a bound they could fill the memory.
const CREDENTIALS_MAX: usize = 256;

/// A [`CredentialStore`] that keeps 256 credentials in memory and evicts the oldest. Clones share
/// them.
#[derive(Clone, Default)]
pub struct MemoryStore {
    kept: Arc<Mutex<VecDeque<(CredentialKey, Credential)>>>,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl CredentialStore for MemoryStore {
    async fn load(&self, key: &CredentialKey) -> Result<Option<Credential>, ActionFailure> {
        Ok(self.kept.lock(|kept| {
            let found = kept.iter().find(|(known, _)| known == key);
            found.map(|(_, credential)| credential.clone())
        }))
    }

    async fn save(&self, key: &CredentialKey, credential: Credential) {
        self.kept.lock(|kept| {
            kept.retain(|(known, _)| known != key);
            while kept.len() >= CREDENTIALS_MAX {
                // These are not evicted: there are only as many issuers as the application has
                // registered clients.
                let issuer =
                    |(key, _): &(CredentialKey, _)| matches!(key, CredentialKey::Issuer(_));
                let oldest = kept.iter().position(|it| !issuer(it)).unwrap_or(0);
                kept.remove(oldest);
            }
            kept.push_back((key.clone(), credential));
        });
    }

    async fn remove(&self, key: &CredentialKey) {
        self.kept.lock(|kept| kept.retain(|(known, _)| known != key));
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("length", &self.kept.lock(|kept| kept.len())).finish()
    }
}

/// A future of a store's answer.
type Answer = Pin<Box<dyn Future<Output = ActionOutput> + Send>>;

/// An object-safe [`CredentialStore`].
pub(super) trait DynStore: Send + Sync {
    fn load(&self, key: CredentialKey) -> Answer;
    fn save(&self, key: CredentialKey, credential: Credential) -> Answer;
    fn remove(&self, key: CredentialKey) -> Answer;
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
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use core::task::{Context, Poll, Waker};

    use super::*;

    /// Polls the answer of a memory store, which is ready at the first poll.
    fn now<T>(answer: impl Future<Output = T>) -> T {
        let mut answer = Box::pin(answer);
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("a memory store never waits"),
        }
    }

    fn key(number: usize) -> CredentialKey {
        CredentialKey::Tokens(format!("https://{number}.example/"))
    }

    #[test]
    fn the_last_saved_credential_is_kept_until_it_is_removed() {
        let (store, loaded) = (MemoryStore::new(), Credential::new("two"));
        for text in ["one", "two"] {
            now(store.save(&key(1), Credential::new(text)));
        }
        assert_eq!(now(store.clone().load(&key(1))), Ok(Some(loaded)));
        assert_eq!(now(store.load(&key(2))), Ok(None));
        now(store.clone().remove(&key(1)));
        assert_eq!(now(store.load(&key(1))), Ok(None));
    }

    #[test]
    fn a_full_memory_store_evicts_the_oldest_credential() {
        let store = MemoryStore::new();
        for number in 0..=CREDENTIALS_MAX {
            now(store.save(&key(number), Credential::new("secret")));
        }
        assert_eq!(now(store.load(&key(0))), Ok(None));
        assert!(now(store.load(&key(1))).is_ok_and(|it| it.is_some()));
    }

    #[test]
    fn issuers_of_registered_clients_stay_when_there_is_no_room() {
        // Rule: [AUTHC-036].
        let (store, issuer) = (MemoryStore::new(), CredentialKey::Issuer("app".into()));
        now(store.save(&issuer, Credential::new("https://as.example")));
        for number in 0..=CREDENTIALS_MAX {
            now(store.save(&key(number), Credential::new("secret")));
        }
        assert!(now(store.load(&issuer)).is_ok_and(|it| it.is_some()));
        assert_eq!(store.kept.lock(|kept| kept.len()), CREDENTIALS_MAX);
    }

    #[test]
    fn debug_output_hides_stored_credentials() {
        // Rule: [AUTHC-046] [AUTHC-062].
        let store = MemoryStore::new();
        now(store.save(&key(1), Credential::new("secret")));
        assert_eq!(format!("{store:?}"), "MemoryStore { length: 1 }");
        let loaded = ActionOutput::Loaded(now(store.load(&key(1))));
        assert_eq!(format!("{loaded:?}"), "ActionOutput(..)");
    }
}

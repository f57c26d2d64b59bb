use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::poll_fn;
use core::task::{Poll, Waker};

use mcp_sansio_oauth::client::{ActionFailure, Credential, CredentialKey};
use mcp_sansio_sync::Mutex;

use super::CredentialLock;
use super::store::CredentialStore;

/// The most credentials that a [`MemoryStore`] keeps: far more than the number of servers of one
/// user. Servers name authorization servers, so without a bound they could fill the memory.
const CREDENTIALS_MAX: usize = 256;

/// A [`CredentialStore`] that keeps 256 credentials in memory and evicts the oldest. Clones share
/// them.
#[derive(Clone, Default)]
pub struct MemoryStore {
    kept: Arc<Mutex<VecDeque<(CredentialKey, Credential)>>>,
    locks: Arc<Mutex<Vec<HeldLock>>>,
}

/// A lock that is held, with those that wait for it.
struct HeldLock {
    key: CredentialKey,
    waiting: Vec<Waker>,
}

/// Releases the lock when it is dropped.
struct MemoryLock {
    key: CredentialKey,
    locks: Arc<Mutex<Vec<HeldLock>>>,
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

    async fn lock(&self, key: &CredentialKey) -> Result<CredentialLock, ActionFailure> {
        let (key, locks) = (key.clone(), Arc::clone(&self.locks));
        poll_fn(|cx| {
            self.locks.lock(|locks| match locks.iter_mut().find(|it| it.key == key) {
                Some(held) => {
                    if !held.waiting.iter().any(|it| it.will_wake(cx.waker())) {
                        held.waiting.push(cx.waker().clone());
                    }
                    Poll::Pending
                }
                None => {
                    locks.push(HeldLock { key: key.clone(), waiting: Vec::new() });
                    Poll::Ready(())
                }
            })
        })
        .await;
        Ok(CredentialLock::new(MemoryLock { key, locks }))
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        let released = self.locks.lock(|locks| {
            let at = locks.iter().position(|it| it.key == self.key)?;
            Some(locks.swap_remove(at))
        });
        released.into_iter().flat_map(|it| it.waiting).for_each(Waker::wake);
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("length", &self.kept.lock(|kept| kept.len())).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::format;
    use alloc::sync::Arc;
    use alloc::task::Wake;
    use core::future::Future;
    use core::pin::pin;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use core::task::Context;

    use super::super::action::ActionOutput;
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

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_lock_is_held_by_one_at_a_time_and_wakes_those_that_wait() {
        let store = MemoryStore::new();
        let held = now(store.lock(&key(1))).expect("a lock");
        // Other credentials are not affected, and this one can still be read and saved.
        drop(now(store.lock(&key(2))).expect("another lock"));
        now(store.save(&key(1), Credential::new("secret")));
        assert!(now(store.load(&key(1))).is_ok_and(|it| it.is_some()));
        let counter = Arc::new(Counter::default());
        let waker = Waker::from(Arc::clone(&counter));
        let (clone, first) = (store.clone(), key(1));
        let mut waiting = pin!(clone.lock(&first));
        for _ in 0..3 {
            assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        {
            // One that gives up does not hold up the others.
            let mut gives_up = pin!(store.lock(&first));
            assert!(gives_up.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        drop(held);
        assert_eq!(counter.0.load(Ordering::Relaxed), 1);
        let locked = waiting.as_mut().poll(&mut Context::from_waker(&waker));
        let Poll::Ready(Ok(lock)) = locked else { panic!("the lock is free") };
        assert_eq!(format!("{lock:?}"), "CredentialLock { locks: true }");
        drop(lock);
        assert!(store.locks.lock(|locks| locks.is_empty()));
    }
}

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};

use super::JwtError;
use super::document::{Fetch, Source};
use super::key_set::KeySet;

/// How long keys are used before they are fetched again. 15 min: the time until a withdrawn key is
/// rejected.
const FRESH_MAX: Duration = Duration::from_secs(15 * 60);
/// How long keys are used if they cannot be fetched again. 1 h: long enough for an outage of the
/// issuer, but not forever.
const STALE_MAX: Duration = Duration::from_secs(60 * 60);

/// The keys of an issuer, fetched on demand by one request at a time. Tokens cannot cause frequent
/// fetches.
pub(super) struct KeyCache {
    fetch: Arc<Fetch>,
    source: Source,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The keys and when they were fetched, in seconds since 1970.
    keys: Option<(Arc<KeySet>, u64)>,
    /// When the last fetch started, in seconds since 1970.
    attempted: Option<u64>,
    /// The current fetch, shared by its waiters: each of them polls it, and if all of them are
    /// dropped, the next one continues it.
    flight: Option<Flight>,
    /// The error of the last fetch.
    failure: Option<JwtError>,
}

type Flight = Shared<BoxFuture<'static, Result<Arc<KeySet>, JwtError>>>;

impl KeyCache {
    pub(super) fn new(fetch: Fetch, source: Source) -> Self {
        Self { fetch: Arc::new(fetch), source, state: Mutex::default() }
    }

    /// Returns keys that satisfy `suffice`, fetching them if needed, or else the cached keys.
    /// Fetches start at least `interval` apart. `now`: seconds since 1970.
    pub(super) async fn get(
        &self,
        now: u64,
        interval: Duration,
        suffice: impl FnOnce(&KeySet) -> bool,
    ) -> Result<Arc<KeySet>, JwtError> {
        let Some(flight) = self.flight(now, interval, suffice) else { return self.stale(now) };
        let result = flight.clone().await;
        {
            let mut state = self.state();
            // Only the first waiter stores the result, and only if no other fetch has started
            // since.
            if state.flight.as_ref().is_some_and(|it| it.ptr_eq(&flight)) {
                state.flight = None;
                match result {
                    Ok(keys) => state.keys = Some((keys, now)),
                    Err(failure) => state.failure = Some(failure),
                }
            }
        }
        self.stale(now)
    }

    /// Returns the fetch to wait for; `None` if none is possible or needed.
    fn flight(
        &self,
        now: u64,
        interval: Duration,
        suffice: impl FnOnce(&KeySet) -> bool,
    ) -> Option<Flight> {
        // Not under the lock, which all checks share: `suffice` may verify a signature for each
        // key.
        let fresh = self.fresh(now);
        if fresh.as_deref().is_some_and(suffice) {
            return None;
        }
        let mut state = self.state();
        let recent = state.attempted.is_some_and(|it| within(interval, now, it));
        // A fetch that has not completed in that time is abandoned.
        if !recent {
            let (fetch, source) = (Arc::clone(&self.fetch), self.source.clone());
            let flight = async move { fetch.keys(&source).await.map(Arc::new) };
            state.attempted = Some(now);
            state.flight = Some(flight.boxed().shared());
        }
        state.flight.clone()
    }

    /// Returns the cached keys, unless they are too old.
    fn fresh(&self, now: u64) -> Option<Arc<KeySet>> {
        let state = self.state();
        let (keys, fetched) = state.keys.as_ref()?;
        within(FRESH_MAX, now, *fetched).then(|| Arc::clone(keys))
    }

    fn stale(&self, now: u64) -> Result<Arc<KeySet>, JwtError> {
        let state = self.state();
        match &state.keys {
            Some((keys, fetched)) if within(STALE_MAX, now, *fetched) => Ok(Arc::clone(keys)),
            _ => Err(state.failure.clone().unwrap_or_else(|| {
                JwtError::Unavailable("the first fetch is still in progress".to_owned())
            })),
        }
    }

    /// Nothing panics under the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether `then` is less than `time` away from `now`. If the clock jumped by more than
/// that, in either direction, it is not.
const fn within(time: Duration, now: u64, then: u64) -> bool {
    now.abs_diff(then) < time.as_secs()
}

impl fmt::Debug for KeyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyCache").field("source", &self.source).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn try_lock_fails_only_while_the_cache_is_busy() {
        let fetch = Fetch::new(|_| ready(Ok::<_, String>(Vec::from(r#"{"keys":[]}"#))));
        let cache = KeyCache::new(fetch, Source::Url("https://a.example/jwks".to_owned()));
        let mut tried = 0;
        for _ in 0..2 {
            let mut keys = pin!(cache.get(5, Duration::from_secs(30), |_| {
                tried += 1;
                assert!(cache.state.try_lock().is_ok(), "the lock is held");
                true
            }));
            let polled = keys.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Ready(Ok(_))));
        }
        assert_eq!(tried, 1);
    }
}

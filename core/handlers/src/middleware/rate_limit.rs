use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::Arc;
use core::time::Duration;

use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{HttpRejection, Status};
use mcp_sansio::{Instant, Principal};
use mcp_sansio_sync::Mutex;

use super::around::{Around, MiddlewareResult, Next};
use crate::reply::HandlerError;

/// Middleware that bounds the requests of each caller over time, with a token bucket. A request
/// beyond the limit waits if it is told to, or is refused.
///
/// Clients get the error `-32600` with the time in `data.retryAfterMs`, on HTTP with status 429 and
/// `Retry-After`; a call of a host fails with `ClientError::RateExceeded`.
///
/// A caller is a [`Principal`], on all connections of the server. On a byte
/// stream it is the connection. On HTTP all callers without a principal share one bucket: nothing
/// that they cannot change tells them apart. Around the calls of a client, each connection has a
/// bucket.
#[derive(Clone)]
pub struct RateLimit {
    buckets: Arc<Mutex<Buckets>>,
    /// The time after which a token is added.
    interval: Duration,
    /// The time in which an empty bucket becomes full, less one interval.
    tolerance: Duration,
    callers_max: usize,
    wait_max: Duration,
}

impl RateLimit {
    /// Creates a limit of `requests` per `period`, at least one. So many may also come at once:
    /// a bucket begins full. Clones share the buckets.
    #[must_use]
    pub fn new(requests: u32, period: Duration) -> Self {
        let interval = period / requests.max(1);
        Self {
            buckets: Arc::new(Mutex::new(Buckets::default())),
            interval,
            tolerance: interval * (requests.max(1) - 1),
            callers_max: 4096,
            wait_max: Duration::ZERO,
        }
    }

    /// Sets how many requests may come at once, at least one.
    #[must_use]
    pub fn burst(mut self, requests: u32) -> Self {
        self.tolerance = self.interval.saturating_mul(requests.max(1) - 1);
        self
    }

    /// Sets how long a request may wait for its token. Zero by default, so that clients learn of
    /// the limit. Those that wait are bounded too: `duration` divided by the time per request, for
    /// each caller.
    #[must_use]
    pub const fn wait_max(mut self, duration: Duration) -> Self {
        self.wait_max = duration;
        self
    }

    /// Sets how many callers have a bucket at the same time, at least one. 4,096 by default: some
    /// hundred kilobytes. Beyond that the bucket that was used longest ago is dropped, so that its
    /// caller begins with a full one.
    #[must_use]
    pub const fn callers_max(mut self, callers: usize) -> Self {
        self.callers_max = callers;
        self
    }

    pub(crate) async fn around<A: Around>(
        &self,
        request: A::Request,
        next: Next<A>,
    ) -> MiddlewareResult<A> {
        // The clock of a host stands still while nothing drives its connection.
        A::sleep(&request, Duration::ZERO).await;
        let (caller, now) = (A::caller(&request), A::now(&request));
        let wait = self.buckets.lock(|buckets| buckets.take(&caller, self, now));
        let wait = wait.map_err(A::rate_exceeded)?;
        if !wait.is_zero() {
            let mut token = Token { limit: self, caller: Some(caller) };
            A::sleep(&request, wait).await;
            token.caller = None;
        }
        next.run(request).await
    }
}

mcp_sansio::partial_debug! { impl Debug for RateLimit { interval, wait_max, callers_max, .. } }

/// Tells callers apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(unnameable_types, reason = "only this crate uses it")]
pub enum CallerKey {
    /// The other end of a byte stream, by the number of the endpoint. Endpoints of one server may
    /// have different clients.
    Owner(usize),
    /// All unknown senders to an endpoint: nothing tells them apart.
    Anonymous(usize),
    Known(Principal),
}

/// The token of a request that waits for it. Dropping it returns the token.
struct Token<'l> {
    limit: &'l RateLimit,
    caller: Option<CallerKey>,
}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        if let Some(caller) = &self.caller {
            let interval = self.limit.interval;
            self.limit.buckets.lock(|buckets| buckets.put_back(caller, interval));
        }
    }
}

/// The buckets, with the order of their use.
#[derive(Default)]
struct Buckets {
    callers: BTreeMap<CallerKey, Bucket>,
    by_use: BTreeMap<u64, CallerKey>,
    uses: u64,
}

/// The time at which the bucket will be full, instead of its tokens: the *generic
/// cell rate algorithm*, which needs no timer to fill buckets.
struct Bucket {
    full_at: Instant,
    used: u64,
}

impl Buckets {
    /// Takes a token. Returns how long to wait for it, or when there will be one.
    #[inline]
    fn take(
        &mut self,
        caller: &CallerKey,
        limit: &RateLimit,
        now: Instant,
    ) -> Result<Duration, Duration> {
        let known = self.callers.get(caller);
        let full_at = known.map_or(now, |bucket| bucket.full_at).max(now);
        let wait = full_at.saturating_since(now).saturating_sub(limit.tolerance);
        if wait > limit.wait_max {
            return Err(wait);
        }
        self.uses += 1;
        let bucket = Bucket { full_at: full_at + limit.interval, used: self.uses };
        if let Some(before) = self.callers.insert(caller.clone(), bucket) {
            self.by_use.remove(&before.used);
        }
        self.by_use.insert(self.uses, caller.clone());
        if self.callers.len() > limit.callers_max.max(1)
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.callers.remove(&oldest);
        }
        Ok(wait)
    }

    #[inline]
    fn put_back(&mut self, caller: &CallerKey, interval: Duration) {
        if let Some(bucket) = self.callers.get_mut(caller) {
            let since_start = bucket.full_at.saturating_since(Instant::ZERO);
            bucket.full_at = Instant::ZERO + since_start.saturating_sub(interval);
        }
    }
}

// ------------------------------------------------------------------ errors

/// The error for a client whose request is beyond the limit until `retry_after` has passed.
pub(super) fn refusal(retry_after: Duration) -> HandlerError {
    let message = format!("too many requests; try again in {retry_after:?}");
    // Rounded up: a client that is told less comes too early.
    let millis = retry_after.as_nanos().div_ceil(1_000_000).min(MILLIS_MAX);
    let data = RawJson::trusted_string(format!(r#"{{"retryAfterMs":{millis}}}"#));
    let seconds = millis.div_ceil(1000).try_into().unwrap_or(u32::MAX);
    let error = ErrorObject::invalid_request(message).with_data(data);
    let refusal = HttpRejection::new(Status::TOO_MANY_REQUESTS, error).retry_after(seconds);
    HandlerError::Refused(Box::new(refusal))
}

/// The largest integer that JSON numbers represent exactly.
const MILLIS_MAX: u128 = (1 << 53) - 1;

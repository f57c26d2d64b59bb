//! The limits that all callers of a server share, and the share of each caller.

use crate::http::{HttpRejection, Status};
use crate::jsonrpc::ErrorObject;

use super::options::ServerLimits;
use super::store_queue::RESERVE;

/// A resource of a server that all its callers use, and that one caller must not use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SharedResource {
    /// Open connections. Enforced by the listener.
    Connections,
    /// Requests whose response is not complete.
    Exchanges,
    /// Legacy sessions.
    Sessions,
    /// Running handlers. Enforced by the layer that runs them.
    Handlers,
    /// Bytes of request bodies that are being read. Enforced by the adapter.
    BodyBytes,
    /// Bytes of responses that their clients have not read. Enforced by the listener.
    ResponseBytes,
    /// Bytes of events that are kept for clients that resume a stream.
    KeptEventBytes,
    /// Bytes of events that the readers of open streams have not taken.
    UnreadEventBytes,
    /// Readers of events in an external store.
    StoreReaders,
    /// Actions that wait for the external store.
    StoreActions,
    /// Bytes of the messages among those actions.
    StoreBytes,
}

/// Which part of a [`SharedLimit`] is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exhausted {
    /// The share of the caller.
    Share,
    /// The total of all callers.
    Total,
}

/// A limit on what all callers use together, and on the part of one caller: of a
/// [`Principal`](crate::Principal), or of a [`RemoteAddress`](crate::http::RemoteAddress) if no
/// principal is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedLimit {
    /// The limited resource.
    pub resource: SharedResource,
    /// The limit of all callers together.
    pub total: usize,
    /// The limit of one caller. Below the total, so that others are served, unless the total is 1.
    pub per_caller: usize,
}

impl SharedLimit {
    /// Creates a limit. `per_caller` is capped at three quarters of the total.
    #[must_use]
    pub const fn new(resource: SharedResource, total: usize, per_caller: usize) -> Self {
        let reserve = if total / 4 > 1 { total / 4 } else { 1 };
        let most = if total > reserve { total - reserve } else { 1 };
        let per_caller = if per_caller < most { per_caller } else { most };
        Self { resource, total, per_caller }
    }
}

impl SharedResource {
    /// Returns the refusal of a request for which there is no room. It says what to do about it:
    /// 429 if the caller has used up its own share, and 503 otherwise.
    #[must_use]
    pub fn refusal(self, exhausted: Exhausted) -> HttpRejection {
        let (own, all) = match self {
            Self::Connections => (
                "this client has too many connections: close some of them, then repeat the request",
                "the server has too many connections: repeat the request later",
            ),
            Self::Exchanges => (
                "too many requests of this client are pending: repeat the request when one of them is answered",
                "the server has too many pending requests: repeat the request later",
            ),
            Self::Sessions => (
                "this client has too many sessions: end some of them",
                "the server has too many sessions: repeat the request later",
            ),
            Self::Handlers => (
                "too many requests of this client are in progress: repeat the request when one of them is answered",
                "the server is working on too many requests: repeat the request later",
            ),
            Self::BodyBytes => (
                "this client is sending too many request bodies: repeat the request when they have arrived",
                "the server is reading too many request bodies: repeat the request later",
            ),
            Self::ResponseBytes => (
                "this client has too many responses that it has not read: read them, then repeat the request",
                "the server holds too many responses that clients have not read: repeat the request later",
            ),
            Self::KeptEventBytes | Self::UnreadEventBytes => (
                "this client has too many events that it has not read: read them, then repeat the request",
                "the server holds too many events that clients have not read: repeat the request later",
            ),
            Self::StoreActions | Self::StoreBytes => (
                "too much of this client waits for the store: repeat the request later",
                "too much waits for the store: repeat the request later",
            ),
            Self::StoreReaders => (
                "too many streams of this client read earlier events: resume when one of them has caught up",
                "too many clients are reading earlier events: resume later",
            ),
        };
        let (status, error) = match exhausted {
            Exhausted::Share => (Status::TOO_MANY_REQUESTS, ErrorObject::invalid_request(own)),
            Exhausted::Total => (Status::SERVICE_UNAVAILABLE, ErrorObject::internal(all)),
        };
        HttpRejection::new(status, error).retry_after(RETRY_AFTER)
    }
}

impl ServerLimits {
    /// Returns the limits that all callers share. [`SharedResource::Connections`] and
    /// [`SharedResource::ResponseBytes`] are limits of a listener, which returns them itself.
    #[must_use]
    pub const fn shared(&self) -> [SharedLimit; 9] {
        use SharedResource as R;
        // Complete, so that a new limit is either here or in the list of those that are not shared.
        let Self {
            exchanges_max,
            exchanges_per_caller_max,
            sessions_max,
            sessions_per_caller_max,
            handlers_max,
            handlers_per_caller_max,
            bodies_bytes_max,
            bodies_bytes_per_caller_max,
            replay_bytes_total_max,
            replay_bytes_per_caller_max,
            unread_bytes_total_max,
            unread_bytes_per_caller_max,
            store_replays_max,
            store_replays_per_caller_max,
            store_actions_max,
            store_actions_per_caller_max,
            store_bytes_max,
            store_bytes_per_caller_max,
            // Limits of one request, one stream or one session.
            body_bytes_max: _,
            kept_headers_bytes_max: _,
            unread_bytes_max: _,
            replay_events_max: _,
            replay_bytes_max: _,
            finished_streams_max: _,
            store_page_events_max: _,
            store_page_bytes_max: _,
            chunk_bytes_max: _,
        } = self;
        [
            SharedLimit::new(R::Exchanges, *exchanges_max, *exchanges_per_caller_max),
            SharedLimit::new(R::Sessions, *sessions_max, *sessions_per_caller_max),
            SharedLimit::new(R::Handlers, *handlers_max, *handlers_per_caller_max),
            SharedLimit::new(R::BodyBytes, *bodies_bytes_max, *bodies_bytes_per_caller_max),
            SharedLimit::new(
                R::KeptEventBytes,
                *replay_bytes_total_max,
                *replay_bytes_per_caller_max,
            ),
            SharedLimit::new(
                R::UnreadEventBytes,
                *unread_bytes_total_max,
                *unread_bytes_per_caller_max,
            ),
            SharedLimit::new(R::StoreReaders, *store_replays_max, *store_replays_per_caller_max),
            SharedLimit::new(R::StoreActions, *store_actions_max, *store_actions_per_caller_max),
            SharedLimit::new(R::StoreBytes, *store_bytes_max, *store_bytes_per_caller_max),
        ]
    }

    /// Returns the number of exchanges at which the next one is refused. An eighth is reserved for
    /// messages other than requests, which usually release resources.
    pub(super) const fn exchanges_max_if(&self, asks: bool) -> usize {
        self.exchanges_max - if asks { self.exchanges_max / RESERVE } else { 0 }
    }

    /// Lowers shares that are not below their total.
    pub(super) const fn with_shares_below_totals(mut self) -> Self {
        let [exchanges, sessions, handlers, bodies, kept, unread, readers, actions, stored] =
            self.shared();
        self.exchanges_per_caller_max = exchanges.per_caller;
        self.sessions_per_caller_max = sessions.per_caller;
        self.handlers_per_caller_max = handlers.per_caller;
        self.bodies_bytes_per_caller_max = bodies.per_caller;
        self.replay_bytes_per_caller_max = kept.per_caller;
        self.unread_bytes_per_caller_max = unread.per_caller;
        self.store_replays_per_caller_max = readers.per_caller;
        self.store_actions_per_caller_max = actions.per_caller;
        self.store_bytes_per_caller_max = stored.per_caller;
        self
    }
}

/// The number of seconds after which a refused client may retry: other requests have ended by then.
const RETRY_AFTER: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_leaves_room_for_others_whatever_is_set() {
        for total in 2..100 {
            for wanted in [0, 1, total - 1, total, usize::MAX] {
                let limit = SharedLimit::new(SharedResource::Sessions, total, wanted);
                assert!(limit.per_caller < total, "{limit:?}");
                assert!(limit.per_caller <= wanted.max(1), "{limit:?}");
                assert!(total < 4 || limit.per_caller <= total - total / 4, "{limit:?}");
            }
        }
        assert_eq!(SharedLimit::new(SharedResource::Sessions, 1, 5).per_caller, 1);
    }

    #[test]
    fn the_defaults_have_a_share_for_each_caller() {
        for limit in ServerLimits::DEFAULT.shared() {
            assert!(limit.per_caller < limit.total, "{limit:?}");
        }
        // None of them is corrected.
        let defaults = ServerLimits::DEFAULT;
        assert_eq!(defaults.clone().with_shares_below_totals(), defaults);
    }

    #[test]
    fn a_lowered_total_lowers_the_shares() {
        let mut limits = ServerLimits::DEFAULT;
        (limits.sessions_max, limits.exchanges_max) = (100, 8);
        let limits = limits.with_shares_below_totals();
        assert_eq!((limits.sessions_per_caller_max, limits.exchanges_per_caller_max), (75, 6));
    }
}

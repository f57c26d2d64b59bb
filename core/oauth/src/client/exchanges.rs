use alloc::boxed::Box;

use mcp_sansio::Instant;
use mcp_sansio::http::ExchangeId;
use mcp_sansio_collections::{Key, Slab};

use super::waiting::RetryableRequest;

/// The exchanges in progress on the network. They have their own ids: a request that is sent again
/// is a new exchange on the network, but the same exchange for the HTTP client.
#[derive(Debug)]
pub(super) struct Exchanges(Slab<Exchange>);

#[derive(Debug)]
pub(super) enum Exchange {
    /// An exchange of the HTTP client.
    Forwarded {
        /// The HTTP client's id of the exchange.
        inner: ExchangeId,
        /// The request, until the head of the response rules out a retry.
        held: Option<Box<RetryableRequest>>,
    },
    /// The exchange that the flow waits for.
    Fetch,
    /// An exchange whose remaining response is not needed.
    Draining {
        /// The remaining bytes before it is aborted.
        left: usize,
        /// When it is aborted.
        until: Instant,
    },
}

const fn id_of(key: Key) -> ExchangeId {
    ExchangeId::from_number(key.to_number())
}

const fn key_of(id: ExchangeId) -> Key {
    Key::from_number(id.to_number())
}

impl Exchanges {
    pub(super) const fn new() -> Self {
        Self(Slab::new())
    }

    pub(super) fn insert(&mut self, exchange: Exchange) -> ExchangeId {
        id_of(self.0.insert(exchange))
    }

    pub(super) fn get_mut(&mut self, id: ExchangeId) -> Option<&mut Exchange> {
        self.0.get_mut(key_of(id))
    }

    pub(super) fn remove(&mut self, id: ExchangeId) -> Option<Exchange> {
        self.0.remove(key_of(id))
    }

    /// Returns the exchange by its id at the HTTP client. Linear in the exchanges in progress.
    pub(super) fn find_inner(&self, inner: ExchangeId) -> Option<ExchangeId> {
        let is_it =
            |it: &Exchange| matches!(it, Exchange::Forwarded { inner: id, .. } if *id == inner);
        self.0.find_from(0, is_it).map(id_of)
    }

    /// Returns the number of exchanges that are being drained.
    pub(super) fn draining(&self) -> usize {
        self.0.iter().filter(|(_, it)| matches!(it, Exchange::Draining { .. })).count()
    }

    /// Returns an exchange that was drained for too long, if any.
    pub(super) fn overdue(&self, now: Instant) -> Option<ExchangeId> {
        let due = |it: &Exchange| matches!(it, Exchange::Draining { until, .. } if *until <= now);
        self.0.find_from(0, due).map(id_of)
    }

    /// Returns when the first drained exchange must be aborted.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let until = |(_, it): (Key, &Exchange)| match it {
            Exchange::Draining { until, .. } => Some(*until),
            _ => None,
        };
        self.0.iter().filter_map(until).min()
    }
}

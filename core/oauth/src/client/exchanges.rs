use alloc::boxed::Box;

use mcp_sansio::Instant;
use mcp_sansio::http::ExchangeId;
use mcp_sansio_collections::{Key, Slab};

use super::waiting::RetryableRequest;

/// The exchanges that are under way on the network. They have names of their own: a request that is
/// sent again is another exchange there, while the HTTP client knows one.
#[derive(Debug)]
pub(super) struct Exchanges(Slab<Exchange>);

#[derive(Debug)]
pub(super) enum Exchange {
    /// One of the HTTP client's.
    Forwarded {
        /// Its name for it.
        inner: ExchangeId,
        /// The request, until the head of the response says that it is not sent again.
        held: Option<Box<RetryableRequest>>,
    },
    /// The one that the flow waits for.
    Fetch,
    /// Nobody needs what is still to come.
    Draining {
        /// Bytes that may still come before it is cut off.
        left: usize,
        /// When it is cut off.
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

    /// The exchange by its name at the HTTP client. Linear in those that are under way.
    pub(super) fn find_inner(&self, inner: ExchangeId) -> Option<ExchangeId> {
        let is_it =
            |it: &Exchange| matches!(it, Exchange::Forwarded { inner: id, .. } if *id == inner);
        self.0.find_from(0, is_it).map(id_of)
    }

    /// How many there are that nobody needs.
    pub(super) fn draining(&self) -> usize {
        self.0.iter().filter(|(_, it)| matches!(it, Exchange::Draining { .. })).count()
    }

    /// One that went on for too long, if there is one.
    pub(super) fn overdue(&self, now: Instant) -> Option<ExchangeId> {
        let due = |it: &Exchange| matches!(it, Exchange::Draining { until, .. } if *until <= now);
        self.0.find_from(0, due).map(id_of)
    }

    /// When the first of them is to be cut off.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let until = |(_, it): (Key, &Exchange)| match it {
            Exchange::Draining { until, .. } => Some(*until),
            _ => None,
        };
        self.0.iter().filter_map(until).min()
    }
}

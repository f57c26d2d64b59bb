/// The counters of a [`RedisStore`](crate::RedisStore) since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreCounters {
    /// Actions that Redis has executed.
    pub executed: u64,
    /// Actions that failed, because Redis did not answer or refused them.
    pub failed: u64,
    /// Events that were not stored because another node had ended their stream.
    pub refused: u64,
    /// Messages received from other nodes.
    pub received: u64,
    /// Connections made for actions: one, and one more for each failure.
    pub connections: u64,
}

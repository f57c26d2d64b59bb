use super::limits::{Limits, Timeouts};
use super::policy::Policy;

/// What a connection grants the other side, and for how long. It never changes, so all connections
/// that are made from the same options share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) policy: Policy,
}

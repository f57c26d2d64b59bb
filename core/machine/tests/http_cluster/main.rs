//! Several HTTP servers that share their sessions and streams through a store.

mod batches;
mod client;
mod cluster;
mod scenarios;
mod schedules;
mod shares;
#[allow(dead_code, reason = "these tests do not look at tasks")]
mod store;

//! Several HTTP servers that share their sessions and streams through a store.

mod client;
mod cluster;
mod scenarios;
mod schedules;
mod store;

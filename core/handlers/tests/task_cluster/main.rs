//! Random schedules of several nodes that share their tasks through a store, on a virtual clock.
//!
//! The seed of a schedule determines everything: the number of nodes, the clients and their
//! requests, the latency of each step, and the faults. Nodes are killed and restarted, pause for
//! longer than their lease, and do not reach the store; the store does not answer, restarts empty,
//! and fails over to a replica without its last writes.
//!
//! Every step checks: a task ends once, with the result that its handler gave; a task that has
//! ended has the same end on every node and at any time, unless the store never had it or has lost
//! it; no task of a node that lives has failed; no other principal finds a task. At the end each
//! task has ended for its client, and when the tasks have expired, no node has a handler or a task
//! left.
//!
//! `MCP_SIM_SCHEDULES=100000 MCP_SIM_FIRST=1000 cargo test -p mcp-sansio-handlers --all-features
//! --test task_cluster any_schedule -- --nocapture` runs 100,000 others; `.ci/simulation` does it in
//! an optimized build.

mod client;
mod cluster;
mod ends;
mod handlers;
mod schedules;
#[path = "../../../machine/tests/http_cluster/store.rs"]
#[allow(dead_code, reason = "these tests do not look at sessions")]
mod store;

//! Deterministic simulation: many clients and servers, one clock, one seed.
//!
//! The seed of a schedule determines everything: the revisions and capabilities of the nodes, the
//! actions of their applications, the latency of each step, and the faults of the network. A
//! schedule uses no threads, no sockets and no system clock, so the same seed gives the same
//! schedule byte for byte, and every failure can be replayed.
//!
//! Byte streams ([`streams`]) are split, stalled, filled up, cut in the middle of a frame and
//! closed in one direction; exchanges ([`exchanges`]) are lost, refused by a proxy, delivered
//! twice, late and out of order, and cut so that one side detects it long after the other. Nodes
//! wake late, crash and restart, with or without the event store. The clock jumps and stops. The
//! applications ([`client_application`], [`server_application`]) call, cancel, subscribe, close,
//! answer, fail, request input, and leave requests unanswered.
//!
//! Every step checks: each call ends exactly once, for a reason that occurred; messages of a call
//! are received once and in order, none after the response, and all of those that precede a
//! response unless a loss was reported; progress increases; no message violates the table of
//! methods ([`checker`]); events on HTTP keep their ids, their order and their text ([`wire`]); the
//! tables of the machine are consistent and within their limits; an expired deadline is removed. At
//! the end the network recovers: every listening client receives a broadcast, every call ends, and
//! no state is left. Some machines are recorded ([`played`]): their replays give the same bytes.
//!
//! * `MCP_SIM_SEED=7 MCP_SIM_TRACE=1 cargo test -p mcp-sansio-handlers --all-features --test
//!   simulation one_schedule -- --nocapture` prints the schedule of a seed.
//! * `.ci/simulation` runs 100,000 schedules in an optimized build, and fails if one of the listed
//!   events never occurred. `MCP_SIM_SCHEDULES=5000000 MCP_SIM_FIRST=1000000 .ci/simulation` runs
//!   five million others.

#![cfg(all(feature = "http", feature = "schemars"))]

mod checker;
mod client_application;
mod coverage;
mod ending;
mod event_store;
mod exchanges;
mod flight;
mod handlers;
mod machine;
mod make;
mod messages;
mod pipe;
#[path = "../../../machine/tests/recording/played.rs"]
mod played;
mod scene;
mod schedule;
mod server_application;
mod side;
mod streams;
mod transcript;
mod web;
mod wire;

use schedule::Kind;

/// Schedules of each kind in an ordinary test run.
const FEW: u64 = 60;

#[test]
fn machines_over_byte_streams_keep_their_promises() {
    let tally = schedule::run_kind(Kind::Streams, FEW);
    assert!(tally.messages > 1000, "{tally}");
}

#[test]
fn machines_over_exchanges_keep_their_promises() {
    let tally = schedule::run_kind(Kind::Exchanges, FEW);
    assert!(tally.messages > 1000, "{tally}");
}

#[test]
fn handlers_over_byte_streams_keep_their_promises() {
    let tally = schedule::run_kind(Kind::HandlersOnStreams, FEW);
    assert!(tally.messages > 1000, "{tally}");
}

#[test]
fn a_schedule_is_the_same_each_time() {
    for seed in 1000..1012 {
        assert_eq!(schedule::run(seed, false).1, schedule::run(seed, false).1, "seed {seed}");
    }
    assert_ne!(schedule::run(1000, false).1, schedule::run(1002, false).1);
}

#[test]
fn one_schedule_can_be_replayed() {
    let seed = schedule::variable("MCP_SIM_SEED").unwrap_or(0);
    let trace = std::env::var_os("MCP_SIM_TRACE").is_some();
    let (tally, _) = schedule::run(seed, trace);
    assert!(tally.steps > 0);
}

#[test]
#[allow(clippy::print_stderr, reason = "prints the coverage")]
fn all_kinds_keep_their_promises() {
    let count = schedule::variable("MCP_SIM_SCHEDULES").unwrap_or(FEW);
    let tally = schedule::run_all(count);
    eprintln!("{tally}");
    let missing = tally.missing();
    assert!(count < 100_000 || missing.is_empty(), "never happened: {missing:?}");
}

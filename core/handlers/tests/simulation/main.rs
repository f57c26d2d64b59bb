//! Deterministic simulation: many clients and servers, one clock, one seed.
//!
//! A schedule is named by its seed, which decides everything: the revisions and capabilities of the
//! nodes, what their applications do, how long each thing takes, and what goes wrong on the way. There
//! are no threads, no sockets and no time in it, so that the same seed gives the same schedule, byte
//! for byte, and a failure can be looked at as often as need be.
//!
//! Byte streams ([`streams`]) are split, stalled, filled up, cut in the middle of a frame and closed in
//! one direction; exchanges ([`exchanges`]) are lost, refused on the way, delivered twice, late and out
//! of order, and cut so that one side learns of it long after the other. Nodes wake late, die and start
//! again, with the store of events or without. The clock jumps, and stands still. The applications
//! ([`guest`], [`desk`]) call, cancel, subscribe, close, answer, fail, ask back, and forget.
//!
//! Held against it all, at each step: every call ends once, and for a reason that there was; messages
//! of a call come once and in order, none after the answer, and all of those that precede an answer
//! unless a loss was reported; progress increases; nobody says what the table of methods forbids
//! ([`judge`]); events on HTTP keep their names, their order and their text ([`wire`]); the books of
//! the machine agree and its bounds hold; a deadline that was met is gone. In the end the network is
//! well again: who listens hears what is said, everything under way ends, and nothing is left.
//!
//! * `MCP_SIM_SEED=7 MCP_SIM_TRACE=1 cargo test -p mcp-sansio --all-features --test simulation
//!   one_schedule -- --nocapture` prints what happens under a seed.
//! * `.ci/simulation` runs 100,000 schedules in an optimised build, and fails if something that can
//!   happen never did. `MCP_SIM_SCHEDULES=5000000 MCP_SIM_FIRST=1000000 .ci/simulation` runs five
//!   million others.

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
mod scene;
mod schedule;
mod server_application;
mod side;
mod streams;
mod transcript;
mod web;
mod wire;

use schedule::Kind;

/// Schedules of each kind that an ordinary test run takes the time for.
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
fn one_schedule_can_be_looked_at() {
    let seed = schedule::variable("MCP_SIM_SEED").unwrap_or(0);
    let trace = std::env::var_os("MCP_SIM_TRACE").is_some();
    let (tally, _) = schedule::run(seed, trace);
    assert!(tally.steps > 0);
}

#[test]
#[allow(clippy::print_stderr, reason = "these are the figures")]
fn all_kinds_keep_their_promises() {
    let count = schedule::variable("MCP_SIM_SCHEDULES").unwrap_or(FEW);
    let tally = schedule::run_all(count);
    eprintln!("{tally}");
    let missing = tally.missing();
    assert!(count < 100_000 || missing.is_empty(), "never happened: {missing:?}");
}

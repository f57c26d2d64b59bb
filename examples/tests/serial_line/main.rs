//! MCP over a noisy serial line: hundreds of conversations with different noise in both eras, and
//! a line that fails.

mod link;

use std::time::Duration;

use mcp_sansio::peer::{CloseReason, Failure};
use mcp_sansio::{Instant, Revision, Revisions};
use mcp_sansio_examples::serial::line::{LineCounts, Noise};
use mcp_sansio_examples::serial::link::{Counts, SILENCE_MAX};
use mcp_sansio_examples::serial::simulation::Simulation;
use mcp_sansio_examples::serial::thermometer::{self, Readings};
use mcp_sansio_handlers::endpoint::{ClientEndpoint, ServerEndpoint};
use mcp_sansio_handlers::{Client, ClientError};
use seeded_random::scaled;

/// The number of noise schedules per era in an ordinary run.
const SCHEDULES: u32 = 250;

/// One packet in five is disturbed.
const NOISE: Noise = Noise { lost: 60, doubled: 60, damaged: 80 };

type Pair = Simulation<ClientEndpoint, ServerEndpoint>;

fn connect(revision: Revision, noise: Noise, seed: u64) -> (Client, Pair) {
    let host = thermometer::host().revisions(Revisions::only(revision));
    let (client, endpoint) = host.connect(seed, Instant::ZERO);
    let server = thermometer::server().endpoint(seed).unwrap();
    (client, Simulation::new(endpoint, server, noise, seed))
}

/// Returns a note that needs several packets.
fn note(seed: u64) -> String {
    (0..100).map(|line| format!("{seed} and {line}~\n")).collect()
}

/// Runs a whole conversation and returns the counts and the duration.
fn run_conversation(revision: Revision, seed: u64) -> (Counts, Counts, LineCounts, Instant) {
    let (client, mut simulation) = connect(revision, NOISE, seed);
    let note = note(seed);
    let readings = simulation.run(thermometer::read(&client, &note)).unwrap().unwrap();
    let expected = Readings {
        progress: vec![1.0, 2.0, 3.0, 4.0, 5.0],
        average: "21.5 °C".into(),
        calibration: "Set to 22 °C.".into(),
        note,
    };
    assert_eq!(readings, expected, "seed {seed}");
    assert_eq!(client.session().unwrap().revision, revision);
    client.close();
    assert!(simulation.run_to_end(), "seed {seed}");
    let counts = (simulation.client().link().counts(), simulation.server().link().counts());
    (counts.0, counts.1, simulation.counts(), simulation.now())
}

fn every_conversation_survives(revision: Revision) {
    let (mut counts, mut resent, mut refused) = (LineCounts::default(), 0, 0);
    let schedules = u64::from(scaled(SCHEDULES));
    for seed in 0..schedules {
        let (client, server, met, _) = run_conversation(revision, seed);
        counts.lost += met.lost;
        counts.doubled += met.doubled;
        counts.damaged += met.damaged;
        resent += client.resent + server.resent;
        refused += client.refused + server.refused;
    }
    // The noise has affected packets of every kind.
    for met in [counts.lost, counts.doubled, counts.damaged, resent, refused] {
        assert!(met > schedules, "{counts:?}, {resent} sent again, {refused} refused");
    }
}

#[test]
fn legacy_conversations_survive_the_noise() {
    // Rule: [LIFE-014] [LIFE-016].
    every_conversation_survives(Revision::V2025_11_25);
}

#[test]
fn modern_conversations_survive_the_noise() {
    // Rule: [LIFE-015] [LIFE-016].
    every_conversation_survives(Revision::V2026_07_28);
}

#[test]
fn the_same_seed_makes_the_same_conversation() {
    let revision = Revision::LATEST;
    assert_eq!(run_conversation(revision, 7), run_conversation(revision, 7));
    assert_ne!(run_conversation(revision, 7), run_conversation(revision, 8));
}

#[test]
fn a_line_without_noise_needs_no_retransmission() {
    let (client, mut simulation) = connect(Revision::LATEST, Noise::default(), 1);
    simulation.run(thermometer::read(&client, &note(1))).unwrap().unwrap();
    for link in [simulation.client().link(), simulation.server().link()] {
        assert_eq!((link.counts().resent, link.counts().refused), (0, 0));
    }
}

#[test]
fn a_dead_line_ends_the_connection() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let (client, mut simulation) = connect(revision, NOISE, 5);
        simulation.run(thermometer::read(&client, "")).unwrap().unwrap();
        simulation.cut();
        let cut_at = simulation.now();
        let error = simulation.run(thermometer::read(&client, "")).unwrap().unwrap_err();
        assert!(matches!(error, ClientError::Failed(Failure::ConnectionLost)), "{error}");
        assert_eq!(client.close_reason(), Some(CloseReason::EndOfInput));
        // Long before the deadline of the call.
        let taken = simulation.now().saturating_since(cut_at);
        assert!(taken <= SILENCE_MAX, "{taken:?}");
        assert!(simulation.run_to_end());
        for link in [simulation.client().link(), simulation.server().link()] {
            assert!(link.is_over());
            assert_eq!(link.poll_timeout(), None);
        }
    }
}

#[test]
fn an_idle_line_stays_connected() {
    let (client, mut simulation) = connect(Revision::LATEST, NOISE, 3);
    simulation.run(client.opened()).unwrap().unwrap();
    // An idle hour.
    let idle = simulation.now();
    assert!(simulation.run(std::future::pending::<()>()).is_none());
    assert!(simulation.now().saturating_since(idle) > Duration::from_secs(3590));
    simulation.run(thermometer::read(&client, "still there")).unwrap().unwrap();
}

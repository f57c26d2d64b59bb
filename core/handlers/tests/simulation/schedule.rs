//! One schedule, determined by its seed, and sets of schedules.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::coverage::{Coverage, Happening};
use crate::exchanges::Exchanges;
use crate::handlers::Handlers;
use crate::make::{Machines, WebMachines};
use crate::scene::Scene;
use crate::streams::Streams;

/// The kind of a schedule, determined by its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Streams,
    Exchanges,
    HandlersOnStreams,
}

/// Kinds by the remainder of the seed.
const KINDS: [Kind; 4] = [Kind::Streams, Kind::Exchanges, Kind::HandlersOnStreams, Kind::Exchanges];

impl Kind {
    pub(crate) const fn from_seed(seed: u64) -> Self {
        KINDS[(seed % KINDS.len() as u64) as usize]
    }
}

/// Prints on a panic how to replay the schedule.
struct Replay(u64);

impl Drop for Replay {
    #[allow(clippy::print_stderr, reason = "tells the developer how to replay the failure")]
    fn drop(&mut self) {
        if thread::panicking() {
            let Self(seed) = self;
            eprintln!(
                "seed {seed} fails; to replay it:\n    MCP_SIM_SEED={seed} MCP_SIM_TRACE=1 cargo test -p mcp-sansio-handlers --all-features --test simulation one_schedule -- --nocapture"
            );
        }
    }
}

/// Runs the schedule with this seed. Returns its coverage and a digest of its transcript.
pub(crate) fn run(seed: u64, prints: bool) -> (Coverage, u64) {
    let _replay = Replay(seed);
    let mut scene = Scene::new(seed, prints);
    scene.tally.schedules = 1;
    let moves = 100 + scene.random.index(400);
    match Kind::from_seed(seed) {
        Kind::Streams => {
            scene.count(Happening::Streams);
            let maker = Machines::new(&mut scene);
            Streams::new(maker, &mut scene).run(moves, &mut scene);
        }
        Kind::Exchanges => {
            scene.count(Happening::Exchanges);
            let maker = WebMachines::new(&mut scene);
            Exchanges::new(maker, &mut scene).run(moves, &mut scene);
        }
        Kind::HandlersOnStreams => {
            scene.count(Happening::HandlersOnStreams);
            Streams::new(Handlers, &mut scene).run(moves, &mut scene);
        }
    }
    scene.tally.seconds = scene.now.as_nanos() / 1_000_000_000;
    (scene.tally, scene.transcript.digest())
}

/// Runs `count` schedules of a kind, starting at the first seed.
pub(crate) fn run_kind(kind: Kind, count: u64) -> Coverage {
    let mut tally = Coverage::new();
    let seeds = (first()..).filter(|seed| Kind::from_seed(*seed) == kind);
    for seed in seeds.take(usize::try_from(count).expect("the number of schedules fits")) {
        tally.add(&run(seed, false).0);
    }
    tally
}

/// Runs `count` schedules of all kinds on all processors.
pub(crate) fn run_all(count: u64) -> Coverage {
    let next = AtomicU64::new(first());
    let end = first() + count;
    let work = || {
        let mut tally = Coverage::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return tally;
            }
            tally.add(&run(seed, false).0);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut sum = Coverage::new();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            match worker.join() {
                Ok(tally) => sum.add(&tally),
                Err(panic) => {
                    // Stop the other threads.
                    next.store(end, Ordering::Relaxed);
                    std::panic::resume_unwind(panic);
                }
            }
        }
    });
    sum
}

/// Reads a number from the environment.
pub(crate) fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name}: {error}")))
}

fn first() -> u64 {
    variable("MCP_SIM_FIRST").unwrap_or(0)
}

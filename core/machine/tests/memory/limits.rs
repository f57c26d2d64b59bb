//! The limits of the tests: the two presets, and unusual ones.

use mcp_sansio::peer::{Limits, MessageLengths};
use seeded_random::Random;

/// Returns unusual limits, which are equal for equal seeds.
pub(crate) fn odd(seed: u64) -> (Limits, MessageLengths) {
    let mut random = Random::new(seed);
    let mut draw = |most: usize| random.index(most + 1);
    let mut limits = Limits::SMALL;
    limits.batch_length_max = draw(40);
    limits.batch_bytes_max = draw(5000);
    limits.requests_in_flight_max = draw(60);
    limits.calls_in_flight_max = 2 + draw(100);
    limits.transmit_bytes_max = draw(30_000);
    limits.tombstones_max = draw(70);
    limits.inputs_per_round_max = draw(9);
    limits.input_bytes_max = draw(20_000);
    limits.subscribed_resources_max = draw(50);
    limits.listen_streams_max = draw(10);
    limits.uri_length_max = 16 + draw(300);
    (limits, MessageLengths::new(1500 + draw(6000), 300 + draw(3000)))
}

/// Returns the default limits, reduced where filling them would take minutes.
pub(crate) fn large() -> (Limits, MessageLengths) {
    let mut limits = Limits::DEFAULT;
    limits.requests_in_flight_max = 256;
    limits.calls_in_flight_max = 1024;
    limits.subscribed_resources_max = 512;
    limits.transmit_bytes_max = 1024 * 1024;
    limits.input_bytes_max = 1024 * 1024;
    (limits, MessageLengths::new(64 * 1024, 1024))
}

/// Returns the small limits, with the message lengths of a device.
pub(crate) const fn small() -> (Limits, MessageLengths) {
    (Limits::SMALL, MessageLengths::new(1024, 512))
}

/// Returns limits for a device with little heap that handles one request at a time.
const fn tight() -> (Limits, MessageLengths) {
    let mut limits = Limits::SMALL;
    limits.batch_length_max = 1;
    limits.batch_bytes_max = 0;
    limits.requests_in_flight_max = 1;
    limits.calls_in_flight_max = 1;
    limits.tombstones_max = 1;
    limits.transmit_bytes_max = 512;
    limits.inputs_per_round_max = 1;
    limits.input_bytes_max = 512;
    limits.subscribed_resources_max = 1;
    limits.listen_streams_max = 1;
    limits.uri_length_max = 32;
    (limits, MessageLengths::new(512, 512))
}

#[cfg(target_pointer_width = "64")]
#[test]
fn the_documentation_has_the_results_of_the_formulas() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/memory.md");
    let documentation = std::fs::read_to_string(path).unwrap();
    let (small, small_lengths) = small();
    let (tight, tight_lengths) = tight();
    let figures = [
        small.server_memory_max(small_lengths),
        small.client_memory_max(small_lengths),
        tight.server_memory_max(tight_lengths),
        tight.client_memory_max(tight_lengths),
    ];
    let figures = figures.map(|bytes| format!("{},{:0>3}", bytes / 1000, bytes % 1000));
    for figure in &figures {
        assert!(documentation.contains(figure), "{figures:?}");
    }
}

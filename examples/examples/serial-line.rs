//! MCP over a serial line that loses, duplicates and damages packets: the link layer of
//! `examples/src/serial` on a simulated clock and line. `docs/guide/custom-transport.md` explains
//! this program.
#![allow(clippy::print_stdout, reason = "a command line program")]

use std::error::Error;

use mcp_sansio::{Instant, Revision, Revisions};
use mcp_sansio_examples::serial::line::Noise;
use mcp_sansio_examples::serial::simulation::Simulation;
use mcp_sansio_examples::serial::thermometer;

fn main() -> Result<(), Box<dyn Error>> {
    let seed = std::env::args().nth(1).map_or(Ok(42), |seed| seed.parse())?;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let host = thermometer::host().revisions(Revisions::only(revision));
        let (client, endpoint) = host.connect(seed, Instant::ZERO);
        let server = thermometer::server().endpoint(seed)?;
        let noise = Noise { lost: 100, doubled: 100, damaged: 100 };
        let mut simulation = Simulation::new(endpoint, server, noise, seed);

        let note = "a note of several packets ".repeat(40);
        let readings = simulation
            .run(thermometer::read(&client, &note))
            .ok_or("the simulation got stuck")??;
        println!("{revision}: {}. {}", readings.average, readings.calibration);
        println!(
            "  {} progress notifications; the note is intact: {}",
            readings.progress.len(),
            readings.note == note
        );
        let (met, link) = (simulation.counts(), simulation.client().link().counts());
        println!(
            "  the line lost {} packets, duplicated {}, damaged {}",
            met.lost, met.doubled, met.damaged
        );
        println!("  the client sent {} packets, {} of them retransmitted", link.sent, link.resent);

        simulation.cut();
        let cut_at = simulation.now();
        match simulation.run(thermometer::read(&client, &note)).ok_or("the simulation got stuck")? {
            Ok(_) => return Err("a response arrived over the cut line".into()),
            Err(error) => {
                let taken = simulation.now().saturating_since(cut_at);
                println!(
                    "  with the line cut, the call ended after {:.1} s: {error}",
                    taken.as_secs_f64()
                );
            }
        }
    }
    Ok(())
}

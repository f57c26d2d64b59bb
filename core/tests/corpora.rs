//! Replays the committed corpora of the fuzz targets.

use std::fs;
use std::path::Path;

fn replay(target: &str, run: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in fs::read_dir(&corpus).expect("the corpus is committed") {
        let path = entry.expect("the corpus is readable").path();
        let bytes = fs::read(&path).expect("a seed is readable");
        // The name of the seed at fault is in the panic's context.
        let result = std::panic::catch_unwind(|| run(&bytes));
        assert!(result.is_ok(), "seed {}", path.display());
        count += 1;
    }
    assert!(count > 0, "no seeds in {}", corpus.display());
}

#[test]
fn envelope() {
    replay("envelope", mcp_sansio::fuzzing::envelope);
}

#[test]
fn lines() {
    replay("lines", mcp_sansio::fuzzing::lines);
}

#[test]
fn sse() {
    replay("sse", mcp_sansio::fuzzing::sse);
}

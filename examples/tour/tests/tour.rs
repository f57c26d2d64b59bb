//! The tour runs to its end, and its output is complete.

use std::process::Command;

/// Returns the output of the tour.
fn tour(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tour")).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_tour_completes() {
    let shown = tour(&[]);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        assert!(shown.contains(&format!("\n  {revision} ")), "{shown}");
    }
    assert!(!shown.contains("jsonrpc"), "{shown}");
    for words in [
        "POST tools/call → 200, cut off\n    GET with Last-Event-ID 2-2 → 200\n",
        "1 of 5, 2 of 5, 3 of 5, 4 of 5, 5 of 5\n  Arrived after 5 steps\n",
        "Tea is ready\n",
        "the user grants another scope: a token for mcp:basic mcp:write   Booked for 4.\n",
        "refreshed without the user   Sunny in Oslo\n    POST /token → 200\n    POST tools/call → 200\n",
    ] {
        assert!(shown.contains(words), "{shown}");
    }
    let shown = tour(&["--wire"]);
    assert!(shown.contains(r#"--> {"jsonrpc":"2.0""#), "{shown}");
    assert!(shown.contains("] GET http://"), "{shown}");
    assert!(shown.contains("      last-event-id: "), "{shown}");
    for secret in ["Bearer ey", "\"access_token\"", "code_verifier"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}

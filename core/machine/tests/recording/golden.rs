use mcp_sansio::recording::Replay;

/// Recordings of the example programs, made when the format was new: in each role, over a byte
/// stream at both eras, and over HTTP with sessions, streams that are taken up again and modern
/// requests.
///
/// Whoever changes what the machines say on purpose makes them anew, with `--record` of
/// `mcp-inspect` and `everything-server`; whoever changes the format gives it another number and
/// keeps these as they are.
pub(crate) const GOLDEN: &[(&str, &[u8])] = &[
    ("client", include_bytes!("golden/client.jsonl")),
    ("server", include_bytes!("golden/server.jsonl")),
    ("legacy-client", include_bytes!("golden/legacy-client.jsonl")),
    ("legacy-server", include_bytes!("golden/legacy-server.jsonl")),
    ("http-client", include_bytes!("golden/http-client.jsonl")),
    ("http-server", include_bytes!("golden/http-server.jsonl")),
];

#[test]
fn recordings_of_other_days_give_the_same() {
    for (name, recording) in GOLDEN {
        let mut replay = Replay::new(recording).unwrap_or_else(|error| panic!("{name}: {error}"));
        while replay.step().unwrap_or_else(|error| panic!("{name}: {error}")).is_some() {}
        let lines = recording.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(replay.inputs() + replay.outputs(), lines - 1, "{name}");
        assert!(replay.inputs() > 4 && replay.outputs() > 4, "{name}");
    }
}

use mcp_sansio::recording::Replay;

/// Recordings of the example programs, made when the format was introduced: in each role, over a
/// byte stream in both eras, and over HTTP with sessions, resumed streams and modern requests.
///
/// An intended change of the machine output requires new recordings, made with `--record`
/// of `mcp-inspect` and `everything-server`. A change of the format requires a new format number,
/// and these recordings stay.
pub(crate) const GOLDEN: &[(&str, &[u8])] = &[
    ("client", include_bytes!("golden/client.jsonl")),
    ("server", include_bytes!("golden/server.jsonl")),
    ("legacy-client", include_bytes!("golden/legacy-client.jsonl")),
    ("legacy-server", include_bytes!("golden/legacy-server.jsonl")),
    ("http-client", include_bytes!("golden/http-client.jsonl")),
    ("http-server", include_bytes!("golden/http-server.jsonl")),
];

#[test]
fn old_recordings_give_the_same_output() {
    for (name, recording) in GOLDEN {
        let mut replay = Replay::new(recording).unwrap_or_else(|error| panic!("{name}: {error}"));
        while replay.step().unwrap_or_else(|error| panic!("{name}: {error}")).is_some() {}
        let lines = recording.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(replay.inputs() + replay.outputs(), lines - 1, "{name}");
        assert!(replay.inputs() > 4 && replay.outputs() > 4, "{name}");
    }
}

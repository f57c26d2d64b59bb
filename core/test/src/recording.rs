use alloc::sync::Arc;
use alloc::vec::Vec;

use mcp_sansio::Tape;
use mcp_sansio::recording::Replay;
use mcp_sansio_sync::Mutex;

/// A recording of one machine, kept in memory.
///
/// Record a session that must keep working, put its bytes into a file in the repository, and replay
/// the file in a test with [`assert_replays`].
///
/// ```
/// use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
/// use mcp_sansio_test::{Recording, assert_replays, connect};
///
/// let recording = Recording::default();
/// let tape = recording.clone();
/// let server = Server::new("clock", "1.0.0")
///     .tool("now", "The time", |_: Call<NoArguments>| "noon")
///     .record(move |_| Some(tape.tape()));
/// let (client, mut pair) = connect(&server, &Host::new("test", "1.0.0"));
/// pair.run(client.call_tool("now", &NoArguments {}))?;
///
/// let bytes = recording.to_bytes(); // A test would read them from a file.
/// assert_replays(&bytes);
/// # Ok::<(), mcp_sansio_handlers::ClientError>(())
/// ```
#[derive(Clone, Default)]
pub struct Recording(Arc<Mutex<Vec<u8>>>);

impl Recording {
    /// Returns a tape for a machine, and erases the previous recording.
    #[must_use]
    pub fn tape(&self) -> Tape {
        self.0.lock(Vec::clear);
        let lines = Arc::clone(&self.0);
        Tape::new(move |line| lines.lock(|lines| lines.extend_from_slice(line)))
    }

    /// Returns the lines recorded so far.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.lock(|lines| lines.clone())
    }
}

mcp_sansio::partial_debug! { impl Debug for Recording(..) }

/// Replays a recording, and checks that the machine still produces the same output, byte for byte.
///
/// A replay runs the protocol, not the handlers: the recording contains the result of each handler.
///
/// # Panics
///
/// If an output differs from the recorded one, or the recording cannot be read or contains no
/// input. The message has the line in both versions.
#[track_caller]
pub fn assert_replays(recording: &[u8]) {
    let mut replay = Replay::new(recording).unwrap_or_else(|error| panic!("{error}"));
    loop {
        match replay.step() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(replay.inputs() > 0, "the recording contains no input");
}

//! States that travel through the client and come back unchanged, or not at all.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_sansio::seal::Seal;
use mcp_sansio_handlers::Server;

/// Enough for a user who looks something up before they answer.
const LIFETIME: Duration = Duration::from_secs(600);

/// Seals states with a key of this process: a server of several processes would be given one.
///
/// # Panics
///
/// When the operating system has no entropy: better no server than one that believes anybody.
pub(super) fn seal_states(server: Server) -> Server {
    let mut key = [0; 32];
    getrandom::fill(&mut key).expect("the operating system has entropy");
    server.seal(Seal::new(key), LIFETIME, unix_time)
}

#[allow(clippy::disallowed_methods, reason = "a program is where the time comes from")]
fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

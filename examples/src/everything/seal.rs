//! Protection of request states against modification by the client.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_sansio::seal::Seal;
use mcp_sansio_handlers::Server;

/// Long enough for a user who looks something up before they answer.
const LIFETIME: Duration = Duration::from_secs(600);

/// Seals request states with a random key of this process. A server with several processes needs a
/// shared key.
///
/// # Panics
///
/// Panics if the random number generator of the operating system fails, because states could be
/// forged without a key.
pub(super) fn seal_states(server: Server) -> Server {
    let mut key = [0; 32];
    getrandom::fill(&mut key).expect("the operating system provides random numbers");
    server.seal(Seal::new(key), LIFETIME, unix_time)
}

#[allow(clippy::disallowed_methods, reason = "programs may read the system clock")]
fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_sansio::Instant;
use mcp_sansio::handler::TaskSettings;

use crate::now;

/// What [`Server::tasks`](crate::Server::tasks) takes: entropy and the time of day from the
/// operating system. A clock that is set later is not followed.
///
/// # Errors
///
/// The operating system has no entropy.
pub fn task_settings() -> io::Result<TaskSettings> {
    fill(&mut [0; 16])?;
    let entropy = || {
        let mut name = [0; 16];
        fill(&mut name).expect("what gives entropy once does not stop");
        name
    };
    Ok(TaskSettings::new(entropy, time_of_origin()))
}

fn fill(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(io::Error::from)
}

/// The time since 1970 at the origin of our clock.
#[allow(clippy::disallowed_methods, reason = "an adapter is where the time comes from")]
fn time_of_origin() -> Duration {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    time.saturating_sub(now().saturating_since(Instant::ZERO))
}

//! Extensions of the protocol that need an operating system: entropy for the ids of tasks, and
//! [`SkillFolder`](skills::SkillFolder), which reads Skills from disk.

mod folder;

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_sansio::Instant;
use mcp_sansio_handlers::TaskSettings;

use crate::clock;

/// Skills: all of [`mcp_sansio_extensions::skills`], and [`SkillFolder`](skills::SkillFolder),
/// which reads them from disk.
pub mod skills {
    pub use super::folder::{SkillFolder, SkillFolderError};
    pub use mcp_sansio_extensions::skills::*;
}

// ------------------------------------------------------------------ task settings

/// Returns the settings for [`Server::tasks`](mcp_sansio_handlers::Server::tasks): entropy and the
/// time of day from the operating system. Tasks do not follow later changes to the time of day.
///
/// # Errors
///
/// The operating system has no entropy.
pub fn task_settings() -> io::Result<TaskSettings> {
    fill(&mut [0; 16])?;
    let entropy = || {
        let mut name = [0; 16];
        fill(&mut name).expect("the operating system provided entropy before");
        name
    };
    Ok(TaskSettings::new(entropy, time_of_origin(clock::now())))
}

fn fill(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(io::Error::from)
}

/// Returns the time since 1970 at the origin of the clock.
#[allow(clippy::disallowed_methods, reason = "an adapter provides the time")]
fn time_of_origin(now: Instant) -> Duration {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    time.saturating_sub(now.saturating_since(Instant::ZERO))
}

//! Extensions of the protocol that need an operating system: entropy for the ids of tasks, and
//! [`SkillFolder`](skills::SkillFolder), which reads Skills from disk.

mod directory;
mod folder;
mod task_settings;

pub use task_settings::task_settings;

/// Skills: all of [`mcp_sansio_extensions::skills`], and [`SkillFolder`], which reads them from disk.
pub mod skills {
    pub use super::folder::{SkillFolder, SkillFolderError};
    pub use mcp_sansio_extensions::skills::*;
}

//! Skills: all of [`mcp_sansio_extensions::skills`], and [`SkillFolder`], which reads them from disk.

mod directory;
mod folder;

pub use folder::{SkillFolder, SkillFolderError};
pub use mcp_sansio_extensions::skills::*;

use alloc::string::String;
use alloc::vec::Vec;

/// A skill whose content is generated, so that no digests can be published: it is listed as
/// `"dynamic"`, and hosts may decline it.
///
/// ```
/// use mcp_sansio_extensions::skills::{Frontmatter, GeneratedSkill, SkillSet};
///
/// struct Daily;
///
/// impl GeneratedSkill for Daily {
///     fn read(&self, path: &str) -> Option<Vec<u8>> {
///         let head = "---\nname: daily\ndescription: Today's report\n---\n";
///         (path == "SKILL.md").then(|| format!("{head}It is day 7.\n").into_bytes())
///     }
/// }
///
/// let frontmatter = Frontmatter::from_name("daily", "Today's report");
/// let skills = SkillSet::builder().generated("reports/daily", frontmatter, Daily).build()?;
/// assert!(skills.get("skill://reports/daily/SKILL.md").unwrap().is_dynamic());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// MCP 2026-07-28 skills:skills#resources [SKILL-047]
pub trait GeneratedSkill: Send + Sync {
    /// Returns the content of the file at a path in the skill, such as `SKILL.md`, or `None` if the
    /// skill has no such file. The frontmatter of `SKILL.md` has to be that of the entry. Must not block.
    fn read(&self, path: &str) -> Option<Vec<u8>>;

    /// Returns the paths of the files that exist now, besides the `SKILL.md`, for reads of
    /// directories. Must not block.
    fn paths(&self) -> Vec<String> {
        Vec::new()
    }
}

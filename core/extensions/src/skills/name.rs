//! Names of skills.

/// The longest name, in characters.
// Agent Skills specification, `name` field: "Must be 1-64 characters".
const LENGTH_MAX: usize = 64;

/// Why a text is not the name of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSkillName {
    /// It is empty or has more than 64 characters.
    #[error("a skill's name has 1 to 64 characters")]
    Length,
    /// It contains a character other than lower-case letters, digits and hyphens.
    #[error("a skill's name has no {0:?}: only lower-case letters, digits and hyphens")]
    Character(char),
    /// It begins or ends with a hyphen, or two hyphens follow each other.
    #[error("hyphens of a skill's name stand between letters or digits, one at a time")]
    Hyphen,
}

/// Checks the name of a skill: 1 to 64 lower-case letters, digits and single inner hyphens.
///
/// Only the letters a to z are accepted: hosts differ in whether they accept others.
///
/// ```
/// use mcp_sansio_extensions::skills::{InvalidSkillName, check_name};
///
/// assert_eq!(check_name("pdf-processing"), Ok(()));
/// assert_eq!(check_name("PDF"), Err(InvalidSkillName::Character('P')));
/// ```
///
/// # Errors
///
/// The name is invalid: see [`InvalidSkillName`].
// MCP 2026-07-28 skills:skills#resource-mapping [SKILL-014]
pub fn check_name(name: &str) -> Result<(), InvalidSkillName> {
    if name.is_empty() || name.chars().count() > LENGTH_MAX {
        return Err(InvalidSkillName::Length);
    }
    let allowed = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-';
    if let Some(other) = name.chars().find(|c| !allowed(c)) {
        return Err(InvalidSkillName::Character(other));
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        return Err(InvalidSkillName::Hyphen);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_words_joined_by_hyphens() {
        // Rule: [SKILL-014].
        for name in ["a", "7", "git-workflow", "a1-b2-c3", &"x".repeat(64)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for (name, reason) in [
            ("", InvalidSkillName::Length),
            (&*"x".repeat(65), InvalidSkillName::Length),
            ("Git", InvalidSkillName::Character('G')),
            ("git_workflow", InvalidSkillName::Character('_')),
            ("café", InvalidSkillName::Character('é')),
            ("-git", InvalidSkillName::Hyphen),
            ("git-", InvalidSkillName::Hyphen),
            ("git--flow", InvalidSkillName::Hyphen),
        ] {
            assert_eq!(check_name(name), Err(reason), "{name}");
        }
    }
}

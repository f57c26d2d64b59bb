//! Parameters and results of the extension's methods.

use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::jsonrpc::{Json, lossy_list};
use mcp_sansio::protocol::{CacheHints, CacheScope, Resource, SerializeAt, Ttl};
use mcp_sansio::{Era, Revision};
use mcp_sansio_handlers::extension::ExtensionMethod;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::ID;
#[cfg(doc)]
use super::entry::Skill;

/// `skills/list`: lists the skills that a server serves.
// The specification defines the declaration of the server alone, so that a client without one is
// served too.
// MCP 2026-07-28 skills:skills#capability-negotiation [SKILL-006]
pub const LIST_SKILLS: ExtensionMethod<ListSkillsParams, ListSkillsResult> =
    ExtensionMethod::new(ID, "skills/list").from_any_client();

/// `skills/get`: returns the entry of one skill.
pub const GET_SKILL: ExtensionMethod<GetSkillParams, GetSkillResult> =
    ExtensionMethod::new(ID, "skills/get").from_any_client();

/// `resources/directory/read`: lists the direct children of a directory.
pub const READ_DIRECTORY: ExtensionMethod<ReadDirectoryParams, ReadDirectoryResult> =
    ExtensionMethod::new(ID, "resources/directory/read").from_any_client();

/// The parameters of `skills/list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ListSkillsParams {
    /// The end of the previous page; `None` requests the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The result of `skills/list`: a page of entries.
///
/// An entry is kept as JSON: one that is broken does not make the others unreadable. Decode each to
/// a [`Skill`].
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListSkillsResult {
    /// The entries.
    #[serde(deserialize_with = "lossy_list")]
    pub skills: Vec<Json>,
    /// The cursor of the next page; `None` on the last page.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// How long the listing stays fresh, in milliseconds; since 2026-07-28.
    #[serde(default)]
    pub ttl_ms: Ttl,
    /// Whether it may be shared between users; since 2026-07-28.
    #[serde(default, deserialize_with = "or_default")]
    pub cache_scope: CacheScope,
    #[serde(skip, default = "latest")]
    revision: Revision,
}

/// The parameters of `skills/get`.
// MCP 2026-07-28 skills:skills#getting-a-skill [SKILL-063]
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct GetSkillParams {
    /// The URI of a `SKILL.md`.
    pub uri: String,
}

/// The result of `skills/get`.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetSkillResult {
    /// The entry, as JSON: decode it to a [`Skill`].
    pub skill: Json,
    /// How long the entry stays fresh, in milliseconds; since 2026-07-28.
    #[serde(default)]
    pub ttl_ms: Ttl,
    /// Whether it may be shared between users; since 2026-07-28.
    #[serde(default, deserialize_with = "or_default")]
    pub cache_scope: CacheScope,
    #[serde(skip, default = "latest")]
    revision: Revision,
}

/// The parameters of `resources/directory/read`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ReadDirectoryParams {
    /// The URI of a directory, without a slash at its end.
    pub uri: String,
    /// The end of the previous page; `None` requests the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The result of `resources/directory/read`: the files and directories that are directly in it.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadDirectoryResult {
    /// The children. The `mimeType` of a directory is `inode/directory`.
    #[serde(deserialize_with = "lossy_list")]
    pub resources: Vec<Resource>,
    /// The cursor of the next page; `None` on the last page.
    #[serde(default)]
    pub next_cursor: Option<String>,
    #[serde(skip, default = "latest")]
    revision: Revision,
}

impl ListSkillsParams {
    /// Creates the parameters of a page.
    #[must_use]
    pub fn new(cursor: Option<String>) -> Self {
        Self { cursor }
    }
}

impl GetSkillParams {
    /// Creates the parameters for the skill at `uri`.
    #[must_use]
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}

impl ReadDirectoryParams {
    /// Creates the parameters for a page of a directory.
    #[must_use]
    pub fn new(uri: impl Into<String>, cursor: Option<String>) -> Self {
        Self { uri: uri.into(), cursor }
    }
}

impl ListSkillsResult {
    /// Creates the last or only page.
    #[must_use]
    pub fn new(skills: Vec<Json>, cache: CacheHints) -> Self {
        let (ttl_ms, cache_scope) = (cache.ttl, cache.scope);
        Self { skills, next_cursor: None, ttl_ms, cache_scope, revision: Revision::LATEST }
    }

    /// Sets [`ListSkillsResult::next_cursor`].
    #[must_use]
    pub fn next_cursor(mut self, cursor: Option<String>) -> Self {
        self.next_cursor = cursor;
        self
    }
}

impl GetSkillResult {
    /// Creates the result.
    #[must_use]
    pub fn new(skill: Json, cache: CacheHints) -> Self {
        let (ttl_ms, cache_scope) = (cache.ttl, cache.scope);
        Self { skill, ttl_ms, cache_scope, revision: Revision::LATEST }
    }
}

impl ReadDirectoryResult {
    /// Creates the last or only page.
    #[must_use]
    pub const fn new(resources: Vec<Resource>) -> Self {
        Self { resources, next_cursor: None, revision: Revision::LATEST }
    }

    /// Sets [`ReadDirectoryResult::next_cursor`].
    #[must_use]
    pub fn next_cursor(mut self, cursor: Option<String>) -> Self {
        self.next_cursor = cursor;
        self
    }
}

macro_rules! at_revision {
    ($($result:ty),+) => { $(
        impl $result {
            /// Sets the revision in whose form the result is written: the latest by default.
            #[must_use]
            pub const fn at_revision(mut self, revision: Revision) -> Self {
                self.revision = revision;
                self
            }
        }
    )+ };
}
at_revision!(ListSkillsResult, GetSkillResult, ReadDirectoryResult);

/// The tag of results that are not a request for input.
// MCP 2026-07-28 skills:skills#listing-skills [SKILL-057]
// MCP 2026-07-28 skills:skills#getting-a-skill [SKILL-064]
// MCP 2026-07-28 skills:skills#reading-directories [SKILL-084]
fn write_tag<M: SerializeMap>(map: &mut M, revision: Revision) -> Result<(), M::Error> {
    if revision.era() == Era::Modern {
        map.serialize_entry("resultType", "complete")
    } else {
        Ok(())
    }
}

// MCP 2026-07-28 skills:skills#listing-skills [SKILL-059]
// MCP 2026-07-28 skills:skills#getting-a-skill [SKILL-067]
fn write_cache<M: SerializeMap>(
    map: &mut M,
    ttl: Ttl,
    scope: &CacheScope,
    revision: Revision,
) -> Result<(), M::Error> {
    if revision.era() == Era::Modern {
        map.serialize_entry("ttlMs", &ttl.0)?;
        map.serialize_entry("cacheScope", scope.as_str())?;
    }
    Ok(())
}

fn write_cursor<M: SerializeMap>(map: &mut M, cursor: Option<&String>) -> Result<(), M::Error> {
    cursor.map_or(Ok(()), |cursor| map.serialize_entry("nextCursor", cursor))
}

impl Serialize for ListSkillsResult {
    // MCP 2026-07-28 skills:skills#listing-skills [SKILL-056]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_tag(&mut map, self.revision)?;
        map.serialize_entry("skills", &self.skills)?;
        write_cache(&mut map, self.ttl_ms, &self.cache_scope, self.revision)?;
        write_cursor(&mut map, self.next_cursor.as_ref())?;
        map.end()
    }
}

impl Serialize for GetSkillResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_tag(&mut map, self.revision)?;
        map.serialize_entry("skill", &self.skill)?;
        write_cache(&mut map, self.ttl_ms, &self.cache_scope, self.revision)?;
        map.end()
    }
}

impl Serialize for ReadDirectoryResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_tag(&mut map, self.revision)?;
        map.serialize_entry("resources", &self.resources.at(self.revision))?;
        write_cursor(&mut map, self.next_cursor.as_ref())?;
        map.end()
    }
}

const fn latest() -> Revision {
    Revision::LATEST
}

/// Reads a member that is absent or `null` as its default.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use core::time::Duration;

    use mcp_sansio::jsonrpc::RawJson;

    use super::*;

    fn text<T: Serialize>(value: T) -> String {
        Json::from_serialize(&value).unwrap().as_str().into()
    }

    #[test]
    fn results_have_the_members_of_their_revision() {
        // Rule: [SKILL-057] [SKILL-059] [SKILL-064] [SKILL-067] [SKILL-084].
        let hints = CacheHints::public(Duration::from_secs(300));
        let entry = serde_json::json!({ "uri": "skill://a/SKILL.md" });
        let entry = Json::from_serialize(&entry).unwrap();
        let list = ListSkillsResult::new(vec![entry.clone()], hints.clone());
        let list = list.next_cursor(Some("next".into()));
        assert_eq!(
            text(list.clone()),
            r#"{"resultType":"complete","skills":[{"uri":"skill://a/SKILL.md"}],"ttlMs":300000,"cacheScope":"public","nextCursor":"next"}"#
        );
        assert_eq!(
            text(list.at_revision(Revision::LATEST_LEGACY)),
            r#"{"skills":[{"uri":"skill://a/SKILL.md"}],"nextCursor":"next"}"#
        );
        assert_eq!(
            text(GetSkillResult::new(entry, hints)),
            r#"{"resultType":"complete","skill":{"uri":"skill://a/SKILL.md"},"ttlMs":300000,"cacheScope":"public"}"#
        );
        assert_eq!(
            text(ReadDirectoryResult::new(vec![Resource::new("skill://a/x", "x")])),
            r#"{"resultType":"complete","resources":[{"uri":"skill://a/x","name":"x"}]}"#
        );
    }

    #[test]
    fn results_of_every_revision_are_read() {
        let list = ListSkillsResult::new(vec![], CacheHints::default());
        for revision in Revision::ALL {
            let written = text(list.clone().at_revision(revision));
            assert_eq!(serde_json::from_str::<ListSkillsResult>(&written).unwrap(), list);
        }
        let nulls = r#"{"skills":[],"nextCursor":null,"ttlMs":null,"cacheScope":null}"#;
        assert_eq!(serde_json::from_str::<ListSkillsResult>(nulls).unwrap(), list);
        assert_eq!(text(ListSkillsParams::new(None)), "{}");
    }

    #[test]
    fn a_malformed_child_does_not_hide_the_others_and_null_is_an_empty_list() {
        for (resources, count) in [("null", 0), (r#"[{"uri":"a:"},{"uri":"b:","name":"b"}]"#, 1)] {
            let text = alloc::format!(r#"{{"resources":{resources}}}"#);
            let read = RawJson::parse(&text).unwrap().decode_lossy::<ReadDirectoryResult>();
            assert_eq!(read.unwrap().0.resources.len(), count);
        }
        let listed: ListSkillsResult = serde_json::from_str(r#"{"skills":null}"#).unwrap();
        assert_eq!(listed.skills, []);
    }
}

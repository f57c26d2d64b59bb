//! The contents of a catalog, as a recording stores them.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

#[cfg(feature = "http")]
use mcp_sansio_sync::Arc;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Unperformable, decoded, whole};
use crate::catalog::snapshot::{self, NUMBER_MAX, Snapshot};
#[cfg(feature = "http")]
use crate::catalog::{Announcement, ItemKind};
use crate::catalog::{Audience, Catalog, Changes};
use crate::jsonrpc::RawJson;
use crate::protocol::SerializeAt;
use crate::{Principal, SessionKey};

/// The contents of a catalog [`Snapshot`].
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct State<'a> {
    #[serde(borrow)]
    tools: Entries<'a>,
    #[serde(borrow)]
    resources: Entries<'a>,
    #[serde(borrow)]
    resource_templates: Entries<'a>,
    #[serde(borrow)]
    prompts: Entries<'a>,
    managed: Changes,
    legacy_tasks: bool,
    page_size: Option<NonZeroUsize>,
    list_changed: bool,
    subscribe: bool,
}

/// A list: its entries with their numbers, and the audiences of some of them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Entries<'a> {
    next: u64,
    #[serde(borrow)]
    entries: Vec<(u64, RawJson<'a>)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    audiences: Vec<(u64, RecordedAudience)>,
}

/// An [`Audience`], with stand-ins for its principals.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedAudience {
    scopes: Vec<String>,
    principals: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sessions: Vec<u64>,
}

/// Returns the stand-ins for the names in an [`Audience`].
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) principal: &'a dyn Fn(&Principal) -> String,
    /// The key that the session has in a replay.
    pub(crate) session: &'a dyn Fn(SessionKey) -> SessionKey,
}

impl RecordedAudience {
    fn from_audience(audience: &Audience, names: Names<'_>) -> Self {
        let conditions = audience.condition_scopes(None);
        let sessions = audience.sessions().iter().copied().map(names.session);
        Self {
            scopes: audience.scopes().iter().cloned().chain(conditions).collect(),
            principals: audience.principals().iter().map(names.principal).collect(),
            sessions: sessions.map(SessionKey::to_number).collect(),
        }
    }

    fn to_audience(&self) -> Audience {
        let with_scopes = self.scopes.iter().fold(Audience::new(), Audience::scope);
        let principals = self.principals.iter().map(|name| Principal::new(name.as_str()));
        let sessions = self.sessions.iter().copied().filter_map(SessionKey::from_number);
        sessions.fold(principals.fold(with_scopes, Audience::principal), Audience::session)
    }
}

/// A change of restricted items: its list, and those who can see it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RestrictedChange(Changes, RecordedAudience);

#[cfg(feature = "http")]
impl RestrictedChange {
    pub(crate) fn from_announcement(announcement: &Announcement, names: Names<'_>) -> Vec<Self> {
        let changes = announcement.to_some.iter().map(|(kind, audience)| {
            let kinds = Changes::default().with(*kind);
            Self(kinds, RecordedAudience::from_audience(audience, names))
        });
        changes.collect()
    }

    pub(crate) fn to_announcement(changes: &[Self], to_everyone: Changes) -> Announcement {
        let to_some = changes.iter().map(|Self(kinds, audience)| {
            let kind = match kinds {
                Changes { tools: true, .. } => ItemKind::Tool,
                Changes { prompts: true, .. } => ItemKind::Prompt,
                _ => ItemKind::Resource,
            };
            (kind, Arc::new(audience.to_audience()))
        });
        Announcement::new(to_everyone, to_some.collect())
    }
}

impl Entries<'_> {
    fn from_list<M: SerializeAt + Clone>(
        list: &snapshot::Entries<'_, M>,
        names: Names<'_>,
    ) -> Self {
        let entries = list.entries.iter();
        let audiences = entries.clone().filter_map(|(number, _, audience)| {
            Some((*number, RecordedAudience::from_audience(audience.as_ref()?, names)))
        });
        let audiences = audiences.collect();
        let entries = entries.map(|(number, item, _)| (*number, whole(&**item))).collect();
        Self { next: list.next, entries, audiences }
    }

    fn to_list<M: DeserializeOwned + Clone>(
        &self,
    ) -> Result<snapshot::Entries<'static, M>, Unperformable> {
        let numbers = self.entries.iter().map(|(number, _)| *number).chain([self.next]);
        if numbers.max() > Some(NUMBER_MAX) {
            return Err(Unperformable("the number of an entry is too large"));
        }
        let entries = self.entries.iter();
        let entries = entries
            .map(|(number, json)| {
                let audience = self.audiences.iter().find(|(restricted, _)| restricted == number);
                let audience = audience.map(|(_, audience)| audience.to_audience());
                Ok((*number, Cow::Owned(decoded(json)?), audience))
            })
            .collect::<Result<_, Unperformable>>()?;
        Ok(snapshot::Entries { next: self.next, entries })
    }
}

impl State<'_> {
    pub(crate) fn from_catalog(catalog: &Catalog, names: Names<'_>) -> Self {
        let snapshot = Snapshot::new(catalog);
        Self {
            tools: Entries::from_list(&snapshot.tools, names),
            resources: Entries::from_list(&snapshot.resources, names),
            resource_templates: Entries::from_list(&snapshot.templates, names),
            prompts: Entries::from_list(&snapshot.prompts, names),
            managed: snapshot.managed,
            legacy_tasks: snapshot.legacy_tasks,
            page_size: snapshot.page_size,
            list_changed: snapshot.list_changed,
            subscribe: snapshot.subscribe,
        }
    }

    pub(crate) fn to_catalog(&self) -> Result<Catalog, Unperformable> {
        let snapshot = Snapshot {
            tools: self.tools.to_list()?,
            resources: self.resources.to_list()?,
            templates: self.resource_templates.to_list()?,
            prompts: self.prompts.to_list()?,
            managed: self.managed,
            legacy_tasks: self.legacy_tasks,
            page_size: self.page_size,
            list_changed: self.list_changed,
            subscribe: self.subscribe,
        };
        Ok(snapshot.into_catalog())
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::protocol::{Method, Prompt, Revision};

    #[test]
    fn a_recorded_catalog_keeps_its_entry_numbers() {
        let mut catalog = Catalog::new();
        catalog.page_size(NonZeroUsize::new(1)).list_changed(false);
        for name in ["a", "b", "c", "d"] {
            catalog.add_prompt(Prompt::new(name)).unwrap();
        }
        catalog.remove_prompt("a");
        catalog.remove_prompt("d");
        let _taken = catalog.take_changes();
        let names = Names { principal: &|it| it.as_str().into(), session: &|it| it };
        let text = serde_json::to_string(&State::from_catalog(&catalog, names)).unwrap();
        let state: State<'_> = serde_json::from_str(&text).unwrap();
        let mut again = state.to_catalog().unwrap();
        assert_eq!(serde_json::to_string(&State::from_catalog(&again, names)).unwrap(), text);
        assert!(again.manages(Method::PromptsGet) && !again.manages(Method::ToolsCall));
        for catalog in [&mut catalog, &mut again] {
            catalog.add_prompt(Prompt::new("e")).unwrap();
        }
        // Cursors contain these numbers.
        let mut cursor = RawJson::EMPTY_OBJECT;
        for _ in 0..3 {
            let page = |catalog: &Catalog, params: &RawJson<'_>| {
                let page = catalog.list(
                    Method::PromptsList,
                    params,
                    Revision::LATEST,
                    &crate::protocol::CacheHints::default(),
                    &crate::Caller::OWNER,
                );
                let mut out = String::new();
                crate::jsonrpc::WriteJson::write_json(&page.unwrap(), &mut out).unwrap();
                out
            };
            let text = page(&catalog, &cursor);
            assert_eq!(page(&again, &cursor), text);
            let next = RawJson::parse(&text).unwrap().get("nextCursor").map(|it| format!("{it}"));
            let Some(next) = next else { break };
            cursor = RawJson::parse(&format!(r#"{{"cursor":{next}}}"#)).unwrap().into_owned();
        }
    }
}

//! The contents of a catalog, as a recording stores them.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Unperformable, decoded, whole};
use crate::catalog::snapshot::{self, NUMBER_MAX, Snapshot};
use crate::catalog::{Catalog, Changes};
use crate::jsonrpc::RawJson;
use crate::protocol::SerializeAt;

/// A set of list kinds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Kinds {
    tools: bool,
    prompts: bool,
    resources: bool,
}

impl Kinds {
    pub(crate) const fn from_changes(changes: Changes) -> Self {
        let Changes { tools, prompts, resources } = changes;
        Self { tools, prompts, resources }
    }

    pub(crate) const fn to_changes(self) -> Changes {
        let Self { tools, prompts, resources } = self;
        Changes { tools, prompts, resources }
    }
}

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
    managed: Kinds,
    legacy_tasks: bool,
    page_size: Option<NonZeroUsize>,
    list_changed: bool,
    subscribe: bool,
}

/// A list: its entries with their numbers.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Entries<'a> {
    next: u64,
    #[serde(borrow)]
    entries: Vec<(u64, RawJson<'a>)>,
}

impl Entries<'_> {
    fn from_list<M: SerializeAt + Clone>(list: &snapshot::Entries<'_, M>) -> Self {
        let entries = list.entries.iter();
        let entries = entries.map(|(number, item)| (*number, whole(&**item))).collect();
        Self { next: list.next, entries }
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
            .map(|(number, json)| Ok((*number, Cow::Owned(decoded(json)?))))
            .collect::<Result<_, Unperformable>>()?;
        Ok(snapshot::Entries { next: self.next, entries })
    }
}

impl State<'_> {
    pub(crate) fn from_catalog(catalog: &Catalog) -> Self {
        let snapshot = Snapshot::new(catalog);
        Self {
            tools: Entries::from_list(&snapshot.tools),
            resources: Entries::from_list(&snapshot.resources),
            resource_templates: Entries::from_list(&snapshot.templates),
            prompts: Entries::from_list(&snapshot.prompts),
            managed: Kinds::from_changes(snapshot.managed),
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
            managed: self.managed.to_changes(),
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
        let text = serde_json::to_string(&State::from_catalog(&catalog)).unwrap();
        let state: State<'_> = serde_json::from_str(&text).unwrap();
        let mut again = state.to_catalog().unwrap();
        assert_eq!(serde_json::to_string(&State::from_catalog(&again)).unwrap(), text);
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
                );
                let mut out = alloc::string::String::new();
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

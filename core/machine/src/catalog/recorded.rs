//! What a catalog has, as a recording holds it.

use alloc::vec::Vec;
use core::num::NonZeroUsize;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::item::{Listed, Schemas, ToolItem};
use super::list::List;
use super::{Catalog, Changes, match_template, runs_as_task};
use crate::jsonrpc::RawJson;
use crate::recording::{Unperformable, decoded, whole};

/// The kinds of lists that something is true of.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Kinds {
    tools: bool,
    prompts: bool,
    resources: bool,
}

impl Kinds {
    pub(crate) const fn of(changes: Changes) -> Self {
        let Changes { tools, prompts, resources } = changes;
        Self { tools, prompts, resources }
    }

    pub(crate) const fn to_changes(self) -> Changes {
        let Self { tools, prompts, resources } = self;
        Changes { tools, prompts, resources }
    }
}

/// A catalog whose changes have been taken, but for what validates: no machine asks that.
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

/// A list: its entries, each with the number that cursors know it by.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Entries<'a> {
    next: u64,
    #[serde(borrow)]
    entries: Vec<(u64, RawJson<'a>)>,
}

/// More insertions than any catalog sees, with room for the kind of an entry beside its number.
const NUMBER_MAX: u64 = u64::MAX / 8;

impl Entries<'_> {
    fn of<T: Listed>(list: &List<T>) -> Self {
        let (entries, next) = list.numbered();
        Self { next, entries: entries.map(|(number, it)| (number, whole(it.message()))).collect() }
    }

    fn to_list<T: Listed, M: DeserializeOwned>(
        &self,
        item: impl Fn(M) -> T,
    ) -> Result<List<T>, Unperformable> {
        let numbers = self.entries.iter().map(|(number, _)| *number).chain([self.next]);
        if numbers.max() > Some(NUMBER_MAX) {
            return Err(Unperformable("the number of an entry is too large"));
        }
        let entries = self.entries.iter();
        let items: Vec<(u64, T)> = entries
            .map(|(number, json)| Ok((*number, item(decoded(json)?))))
            .collect::<Result<_, Unperformable>>()?;
        Ok(List::restored(items.into_iter(), self.next))
    }
}

impl State<'_> {
    pub(crate) fn of(catalog: &Catalog) -> Self {
        Self {
            tools: Entries::of(&catalog.tools),
            resources: Entries::of(&catalog.resources),
            resource_templates: Entries::of(&catalog.templates),
            prompts: Entries::of(&catalog.prompts),
            managed: Kinds::of(catalog.managed.and(catalog.changes)),
            legacy_tasks: catalog.legacy_tasks,
            page_size: catalog.page_size,
            list_changed: catalog.list_changed,
            subscribe: catalog.subscribe,
        }
    }

    pub(crate) fn to_catalog(&self) -> Result<Catalog, Unperformable> {
        let tools = self.tools.to_list(|tool| ToolItem { tool, schemas: Schemas::default() })?;
        Ok(Catalog {
            task_tools: tools.iter().filter(|item| runs_as_task(&item.tool)).count(),
            tools,
            resources: self.resources.to_list(|resource| resource)?,
            templates: self.resource_templates.to_list(|template| template)?,
            match_template: Some(match_template),
            prompts: self.prompts.to_list(|prompt| prompt)?,
            legacy_tasks: self.legacy_tasks,
            changes: Changes::default(),
            managed: self.managed.to_changes(),
            page_size: self.page_size,
            list_changed: self.list_changed,
            subscribe: self.subscribe,
            validator: None,
        })
    }
}

impl Catalog {
    /// Has these changes waiting to be taken.
    pub(crate) const fn set_changes(&mut self, changes: Changes) {
        self.changes = changes;
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::protocol::{Method, Prompt, Revision};

    #[test]
    fn a_catalog_comes_back_with_the_numbers_of_its_entries() {
        let mut catalog = Catalog::new();
        catalog.page_size(NonZeroUsize::new(1)).list_changed(false);
        for name in ["a", "b", "c", "d"] {
            catalog.add_prompt(Prompt::new(name)).unwrap();
        }
        catalog.remove_prompt("a");
        catalog.remove_prompt("d");
        let _taken = catalog.take_changes();
        let text = serde_json::to_string(&State::of(&catalog)).unwrap();
        let state: State<'_> = serde_json::from_str(&text).unwrap();
        let mut again = state.to_catalog().unwrap();
        assert_eq!(serde_json::to_string(&State::of(&again)).unwrap(), text);
        assert!(again.manages(Method::PromptsGet) && !again.manages(Method::ToolsCall));
        for catalog in [&mut catalog, &mut again] {
            catalog.add_prompt(Prompt::new("e")).unwrap();
        }
        // Cursors are made of the numbers.
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

//! The contents of a catalog, for recordings.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

use super::audience::{Audience, Restrictions};
use super::item::{ItemKind, Listed, Schemas, ToolItem};
use super::list::List;
use super::list::Listing;
use super::{Catalog, Changes, always_runs_as_task, match_template, runs_as_task};
use crate::Caller;
use crate::protocol::{Prompt, Resource, ResourceTemplate, Tool};
use alloc::string::String;

/// A catalog without pending changes, and without its validator, which machines do not use.
#[derive(Debug)]
pub(crate) struct Snapshot<'c> {
    pub(crate) tools: Entries<'c, Tool>,
    pub(crate) resources: Entries<'c, Resource>,
    pub(crate) templates: Entries<'c, ResourceTemplate>,
    pub(crate) prompts: Entries<'c, Prompt>,
    pub(crate) managed: Changes,
    pub(crate) legacy_tasks: bool,
    pub(crate) page_size: Option<NonZeroUsize>,
    pub(crate) list_changed: bool,
    pub(crate) subscribe: bool,
}

/// A list: its entries, each with the number that is in its cursor.
#[derive(Debug)]
pub(crate) struct Entries<'c, M: Clone> {
    pub(crate) next: u64,
    pub(crate) entries: Vec<(u64, Cow<'c, M>, Option<Audience>)>,
}

/// More insertions than a catalog ever sees, leaving bits for the kind of an entry in its id.
pub(crate) const NUMBER_MAX: u64 = u64::MAX / 8;

impl<'c, M: Clone> Entries<'c, M> {
    fn from_list<T: Listed<Message = M>>(list: &'c List<T>) -> Self {
        let (entries, next) = list.numbered();
        let entries = entries.map(|(number, item, audience)| {
            (number, Cow::Borrowed(item.message()), audience.cloned())
        });
        Self { next, entries: entries.collect() }
    }

    fn into_list<T: Listed<Message = M>>(self, item: impl Fn(M) -> T) -> List<T> {
        let entries = self.entries.into_iter();
        let entries =
            entries.map(|(number, it, audience)| (number, item(it.into_owned()), audience));
        List::restored(entries, self.next)
    }
}

impl<'c> Snapshot<'c> {
    pub(crate) fn new(catalog: &'c Catalog) -> Self {
        Self {
            tools: Entries::from_list(&catalog.tools),
            resources: Entries::from_list(&catalog.resources),
            templates: Entries::from_list(&catalog.templates),
            prompts: Entries::from_list(&catalog.prompts),
            managed: catalog.managed(),
            legacy_tasks: catalog.legacy_tasks,
            page_size: catalog.page_size,
            list_changed: catalog.list_changed,
            subscribe: catalog.subscribe,
        }
    }

    pub(crate) fn into_catalog(self) -> Catalog {
        let tools: List<ToolItem> =
            self.tools.into_list(|tool| ToolItem { tool, schemas: Schemas::default() });
        let mut catalog = Catalog {
            task_tools: tools.iter().filter(|item| runs_as_task(&item.tool)).count(),
            always_tasks: tools.iter().filter(|item| always_runs_as_task(&item.tool)).count(),
            tools,
            resources: self.resources.into_list(|resource| resource),
            templates: self.templates.into_list(|template| template),
            match_template: Some(match_template),
            prompts: self.prompts.into_list(|prompt| prompt),
            legacy_tasks: self.legacy_tasks,
            changes: Changes::default(),
            added: [0; 4],
            restrictions: None,
            managed: self.managed,
            page_size: self.page_size,
            list_changed: self.list_changed,
            subscribe: self.subscribe,
            validator: None,
        };
        catalog.restrictions = catalog.count_restrictions();
        catalog
    }
}

impl Catalog {
    fn count_restrictions(&self) -> Option<Box<Restrictions>> {
        let mut restrictions = None;
        for kind in ItemKind::ALL {
            let list = self.listing(kind);
            let numbers = (0..).map_while(|at| list.number(at));
            let restricted = numbers.filter(|number| list.audience(*number).is_some()).count();
            if restricted > 0 {
                let counts = restrictions.get_or_insert_with(|| Box::new(Restrictions::new()));
                counts.count(kind, u32::try_from(restricted).unwrap_or(u32::MAX));
                let numbers = (0..).map_while(|at| list.number(at));
                counts.add_sessions(numbers.filter_map(|number| list.audience(number)));
            }
        }
        restrictions
    }

    /// Returns the scopes of a caller among those that items require, and those that stand for
    /// conditions.
    pub(crate) fn scopes_of(&self, caller: &Caller) -> Vec<String> {
        let mut scopes = Vec::new();
        let lists: [&dyn Listing; 4] =
            [&self.tools, &self.resources, &self.templates, &self.prompts];
        if self.restrictions.is_none() {
            return scopes;
        }
        for list in lists {
            for audience in (0..).map_while(|at| list.number(at)).filter_map(|it| list.audience(it))
            {
                for scope in audience.scopes() {
                    if !scopes.contains(scope) && caller.has_scope(scope) {
                        scopes.push(scope.clone());
                    }
                }
                // A replay cannot give scopes to a caller without a principal.
                let known = caller.principal().map(|_| caller);
                for scope in
                    known.iter().flat_map(|caller| audience.condition_scopes(Some(*caller)))
                {
                    if !scopes.contains(&scope) {
                        scopes.push(scope);
                    }
                }
            }
        }
        scopes
    }
}

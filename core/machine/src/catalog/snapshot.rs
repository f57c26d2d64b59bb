//! The contents of a catalog, for recordings.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

use super::audience::{Announcement, Audience, ChangeCounts};
use super::item::{Listed, Schemas, ToolItem};
use super::list::List;
#[cfg(feature = "http")]
use super::list::Listing;
use super::{Catalog, Changes, match_template, runs_as_task};
#[cfg(feature = "http")]
use crate::Caller;
use crate::protocol::{Prompt, Resource, ResourceTemplate, Tool};
#[cfg(feature = "http")]
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
        Catalog {
            task_tools: tools.iter().filter(|item| runs_as_task(&item.tool)).count(),
            tools,
            resources: self.resources.into_list(|resource| resource),
            templates: self.templates.into_list(|template| template),
            match_template: Some(match_template),
            prompts: self.prompts.into_list(|prompt| prompt),
            legacy_tasks: self.legacy_tasks,
            changes: ChangeCounts::default(),
            restricted_changes: Vec::new(),
            includes: Some(Audience::includes),
            managed: self.managed,
            page_size: self.page_size,
            list_changed: self.list_changed,
            subscribe: self.subscribe,
            validator: None,
        }
    }
}

impl Catalog {
    /// Returns the scopes of a caller among those that items require.
    #[cfg(feature = "http")]
    pub(crate) fn scopes_of(&self, caller: &Caller) -> Vec<String> {
        let mut scopes = Vec::new();
        let lists: [&dyn Listing; 4] =
            [&self.tools, &self.resources, &self.templates, &self.prompts];
        for list in lists.into_iter().filter(|list| list.is_restricted()) {
            for audience in (0..).map_while(|at| list.number(at)).filter_map(|it| list.audience(it))
            {
                for scope in audience.scopes() {
                    if !scopes.contains(scope) && caller.has_scope(scope) {
                        scopes.push(scope.clone());
                    }
                }
            }
        }
        scopes
    }

    /// Sets the unannounced changes.
    pub(crate) fn set_announcement(&mut self, announcement: Announcement) {
        self.changes = ChangeCounts::from_changes(announcement.to_everyone);
        self.restricted_changes = announcement.to_some;
    }
}

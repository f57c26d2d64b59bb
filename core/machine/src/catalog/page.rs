//! One page of a list, serialized directly from the catalog.

use alloc::format;
use alloc::string::String;
use core::num::NonZeroUsize;

use mcp_sansio_sync::Arc;

use super::Catalog;
use super::cursor::{read_cursor, write_cursor};
use super::item::{ItemId, ItemKind};
use super::list::Listing;
use crate::Caller;
use crate::Era;
use crate::jsonrpc::{
    AsJson, ErrorObject, Json, RawJson, WriteError, WriteJson, to_shared_json, write_string,
};
use crate::protocol::{CacheHints, CacheScope, Method, Revision};

/// The page size of a new catalog. Many clients never request a second page, so a page should hold
/// all items of most servers; few have more than a hundred tools. A full page of typical entries
/// stays below a megabyte.
pub const PAGE_SIZE_DEFAULT: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// The result of a list method: one page. Serialized with [`WriteJson`] without copying the
/// entries.
#[derive(Clone, Debug)]
pub struct Page<'c> {
    catalog: &'c Catalog,
    kind: ItemKind,
    after: Option<u64>,
    revision: Revision,
    cache: CacheHints,
    tasks: bool,
    caller: &'c Caller,
}

impl Catalog {
    /// Sets the maximum number of entries in a response of a list method; `None` for all of them.
    /// The default is [`PAGE_SIZE_DEFAULT`].
    pub const fn page_size(&mut self, size: Option<NonZeroUsize>) -> &mut Self {
        self.page_size = size;
        self
    }

    /// Returns the page that `params` requests from a list method, as its result: in the form of
    /// `revision`, and with the hints of `cache` if that revision has them. It contains the items
    /// that `caller` can see. A cursor is valid for every caller.
    ///
    /// Finding the page is logarithmic in the length of the list, and writing it is linear in the
    /// number of entries that it passes, those that `caller` cannot see included. Reading a list
    /// page by page is never quadratic.
    ///
    /// # Errors
    ///
    /// The request is invalid. Send the error to the client: `-32602` for a `cursor` that is not a
    /// string or not a cursor of this list, and `-32601` for a method that does not list catalog
    /// items.
    // MCP 2026-07-28 server/utilities/pagination#operations-supporting-pagination [PAGE-001]
    // MCP 2026-07-28 server/tools#capabilities [TOOL-027]: the list may be empty.
    // MCP 2026-07-28 server/resources#capabilities [RSRC-013]
    // MCP 2026-07-28 server/prompts#capabilities [PRMT-012]
    pub fn list<'c>(
        &'c self,
        method: Method,
        params: &RawJson<'_>,
        revision: Revision,
        cache: &CacheHints,
        caller: &'c Caller,
    ) -> Result<Page<'c>, ErrorObject<'static>> {
        let kind = ItemKind::listed_by(method)
            .ok_or_else(|| ErrorObject::method_not_found(method.as_str()))?;
        let after = match params.get_present("cursor") {
            None => None,
            // MCP 2026-07-28 server/utilities/pagination#error-handling [PAGE-007]
            Some(cursor) => Some(
                cursor
                    .decode::<String>()
                    .map_err(|_| ErrorObject::invalid_params("`cursor` must be a string"))
                    .and_then(|cursor| self.read_cursor(kind, &cursor))?,
            ),
        };
        let mut cache = cache.clone();
        // MCP 2026-07-28 server/utilities/caching#security-considerations [CACHE-012]: the hint is not
        // the access control, but agrees with it.
        // MCP 2026-07-28 server/utilities/caching#choosing-a-cache-scope [APPS-010]: tools that only
        // run as tasks are listed to clients with tasks alone.
        if self.restricts(kind) || (kind == ItemKind::Tool && self.always_tasks > 0) {
            cache.scope = CacheScope::Private;
        }
        Ok(Page { catalog: self, kind, after, revision, cache, tasks: true, caller })
    }

    pub(super) fn listing(&self, kind: ItemKind) -> &dyn Listing {
        match kind {
            ItemKind::Tool => &self.tools,
            ItemKind::Resource => &self.resources,
            ItemKind::ResourceTemplate => &self.templates,
            ItemKind::Prompt => &self.prompts,
        }
    }

    pub(super) fn listing_mut(&mut self, kind: ItemKind) -> &mut dyn Listing {
        match kind {
            ItemKind::Tool => &mut self.tools,
            ItemKind::Resource => &mut self.resources,
            ItemKind::ResourceTemplate => &mut self.templates,
            ItemKind::Prompt => &mut self.prompts,
        }
    }

    fn read_cursor(&self, kind: ItemKind, cursor: &str) -> Result<u64, ErrorObject<'static>> {
        read_cursor(kind, cursor, self.listing(kind)).ok_or_else(|| {
            ErrorObject::invalid_params(format!(
                "invalid cursor for this list of {kind}s: start again without a cursor"
            ))
        })
    }
}

impl Page<'_> {
    /// Leaves out the tools that only run as tasks, for a client whose calls cannot be tasks: its
    /// model could not call them successfully.
    #[must_use]
    pub const fn without_tasks(mut self) -> Self {
        self.tasks = false;
        self
    }

    // MCP 2026-07-28 server/tools#listing-tools [TOOL-003]
    // MCP 2026-07-28 server/resources#resource-templates [RSRC-002]
    fn write(&self, out: &mut String, list: &dyn Listing) -> Result<(), WriteError> {
        let modern = self.revision.era() == Era::Modern;
        out.push('{');
        if modern {
            out.push_str("\"resultType\":\"complete\",");
        }
        write_string(out, self.kind.member());
        out.push_str(":[");
        let size = self.catalog.page_size.map_or(usize::MAX, usize::from);
        let mut rest = (list.index_after(self.after)..)
            .map_while(|index| list.number(index).map(|number| (index, number)))
            .filter(|(index, number)| {
                (self.tasks || !list.is_always_task(*index))
                    && self.catalog.is_visible(ItemId::new(self.kind, *number), self.caller)
            });
        let mut last = None;
        for (written, (index, number)) in rest.by_ref().take(size).enumerate() {
            if written > 0 {
                out.push(',');
            }
            list.write(index, self.revision, out)?;
            last = Some((index, number));
        }
        out.push(']');
        if modern {
            // MCP 2026-07-28 server/utilities/caching#cacheable-results [CACHE-001] [CACHE-002]
            // MCP 2026-07-28 server/utilities/caching#interaction-with-pagination [CACHE-011]: the
            // hints are those of the list, not of the page.
            out.push_str(",\"ttlMs\":");
            AsJson(&self.cache.ttl.0).write_json(out)?;
            out.push_str(",\"cacheScope\":");
            write_string(out, self.cache.scope.as_str());
        }
        if let (Some((index, number)), Some(_)) = (last, rest.next())
            && let Some(key) = list.key(index)
        {
            out.push_str(",\"nextCursor\":");
            write_string(out, &write_cursor(self.kind, number, key));
        }
        out.push('}');
        Ok(())
    }
}

impl WriteJson for Page<'_> {
    fn write_json(&self, out: &mut String) -> Result<(), WriteError> {
        self.write(out, self.catalog.listing(self.kind))
    }
}

/// The lists of a server as the sender of a request sees them, for an application that answers list
/// requests itself: see [`Policy::deliver_lists`](crate::peer::Policy::deliver_lists).
#[derive(Clone, Debug)]
pub struct Lists {
    catalog: Arc<Catalog>,
    cache: CacheHints,
    tasks: bool,
}

impl Lists {
    pub(crate) const fn new(catalog: Arc<Catalog>, cache: CacheHints, tasks: bool) -> Self {
        Self { catalog, cache, tasks }
    }

    /// Returns the result of a list request, as the machine would answer it.
    ///
    /// # Errors
    ///
    /// Those of [`Catalog::list`], and an internal error if an item cannot be written at
    /// `revision`.
    pub fn page(
        &self,
        method: Method,
        params: &RawJson<'_>,
        revision: Revision,
        caller: &Caller,
    ) -> Result<Json, ErrorObject<'static>> {
        let page = self.catalog.list(method, params, revision, &self.cache, caller)?;
        let page = if self.tasks { page } else { page.without_tasks() };
        to_shared_json(&page)
            .map(Json::from)
            .map_err(|_| ErrorObject::internal("the list cannot be written"))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::time::Duration;

    use super::*;
    use crate::jsonrpc::{ErrorCode, Json};
    use crate::protocol::{
        ListPromptsResult, ListToolsResult, Prompt, Resource, SerializeAt, Tool,
    };

    fn text(page: &Page<'_>) -> String {
        let mut out = String::new();
        page.write_json(&mut out).unwrap();
        out
    }

    fn params(cursor: Option<&str>) -> Json {
        let cursor = cursor.map(|cursor| ("cursor", cursor));
        let object: alloc::collections::BTreeMap<_, _> = cursor.into_iter().collect();
        Json::from_serialize(&object).unwrap()
    }

    fn page(catalog: &Catalog, cursor: Option<&str>, revision: Revision) -> ListPromptsResult {
        let (params, hints) = (params(cursor), CacheHints::default());
        let page = catalog
            .list(Method::PromptsList, &params.as_raw(), revision, &hints, &Caller::OWNER)
            .unwrap();
        serde_json::from_str(&text(&page)).unwrap()
    }

    fn prompts(count: usize, size: usize) -> Catalog {
        let mut catalog = Catalog::new();
        catalog.page_size(NonZeroUsize::new(size));
        for n in 0..count {
            catalog.add_prompt(Prompt::new(format!("p{n}"))).unwrap();
        }
        catalog
    }

    fn names(page: &ListPromptsResult) -> Vec<&str> {
        page.prompts.iter().map(|prompt| prompt.name.as_str()).collect()
    }

    #[test]
    fn a_page_is_written_like_the_typed_result() {
        // Rule: [TOOL-026] [CACHE-001].
        let schema: Json = RawJson::parse(r#"{"type":"object","x":1}"#).unwrap().into();
        let tools = ["a", "b"].map(|name| Tool::new(name, schema.clone()).title(name));
        let mut catalog = Catalog::new();
        for tool in tools.clone() {
            catalog.add_tool(tool).unwrap();
        }
        let hints = CacheHints::public(Duration::from_secs(60));
        for revision in Revision::ALL {
            let empty = RawJson::EMPTY_OBJECT;
            let page =
                catalog.list(Method::ToolsList, &empty, revision, &hints, &Caller::OWNER).unwrap();
            let typed = ListToolsResult::new(tools.clone()).cached(hints.clone());
            assert_eq!(text(&page), typed.to_json_at(revision).unwrap().as_str());
        }
    }

    #[test]
    fn a_page_has_a_cursor_and_cache_hints() {
        // Rule: [TOOL-003] [CACHE-002].
        let mut catalog = Catalog::new();
        catalog.page_size(NonZeroUsize::new(1));
        let schema: Json = RawJson::parse(r#"{"type":"object"}"#).unwrap().into();
        for name in ["a", "b"] {
            catalog.add_tool(Tool::new(name, schema.clone())).unwrap();
        }
        let tool = |name: &str| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
        for (hints, kept) in [
            (CacheHints::public(Duration::from_secs(60)), r#""ttlMs":60000,"cacheScope":"public""#),
            (CacheHints::private(Duration::ZERO), r#""ttlMs":0,"cacheScope":"private""#),
        ] {
            for revision in Revision::ALL {
                let list = |cursor: Option<&str>| {
                    let params = params(cursor);
                    let page = catalog.list(
                        Method::ToolsList,
                        &params.as_raw(),
                        revision,
                        &hints,
                        &Caller::OWNER,
                    );
                    Json::from(RawJson::parse(&text(&page.unwrap())).unwrap())
                };
                let first = list(None);
                let cursor: String = first.as_raw().get("nextCursor").unwrap().decode().unwrap();
                let last = list(Some(&cursor));
                assert!(last.as_raw().get("nextCursor").is_none(), "{revision}");
                for (page, name) in [(&first, "a"), (&last, "b")] {
                    let tools = format!("[{}]", tool(name));
                    assert_eq!(page.as_raw().get("tools").unwrap().as_str(), tools);
                    let modern = revision >= Revision::V2026_07_28;
                    assert_eq!(page.as_str().contains(kept), modern, "{}", page.as_str());
                    assert_eq!(page.as_str().contains("cacheScope"), modern, "{revision}");
                }
            }
        }
    }

    #[test]
    fn an_empty_list_is_served() {
        // Rule: [TOOL-027] [RSRC-013] [PRMT-012] [RSRC-002].
        let (catalog, empty) = (Catalog::new(), RawJson::EMPTY_OBJECT);
        for (method, member) in [
            (Method::ToolsList, "tools"),
            (Method::ResourcesList, "resources"),
            (Method::ResourcesTemplatesList, "resourceTemplates"),
            (Method::PromptsList, "prompts"),
        ] {
            let hints = CacheHints::default();
            let page = catalog
                .list(method, &empty, Revision::V2024_11_05, &hints, &Caller::OWNER)
                .unwrap();
            assert_eq!(text(&page), format!("{{\"{member}\":[]}}"));
            let page =
                catalog.list(method, &empty, Revision::LATEST, &hints, &Caller::OWNER).unwrap();
            let rest = r#"[],"ttlMs":0,"cacheScope":"private"}"#;
            let expected = format!("{{\"resultType\":\"complete\",\"{member}\":{rest}");
            assert_eq!(text(&page), expected);
        }
        let hints = CacheHints::default();
        let other =
            catalog.list(Method::ToolsCall, &empty, Revision::LATEST, &hints, &Caller::OWNER);
        assert_eq!(other.unwrap_err().code, ErrorCode::METHOD_NOT_FOUND);
    }

    #[test]
    fn pages_cover_the_complete_list() {
        // Rule: [PAGE-001] [PAGE-007].
        for (count, size, pages) in [(7, 3, 3), (6, 3, 2), (3, 3, 1), (2, 3, 1), (7, 0, 1)] {
            let catalog = prompts(count, size);
            let mut read = Vec::new();
            let mut cursor = None;
            for at in 1..=pages {
                let page = page(&catalog, cursor.as_deref(), Revision::V2025_06_18);
                read.extend(names(&page).into_iter().map(String::from));
                assert_eq!(page.next_cursor.is_none(), at == pages);
                cursor = page.next_cursor;
            }
            let all: Vec<_> = catalog.prompts().map(|prompt| prompt.name.clone()).collect();
            assert_eq!(read, all);
        }
    }

    #[test]
    fn paging_continues_after_the_list_was_edited() {
        // Rule: [PAGE-007].
        let mut catalog = prompts(6, 2);
        let first = page(&catalog, None, Revision::LATEST);
        assert_eq!(names(&first), ["p0", "p1"]);
        for name in ["p0", "p1", "p2"] {
            catalog.remove_prompt(name);
        }
        catalog.add_prompt(Prompt::new("new")).unwrap();
        let second = page(&catalog, first.next_cursor.as_deref(), Revision::LATEST);
        assert_eq!(names(&second), ["p3", "p4"]);
        let third = page(&catalog, second.next_cursor.as_deref(), Revision::LATEST);
        assert_eq!(names(&third), ["p5", "new"]);
        assert_eq!(third.next_cursor, None);
    }

    #[test]
    fn all_pages_have_the_same_cache_scope() {
        // Rule: [CACHE-011].
        let catalog = prompts(3, 1);
        let hints = CacheHints::public(Duration::from_millis(5));
        let mut cursor = None;
        for _ in 0..3 {
            let params = params(cursor.as_deref());
            let page = catalog.list(
                Method::PromptsList,
                &params.as_raw(),
                Revision::LATEST,
                &hints,
                &Caller::OWNER,
            );
            let page: ListPromptsResult = serde_json::from_str(&text(&page.unwrap())).unwrap();
            assert_eq!(page.cache_hints(), hints);
            cursor = page.next_cursor;
        }
        assert_eq!(cursor, None);
    }

    #[test]
    fn a_foreign_cursor_is_refused() {
        // Rule: [PAGE-007] [PAGE-004].
        let mut catalog = prompts(3, 1);
        catalog.add_resource(Resource::new("a:b", "r")).unwrap();
        let cursor = page(&catalog, None, Revision::LATEST).next_cursor.unwrap();
        let of_another = Json::from_serialize(&serde_json::json!({ "cursor": cursor })).unwrap();
        let no_string: Json = RawJson::parse(r#"{"cursor":1}"#).unwrap().into();
        for (method, params) in [
            (Method::PromptsList, params(Some(""))),
            (Method::PromptsList, params(Some("garbage"))),
            (Method::PromptsList, no_string),
            (Method::ResourcesList, of_another),
        ] {
            for revision in Revision::ALL {
                let hints = CacheHints::default();
                let refused =
                    catalog.list(method, &params.as_raw(), revision, &hints, &Caller::OWNER);
                let error = refused.unwrap_err();
                assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
                assert!(error.message.contains("cursor"), "{error}");
            }
        }
        let null: Json = RawJson::parse(r#"{"cursor":null}"#).unwrap().into();
        let hints = CacheHints::default();
        let revision = Revision::LATEST;
        assert!(
            catalog
                .list(Method::PromptsList, &null.as_raw(), revision, &hints, &Caller::OWNER)
                .is_ok()
        );
    }

    #[test]
    fn task_only_tools_are_listed_to_clients_with_tasks() {
        // Rule: [TOOL-025] [APPS-010].
        use crate::protocol::{TaskSupport, ToolExecution};
        let mut catalog = Catalog::new();
        let schema = || RawJson::parse(r#"{"type":"object"}"#).unwrap();
        let required = ToolExecution::new().task_support(TaskSupport::Required);
        catalog.add_tool(Tool::new("always", schema()).execution(required)).unwrap();
        catalog.add_tool(Tool::new("plain", schema())).unwrap();
        catalog.page_size(NonZeroUsize::new(1));
        let (empty, mut hints) = (RawJson::EMPTY_OBJECT, CacheHints::default());
        hints.scope = CacheScope::Public;
        let list = |catalog: &Catalog, tasks: bool| {
            let page =
                catalog.list(Method::ToolsList, &empty, Revision::LATEST, &hints, &Caller::OWNER);
            let page = page.unwrap();
            text(&if tasks { page } else { page.without_tasks() })
        };
        let (with, without) = (list(&catalog, true), list(&catalog, false));
        assert!(with.contains(r#""always""#), "{with}");
        assert!(without.contains(r#""plain""#) && !without.contains("nextCursor"), "{without}");
        // The lists differ, so neither may be served to clients of the other kind.
        assert!(with.contains(r#""private""#) && without.contains(r#""private""#), "{with}");
        catalog.remove_tool("always");
        assert!(list(&catalog, true).contains(r#""public""#));
    }

    #[test]
    fn ten_thousand_entries_are_read_page_by_page() {
        // Rule: [TOOL-029] [PAGE-001].
        let catalog = prompts(10_000, 10);
        let (mut cursor, mut count) = (None, 0);
        loop {
            let page = page(&catalog, cursor.as_deref(), Revision::LATEST);
            for prompt in &page.prompts {
                assert_eq!(prompt.name, format!("p{count}"));
                count += 1;
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(count, 10_000);
    }
}

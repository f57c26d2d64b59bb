use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroUsize;
use core::ops::Deref;

use mcp_sansio::catalog::{Attachments, Catalog, CatalogError, ItemId, ItemKind, Validator};
use mcp_sansio::protocol::{Prompt, Resource, ResourceTemplate, Tool};

use super::function::Handler;
use super::panics::PanicGuard;
use super::reply::{ForPrompt, ForResource, ForTool};
use super::threading::{ThreadSafe, Threading};

/// The handlers of what a server offers, by item: shared by its connections until one is edited.
pub(super) type ItemHandlers<K> = Arc<Attachments<<K as Threading>::Function>>;

/// Changes what a server offers: an item is added with its handler, and removed with it. To read,
/// it is a [`Catalog`].
///
/// ```
/// use mcp_sansio_handlers::{Call, SendError, NoArguments, ServerHandle};
/// use mcp_sansio::jsonrpc::RawJson;
/// use mcp_sansio::protocol::Tool;
///
/// fn offer_echo(remote: &ServerHandle) -> Result<(), SendError> {
///     let tool = Tool::new("echo", RawJson::parse(r#"{"type":"object"}"#).unwrap());
///     remote.edit_catalog(|catalog| {
///         let added = catalog.add_tool(tool, |_: Call<NoArguments>| "echo");
///         added.expect("a new name");
///     })
/// }
/// ```
pub struct CatalogEdit<'c, K: Threading = ThreadSafe> {
    catalog: &'c mut Catalog,
    edited: Edited<K>,
}

/// What an edit has made of the items.
pub(super) struct Edited<K: Threading> {
    added: Vec<(ItemId, K::Function)>,
    removed: bool,
}

/// An edit that comes from a handler or from outside the connection.
pub(super) type Edit = dyn FnOnce(&mut CatalogEdit<'_>) + Send;

macro_rules! items {
    ($(
        $kind:ident by $key:ident for $of:ident:
        $(#[doc = $add_doc:literal])* $add:ident;
        $(#[doc = $update_doc:literal])* $update:ident by $replace:ident;
        $(#[doc = $remove_doc:literal])* $remove:ident of $find:ident;
    )*) => {
        impl<K: Threading> CatalogEdit<'_, K> {
            $(
                $(#[doc = $add_doc])*
                ///
                /// # Errors
                ///
                /// Those of the method of [`Catalog`] that has the same name.
                pub fn $add<M>(
                    &mut self,
                    item: $kind,
                    handler: impl Handler<K, $of, M>,
                ) -> Result<ItemId, CatalogError> {
                    let id = self.catalog.$add(item)?;
                    self.edited.added.push((id, handler.into_function()));
                    Ok(id)
                }

                $(#[doc = $update_doc])*
                ///
                /// # Errors
                ///
                /// [`CatalogError::NoSuchItem`], and those of adding it.
                pub fn $update(&mut self, item: $kind) -> Result<(), CatalogError> {
                    if self.catalog.$find(&item.$key).is_none() {
                        let (kind, key) = (ItemKind::$kind, item.$key);
                        return Err(CatalogError::NoSuchItem { kind, key });
                    }
                    self.catalog.$replace(item).map(|_| ())
                }

                $(#[doc = $remove_doc])*
                pub fn $remove(&mut self, $key: &str) -> Option<$kind> {
                    let removed = self.catalog.$remove($key);
                    self.edited.removed |= removed.is_some();
                    removed
                }
            )*
        }
    };
}
items! {
    Tool by name for ForTool:
    /// Adds a tool with its handler.
    add_tool;
    /// Changes what is said of the tool of this name; its handler stays.
    update_tool by replace_tool;
    /// Removes a tool and its handler. Calls that are under way get their answer.
    remove_tool of tool;

    Prompt by name for ForPrompt:
    /// Adds a prompt with its handler.
    add_prompt;
    /// Changes what is said of the prompt of this name; its handler stays.
    update_prompt by replace_prompt;
    /// Removes a prompt and its handler. Requests that are under way get their answer.
    remove_prompt of prompt;

    Resource by uri for ForResource:
    /// Adds a resource with its handler.
    add_resource;
    /// Changes what is said of the resource at this URI; its handler stays.
    update_resource by replace_resource;
    /// Removes a resource and its handler. Reads that are under way get their answer.
    remove_resource of resource;

    ResourceTemplate by uri_template for ForResource:
    /// Adds a resource template with its handler.
    add_resource_template;
    /// Changes what is said of the resource template with this URI template; its handler stays.
    update_resource_template by replace_resource_template;
    /// Removes a resource template and its handler. Reads that are under way get their answer.
    remove_resource_template of resource_template;
}

impl<K: Threading> CatalogEdit<'_, K> {
    /// Sets how many entries a list method answers with: see [`Catalog::page_size`].
    pub const fn page_size(&mut self, size: Option<NonZeroUsize>) -> &mut Self {
        self.catalog.page_size(size);
        self
    }

    /// Says whether clients are told when lists change: see [`Catalog::list_changed`].
    pub const fn list_changed(&mut self, told: bool) -> &mut Self {
        self.catalog.list_changed(told);
        self
    }

    /// Sets what validates arguments and structured results.
    ///
    /// # Errors
    ///
    /// Those of [`Catalog::validator`].
    pub fn validator(&mut self, validator: impl Validator + 'static) -> Result<(), CatalogError> {
        self.catalog.validator(validator)
    }

    /// Has `catalog` edited; an edit that panics is left where it is.
    pub(super) fn run(
        catalog: &mut Catalog,
        guard: PanicGuard,
        edit: impl FnOnce(&mut CatalogEdit<'_, K>),
    ) -> Edited<K> {
        let edited = Edited { added: Vec::new(), removed: false };
        let mut editor = CatalogEdit { catalog, edited };
        let _edited = guard.run(|| edit(&mut editor));
        editor.edited
    }
}

impl<F: Threading> Edited<F> {
    /// Takes over the handlers of what was added, and lets go of those of what was removed.
    pub(super) fn apply<K: Threading>(
        self,
        handlers: &mut ItemHandlers<K>,
        catalog: &Catalog,
        convert: fn(F::Function) -> K::Function,
    ) {
        if self.added.is_empty() && !self.removed {
            return;
        }
        let handlers = Arc::make_mut(handlers);
        for (id, function) in self.added {
            handlers.insert(id, convert(function));
        }
        handlers.prune(catalog);
    }
}

impl<K: Threading> Deref for CatalogEdit<'_, K> {
    type Target = Catalog;

    fn deref(&self) -> &Catalog {
        self.catalog
    }
}

impl<K: Threading> fmt::Debug for CatalogEdit<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogEdit").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

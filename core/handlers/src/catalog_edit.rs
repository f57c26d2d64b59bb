use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroUsize;
use core::ops::Deref;

use mcp_sansio::catalog::{
    Attachments, Audience, Catalog, CatalogError, ItemId, ItemKind, Validator,
};
use mcp_sansio::protocol::{Prompt, Resource, ResourceTemplate, Tool};

use super::arguments::ArgumentHandlers;
use super::function::Handler;
use super::panics::PanicGuard;
use super::reply::{ForPrompt, ForResource, ForTool};
use super::server_item::{ItemDefinition, ServerItem};
use super::state::{StateMap, StateTypes};
use super::threading::{ThreadSafe, Threading};

/// The handlers of a server by item: shared by its connections until one of them is edited.
pub(super) type ItemHandlers<K> = Arc<Attachments<ItemHandler<K>>>;

/// The handler of an item, and the handlers that complete its arguments.
pub(super) struct ItemHandler<K: Threading> {
    pub(super) function: K::Function,
    pub(super) arguments: Option<ArgumentHandlers<K>>,
}

impl<K: Threading> Clone for ItemHandler<K> {
    fn clone(&self) -> Self {
        Self { function: self.function.clone(), arguments: self.arguments.clone() }
    }
}

impl ItemHandler<ThreadSafe> {
    /// Converts the handlers of an item that was added at runtime.
    pub(super) fn into_kind<K: Threading>(self) -> ItemHandler<K> {
        ItemHandler {
            function: K::from_thread_safe(self.function),
            arguments: self.arguments.map(ArgumentHandlers::into_kind),
        }
    }
}

/// Changes the catalog of a server. An item is added with its handler, and removed with it.
/// Dereferences to a [`Catalog`] for read access.
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
    states: StateCheck<'c>,
    edited: Edited<K>,
}

/// When to check whether the server has the states that the handlers of new items take.
pub(super) enum StateCheck<'c> {
    /// At once: the server is running.
    Now(Option<&'c dyn StateMap>),
    /// Later: the states are noted here.
    Later(&'c mut Vec<StateTypes>),
}

/// The changes that an edit made to the items.
pub(super) struct Edited<K: Threading> {
    added: Vec<(ItemId, ItemHandler<K>)>,
    removed: bool,
}

/// An edit from a handler or from outside of the connection.
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
                /// The errors of the [`Catalog`] method with the same name;
                /// [`CatalogError::MissingState`].
                pub fn $add<M>(
                    &mut self,
                    item: $kind,
                    handler: impl Handler<K, $of, M>,
                ) -> Result<ItemId, CatalogError> {
                    self.add_item(ServerItem::new(item, handler))
                }

                $(#[doc = $update_doc])*
                ///
                /// # Errors
                ///
                /// [`CatalogError::NoSuchItem`], and the errors of adding the item.
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
    /// Changes the definition of the tool with this name; its handler stays.
    update_tool by replace_tool;
    /// Removes a tool and its handler. Pending calls still get their answer.
    remove_tool of tool;

    Prompt by name for ForPrompt:
    /// Adds a prompt with its handler.
    add_prompt;
    /// Changes the definition of the prompt with this name; its handler stays.
    update_prompt by replace_prompt;
    /// Removes a prompt and its handler. Pending requests still get their answer.
    remove_prompt of prompt;

    Resource by uri for ForResource:
    /// Adds a resource with its handler.
    add_resource;
    /// Changes the definition of the resource with this URI; its handler stays.
    update_resource by replace_resource;
    /// Removes a resource and its handler. Pending reads still get their answer.
    remove_resource of resource;

    ResourceTemplate by uri_template for ForResource:
    /// Adds a resource template with its handler.
    add_resource_template;
    /// Changes the definition of the resource template with this URI template; its handler stays.
    update_resource_template by replace_resource_template;
    /// Removes a resource template and its handler. Pending reads still get their answer.
    remove_resource_template of resource_template;
}

impl<K: Threading> CatalogEdit<'_, K> {
    /// Restricts an item to an audience, and returns whether the item exists: see
    /// [`Catalog::restrict`].
    pub fn restrict(&mut self, id: ItemId, audience: Audience) -> bool {
        self.catalog.restrict(id, audience)
    }

    /// Adds an item with its handler.
    ///
    /// # Errors
    ///
    /// The item is invalid, its key is taken, or its handler takes a [`State`](super::State) that the
    /// server does not have.
    pub fn add_item<D: ItemDefinition>(
        &mut self,
        item: ServerItem<D, K>,
    ) -> Result<ItemId, CatalogError> {
        let ServerItem { definition, function, details } = item;
        if let Some(details) = &details {
            (details.check)(details, &mut self.states)?;
        }
        let id = definition.add_to(self.catalog)?;
        let arguments = details.and_then(|details| (details.finish)(*details, self.catalog, id));
        self.edited.added.push((id, ItemHandler { function, arguments }));
        Ok(id)
    }

    /// Sets the page size of the list methods: see [`Catalog::page_size`].
    pub const fn page_size(&mut self, size: Option<NonZeroUsize>) -> &mut Self {
        self.catalog.page_size(size);
        self
    }

    /// Sets whether clients are notified of changed lists: see [`Catalog::list_changed`].
    pub const fn list_changed(&mut self, told: bool) -> &mut Self {
        self.catalog.list_changed(told);
        self
    }

    /// Sets the validator of arguments and structured results.
    ///
    /// # Errors
    ///
    /// Those of [`Catalog::validator`].
    pub fn validator(&mut self, validator: impl Validator + 'static) -> Result<(), CatalogError> {
        self.catalog.validator(validator)
    }

    /// Applies an edit to `catalog`; the changes before a panic of the edit stay.
    pub(super) fn run(
        catalog: &mut Catalog,
        states: StateCheck<'_>,
        guard: PanicGuard,
        edit: impl FnOnce(&mut CatalogEdit<'_, K>),
    ) -> Edited<K> {
        let edited = Edited { added: Vec::new(), removed: false };
        let mut editor = CatalogEdit { catalog, states, edited };
        let _edited = guard.run(|| edit(&mut editor));
        editor.edited
    }
}

impl StateCheck<'_> {
    pub(super) fn check(&mut self, types: StateTypes) -> Result<(), CatalogError> {
        match self {
            Self::Now(states) => types.check(*states),
            Self::Later(noted) => {
                noted.push(types);
                Ok(())
            }
        }
    }
}

impl<F: Threading> Edited<F> {
    /// Returns the handlers of the arguments of the first added item that has some.
    pub(super) fn arguments(&self) -> Option<ArgumentHandlers<F>> {
        self.added.iter().find_map(|(_, handler)| handler.arguments.clone())
    }

    /// Adds the handlers of new items and removes those of removed items.
    pub(super) fn apply<K: Threading>(
        self,
        handlers: &mut ItemHandlers<K>,
        catalog: &Catalog,
        convert: fn(ItemHandler<F>) -> ItemHandler<K>,
    ) {
        if self.added.is_empty() && !self.removed {
            return;
        }
        let handlers = Arc::make_mut(handlers);
        for (id, handler) in self.added {
            handlers.insert(id, convert(handler));
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

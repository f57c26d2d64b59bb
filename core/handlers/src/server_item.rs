//! The items of a server with their handlers, and changes of a catalog at runtime.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroUsize;
use core::ops::Deref;

use mcp_sansio::catalog::{
    Attachments, Audience, Catalog, CatalogError, ItemId, ItemKind, Validator,
};
use mcp_sansio::jsonrpc::Json;
use mcp_sansio::protocol::CallToolResult;
use mcp_sansio::protocol::GetPromptResult;
use mcp_sansio::protocol::ReadResourceResult;
use mcp_sansio::protocol::{Icon, Prompt, Resource, ResourceTemplate, Tool, ToolAnnotations};
use mcp_sansio::{Caller, SessionKey};
use serde_json::Value;

use super::arguments::ArgumentHandlers;
use super::executor::PanicGuard;
use super::function::Handler;
use super::server::Server;
use super::state::{StateMap, StateTypes};
use super::threading::{ThreadSafe, Threading};

/// An item of a server with its handler: for [`Server::add_item`](super::Server::add_item), and for
/// [`CatalogEdit::add_item`](super::CatalogEdit::add_item) at runtime.
///
/// `D` is the definition that clients see: [`Tool`], [`Prompt`], [`Resource`] or
/// [`ResourceTemplate`]. Its schemas and arguments are derived from the handler's types.
///
/// ```
/// use mcp_sansio_handlers::{Call, Server, ServerItem};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Query { /** Words to find */ words: String }
///
/// async fn search(call: Call<Query>) -> String {
///     format!("Nothing about {}", call.arguments.words)
/// }
///
/// let server = Server::new("notes", "1.0.0")
///     .add_item(ServerItem::tool("search", "Searches the notes", search).title("Search").read_only());
/// # assert!(server.endpoint(42).is_ok());
/// ```
#[must_use = "pass it to `Server::add_item`"]
pub struct ServerItem<D, K: Threading = ThreadSafe> {
    pub(super) definition: D,
    pub(super) function: K::Function,
    pub(super) details: Option<Box<ItemDetails<K>>>,
}

/// Properties that few items have. Its methods are pointers, so that their code is linked only into
/// programs with such an item.
pub(super) struct ItemDetails<K: Threading> {
    states: StateTypes,
    pub(super) arguments: Option<ArgumentHandlers<K>>,
    audience: Option<Audience>,
    /// The first mistake in the calls of the builder's methods.
    pub(super) problem: Option<CatalogError>,
    /// Makes a server that is being built have what the item needs.
    pub(super) require: fn(&Self, &mut Server<K>),
    /// Checks whether a server that is running has what the item needs.
    pub(super) check: fn(&Self, &mut StateCheck<'_>) -> Result<(), CatalogError>,
    /// Ends the addition of the item; returns the handlers of its arguments.
    pub(super) finish: fn(Self, &mut Catalog, ItemId) -> Option<ArgumentHandlers<K>>,
}

impl<K: Threading> ItemDetails<K> {
    fn new() -> Self {
        Self {
            states: StateTypes::NONE,
            arguments: None,
            audience: None,
            problem: None,
            require: Self::require,
            check: Self::check,
            finish: Self::finish,
        }
    }

    fn require(&self, server: &mut Server<K>) {
        server.require(self.states);
        if let Some(arguments) = &self.arguments {
            arguments.declare(server);
        }
        if let Some(problem) = &self.problem {
            server.note(problem.clone());
        }
    }

    fn check(&self, states: &mut StateCheck<'_>) -> Result<(), CatalogError> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        states.check(self.states)?;
        self.arguments.as_ref().map_or(Ok(()), |arguments| arguments.check(states))
    }

    fn finish(self, catalog: &mut Catalog, id: ItemId) -> Option<ArgumentHandlers<K>> {
        if let Some(audience) = self.audience {
            catalog.restrict(id, audience);
        }
        self.arguments
    }
}

/// The definition of an item: [`Tool`], [`Prompt`], [`Resource`] or [`ResourceTemplate`].
pub trait ItemDefinition: sealed::Sealed {
    /// The kind of the item's handler.
    type Of;
}

impl<D: ItemDefinition, K: Threading> ServerItem<D, K> {
    /// Creates an item from its complete definition.
    pub fn new<M>(definition: D, handler: impl Handler<K, D::Of, M>) -> Self {
        let states = handler.states();
        let mut item = Self { definition, function: handler.into_function(), details: None };
        if !states.is_none() {
            item.details().states = states;
        }
        item
    }

    /// Requires a scope, in addition to those of earlier calls: for callers without it, the item
    /// does not exist, except that HTTP clients are told to return with a token that has the scope.
    /// See [`Catalog::restrict`].
    ///
    /// ```
    /// use mcp_sansio_handlers::{Call, NoArguments, Server, ServerItem};
    /// use mcp_sansio::jsonrpc::RawJson;
    /// use mcp_sansio::protocol::Tool;
    ///
    /// let tool = Tool::new("purge", RawJson::parse(r#"{"type":"object"}"#)?);
    /// let purge = ServerItem::new(tool, |_: Call<NoArguments>| "purged").requires("notes:write");
    /// let server = Server::new("notes", "1.0.0").add_item(purge);
    /// # assert!(server.endpoint(42).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn requires(mut self, scope: impl Into<String>) -> Self {
        let audience = self.details().audience.take();
        self.audience(audience.unwrap_or_default().scope(scope))
    }

    /// Shows the item only to callers for which `is_visible` returns true, in addition to scopes
    /// and principals that are required: see [`Audience::condition`]. For others it does not exist.
    ///
    /// ```
    /// use std::collections::HashSet;
    /// use std::sync::{Arc, RwLock};
    ///
    /// use mcp_sansio::Principal;
    /// use mcp_sansio_handlers::{Call, NoArguments, Server, ServerItem};
    ///
    /// let testers: Arc<RwLock<HashSet<Principal>>> = Arc::default();
    /// let known = Arc::clone(&testers);
    /// let beta = ServerItem::tool("beta", "New", |_: Call<NoArguments>| "done")
    ///     .visible_if("tester", move |caller| {
    ///         caller.principal().is_some_and(|who| known.read().unwrap().contains(who))
    ///     });
    /// let server = Server::new("notes", "1.0.0").add_item(beta);
    /// # assert!(server.endpoint(42).is_ok());
    /// ```
    pub fn visible_if(
        mut self,
        name: impl Into<String>,
        is_visible: impl Fn(&Caller) -> bool + Send + Sync + 'static,
    ) -> Self {
        let audience = self.details().audience.take();
        self.audience(audience.unwrap_or_default().condition(name, is_visible))
    }

    /// Shows the item to a legacy session alone, or to those of several calls, in addition to
    /// scopes, principals and conditions that are required: see [`Audience::session`]. For others
    /// it does not exist, and they are not notified of it. The server removes the item when the
    /// last of these sessions ends.
    ///
    /// Names are unique among all items of a server, so items of different sessions have different
    /// ones. In a cluster, an item belongs to one node, as every edit of a catalog does.
    ///
    /// ```
    /// use mcp_sansio_handlers::{Call, HandlerError, NoArguments, Server, ServerItem};
    ///
    /// fn open(call: Call<NoArguments>) -> Result<&'static str, HandlerError> {
    ///     let session = call.session().ok_or_else(|| HandlerError::failed("needs a session"))?;
    ///     call.edit_catalog(move |catalog| {
    ///         let close = |_: Call<NoArguments>| "closed";
    ///         let close = ServerItem::tool(&format!("close-{session}"), "Closes it", close);
    ///         let _added = catalog.add_item(close.for_session(session));
    ///     })?;
    ///     Ok("opened")
    /// }
    ///
    /// let server = Server::new("files", "1.0.0").tool("open", "Opens a file", open);
    /// # assert!(server.endpoint(42).is_ok());
    /// ```
    pub fn for_session(mut self, session: SessionKey) -> Self {
        let audience = self.details().audience.take();
        self.audience(audience.unwrap_or_default().session(session))
    }

    /// Sets the callers that see the item, in place of earlier ones: see [`Catalog::restrict`].
    pub fn audience(mut self, audience: Audience) -> Self {
        self.details().audience = Some(audience);
        self
    }

    /// Changes members of the definition that have no method here.
    pub fn define(mut self, change: impl FnOnce(D) -> D) -> Self {
        self.definition = change(self.definition);
        self
    }
}

impl<K: Threading> ServerItem<Tool, K> {
    /// Sets the name to display.
    pub fn title(self, title: impl Into<String>) -> Self {
        self.define(|tool| tool.title(title))
    }

    /// Sets the icons.
    pub fn icons(self, icons: impl Into<Vec<Icon>>) -> Self {
        self.define(|tool| tool.icons(icons))
    }

    /// Declares that the tool modifies nothing.
    pub fn read_only(self) -> Self {
        self.annotate(|hints| hints.read_only_hint(true))
    }

    /// Declares whether the tool may destroy data; clients assume that it does.
    pub fn destructive(self, destructive: bool) -> Self {
        self.annotate(|hints| hints.destructive_hint(destructive))
    }

    /// Declares that repeated calls with the same arguments have no additional effect.
    pub fn idempotent(self) -> Self {
        self.annotate(|hints| hints.idempotent_hint(true))
    }

    /// Declares whether the tool interacts with external systems; clients assume that it does.
    pub fn open_world(self, open: bool) -> Self {
        self.annotate(|hints| hints.open_world_hint(open))
    }

    /// Mirrors an argument into the header `Mcp-Param-{name}`, so that intermediaries can route a
    /// call without reading its body. The argument is a string, an integer, a boolean, or an
    /// `Option` of one; clients of 2026-07-28 send the header over HTTP, and servers on HTTP
    /// compare it with the argument.
    ///
    /// An argument that the schema does not have is an error where the tool is added. An argument
    /// of another type, or a name that is invalid or taken, is an error where the server
    /// [starts on HTTP](CatalogError::InvalidSchema).
    ///
    /// ```
    /// use mcp_sansio_handlers::{Call, Server, ServerItem};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Query { region: String, sql: String }
    ///
    /// let query = ServerItem::tool("query", "Queries a database", |call: Call<Query>| {
    ///     format!("No rows in {}", call.arguments.region)
    /// });
    /// let server = Server::new("database", "1.0.0").add_item(query.header_param("region", "Region"));
    /// # assert!(server.endpoint(42).is_ok());
    /// ```
    // MCP 2026-07-28 basic/transports/streamable-http#custom-headers-from-tool-parameters [HDR-009]
    pub fn header_param(mut self, argument: &str, name: &str) -> Self {
        let annotated = annotate_property(&self.definition.input_schema, argument, name);
        let exists = annotated.is_some();
        if let Some(schema) = annotated {
            self.definition.input_schema = schema;
        }
        let tool = self.definition.name.clone();
        self.requires_argument(exists, ItemKind::Tool, tool, argument)
    }

    fn annotate(mut self, change: impl FnOnce(ToolAnnotations) -> ToolAnnotations) -> Self {
        let hints = self.definition.annotations.take().unwrap_or_default();
        self.definition.annotations = Some(change(hints));
        self
    }
}

impl<K: Threading> ServerItem<Prompt, K> {
    /// Sets the name to display.
    pub fn title(self, title: impl Into<String>) -> Self {
        self.define(|prompt| prompt.title(title))
    }

    /// Sets the icons.
    pub fn icons(self, icons: impl Into<Vec<Icon>>) -> Self {
        self.define(|prompt| prompt.icons(icons))
    }
}

impl<D, K: Threading> ServerItem<D, K> {
    pub(super) fn details(&mut self) -> &mut ItemDetails<K> {
        self.details.get_or_insert_with(|| Box::new(ItemDetails::new()))
    }

    /// Notes the mistake if an argument does not exist.
    pub(super) fn requires_argument(
        mut self,
        exists: bool,
        kind: ItemKind,
        key: String,
        argument: &str,
    ) -> Self {
        if !exists {
            let argument = argument.into();
            let problem = CatalogError::NoSuchArgument { kind, key, argument };
            self.details().problem.get_or_insert(problem);
        }
        self
    }
}

/// Adds the annotation of a mirrored argument to a property of a schema. Returns `None` if the
/// schema does not have the property.
fn annotate_property(schema: &Json, argument: &str, name: &str) -> Option<Json> {
    let mut schema: Value = schema.decode().ok()?;
    let property = schema.get_mut("properties")?.get_mut(argument)?.as_object_mut()?;
    property.insert("x-mcp-header".into(), name.into());
    Json::from_serialize(&schema).ok()
}

mcp_sansio::partial_debug! {
    impl<D: fmt::Debug, K: Threading> Debug for ServerItem<D, K> { definition, .. }
}

mod sealed {
    use super::{Catalog, CatalogError, ItemId};

    #[allow(unnameable_types, reason = "sealed: other crates cannot implement it")]
    pub trait Sealed {
        fn add_to(self, catalog: &mut Catalog) -> Result<ItemId, CatalogError>;
    }
}

macro_rules! definitions {
    ($($definition:ident for $of:ident by $add:ident;)+) => { $(
        impl ItemDefinition for $definition {
            type Of = $of;
        }

        impl sealed::Sealed for $definition {
            fn add_to(self, catalog: &mut Catalog) -> Result<ItemId, CatalogError> {
                catalog.$add(self)
            }
        }
    )+ };
}

definitions! {
    Tool for CallToolResult by add_tool;
    Prompt for GetPromptResult by add_prompt;
    Resource for ReadResourceResult by add_resource;
    ResourceTemplate for ReadResourceResult by add_resource_template;
}

// ------------------------------------------------------------------ changes of a catalog

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
    Tool by name for CallToolResult:
    /// Adds a tool with its handler.
    add_tool;
    /// Changes the definition of the tool with this name; its handler stays.
    update_tool by replace_tool;
    /// Removes a tool and its handler. Pending calls still get their answer.
    remove_tool of tool;

    Prompt by name for GetPromptResult:
    /// Adds a prompt with its handler.
    add_prompt;
    /// Changes the definition of the prompt with this name; its handler stays.
    update_prompt by replace_prompt;
    /// Removes a prompt and its handler. Pending requests still get their answer.
    remove_prompt of prompt;

    Resource by uri for ReadResourceResult:
    /// Adds a resource with its handler.
    add_resource;
    /// Changes the definition of the resource with this URI; its handler stays.
    update_resource by replace_resource;
    /// Removes a resource and its handler. Pending reads still get their answer.
    remove_resource of resource;

    ResourceTemplate by uri_template for ReadResourceResult:
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
    /// The item is invalid, its key is taken, or its handler takes a [`State`](super::State) that
    /// the server does not have.
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

mcp_sansio::partial_debug! { impl<K: Threading> Debug for CatalogEdit<'_, K> { catalog, .. } }

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mcp_sansio::catalog::{Catalog, CatalogError, ItemId};
#[cfg(feature = "http")]
use mcp_sansio::http;
use mcp_sansio::jsonrpc::Json;
use mcp_sansio::peer::{Event, ServerOptions};
use mcp_sansio::protocol::CallToolResult;
use mcp_sansio::protocol::GetPromptResult;
use mcp_sansio::protocol::ReadResourceResult;
use mcp_sansio::protocol::{
    CacheHints, CapabilitySettings, Implementation, Prompt, Resource, ResourceTemplate,
    ServerCapabilities, Tool,
};
use mcp_sansio::{Job, Method, Spawner, Tape};

use super::connection_options::connection_options;
use super::connections::Join;
use super::context::{CommandSender, DetailsReader, details_with_meta};
use super::dispatch::StateSeal;
use super::executor::{PanicGuard, Panicked};
use super::function::Handler;
#[cfg(feature = "http")]
use super::http_server::HttpServerMachine;
use super::mailbox::MailboxLimits;
use super::recorder::Recorder;
use super::server_binding::remove_sessions;
use super::server_endpoint::IntoEndpoint;
use super::server_endpoint::ServerEndpoint;
use super::server_endpoint::StreamServer;
use super::server_item::{
    CatalogEdit, ItemDefinition, ItemDetails, ItemHandler, ItemHandlers, ServerItem, StateCheck,
};
use super::state::{StateMap, StateTypes};
use super::task::TaskFactory;
use super::threading::{Local, ThreadSafe, Threading};

/// A server: its name, its catalog, and the handlers of its items.
///
/// The same server runs under every adapter and serves every revision:
///
/// ```
/// use mcp_sansio_handlers::{Call, Server};
/// use mcp_sansio::protocol::Tool;
/// use mcp_sansio::jsonrpc::RawJson;
///
/// #[derive(serde::Deserialize)]
/// struct Place { location: String }
///
/// let schema = RawJson::parse(
///     r#"{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}"#,
/// ).unwrap();
/// let server = Server::new("weather", "1.0.0").tool_with(
///     Tool::new("forecast", schema).description("Weather at a place"),
///     |call: Call<Place>| format!("Sunny in {}", call.arguments.location),
/// );
/// # let _ = server;
/// ```
pub struct Server<K: Threading = ThreadSafe> {
    pub(super) options: ServerOptions,
    /// Shared with every connection; cloned for a change if a connection has it.
    pub(super) handlers: Arc<Handlers<K>>,
    pub(super) items: ItemHandlers<K>,
    pub(super) problem: Option<CatalogError>,
    /// Of the handlers that take a state which is not registered yet.
    pub(super) unmet: Vec<StateTypes>,
    pub(super) tasks: Option<TaskFactory>,
    pub(super) joining: Option<Arc<dyn Join<K>>>,
    pub(super) recorder: Option<Recorder>,
}

impl<K: Threading> Clone for Server<K> {
    /// Shares the handlers.
    fn clone(&self) -> Self {
        Self {
            options: self.options.clone(),
            handlers: Arc::clone(&self.handlers),
            items: Arc::clone(&self.items),
            problem: self.problem.clone(),
            unmet: self.unmet.clone(),
            tasks: self.tasks.clone(),
            joining: self.joining.clone(),
            recorder: self.recorder.clone(),
        }
    }
}

/// The functions of a server that belong to no item of its catalog.
pub(super) struct Handlers<K: Threading> {
    /// Sorted by method.
    methods: Vec<MethodHandler<K>>,
    pub(super) observers: Observers,
    /// The middleware around all of them.
    pub(super) layers: Option<K::Layers>,
    pub(super) states: Option<K::States>,
    pub(super) extensions: Option<Arc<super::extension::ExtensionTable>>,
    /// Reads the details of requests, if the server keeps any.
    pub(super) details: Option<DetailsReader>,
    /// Where the application runs blocking handlers, in place of the adapter.
    pub(super) spawner: Option<Spawner>,
    pub(super) sealing: Option<Arc<dyn StateSeal>>,
    /// The clock of the application, or of the adapter.
    pub(super) unix_time: Option<UnixTime>,
    #[cfg(feature = "http")]
    pub(super) http: super::protection::HttpHandlers<K>,
}

impl<K: Threading> Clone for Handlers<K> {
    fn clone(&self) -> Self {
        Self {
            methods: self.methods.clone(),
            observers: self.observers.clone(),
            layers: self.layers.clone(),
            states: self.states.clone(),
            extensions: self.extensions.clone(),
            details: self.details,
            spawner: self.spawner.clone(),
            sealing: self.sealing.clone(),
            unix_time: self.unix_time.clone(),
            #[cfg(feature = "http")]
            http: self.http.clone(),
        }
    }
}

mcp_sansio::partial_debug! { impl<K: Threading> Debug for Handlers<K> { .. } }

/// The handler of a method.
pub(super) struct MethodHandler<K: Threading> {
    pub(super) method: String,
    pub(super) function: K::Function,
    /// Declares the method to clients, if the protocol has a capability for it that the catalog
    /// does not declare.
    pub(super) declare: Option<fn(&mut ServerCapabilities)>,
}

impl<K: Threading> Clone for MethodHandler<K> {
    fn clone(&self) -> Self {
        let (method, function) = (self.method.clone(), self.function.clone());
        Self { method, function, declare: self.declare }
    }
}

impl<K: Threading> Handlers<K> {
    fn place(&self, method: &str) -> Result<usize, usize> {
        self.methods.binary_search_by(|known| (*known.method).cmp(method))
    }

    /// Returns the function of a method.
    pub(super) fn method(&self, method: &str) -> Option<&K::Function> {
        self.place(method).ok().map(|place| &self.methods[place].function)
    }

    /// Sets the handler of a method.
    pub(super) fn set_method(&mut self, handler: MethodHandler<K>) {
        match self.place(&handler.method) {
            Ok(place) => self.methods[place] = handler,
            Err(place) => self.methods.insert(place, handler),
        }
    }

    /// Returns the handlers of the methods that are declared to clients.
    pub(super) fn declared(&self) -> impl Iterator<Item = &MethodHandler<K>> {
        self.methods.iter().filter(|handler| handler.declare.is_some())
    }

    /// Shows an event to all observers; returns the first panic of one.
    pub(super) fn show(&self, event: &Event<'_>, guard: PanicGuard) -> Result<(), Panicked> {
        self.observers.show(event, guard)
    }

    pub(super) fn state_map(&self) -> Option<&dyn StateMap> {
        self.states.as_ref().map(K::state_map)
    }
}

/// A clock that returns the seconds since 1970.
pub(super) type UnixTime = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The functions that observe all events.
#[derive(Clone, Default)]
pub(super) struct Observers(pub(super) Vec<Observer>);

impl Observers {
    /// Shows an event to all of them, even after a panic; returns the first panic.
    pub(super) fn show(&self, event: &Event<'_>, guard: PanicGuard) -> Result<(), Panicked> {
        let observed = self.0.iter().map(|observer| guard.run(|| observer(event)));
        observed.fold(Ok(()), Result::and)
    }
}

mcp_sansio::partial_debug! { impl Debug for Observers { .. } }

/// A function that observes every event.
pub(super) type Observer = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

impl Server {
    /// Creates a server whose handlers may run on any thread.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self::with_identity(Implementation::new(name, version))
    }

    /// Sets where [`blocking`](super::blocking()) handlers run, in place of the adapter's threads:
    /// `spawn` passes each job to a thread that may block.
    #[must_use]
    pub fn spawner(mut self, spawn: impl Fn(Job) + Send + Sync + 'static) -> Self {
        self.functions().spawner = Some(Spawner::new(spawn));
        self
    }
}

impl Server<Local> {
    /// Creates a server whose handlers stay on the thread that drives the connection.
    pub fn local(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self::with_identity(Implementation::new(name, version))
    }
}

impl<K: Threading> Server<K> {
    /// Creates a server with a complete `Implementation` in place of name and version.
    #[must_use]
    pub fn with_identity(identity: Implementation) -> Self {
        let mut catalog = Catalog::new();
        // `tasks` turns them on.
        catalog.manage_all().legacy_tasks(false);
        Self {
            options: ServerOptions::new(identity).catalog(catalog),
            handlers: Arc::new(Handlers {
                methods: Vec::new(),
                observers: Observers::default(),
                layers: None,
                states: None,
                extensions: None,
                details: None,
                spawner: None,
                sealing: None,
                unix_time: None,
                #[cfg(feature = "http")]
                http: super::protection::HttpHandlers::default(),
            }),
            items: ItemHandlers::<K>::default(),
            problem: None,
            unmet: Vec::new(),
            tasks: None,
            joining: None,
            recorder: None,
        }
    }

    /// Registers a tool from a complete [`Tool`] definition.
    ///
    /// With an output schema, a handler returns a structured result or a tool error. If it returns
    /// neither, or a result that the validator of the catalog refuses, the client gets an internal
    /// error.
    #[must_use]
    pub fn tool_with<M>(self, tool: Tool, handler: impl Handler<K, CallToolResult, M>) -> Self {
        self.add_item(ServerItem::new(tool, handler))
    }

    /// Registers a prompt from a complete [`Prompt`] definition. Its handler takes `Call<T>`, where
    /// the arguments, a map of strings, deserialize to `T`.
    #[must_use]
    pub fn prompt_with<M>(
        self,
        prompt: Prompt,
        handler: impl Handler<K, GetPromptResult, M>,
    ) -> Self {
        self.add_item(ServerItem::new(prompt, handler))
    }

    /// Registers a resource. Its handler takes `Call<ReadResource>`.
    #[must_use]
    pub fn resource<M>(
        self,
        resource: Resource,
        handler: impl Handler<K, ReadResourceResult, M>,
    ) -> Self {
        self.add_item(ServerItem::new(resource, handler))
    }

    /// Registers the resources whose URIs match a template. The handler finds the template's
    /// variables in `Call<ReadResource>`.
    #[must_use]
    pub fn resource_template<M>(
        self,
        template: ResourceTemplate,
        handler: impl Handler<K, ReadResourceResult, M>,
    ) -> Self {
        self.add_item(ServerItem::new(template, handler))
    }

    /// Registers an item with its handler: a tool, a prompt, a resource or a resource template.
    // Depends on the type of the definition, not on that of the handler: it is compiled at most
    // four times.
    #[must_use]
    pub fn add_item<D: ItemDefinition>(mut self, item: ServerItem<D, K>) -> Self {
        let ServerItem { definition, function, details } = item;
        let added = self.options.edit_catalog(|catalog| definition.add_to(catalog));
        self.register(added, function, details);
        self
    }

    /// Adds the handlers of an item that was added to the catalog.
    #[inline(never)]
    fn register(
        &mut self,
        added: Result<ItemId, CatalogError>,
        function: K::Function,
        details: Option<Box<ItemDetails<K>>>,
    ) {
        if let Some(details) = &details {
            (details.require)(details, self);
        }
        match added {
            Ok(id) => {
                let arguments = details.and_then(|details| {
                    let finish = details.finish;
                    self.options.edit_catalog(|catalog| finish(*details, catalog, id))
                });
                Arc::make_mut(&mut self.items).insert(id, ItemHandler { function, arguments });
            }
            Err(problem) => self.note(problem),
        }
    }

    /// Registers a handler for requests of `method`, which an extension defines. It takes
    /// `Call<T>`, where the parameters deserialize to `T`, and returns
    /// [`Json`]. A method of the protocol cannot be registered: that is
    /// an error of [`endpoint`](Self::endpoint), like the errors of items.
    #[must_use]
    pub fn request<M>(
        mut self,
        method: impl Into<String>,
        handler: impl Handler<K, Json, M>,
    ) -> Self {
        self.require(handler.states());
        let (method, function) = (method.into(), handler.into_function());
        if let Some(&method) = Method::ALL.iter().find(|known| known.as_str() == method) {
            self.note(CatalogError::ProtocolMethod { method });
            return self;
        }
        if self.is_method_of_extension(&method) {
            return self;
        }
        self.functions().set_method(MethodHandler { method, function, declare: None });
        self
    }

    /// Declares that the server sends log messages. Without it, they are dropped.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// log to standard error, or with OpenTelemetry, and report what the client needs in results.
    // MCP 2025-11-25 server/utilities/logging#capabilities [CAP-004]
    #[must_use]
    pub fn logging(mut self) -> Self {
        self.options.capabilities_mut().logging = Some(CapabilitySettings::default());
        self
    }

    /// Declares that clients can subscribe to resources.
    #[must_use]
    pub fn subscriptions(mut self) -> Self {
        self.options.edit_catalog(|catalog| _ = catalog.subscribe(true));
        self
    }

    /// Declares more capabilities than the catalog and handlers imply.
    #[must_use]
    pub fn capabilities(mut self, declare: impl FnOnce(&mut ServerCapabilities)) -> Self {
        declare(self.options.capabilities_mut());
        self
    }

    /// Sets the instructions for the model on how to use the server.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.options = self.options.instructions(instructions);
        self
    }

    /// Keeps `_meta` and the client's description of itself for handlers, which read them with
    /// [`Context::meta`](super::Context::meta) and
    /// [`Context::client_info`](super::Context::client_info). Not the default, because they are
    /// copied for each request.
    ///
    /// ```
    /// use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
    ///
    /// let server = Server::new("s", "1").keep_meta().tool("who", "", |call: Call<NoArguments>| {
    ///     call.client_info().map_or_else(|| "nobody".to_owned(), |client| client.name)
    /// });
    /// # let (client, mut pair) = mcp_sansio_test::connect(&server, &Host::new("editor", "1.0.0"));
    /// # let result = pair.run(client.call_tool("who", &NoArguments {}))?;
    /// # assert_eq!(result.first_text(), Some("editor"));
    /// # Ok::<(), mcp_sansio_handlers::ClientError>(())
    /// ```
    #[must_use]
    pub fn keep_meta(mut self) -> Self {
        self.functions().details = Some(details_with_meta);
        self
    }

    /// Sets how long clients may cache lists, at revisions with caching hints.
    #[must_use]
    pub fn cache(mut self, cache: CacheHints) -> Self {
        self.options = self.options.cache(cache);
        self
    }

    /// Edits the catalog directly: page size, validator, definitions of items.
    #[must_use]
    pub fn catalog(mut self, edit: impl FnOnce(&mut CatalogEdit<'_, K>)) -> Self {
        let mut required = Vec::new();
        self.edit_catalog(Some(&mut required), edit);
        for states in required {
            self.require(states);
        }
        self
    }

    /// Sets the clock that returns the seconds since 1970. Tokens and sealed states expire by it.
    ///
    /// The adapters on the standard library set that of the system where the application sets none.
    /// Without an adapter that has a clock, it has to be set for `protect` and `seal`.
    #[must_use]
    pub fn unix_time(mut self, unix_time: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.functions().unix_time = Some(Arc::new(unix_time));
        self
    }

    /// Adds an observer of all events of all connections, for logs and metrics: violations,
    /// panics of handlers, openings, ends. It must return quickly.
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.functions().observers.0.push(Arc::new(observer));
        self
    }

    /// Creates the server's side of one connection, for an adapter to drive. A server may have
    /// many.
    ///
    /// `seed` is a random number: see [`peer::Server::new`](mcp_sansio::peer::Server::new). The ids
    /// of elicitations are derived from it, so clients must not be able to guess it.
    ///
    /// # Errors
    ///
    /// An item of the catalog has an invalid name, or the name of another item; a handler takes a
    /// [`State`](super::State) that is not registered.
    pub fn endpoint(&self, seed: u64) -> Result<ServerEndpoint<K>, CatalogError> {
        self.clone().into_endpoint(seed)
    }

    /// Edits the catalog for later connections. The states that new items take are noted in
    /// `required`; without it, the server must have them.
    pub(super) fn edit_catalog(
        &mut self,
        required: Option<&mut Vec<StateTypes>>,
        edit: impl FnOnce(&mut CatalogEdit<'_, K>),
    ) {
        let (items, registered) = (&mut self.items, self.handlers.state_map());
        let mut arguments = None;
        self.options.edit_catalog(|catalog| {
            let states = required.map_or(StateCheck::Now(registered), StateCheck::Later);
            let edited = CatalogEdit::run(catalog, states, PanicGuard::NONE, edit);
            arguments = edited.arguments();
            edited.apply::<K>(items, catalog, |handler| handler);
            // Later connections have other sessions.
            remove_sessions(catalog, items, |_| true);
        });
        if let Some(arguments) = &arguments {
            arguments.declare(self);
        }
    }

    /// Brings the server up to date for a new connection, if it has [`Connections`].
    ///
    /// [`Connections`]: super::Connections
    pub(super) fn join(&mut self, commands: &CommandSender) {
        // Taken meanwhile: what it keeps is a copy of the server, which must not own itself.
        if let Some(joining) = self.joining.take() {
            joining.join(self, commands);
            self.joining = Some(joining);
        }
    }

    /// Returns the limits on queued commands of handlers and the application per connection.
    pub(super) fn mailbox_limits(&self) -> MailboxLimits {
        MailboxLimits::new(self.options.limits_ref())
    }

    /// Creates the machine of one connection.
    pub(super) fn machine(self, seed: u64) -> StreamServer {
        let tape = self.next_tape();
        StreamServer::new(self.peer_options(), seed, tape)
    }

    /// Creates the machine for all clients on HTTP.
    #[cfg(feature = "http")]
    pub(super) fn http_machine(
        &self,
        options: http::HttpServerOptions,
        secret: [u8; 32],
        seed: u64,
    ) -> Result<HttpServerMachine, CatalogError> {
        let peer = self.clone().peer_options();
        HttpServerMachine::new(peer, options, secret, seed, self.next_tape())
    }

    fn next_tape(&self) -> Option<Tape> {
        self.recorder.as_ref().and_then(|recorder| recorder.next())
    }

    /// Returns the options of the machines.
    fn peer_options(self) -> ServerOptions {
        let Self { mut options, handlers, .. } = self;
        for handler in &handlers.methods {
            match handler.declare {
                Some(declare) => declare(options.capabilities_mut()),
                None => options.policy_mut().deliver_unknown_methods = true,
            }
        }
        options
    }

    /// Returns the functions for a change; clones them if a connection shares them.
    pub(super) fn functions(&mut self) -> &mut Handlers<K> {
        Arc::make_mut(&mut self.handlers)
    }

    /// Notes the states that a handler takes, unless they are registered.
    pub(super) fn require(&mut self, states: StateTypes) {
        if let Err(problem) = states.check(self.handlers.state_map()) {
            self.unmet.push(states);
            if self.problem.is_none() {
                self.problem = Some(problem);
            }
        }
    }

    /// Notes a mistake. The first one is reported, except that a missing state is not a mistake
    /// yet.
    pub(super) fn note(&mut self, problem: CatalogError) {
        if matches!(self.problem, None | Some(CatalogError::MissingState { .. })) {
            self.problem = Some(problem);
        }
    }
}

connection_options!(
    Server,
    "client",
    "Requests that reach handlers pass [`middleware`](Self::middleware) after it. Requests that the protocol layer answers itself pass only this one: `initialize`, `server/discover`, `ping`, `logging/setLevel`, those of subscriptions, and refused ones."
);

mcp_sansio::partial_debug! { impl<K: Threading> Debug for Server<K> { handlers, .. } }

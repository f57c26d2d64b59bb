//! Access to the connections of a server from outside of its handlers.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio_sync::Mutex;
use serde::Serialize;

use super::context::{CommandSender, LogSource};
use super::mailbox::{Command, Mailbox, SendError};
use super::server::{Handlers, Server};
use super::server_item::CatalogEdit;
use super::threading::{ThreadSafe, Threading};

/// All connections of a [`Server`], present and future, on byte streams and on HTTP.
///
/// A [`ServerHandle`] or a [`Context`](super::Context) changes one connection,
/// or one server on HTTP; this type changes them all. Handlers can own a clone.
///
/// ```
/// use mcp_sansio_handlers::{Call, Connections, NoArguments, Server, ServerItem};
///
/// let connections = Connections::new();
/// let server = Server::new("plugins", "1.0.0").connections(&connections);
/// let first = server.endpoint(42)?;
///
/// connections.edit_catalog(|catalog| {
///     let hello = ServerItem::tool("hello", "Says hello", |_: Call<NoArguments>| "Hello!");
///     catalog.add_item(hello).map(drop)
/// })??;
///
/// // The first connection makes the edit when it is driven next; later ones begin with it.
/// let second = server.endpoint(43)?;
/// assert!(second.machine().catalog().tool("hello").is_some());
/// # drop(first);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Connections(Arc<Mutex<State>>);

struct State {
    /// Owned by the server, because its handlers may own this state.
    prototype: Weak<Mutex<Prototype>>,
    /// In the order of their ids.
    open: Vec<Connection>,
    /// At this length closed connections are removed from `open`.
    open_max: usize,
    next_id: u64,
    /// The edits that a connection has yet to make, oldest first.
    edits: VecDeque<PendingEdit>,
    edits_max: usize,
    /// The number of edits so far.
    edited: u64,
    /// Whether an edit that was overtaken several times is being made, so that nothing overtakes
    /// it.
    is_exclusive: bool,
}

/// The server as its next connection receives it.
#[derive(Clone)]
struct Prototype {
    server: Server,
    /// The functions of the server before the edits.
    functions: Arc<Handlers<ThreadSafe>>,
    /// The number of edits so far.
    edited: u64,
    /// How often the server was replaced by one that was built further.
    replaced: u64,
}

struct Connection {
    id: u64,
    commands: Weak<Mailbox<Command>>,
    /// The number of edits that the connection has made or began with.
    edited: u64,
}

type SharedEdit = dyn Fn(&mut CatalogEdit<'_>) + Send + Sync;

struct PendingEdit {
    edit: Arc<SharedEdit>,
    /// The number of connections that have yet to make the edit.
    pending: usize,
}

/// The open connections, and the values that were removed from the state. To be dropped outside of
/// the lock, because that runs the application's code.
struct Open {
    connections: Vec<(u64, CommandSender)>,
    _closed: Vec<CommandSender>,
    _made: Vec<PendingEdit>,
}

impl Open {
    const NONE: Self = Self { connections: Vec::new(), _closed: Vec::new(), _made: Vec::new() };
}

/// How often an edit may be overtaken before it prevents that. 100: threads that edit at the same
/// time overtake each other a few times, while an edit that makes another one is always overtaken.
const OVERTAKEN_MAX: u32 = 100;

/// The right to make an edit that nothing overtakes, until it is dropped.
struct Exclusive<'a> {
    connections: &'a Connections,
    is_held: bool,
}

impl Exclusive<'_> {
    /// Acquires the right, if no other edit has it. Returns whether this one has it.
    fn hold(&mut self) -> bool {
        if !self.is_held {
            let state = &self.connections.0;
            self.is_held = state.lock(|state| !core::mem::replace(&mut state.is_exclusive, true));
        }
        self.is_held
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        if self.is_held {
            self.connections.0.lock(|state| state.is_exclusive = false);
        }
    }
}

impl Connections {
    /// Creates a handle for [`Server::connections`]. Until then, its methods return
    /// [`SendError::Closed`].
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            prototype: Weak::new(),
            open: Vec::new(),
            open_max: 8,
            next_id: 0,
            edits: VecDeque::new(),
            edits_max: 0,
            edited: 0,
            is_exclusive: false,
        })))
    }

    /// Changes the catalog of the server: that of each open connection, when it is driven next, and
    /// of all later ones. Clients are notified.
    ///
    /// `edit` is called for each connection, and first for the later ones: this method returns what
    /// that call returns. If that call panics, there is no edit. It is called again if the server
    /// has changed meanwhile: by another thread, or because `edit` itself makes an edit or opens a
    /// connection.
    ///
    /// # Errors
    ///
    /// [`SendError::Full`] if a connection has [`Limits::commands_max`] earlier edits to make:
    /// its driver does not run; and if another edit is being made that was overtaken too often,
    /// such as the one that makes this call. [`SendError::Closed`] if no server has this handle, and
    /// no connection of one. Either way nothing is changed.
    ///
    /// [`Limits::commands_max`]: mcp_sansio::peer::Limits::commands_max
    pub fn edit_catalog<T>(
        &self,
        edit: impl Fn(&mut CatalogEdit<'_>) -> T + Send + Sync + 'static,
    ) -> Result<T, SendError> {
        let first = Arc::new(edit);
        let next = Arc::clone(&first);
        let edit: Arc<SharedEdit> = Arc::new(move |catalog| drop(next(catalog)));
        let prototype = self.0.lock(|state| state.prototype.upgrade()).ok_or(SendError::Closed)?;
        let mut exclusive = Exclusive { connections: self, is_held: false };
        for attempt in 1_u32.. {
            if attempt > OVERTAKEN_MAX && !exclusive.hold() {
                return Err(SendError::Full);
            }
            // The application's code runs outside of the locks.
            let before = prototype.lock(|prototype| prototype.clone());
            let (mut server, mut returned) = (before.server, None);
            server.edit_catalog(None, |catalog| returned = Some(first(catalog)));
            let after = Prototype {
                server,
                functions: before.functions,
                edited: before.edited + 1,
                replaced: before.replaced,
            };
            // Taken if it replaces the prototype; dropped outside of the locks otherwise.
            let mut after = Some(after);
            let noted = self.0.lock(|state| {
                prototype.lock(|prototype| {
                    if (prototype.edited, prototype.replaced) != (before.edited, before.replaced) {
                        // Another edit was faster.
                        return Ok(None);
                    }
                    if state.is_exclusive && !exclusive.is_held {
                        return Err((SendError::Full, Open::NONE));
                    }
                    let open = state.note(&edit)?;
                    let after = after.take();
                    Ok(after.map(|after| (core::mem::replace(prototype, after), open)))
                })
            });
            let noted = noted.map_err(|(error, _open): (_, Open)| error)?;
            let (Some((_before, open)), Some(returned)) = (noted, returned) else { continue };
            for (id, commands) in open.connections {
                let connections = self.clone();
                let take = move |catalog: &mut CatalogEdit<'_>| {
                    let taken = connections.0.lock(|state| state.take(id));
                    if let Some((edit, _made)) = taken {
                        edit(catalog);
                    }
                };
                // Fails only if the connection is closed.
                let _sent = commands.send(Command::TakeEdit(Box::new(take)));
            }
            return Ok(returned);
        }
        Err(SendError::Full)
    }

    /// Notifies the subscribers of a resource on all connections that it changed.
    ///
    /// # Errors
    ///
    /// [`SendError::Full`] if the command queue of a connection is full; the others are notified.
    pub fn resource_updated(&self, uri: &str) -> Result<(), SendError> {
        let failed = self.handles().into_iter().filter_map(|it| it.resource_updated(uri).err());
        let is_full = failed.fold(false, |is_full, error| is_full | (error == SendError::Full));
        if is_full { Err(SendError::Full) } else { Ok(()) }
    }

    /// Closes all connections.
    pub fn close(&self) {
        for handle in self.handles() {
            handle.close();
        }
    }

    /// Returns handles to the connections whose drivers exist, oldest first. A server on HTTP is
    /// one.
    #[must_use]
    pub fn handles(&self) -> Vec<ServerHandle> {
        let open = self.0.lock(State::remove_closed).connections.into_iter();
        open.map(|(_, commands)| ServerHandle::new(commands)).collect()
    }
}

impl State {
    /// Removes closed connections, and returns the open ones.
    fn remove_closed(&mut self) -> Open {
        let (first, edits) = (self.first_edit(), &mut self.edits);
        let mut connections = Vec::with_capacity(self.open.len());
        let mut closed = Vec::new();
        self.open.retain(|connection| {
            let commands = connection.commands.upgrade();
            let is_open = commands.as_ref().is_some_and(|commands| commands.is_open());
            if is_open {
                connections.extend(commands.map(|commands| (connection.id, commands)));
            } else {
                closed.extend(commands);
                // The oldest edit that it has not made is still there.
                let made = usize::try_from(connection.edited - first).unwrap_or(usize::MAX);
                edits.iter_mut().skip(made).for_each(|edit| edit.pending -= 1);
            }
            is_open
        });
        Open { connections, _closed: closed, _made: self.remove_made() }
    }

    /// The number of edits before those in `edits`.
    fn first_edit(&self) -> u64 {
        self.edited - self.edits.len() as u64
    }

    /// Removes the oldest edits if all connections have made them.
    fn remove_made(&mut self) -> Vec<PendingEdit> {
        let made = self.edits.iter().take_while(|edit| edit.pending == 0).count();
        self.edits.drain(..made).collect()
    }

    fn add(&mut self, commands: &CommandSender, edited: u64) -> Option<Open> {
        let removed = (self.open.len() == self.open_max).then(|| self.remove_closed());
        self.open_max = self.open_max.max(2 * self.open.len());
        let commands = Arc::downgrade(commands);
        self.open.push(Connection { id: self.next_id, commands, edited });
        self.next_id += 1;
        removed
    }

    /// Adds an edit for all open connections, and returns them.
    fn note(&mut self, edit: &Arc<SharedEdit>) -> Result<Open, (SendError, Open)> {
        let open = self.remove_closed();
        if self.edits.len() >= self.edits_max {
            return Err((SendError::Full, open));
        }
        self.edited += 1;
        if let pending @ 1.. = open.connections.len() {
            self.edits.push_back(PendingEdit { edit: Arc::clone(edit), pending });
        }
        Ok(open)
    }

    /// Takes the next edit that a connection has to make, and removes edits that all have made.
    fn take(&mut self, id: u64) -> Option<(Arc<SharedEdit>, Vec<PendingEdit>)> {
        let first = self.first_edit();
        let place = self.open.binary_search_by_key(&id, |connection| connection.id).ok()?;
        let connection = &mut self.open[place];
        let next = usize::try_from(connection.edited - first).ok()?;
        let pending = self.edits.get_mut(next)?;
        connection.edited += 1;
        pending.pending -= 1;
        Some((Arc::clone(&pending.edit), self.remove_made()))
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self::new()
    }
}

mcp_sansio::partial_debug! { impl Debug for Connections { .. } }

/// Adds the connections of a server to its [`Connections`].
///
/// A trait, so that its code is linked only into programs that use it.
pub(super) trait Join<K: Threading>: Send + Sync {
    /// Brings a server up to date for its next connection, and adds the connection.
    fn join(&self, server: &mut Server<K>, commands: &CommandSender);
}

impl<K: Threading> fmt::Debug for dyn Join<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Join(..)")
    }
}

struct Joining {
    connections: Connections,
    prototype: Arc<Mutex<Prototype>>,
    /// The number of edits before those of the prototype.
    edited_before: u64,
}

impl Join<ThreadSafe> for Joining {
    fn join(&self, server: &mut Server, commands: &CommandSender) {
        // The application may have configured the server further after `Server::connections`. All
        // of that applies, its protection in particular.
        let mut built = server.clone();
        // Both locks, so that no edit comes in between.
        let (edits, _removed) = self.connections.0.lock(|state| {
            if !state.prototype.ptr_eq(&Arc::downgrade(&self.prototype)) {
                // Another server has the handle by now.
                return (None, None);
            }
            let is_exclusive = state.is_exclusive;
            self.prototype.lock(|prototype| {
                let edits = (prototype.edited != self.edited_before)
                    .then(|| (prototype.server.clone(), Arc::clone(&prototype.functions)));
                if edits.is_none() && !is_exclusive {
                    prototype.functions = Arc::clone(&built.handlers);
                    prototype.replaced += 1;
                    // The old one is dropped outside of the locks.
                    core::mem::swap(&mut prototype.server, &mut built);
                }
                (edits, state.add(commands, prototype.edited))
            })
        });
        if let Some((edited, functions)) = edits {
            server.adopt_edits(edited, &functions);
        }
    }
}

impl Server {
    /// Takes the items of `edited`, whose functions were `functions` before the edits.
    fn adopt_edits(&mut self, edited: Self, functions: &Arc<Handlers<ThreadSafe>>) {
        self.items = edited.items;
        self.options = self.options.clone().share_catalog(&edited.options);
        if Arc::ptr_eq(&self.handlers, functions) {
            self.handlers = edited.handlers;
            return;
        }
        for handler in edited.handlers.declared() {
            if self.handlers.method(&handler.method).is_none() {
                self.functions().set_method(handler.clone());
            }
        }
    }
}

impl Server {
    /// Lets `connections` reach all connections of this server and its clones. Register all items
    /// before the first edit: connections have no items that are registered after it.
    ///
    /// A handle belongs to one server: if another one had it, its connections are no longer
    /// reached.
    #[must_use]
    pub fn connections(mut self, connections: &Connections) -> Self {
        self.joining = None;
        let edits_max = self.options.limits_ref().commands_max;
        let (prototype, edited_before, _detached) = connections.0.lock(|state| {
            let prototype = Prototype {
                server: self.clone(),
                functions: Arc::clone(&self.handlers),
                edited: state.edited,
                replaced: 0,
            };
            let prototype = Arc::new(Mutex::new(prototype));
            (state.prototype, state.edits_max) = (Arc::downgrade(&prototype), edits_max);
            // Those of another server. They are dropped outside of the lock.
            let detached = (core::mem::take(&mut state.open), core::mem::take(&mut state.edits));
            (prototype, state.edited, detached)
        });
        let connections = connections.clone();
        self.joining = Some(Arc::new(Joining { connections, prototype, edited_before }));
        self
    }
}

// ------------------------------------------------------------------ a single connection

/// A handle to a running connection for use outside of handlers, from any thread. On HTTP it
/// reaches all clients of the server.
///
/// ```
/// use mcp_sansio::protocol::{Resource, TextResourceContents};
/// use mcp_sansio_handlers::{Call, ReadResource, Server};
///
/// let server = Server::new("sensor", "1.0.0").subscriptions().resource(
///     Resource::new("sensor://reading", "reading"),
///     |call: Call<ReadResource>| TextResourceContents::new(&call.arguments.uri, "21.5"),
/// );
/// let endpoint = server.endpoint(42)?;
/// // Another thread notifies the client when the reading changes.
/// let handle = endpoint.handle();
/// handle.resource_updated("sensor://reading")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ServerHandle(CommandSender);

impl ServerHandle {
    pub(super) const fn new(commands: CommandSender) -> Self {
        Self(commands)
    }

    /// Notifies the subscribers of a resource that it changed.
    ///
    /// # Errors
    ///
    /// [`SendError`]: the command queue is full, or the connection is closed.
    pub fn resource_updated(&self, uri: impl Into<String>) -> Result<(), SendError> {
        Ok(self.0.send(Command::ResourceUpdated { from: None, uri: uri.into() })?)
    }

    /// Changes the catalog of the connection, over HTTP that of the server; clients are notified.
    /// To change all connections, use [`Connections`]. The edit runs when the connection is driven
    /// next, and its errors are lost unless it sends them through a channel. Under an adapter that
    /// [catches](super::endpoint::PanicGuard) panics, an edit that panics is abandoned.
    ///
    /// # Errors
    ///
    /// [`SendError`]: the command queue is full, or the connection is closed.
    pub fn edit_catalog(
        &self,
        edit: impl FnOnce(&mut CatalogEdit<'_>) + Send + 'static,
    ) -> Result<(), SendError> {
        Ok(self.0.send(Command::EditCatalog { from: None, edit: Box::new(edit) })?)
    }

    /// Sends a log message that belongs to no request. A legacy client receives it if it wants
    /// messages of this level, and the server declares [`logging`](super::Server::logging). Data that
    /// cannot be serialized is dropped.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// log to standard error, or with OpenTelemetry, and report what the client needs in results.
    ///
    /// `source` is the level, or the level and the name of the logger, as for
    /// [`Context::log`](super::Context::log).
    pub fn log<'l, D: Serialize + ?Sized>(&self, source: impl Into<LogSource<'l>>, data: &D) {
        if let Some(command) = source.into().message(None, data) {
            // Dropped if the client, or the driver, is too far behind.
            let _sent = self.0.send(command);
        }
    }

    /// Closes the connection.
    pub fn close(&self) {
        // Fails only if the connection is already closed.
        let _sent = self.0.send(Command::Close);
    }
}

//! Several servers behind one list of tools.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::error::Error;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use core::{fmt, iter, mem};

use mcp_sansio::peer::CloseReason;
use mcp_sansio::protocol::{
    CallToolResult, GetPromptResult, Prompt, Resource, ResourceTemplate, Tool,
};
use mcp_sansio::{Attempts, Backoff, InvalidValue};
use mcp_sansio_collections::{Key, Slab};
use mcp_sansio_sync::Mutex;
use serde::Serialize;

use super::pending::ClientCall;
use super::{Client, ClientError, ClosedFuture};

/// Several servers as one: their tools, prompts and resources in one list, calls by the names of
/// that list, and connections that are opened again when they end.
///
/// Each server has a name of the application's choice. Its tools and prompts get that name and a
/// separator in front of their own: the tool `read` of the server `files` is `files_read`. So two
/// servers may offer a tool of the same name; names of servers with which the result could be
/// ambiguous are refused. A server that fails does not affect the others: its items are missing
/// from the lists, which say why, until it is connected again.
///
/// [`connect`](Self::connect) adds a server and returns a future that keeps it connected. `C` is a
/// connection of an adapter, or a [`Client`]. Clones share the servers.
///
/// A connection that [outlives](crate::endpoint::ClientEndpoint::respawning) the process of its
/// server stays: its subscriptions are kept, and its calls wait for the new process. The server is
/// [restarting](ServerState::Restarting) meanwhile. It is opened again only when it gives up.
///
/// ```no_run
/// # use std::time::Duration;
/// # use mcp_sansio_handlers::ClientError;
/// use mcp_sansio_handlers::{Client, NoArguments, Servers};
///
/// # async fn open(_: &str) -> Result<Client, ClientError> { core::future::pending().await }
/// # async fn sleep(_: Duration) {}
/// # fn spawn(_: impl Future + Send + 'static) {}
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let servers = Servers::<Client>::new().seed(42);
/// for name in ["lima", "oslo"] {
///     let connect = async move || open(name).await; // for example with `mcp::spawn(command, &host)`
///     spawn(servers.connect(name, connect, sleep)?); // for example `tokio::spawn`, `tokio::time::sleep`
/// }
/// for error in servers.ready(sleep(Duration::from_secs(10))).await {
///     println!("{error}");
/// }
/// for tool in servers.all_tools().await.items {
///     println!("{}", tool.item.name); // lima_now, oslo_now
/// }
/// let result = servers.call_tool("lima_now", &NoArguments {})?.await?;
/// # drop(result);
/// # Ok(()) }
/// ```
pub struct Servers<C = Client> {
    config: Arc<Config>,
    table: Arc<Mutex<Table<C>>>,
}

/// A connection to a server, from which calls are made.
///
/// It is implemented for [`Client`] and for the connections of the adapters. For connections of
/// several types, use the `AnyConnection` of an adapter, or implement this trait for an enum.
pub trait ServerConnection: Send + 'static {
    /// Returns the handle of the connection.
    fn client(&self) -> &Client;

    /// Returns a random number, for the random part of delays: see [`Servers::new`]. 0 unless
    /// implemented, as for [`Client`]: it is known to no source of randomness.
    #[must_use]
    fn seed() -> u64 {
        0
    }

    /// Returns whether an error of the function that opens such connections is permanent: another
    /// attempt would fail in the same way, as for a program that does not exist. It is called with
    /// each error of the chain. `false` unless implemented.
    #[must_use]
    fn is_permanent(error: &(dyn Error + 'static)) -> bool {
        let _ = error;
        false
    }
}

impl ServerConnection for Client {
    fn client(&self) -> &Client {
        self
    }
}

#[derive(Clone)]
struct Config {
    separator: String,
    backoff: Backoff,
    startup_limit: Option<Duration>,
    observer: Option<Arc<Observer>>,
}

type Observer = dyn Fn(&str, &ServerState) + Send + Sync;

type Description = dyn Fn() -> String + Send + Sync;

/// The state of a server's connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServerState {
    /// The connection is being opened.
    Connecting,
    /// The connection is open.
    Connected,
    /// The connection is open, but the process of its server has ended and is started again by the
    /// connection. Calls wait for it; lists do not contain its items.
    Restarting,
    /// The connection ended or could not be opened. It is opened again after a delay.
    Waiting {
        /// Why.
        error: ConnectionError,
        /// The delay.
        delay: Duration,
    },
    /// Its name was refused, or the connection ended or could not be opened, and no attempts are left,
    /// another one would fail in the [same way](ServerConnection::is_permanent), or the application
    /// closed it. To try again, [connect](Servers::connect) the server again.
    Ended {
        /// Why.
        error: ConnectionError,
    },
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("connecting"),
            Self::Connected => f.write_str("connected"),
            Self::Restarting => f.write_str("restarting"),
            Self::Waiting { error, delay } => write!(f, "{error}; next attempt in {delay:.1?}"),
            Self::Ended { error } => write!(f, "{error}"),
        }
    }
}

struct Table<C> {
    /// By name, so that lists have the same order each time.
    servers: BTreeMap<Arc<str>, Registered<C>>,
    /// The number of the last server, counted from a random one: it is the seed of its delays.
    number: u64,
    /// The tasks that wait until no server is being connected.
    waiting: Slab<Waker>,
}

struct Registered<C> {
    number: u64,
    state: ServerState,
    /// Whether it was refused because of its name.
    is_ambiguous: bool,
    /// Set in the state [`Connected`](ServerState::Connected).
    connection: Option<C>,
    description: Option<Arc<Description>>,
    /// The task that keeps it connected, woken when the server is removed.
    task: Option<Waker>,
}

impl<C: ServerConnection> Servers<C> {
    /// Creates an empty set of servers.
    ///
    /// The delays between attempts to connect have a random part, so that many hosts do not return
    /// to a server at the same time. The connections of the adapters take it from the operating
    /// system; for others, set a [seed](Self::seed).
    #[must_use]
    pub fn new() -> Self {
        let (separator, backoff) = (String::from("_"), Backoff::DEFAULT);
        let config = Config { separator, backoff, startup_limit: None, observer: None };
        let table = Table { servers: BTreeMap::new(), number: C::seed(), waiting: Slab::new() };
        Self { config: Arc::new(config), table: Arc::new(Mutex::new(table)) }
    }

    /// Sets the random number from which the random parts of delays are derived: for connections
    /// without a source of randomness, and for tests. Set it before the first server is added.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.table.lock(|table| table.number = seed);
        self
    }

    /// Sets the text between the name of a server and the name of its tool; the default is `_`. Set
    /// it before the first server is added.
    #[must_use]
    pub fn separator(mut self, separator: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.config).separator = separator.into();
        self
    }

    /// Sets the delays between attempts to connect. An attempt counts until its connection has
    /// lasted for the [`ceiling`](Backoff::ceiling), so that a server that ends again and again is
    /// not started again and again.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        Arc::make_mut(&mut self.config).backoff = backoff;
        self
    }

    /// Sets how long an attempt to connect may take; without it, as long as the function that
    /// connects, whose limits are those of the transport and of
    /// [`Host::timeouts`](crate::Host::timeouts). An attempt that takes longer is dropped, which
    /// ends the process of its server, and has failed: the server is not waited for any longer, and
    /// is tried again after a delay.
    ///
    /// A server that is downloaded at its first start may take a minute.
    #[must_use]
    pub fn startup_limit(mut self, limit: Duration) -> Self {
        Arc::make_mut(&mut self.config).startup_limit = Some(limit);
        self
    }

    /// Sets a function that describes a server while it is being connected, for the errors of that
    /// time: its program or URL, how long it has been waited for, and what it has written to its
    /// standard error. The text is shown to users: it must contain no secrets and no control
    /// characters. Without effect if there is no server of this name.
    ///
    /// `connect_servers` of the adapters describes its servers.
    pub fn describe(&self, server: &str, description: impl Fn() -> String + Send + Sync + 'static) {
        let description: Option<Arc<Description>> = Some(Arc::new(description));
        let old = self.table.lock(|table| {
            let server = table.servers.get_mut(server)?;
            mem::replace(&mut server.description, description)
        });
        drop(old);
    }

    /// Returns the description of a server.
    fn description(&self, server: &str) -> Option<String> {
        let description = self.table.lock(|table| table.servers.get(server)?.description.clone());
        // Outside of the lock: it may run any code.
        description.map(|description| description())
    }

    /// Adds the description of a server that is being connected to its error.
    fn described<T>(&self, result: Result<T, ServersError>) -> Result<T, ServersError> {
        result.map_err(|error| match error {
            ServersError::NotConnected { server, error: None, .. } => {
                let description = self.description(&server);
                ServersError::NotConnected { server, error: None, description }
            }
            error => error,
        })
    }

    /// Returns the delays between attempts to connect. A connection that starts the process of its
    /// server again may use the same ones.
    #[must_use]
    pub fn backoff_policy(&self) -> Backoff {
        self.config.backoff
    }

    /// Sets a function that is called with each new state of each server. It must return quickly.
    #[must_use]
    pub fn observe(
        mut self,
        observer: impl Fn(&str, &ServerState) + Send + Sync + 'static,
    ) -> Self {
        Arc::make_mut(&mut self.config).observer = Some(Arc::new(observer));
        self
    }

    /// Returns the names of the servers and the states of their connections.
    #[must_use]
    pub fn states(&self) -> Vec<(Arc<str>, ServerState)> {
        self.table.lock(|table| {
            let servers = table.servers.iter();
            servers.map(|(name, server)| (Arc::clone(name), server.state())).collect()
        })
    }

    /// Returns the client of a server, by the name of the server: to read resources, subscribe, and
    /// for everything else that concerns one server.
    ///
    /// # Errors
    ///
    /// [`ServersError::UnknownName`] and [`ServersError::NotConnected`].
    pub fn client(&self, server: &str) -> Result<Client, ServersError> {
        self.with_connection(server, |connection| connection.client().clone())
    }

    /// Calls `read` with the connection of a server, by the name of the server: for what the
    /// [client](Self::client) does not have, such as the process id or the last lines of standard
    /// error. The servers are locked meanwhile: `read` must return quickly, and must not use them.
    ///
    /// # Errors
    ///
    /// [`ServersError::UnknownName`] and [`ServersError::NotConnected`].
    pub fn with_connection<T>(
        &self,
        server: &str,
        read: impl FnOnce(&C) -> T,
    ) -> Result<T, ServersError> {
        self.described(self.table.lock(|table| match table.servers.get(server) {
            Some(registered) => registered.connection(server).map(read),
            None => Err(ServersError::UnknownName { name: server.into() }),
        }))
    }

    /// Returns the client for a name of a merged list, and the name at that server.
    ///
    /// # Errors
    ///
    /// [`ServersError::UnknownName`] and [`ServersError::NotConnected`].
    pub fn resolve<'n>(&self, name: &'n str) -> Result<(Client, &'n str), ServersError> {
        self.find(name).map(|(_, client, name)| (client, name))
    }

    /// Returns the server and the client for a name of a merged list, and the name at that server.
    fn find<'n>(&self, name: &'n str) -> Result<(Arc<str>, Client, &'n str), ServersError> {
        let separator = &*self.config.separator;
        let resolved = self.table.lock(|table| {
            // MCP 2026-07-28 server/tools#tool-names [TOOL-024]: `register` refuses ambiguous names.
            let found = table.unambiguous().find_map(|(server, registered)| {
                let rest = name.strip_prefix(&**server)?.strip_prefix(separator)?;
                let client = registered.client(server);
                Some(client.map(|client| (Arc::clone(server), client, rest)))
            });
            found.unwrap_or_else(|| Err(ServersError::UnknownName { name: name.into() }))
        });
        self.described(resolved)
    }

    /// Calls a tool by its name in [`all_tools`](Self::all_tools): see [`Client::call_tool`].
    ///
    /// # Errors
    ///
    /// [`ServersError::UnknownName`] and [`ServersError::NotConnected`]. Nothing is sent. The call
    /// itself fails with [`ClientError::OfServer`].
    pub fn call_tool<A: Serialize + ?Sized>(
        &self,
        name: &str,
        arguments: &A,
    ) -> Result<ClientCall<CallToolResult>, ServersError> {
        let (server, client, own_name) = self.find(name)?;
        Ok(client.call_tool(own_name, arguments).called_as(server, name))
    }

    /// Requests a prompt by its name in [`all_prompts`](Self::all_prompts): see
    /// [`Client::get_prompt`].
    ///
    /// # Errors
    ///
    /// [`ServersError::UnknownName`] and [`ServersError::NotConnected`]. Nothing is sent.
    pub fn get_prompt(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = (String, String)>,
    ) -> Result<ClientCall<GetPromptResult>, ServersError> {
        let (server, client, own_name) = self.find(name)?;
        Ok(client.get_prompt(own_name, arguments).called_as(server, name))
    }

    /// Removes all servers and returns the open connections with their names, to shut them down.
    /// Attempts to connect are dropped, and the futures of [`connect`](Self::connect) end.
    #[must_use = "the connections are open"]
    pub fn close(&self) -> Vec<(Arc<str>, C)> {
        let servers = self.table.lock(|table| mem::take(&mut table.servers));
        self.wake_ready();
        let servers = servers.into_iter();
        let connections = servers.filter_map(|(name, it)| Some((name, it.into_connection()?)));
        connections.collect()
    }

    /// Removes a server and returns its connection, if it is open, to shut it down. An attempt to
    /// connect is dropped, and the future of [`connect`](Self::connect) ends. A server of this name
    /// can be connected at once.
    #[must_use = "the connection is open"]
    pub fn remove(&self, server: &str) -> Option<C> {
        let removed = self.table.lock(|table| table.servers.remove(server));
        self.wake_ready();
        removed?.into_connection()
    }

    /// Returns the clients of all servers, or why they are not connected.
    fn connected(&self) -> Vec<(Arc<str>, Result<Client, ServersError>)> {
        let connected: Vec<_> = self.table.lock(|table| {
            let servers = table.servers.iter();
            let connected = servers.map(|(name, server)| {
                let client = match server.client(name) {
                    // The list would wait for the new process.
                    Ok(client) if client.is_suspended() => Err(ServersError::not_connected(name)),
                    client => client,
                };
                (Arc::clone(name), client)
            });
            connected.collect()
        });
        let connected = connected.into_iter();
        connected.map(|(server, client)| (server, self.described(client))).collect()
    }

    /// Returns what the names of a server's items begin with.
    fn prefix(&self, server: &str) -> String {
        let mut prefix = String::from(server);
        prefix.push_str(&self.config.separator);
        prefix
    }

    /// Adds a server that is being connected; returns its number, and why its name is refused.
    fn register(&self, name: &Arc<str>) -> Result<(u64, Option<ServersError>), ServersError> {
        // The replaced entry is dropped outside of the lock: its error may run any code.
        let registered = self.table.lock(|table| {
            let known = table.servers.get(name);
            if known.is_some_and(|known| !matches!(known.state, ServerState::Ended { .. })) {
                return (Err(ServersError::NameInUse { name: String::from(&**name) }), None);
            }
            let (number, ambiguous) = (table.number.wrapping_add(1), self.ambiguity(table, name));
            table.number = number;
            let (state, is_ambiguous) = (ServerState::Connecting, ambiguous.is_some());
            let (connection, description, task) = (None, None, None);
            let added = Registered { number, state, is_ambiguous, connection, description, task };
            (Ok((number, ambiguous)), table.servers.insert(Arc::clone(name), added))
        });
        registered.0
    }

    /// Returns an error if a name and another one could begin the same name of an item.
    fn ambiguity(&self, table: &Table<C>, name: &Arc<str>) -> Option<ServersError> {
        let prefix = self.prefix(name);
        let mut others = table.unambiguous().map(|(other, _)| other);
        let other = others.find(|other| {
            let others = self.prefix(other);
            *other != name && (prefix.starts_with(&others) || others.starts_with(&prefix))
        })?;
        let (name, other) = (String::from(&**name), String::from(&**other));
        Some(ServersError::AmbiguousName { name, other })
    }
}

impl<C> Table<C> {
    /// Returns the servers to which the names of items may lead.
    fn unambiguous(&self) -> impl Iterator<Item = (&Arc<str>, &Registered<C>)> {
        self.servers.iter().filter(|(_, server)| !server.is_ambiguous)
    }

    /// Returns the server of a [`Registration`], unless it was removed.
    fn registered(&mut self, name: &str, number: u64) -> Option<&mut Registered<C>> {
        self.servers.get_mut(name).filter(|server| server.number == number)
    }
}

impl<C: ServerConnection> Registered<C> {
    fn state(&self) -> ServerState {
        match &self.connection {
            Some(connection) if connection.client().is_suspended() => ServerState::Restarting,
            _ => self.state.clone(),
        }
    }

    fn into_connection(self) -> Option<C> {
        if let Some(task) = self.task {
            task.wake();
        }
        self.connection
    }

    fn client(&self, name: &str) -> Result<Client, ServersError> {
        self.connection(name).map(|connection| connection.client().clone())
    }

    fn connection(&self, name: &str) -> Result<&C, ServersError> {
        if let Some(connection) = &self.connection {
            return Ok(connection);
        }
        let error = match &self.state {
            ServerState::Waiting { error, .. } | ServerState::Ended { error } => {
                Some(Arc::clone(error))
            }
            ServerState::Connecting | ServerState::Connected | ServerState::Restarting => None,
        };
        Err(ServersError::NotConnected { server: name.into(), error, description: None })
    }
}

impl<C: ServerConnection> Default for Servers<C> {
    fn default() -> Self {
        Self::new()
    }
}

// Implemented by hand: `derive` would require `C: Clone`.
impl<C> Clone for Servers<C> {
    fn clone(&self) -> Self {
        Self { config: Arc::clone(&self.config), table: Arc::clone(&self.table) }
    }
}

impl<C> fmt::Debug for Servers<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.table.lock(|table| table.servers.keys().cloned().collect::<Vec<_>>());
        f.debug_struct("Servers").field("names", &names).finish_non_exhaustive()
    }
}

// ------------------------------------------------------------------ merged lists

/// The items of all connected servers, ordered by the names of the servers, and the servers
/// whose items are missing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergedList<T> {
    /// The items.
    pub items: Vec<MergedItem<T>>,
    /// Why items are missing: one error for each server that is not connected, or whose list could
    /// not be read.
    pub errors: Vec<ServersError>,
}

/// An item of one of several servers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MergedItem<T> {
    /// The name of the server.
    pub server: Arc<str>,
    /// The item. Its `name` begins with the name of the server and the separator.
    pub item: T,
}

/// An item whose name can be changed.
trait Named {
    fn name_mut(&mut self) -> &mut String;
}

macro_rules! named {
    ($($item:ty),+) => { $(
        impl Named for $item {
            fn name_mut(&mut self) -> &mut String {
                &mut self.name
            }
        }
    )+ };
}

named!(Tool, Prompt, Resource, ResourceTemplate);

macro_rules! merged_lists {
    ($($(#[doc = $doc:literal])* $name:ident: $item:ty;)+) => {
        impl<C: ServerConnection> Servers<C> { $(
            $(#[doc = $doc])*
            ///
            /// Requests the lists of all servers at the same time, page by page. A server that does
            /// not offer such items contributes nothing.
            pub async fn $name(&self) -> MergedList<$item> {
                self.merge(|client| Box::pin(async move { client.$name().await })).await
            }
        )+ }
    };
}

merged_lists! {
    /// Lists the tools of all servers, under the names that [`call_tool`](Servers::call_tool)
    /// takes.
    all_tools: Tool;
    /// Lists the prompts of all servers, under the names that [`get_prompt`](Servers::get_prompt)
    /// takes.
    all_prompts: Prompt;
    /// Lists the resources of all servers. Their URIs are unchanged, and two servers may have the
    /// same one: read a resource from [its server](Servers::client).
    all_resources: Resource;
    /// Lists the resource templates of all servers. Their URI templates are unchanged.
    all_resource_templates: ResourceTemplate;
}

/// A list that is being read from one server.
type Listing<T> = Pin<Box<dyn Future<Output = Result<Vec<T>, ClientError>> + Send>>;

impl<C: ServerConnection> Servers<C> {
    async fn merge<T: Named>(&self, list: impl Fn(Client) -> Listing<T>) -> MergedList<T> {
        let (mut merged, mut listings) =
            (MergedList { items: Vec::new(), errors: Vec::new() }, Vec::new());
        for (server, client) in self.connected() {
            match client {
                Ok(client) => listings.push((server, State::Pending(list(client)))),
                Err(error) => merged.errors.push(error),
            }
        }
        all(&mut listings).await;
        for (server, state) in listings {
            match state {
                State::Ready(Ok(items)) => {
                    merged.items.extend(items.into_iter().map(|mut item| {
                        let name = item.name_mut();
                        name.insert_str(0, &self.prefix(&server));
                        MergedItem { server: Arc::clone(&server), item }
                    }))
                }
                State::Ready(Err(error)) if error.missing_capability().is_some() => {}
                State::Ready(Err(error)) => {
                    let (server, error) = (String::from(&*server), Arc::new(error));
                    merged.errors.push(ServersError::List { server, error });
                }
                State::Pending(_) => {}
            }
        }
        merged
    }
}

/// The list of one server.
enum State<T> {
    Pending(Listing<T>),
    Ready(Result<Vec<T>, ClientError>),
}

/// Waits until all lists are read or failed. Polls each of them on each wake-up: servers are few.
async fn all<T>(listings: &mut [(Arc<str>, State<T>)]) {
    poll_fn(|cx| {
        let mut is_ready = true;
        for (_, state) in &mut *listings {
            if let State::Pending(listing) = state {
                match listing.as_mut().poll(cx) {
                    Poll::Ready(result) => *state = State::Ready(result),
                    Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

// ------------------------------------------------------------------ waiting for all servers

/// Resolves when no server is being connected.
struct Ready<'s, C> {
    servers: &'s Servers<C>,
    waiting: Option<Key>,
}

impl<C: ServerConnection> Servers<C> {
    /// Waits until each server is connected or its current attempt has failed, but not longer than
    /// `limit`, such as a `sleep` of the runtime. Returns an error for each server that is not
    /// connected: why its attempt failed, or that it is not connected *yet*. Servers that take
    /// longer are connected later, and failed ones are tried again.
    ///
    /// The merged lists contain the items of connected servers only: a program that has just
    /// started waits before it requests them. The futures of [`connect`](Self::connect) must run
    /// meanwhile.
    pub async fn ready(&self, limit: impl Future) -> Vec<ServersError> {
        within(Ready { servers: self, waiting: None }, limit).await;
        self.connected().into_iter().filter_map(|(_, client)| client.err()).collect()
    }
}

impl<C> Servers<C> {
    /// Wakes the tasks that wait, if no server is being connected.
    fn wake_ready(&self) {
        let wakers: Vec<Waker> = self
            .table
            .lock(|table| if table.is_ready() { table.waiting.take_all() } else { Vec::new() });
        for waker in wakers {
            waker.wake();
        }
    }
}

impl<C> Table<C> {
    fn is_ready(&self) -> bool {
        self.servers.values().all(|server| !matches!(server.state, ServerState::Connecting))
    }
}

impl<C> Future for Ready<'_, C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Wakers are cloned and dropped outside of the lock, because they run foreign code.
        let mut waker = Some(cx.waker().clone());
        let waiting = self.waiting.take();
        let (key, old) = self.servers.table.lock(|table| {
            let old = waiting.and_then(|key| table.waiting.remove(key));
            let key = match table.is_ready() {
                true => None,
                false => waker.take().map(|waker| table.waiting.insert(waker)),
            };
            (key, old)
        });
        drop((waker, old));
        self.waiting = key;
        if key.is_some() { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl<C> Drop for Ready<'_, C> {
    fn drop(&mut self) {
        if let Some(key) = self.waiting {
            drop(self.servers.table.lock(|table| table.waiting.remove(key)));
        }
    }
}

// ------------------------------------------------------------------ reconnection

impl<C: ServerConnection> Servers<C> {
    /// Adds a server. The returned future calls `connect` to open the connection, waits until it
    /// ends, calls `sleep` with the delay of the [backoff](Self::backoff), and begins again. An
    /// attempt ends at the [`startup_limit`](Self::startup_limit). Run the future as a task. It
    /// completes when no attempts are left, after a [permanent](ServerConnection::is_permanent)
    /// error, or when the application has closed the connection, or removed [it](Self::remove) or
    /// [all](Self::close). Dropping it removes the server and drops its connection.
    ///
    /// # Errors
    ///
    /// [`ServersError::NameInUse`], and [`ServersError::AmbiguousName`], with which the server is
    /// [listed](Self::states) as one that has ended.
    // MCP 2026-07-28 basic/transports/stdio#unexpected-termination [STDIO-019]: the calls of the lost
    // connection have failed; only the application knows which of them to repeat.
    pub fn connect<F, E, S>(
        &self,
        name: &str,
        mut connect: F,
        sleep: S,
    ) -> Result<impl Future<Output = ()> + use<C, F, E, S>, ServersError>
    where
        F: AsyncFnMut() -> Result<C, E>,
        E: Into<Box<dyn Error + Send + Sync>>,
        S: AsyncFn(Duration),
    {
        let name = Arc::from(name);
        let (number, ambiguous) = self.register(&name)?;
        let mut attempts = Attempts::new(self.config.backoff, number);
        let registration = Registration { servers: self.clone(), name, number };
        if let Some(error) = ambiguous {
            registration.ended(Arc::new(error.clone()));
            return Err(error);
        }
        let removed = registration.servers.removed(&registration.name, number);
        let connecting = async move {
            loop {
                let opened = match registration.servers.config.startup_limit {
                    None => connect().await.map_err(Into::into),
                    Some(limit) => match within(connect(), sleep(limit)).await {
                        Some(opened) => opened.map_err(Into::into),
                        None => Err(registration.startup_error(limit).into()),
                    },
                };
                let (error, is_final): (ConnectionError, _) = match opened {
                    Ok(connection) => {
                        let closed = connection.client().until_closed();
                        registration.set(ServerState::Connected, Some(connection));
                        let ceiling = registration.servers.config.backoff.ceiling;
                        let reason =
                            registration.end_of(closed, sleep(ceiling), || attempts.reset()).await;
                        let is_final = reason == CloseReason::Local;
                        (Arc::new(reason), is_final)
                    }
                    Err(error) => {
                        let error = ConnectionError::from(error);
                        let is_final = is_permanent::<C>(&*error);
                        (error, is_final)
                    }
                };
                let delay = if is_final { None } else { attempts.next_delay(None) };
                let Some(delay) = delay else { return registration.ended(error) };
                registration.set(ServerState::Waiting { error, delay }, None);
                sleep(delay).await;
                if !registration.set(ServerState::Connecting, None) {
                    return;
                }
            }
        };
        Ok(async move {
            within(removed, connecting).await;
        })
    }

    /// Resolves when a server is removed.
    fn removed(&self, name: &Arc<str>, number: u64) -> impl Future<Output = ()> + use<C> {
        let (table, name) = (Arc::clone(&self.table), Arc::clone(name));
        poll_fn(move |cx| {
            // Wakers are cloned and dropped outside of the lock, because they run foreign code.
            let mut task = Some(cx.waker().clone());
            let is_registered = table.lock(|table| {
                let server = table.registered(&name, number);
                server.map(|server| mem::swap(&mut server.task, &mut task)).is_some()
            });
            if is_registered { Poll::Pending } else { Poll::Ready(()) }
        })
    }
}

/// Returns the output of `future`, or `None` if `limit` completes first.
async fn within<T>(future: impl Future<Output = T>, limit: impl Future) -> Option<T> {
    let (mut future, mut limit) = (pin!(future), pin!(limit));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => limit.as_mut().poll(cx).map(|_| None),
    })
    .await
}

/// Returns whether an error or one of its causes is permanent, like a value with a place in a file.
fn is_permanent<C: ServerConnection>(error: &(dyn Error + 'static)) -> bool {
    iter::successors(Some(error), |&error| error.source()).any(|error| {
        let has_place = |value: &InvalidValue| !value.place.is_empty();
        error.downcast_ref().is_some_and(has_place) || C::is_permanent(error)
    })
}

/// The entry of a server, removed when the future is dropped, unless the server has ended.
struct Registration<C: ServerConnection> {
    servers: Servers<C>,
    name: Arc<str>,
    /// Distinguishes the entry from later ones of the same name.
    number: u64,
}

impl<C: ServerConnection> Registration<C> {
    /// Waits until a connection is closed, and reports that it is suspended and open again. Calls
    /// `on_time` if `time` passes before.
    async fn end_of(
        &self,
        mut closed: ClosedFuture,
        time: impl Future,
        mut on_time: impl FnMut(),
    ) -> CloseReason {
        let (mut time, mut has_passed, mut was_suspended) = (pin!(time), false, false);
        poll_fn(|cx| {
            if let Poll::Ready(reason) = Pin::new(&mut closed).poll(cx) {
                return Poll::Ready(reason);
            }
            let is_suspended = closed.is_suspended();
            if mem::replace(&mut was_suspended, is_suspended) != is_suspended {
                self.report(match is_suspended {
                    true => &ServerState::Restarting,
                    false => &ServerState::Connected,
                });
            }
            if !has_passed && time.as_mut().poll(cx).is_ready() {
                has_passed = true;
                on_time();
            }
            Poll::Pending
        })
        .await
    }

    /// Describes an attempt that took too long.
    fn startup_error(&self, limit: Duration) -> String {
        let error = format!("it was not open within {limit:?}");
        match self.servers.description(&self.name) {
            Some(description) => format!("{error}: {description}"),
            None => error,
        }
    }

    /// Calls the observer.
    fn report(&self, state: &ServerState) {
        if let Some(observer) = &self.servers.config.observer {
            observer(&self.name, state);
        }
    }

    fn ended(&self, error: ConnectionError) {
        self.set(ServerState::Ended { error }, None);
    }

    /// Sets the state and the connection; returns `false` if the servers were closed.
    fn set(&self, state: ServerState, mut connection: Option<C>) -> bool {
        let mut other = state.clone();
        let is_open = self.servers.table.lock(|table| {
            let server = table.registered(&self.name, self.number)?;
            mem::swap(&mut server.state, &mut other);
            mem::swap(&mut server.connection, &mut connection);
            Some(())
        });
        // Outside of the lock: connections and errors may run any code.
        drop((other, connection));
        self.servers.wake_ready();
        if is_open.is_some() {
            self.report(&state);
        }
        is_open.is_some()
    }
}

impl<C: ServerConnection> Drop for Registration<C> {
    fn drop(&mut self) {
        let dropped = self.servers.table.lock(|table| {
            let server = table.registered(&self.name, self.number)?;
            let ended = matches!(server.state, ServerState::Ended { .. });
            Some((server.task.take(), if ended { None } else { table.servers.remove(&self.name) }))
        });
        drop(dropped);
        self.servers.wake_ready();
    }
}

// ------------------------------------------------------------------ errors

/// Why a connection could not be opened, or ended.
pub type ConnectionError = Arc<dyn Error + Send + Sync>;

/// Why a server of [`Servers`] could not be added, listed or called.
///
/// Its [`Debug`](fmt::Debug) output is the message as well, for programs that return it from
/// `main`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ServersError {
    /// A server with this name was added before, and its future still exists.
    #[error("there is a server {name:?} already")]
    NameInUse {
        /// The name.
        name: String,
    },
    /// With both names, two tools of different servers could get the same name. Choose another name
    /// or another [separator](Servers::separator).
    #[error(
        "a tool of {name:?} could have the same name as a tool of {other:?}; rename one of the \
         servers, or set another `Servers::separator`"
    )]
    AmbiguousName {
        /// The name that was refused.
        name: String,
        /// The name of the other server.
        other: String,
    },
    /// There is no server for this name: it does not begin with the name of a server and the
    /// separator.
    #[error("no server offers {name:?}")]
    UnknownName {
        /// The name that was called or looked up.
        name: String,
    },
    /// The server is not connected.
    #[error("the server {server:?} is not connected{}", Because(error.as_ref(), description.as_deref()))]
    NotConnected {
        /// The name of the server.
        server: String,
        /// Why the last connection ended or could not be opened; `None` while one is being opened,
        /// for which [`ready`](Servers::ready) waits, or while the process of the server is
        /// started again.
        error: Option<ConnectionError>,
        /// The [description](Servers::describe) of the server, if there is no error.
        description: Option<String>,
    },
    /// A list of the server could not be read.
    #[error("the server {server:?}: {error}")]
    List {
        /// The name of the server.
        server: String,
        /// Why not.
        error: Arc<ClientError>,
    },
}

impl ServersError {
    fn not_connected(server: &str) -> Self {
        Self::NotConnected { server: server.into(), error: None, description: None }
    }

    /// Returns the name of the server that the error is about; `None` for
    /// [`UnknownName`](Self::UnknownName).
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::NameInUse { name: server }
            | Self::AmbiguousName { name: server, .. }
            | Self::NotConnected { server, .. }
            | Self::List { server, .. } => Some(server),
            Self::UnknownName { .. } => None,
        }
    }
}

impl fmt::Debug for ServersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes the reason, or that the server is only not connected yet, and its description.
struct Because<'a>(Option<&'a ConnectionError>, Option<&'a str>);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(error), _) => write!(f, ": {error}"),
            (None, Some(description)) => write!(f, " yet: {description}"),
            (None, None) => f.write_str(" yet"),
        }
    }
}

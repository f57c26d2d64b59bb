//! Several servers behind one list of tools.

mod error;
mod merged;
mod ready;
mod reconnect;

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;
use core::task::Waker;
use core::time::Duration;

use mcp_sansio::Backoff;
use mcp_sansio::protocol::{CallToolResult, GetPromptResult};
use mcp_sansio_collections::Slab;
use mcp_sansio_sync::Mutex;
use serde::Serialize;

use super::client::Client;
use super::pending::ClientCall;

pub use error::{ConnectionError, ServersError};
pub use merged::{MergedItem, MergedList};

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
/// let servers = Servers::<Client>::new(42);
/// for name in ["lima", "oslo"] {
///     let connect = async move || open(name).await; // for example with `mcp::spawn(command, &host)`
///     spawn(servers.connect(name, connect, sleep)?); // for example `tokio::spawn`, `tokio::time::sleep`
/// }
/// servers.ready().await;
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
/// It is implemented for [`Client`] and for all types that dereference to it, such as the
/// connections of the adapters. For connections of several types, use the `AnyConnection` of an
/// adapter, or implement this trait for an enum.
pub trait ServerConnection: Send + 'static {
    /// Returns the handle of the connection.
    fn client(&self) -> &Client;
}

impl ServerConnection for Client {
    fn client(&self) -> &Client {
        self
    }
}

impl<C: Deref<Target = Client> + Send + 'static> ServerConnection for C {
    fn client(&self) -> &Client {
        self
    }
}

#[derive(Clone)]
struct Config {
    separator: String,
    backoff: Backoff,
    observer: Option<Arc<Observer>>,
}

type Observer = dyn Fn(&str, &ServerState) + Send + Sync;

/// The state of a server's connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServerState {
    /// The connection is being opened.
    Connecting,
    /// The connection is open.
    Connected,
    /// The connection is open, but the process of its server has ended and is started again by the
    /// connection. Calls wait for it; lists do not contain its items. Only
    /// [`states`](Servers::states) tells it, not an [observer](Servers::observe).
    Restarting,
    /// The connection ended or could not be opened. It is opened again after a delay.
    Waiting {
        /// Why.
        error: ConnectionError,
        /// The delay.
        delay: Duration,
    },
    /// The connection ended or could not be opened, and no attempts are left, or the application
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
    /// Set in the state [`Connected`](ServerState::Connected).
    connection: Option<C>,
}

/// A server and its client, or why it is not connected.
struct Connected {
    server: Arc<str>,
    client: Result<Client, ServersError>,
}

impl<C: ServerConnection> Servers<C> {
    /// Creates an empty set of servers. `seed` is a random number, for the random part of delays.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let separator = String::from("_");
        let config = Config { separator, backoff: Backoff::DEFAULT, observer: None };
        let table = Table { servers: BTreeMap::new(), number: seed, waiting: Slab::new() };
        Self { config: Arc::new(config), table: Arc::new(Mutex::new(table)) }
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
        self.table.lock(|table| match table.servers.get_key_value(server) {
            Some((name, server)) => server.client(name),
            None => Err(ServersError::UnknownName { name: server.into() }),
        })
    }

    /// Returns the client for a name of a merged list, and the name at that server.
    ///
    /// # Errors
    ///
    /// [`ServersError::UnknownName`] and [`ServersError::NotConnected`].
    pub fn resolve<'n>(&self, name: &'n str) -> Result<(Client, &'n str), ServersError> {
        let separator = &*self.config.separator;
        self.table.lock(|table| {
            // At most one server matches: `register` refuses ambiguous names.
            let found = table.servers.iter().find_map(|(server, registered)| {
                let rest = name.strip_prefix(&**server)?.strip_prefix(separator)?;
                Some(registered.client(server).map(|client| (client, rest)))
            });
            found.unwrap_or_else(|| Err(ServersError::UnknownName { name: name.into() }))
        })
    }

    /// Calls a tool by its name in [`all_tools`](Self::all_tools): see [`Client::call_tool`].
    ///
    /// # Errors
    ///
    /// [`ServersError::UnknownName`] and [`ServersError::NotConnected`]. Nothing is sent.
    pub fn call_tool<A: Serialize + ?Sized>(
        &self,
        name: &str,
        arguments: &A,
    ) -> Result<ClientCall<CallToolResult>, ServersError> {
        self.resolve(name).map(|(client, name)| client.call_tool(name, arguments))
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
        self.resolve(name).map(|(client, name)| client.get_prompt(name, arguments))
    }

    /// Removes all servers and returns the open connections with their names, to shut them down.
    /// Nothing is connected again: the futures of [`connect`](Self::connect) end, those that wait
    /// after their delay.
    #[must_use = "the connections are open"]
    pub fn close(&self) -> Vec<(Arc<str>, C)> {
        let servers = self.table.lock(|table| core::mem::take(&mut table.servers));
        self.wake_ready();
        let connections = servers.into_iter().filter_map(|(name, it)| Some((name, it.connection?)));
        connections.collect()
    }

    /// Returns the clients of all servers.
    fn connected(&self) -> Vec<Connected> {
        self.table.lock(|table| {
            let servers = table.servers.iter();
            let connected = servers.map(|(name, server)| Connected {
                server: Arc::clone(name),
                client: match server.client(name) {
                    // The list would wait for the new process.
                    Ok(client) if client.is_suspended() => {
                        Err(ServersError::NotConnected { server: (&**name).into(), error: None })
                    }
                    client => client,
                },
            });
            connected.collect()
        })
    }

    /// Returns what the names of a server's items begin with.
    fn prefix(&self, server: &str) -> String {
        let mut prefix = String::from(server);
        prefix.push_str(&self.config.separator);
        prefix
    }

    /// Adds a server that is being connected; returns its number.
    fn register(&self, name: &Arc<str>) -> Result<u64, ServersError> {
        let prefix = self.prefix(name);
        let registered = self.table.lock(|table| {
            let names = table.servers.keys().filter(|other| *other != name);
            for other in names {
                let others = self.prefix(other);
                // Then `prefix` and a name could equal `others` and another name.
                if prefix.starts_with(&others) || others.starts_with(&prefix) {
                    let (name, other) = (String::from(&**name), String::from(&**other));
                    return Err(ServersError::AmbiguousName { name, other });
                }
            }
            let number = table.number.wrapping_add(1);
            let added = Registered { number, state: ServerState::Connecting, connection: None };
            match table.servers.entry(Arc::clone(name)) {
                Entry::Vacant(entry) => {
                    entry.insert(added);
                    table.number = number;
                    Ok((number, None))
                }
                Entry::Occupied(mut entry) => {
                    if !matches!(entry.get().state, ServerState::Ended { .. }) {
                        return Err(ServersError::NameInUse { name: String::from(&**name) });
                    }
                    let ended = entry.insert(added);
                    table.number = number;
                    Ok((number, Some(ended)))
                }
            }
        });
        // The replaced entry is dropped outside of the lock: its error may run any code.
        registered.map(|(number, _ended)| number)
    }
}

impl<C: ServerConnection> Registered<C> {
    fn state(&self) -> ServerState {
        match &self.connection {
            Some(connection) if connection.client().is_suspended() => ServerState::Restarting,
            _ => self.state.clone(),
        }
    }

    fn client(&self, name: &str) -> Result<Client, ServersError> {
        if let Some(connection) = &self.connection {
            return Ok(connection.client().clone());
        }
        let error = match &self.state {
            ServerState::Waiting { error, .. } | ServerState::Ended { error } => {
                Some(Arc::clone(error))
            }
            ServerState::Connecting | ServerState::Connected | ServerState::Restarting => None,
        };
        Err(ServersError::NotConnected { server: name.into(), error })
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

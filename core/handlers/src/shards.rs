//! Several servers on HTTP that are one for the application and for their clients.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};

use mcp_sansio::Instant;
use mcp_sansio::catalog::Catalog;
use mcp_sansio::http::{CatalogChange, HttpServerOptions, Shards};
use mcp_sansio_sync::Mutex;

use super::catalog_edit::ItemHandlers;
use super::context::CommandSender;
use super::http_server::{HttpServer, HttpServerError};
use super::machines::HttpServerMachine;
use super::mailbox::Mailbox;
use super::middleware::ServerLayers as _;
use super::sealing;
use super::server::Server;
use super::server_endpoint::ServerEndpoint;
use super::task::TaskCounts;
use super::threading::Threading;

impl Server {
    /// Creates the server on HTTP as several shards, as many as the options
    /// [say](HttpServerOptions::shards), for an adapter to drive each behind a lock of its own. The
    /// arguments are those of [`http`](Self::http).
    ///
    /// Their [`shards`](mcp_sansio::http::Server::shards) say which one handles a request. Handles
    /// and handlers of any of them reach the clients of all. An edit of the catalog takes effect in
    /// its own shard at once, and in the others before their next request. The queue of commands
    /// exists once for each shard, with the limits of one server.
    ///
    /// On a server with [tasks](Self::tasks) all requests of a principal go to one shard, and modern
    /// requests without a principal to the first, so that each finds the tasks of its sender.
    ///
    /// # Errors
    ///
    /// As [`http`](Self::http), and several shards have an event store.
    pub fn http_shards(
        &self,
        options: HttpServerOptions,
        secret: [u8; 32],
        seed: u64,
    ) -> Result<Vec<HttpServer>, HttpServerError> {
        if options.shard_count().get() == 1 {
            return self.http(options, secret, seed).map(|server| alloc::vec![server]);
        }
        let shards = Shards::new(&options, seed)?;
        let shards = if self.tasks.is_some() { shards.by_principal() } else { shards };
        // The connections of the application see the first shard, which stands for all.
        let (server, first) = HttpServer::prepare(self, &options, &secret)?;
        let mut servers = Vec::with_capacity(shards.count());
        let mut commands: Vec<CommandSender> = Vec::with_capacity(shards.count());
        for index in 0..shards.count() {
            let own = if index == 0 {
                Arc::clone(&first)
            } else {
                HttpServer::mailbox(&server, &options)
            };
            commands.push(Arc::clone(&own));
            let server = server.clone();
            servers.push(HttpServer::open(server, own, options.clone(), secret, seed)?);
        }
        Mailbox::join(&commands);
        let board = Arc::new(CatalogBoard::new(&server.items, shards.count()));
        let tasks = TaskCounts::default();
        for (index, server) in servers.iter_mut().enumerate() {
            server.join_shards(&shards, index, &board, &tasks);
        }
        if let Some((first, others)) = servers.split_first_mut() {
            others.iter_mut().for_each(|other| other.share_limits(first));
        }
        Ok(servers)
    }
}

impl<K: Threading> HttpServer<K> {
    /// Returns the server as its connections get it, and the mailbox by which the application
    /// reaches them.
    pub(super) fn prepare(
        server: &Server<K>,
        options: &HttpServerOptions,
        secret: &[u8; 32],
    ) -> Result<(Server<K>, CommandSender), HttpServerError> {
        let problem = server.problem();
        if let Some(problem) = problem {
            return Err(problem.into());
        }
        let commands = Self::mailbox(server, options);
        let mut server = server.clone();
        server.join(&commands);
        if server.handlers.sealing.is_none() {
            server.functions().sealing = Some(sealing::derived_from(secret));
        }
        Ok((server, commands))
    }

    /// Creates a mailbox for all clients: with the limit of one connection, plus one report per
    /// exchange.
    pub(super) fn mailbox(server: &Server<K>, options: &HttpServerOptions) -> CommandSender {
        let limits = server.mailbox_limits().shared_by(options.limits_ref().exchanges_max);
        Arc::new(Mailbox::new(limits))
    }

    /// Makes this server one of several.
    fn join_shards(
        &mut self,
        shards: &Shards,
        index: usize,
        board: &Arc<CatalogBoard<K>>,
        tasks: &TaskCounts,
    ) {
        let endpoint = &mut self.endpoint;
        endpoint.machine.join_shards(shards, index);
        endpoint.elicitations.join_shards(index);
        let catalog = ShardCatalog::new(board, &endpoint.commands, index);
        endpoint.running.catalog = Some(Box::new(catalog));
        if let Some(table) = &mut endpoint.tasks {
            table.join_shards(tasks);
        }
    }

    /// Counts token checks, and the callers without a principal, together with another shard.
    fn share_limits(&mut self, first: &Self) {
        #[cfg(feature = "protection")]
        {
            self.checks = Arc::clone(&first.checks);
        }
        let (endpoint, first) = (&mut self.endpoint, &first.endpoint);
        if let (Some(layers), Some(clock)) = (&endpoint.handlers.layers, &first.clock) {
            endpoint.clock = Some(layers.open_clock(&endpoint.commands, Some(clock.endpoint())));
        }
    }

    /// Takes the edits of the catalog that other shards have made.
    pub(super) fn adopt_catalog(&mut self, now: Instant) {
        let ServerEndpoint { machine, running, items, .. } = &mut self.endpoint;
        if let Some(catalog) = &mut running.catalog
            && catalog.is_behind()
        {
            catalog.adopt(machine, items, now);
        }
    }
}

/// The catalog that all shards have, and the handlers of its items.
pub(super) struct CatalogBoard<K: Threading> {
    /// The number of edits, to see without the lock whether there are new ones.
    edits: AtomicUsize,
    /// Held while the application edits the catalog, as is the lock of the shard: edits of several
    /// shards follow one another.
    state: Mutex<BoardState<K>>,
}

struct BoardState<K: Threading> {
    items: ItemHandlers<K>,
    /// The changes that each shard has not adopted yet.
    pending: Vec<Option<CatalogChange>>,
}

/// The access of one shard to the catalog of all.
pub(super) struct ShardCatalog<K: Threading> {
    board: Arc<CatalogBoard<K>>,
    commands: CommandSender,
    index: usize,
    /// The number of edits that this shard has made or adopted.
    adopted: usize,
}

impl<K: Threading> CatalogBoard<K> {
    fn new(items: &ItemHandlers<K>, count: usize) -> Self {
        let pending = (0..count).map(|_| None).collect();
        let state = Mutex::new(BoardState { items: Arc::clone(items), pending });
        Self { edits: AtomicUsize::new(0), state }
    }
}

impl<K: Threading> ShardCatalog<K> {
    pub(super) fn new(
        board: &Arc<CatalogBoard<K>>,
        commands: &CommandSender,
        index: usize,
    ) -> Self {
        let (board, commands) = (Arc::clone(board), Arc::clone(commands));
        Self { board, commands, index, adopted: 0 }
    }

    /// Whether other shards have edited the catalog.
    pub(super) fn is_behind(&self) -> bool {
        self.board.edits.load(Ordering::Acquire) != self.adopted
    }

    /// Takes the edits of other shards.
    pub(super) fn adopt(
        &mut self,
        machine: &mut HttpServerMachine,
        items: &mut ItemHandlers<K>,
        now: Instant,
    ) {
        let Self { board, index, adopted, .. } = self;
        let taken = board.state.lock(|state| {
            *adopted = board.edits.load(Ordering::Relaxed);
            let change = state.pending.get_mut(*index).and_then(Option::take)?;
            Some((change, Arc::clone(&state.items)))
        });
        if let Some((change, new)) = taken {
            *items = new;
            machine.adopt_catalog(&change, now);
        }
    }

    /// Edits the catalog for all shards.
    pub(super) fn edit(
        &mut self,
        machine: &mut HttpServerMachine,
        items: &mut ItemHandlers<K>,
        edit: impl FnOnce(&mut Catalog, &mut ItemHandlers<K>),
        now: Instant,
    ) {
        let Self { board, index, adopted, commands } = self;
        board.state.lock(|state| {
            if let Some(change) = state.pending.get_mut(*index).and_then(Option::take) {
                *items = Arc::clone(&state.items);
                machine.adopt_catalog(&change, now);
            }
            let edit = |catalog: &mut Catalog| edit(catalog, items);
            let ((), change) = machine.edit_catalog_for_shards(edit, now);
            state.items = Arc::clone(items);
            let others = state.pending.iter_mut().enumerate().filter(|(other, _)| other != index);
            for (_, pending) in others {
                match pending {
                    Some(pending) => pending.merge(&change),
                    None => *pending = Some(change.clone()),
                }
            }
            *adopted = board.edits.fetch_add(1, Ordering::Release) + 1;
        });
        commands.wake_shards();
    }
}

impl<K: Threading> fmt::Debug for ShardCatalog<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardCatalog").field("index", &self.index).finish_non_exhaustive()
    }
}

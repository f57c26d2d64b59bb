use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_sansio::http::{StoreAction, StoreError, StoreReply};
use mcp_sansio_async::http_server::{SharedStore, StoreOutcome};

use crate::keys::Keys;
use crate::link::{Deployment, Failure, Link};
use crate::nodes::{BLOCKING, Mailbox};
use crate::sessions::Numbers;

/// A store for the sessions, streams and tasks of several nodes in Redis or Valkey.
///
/// It has two connections, which are replaced when they fail: one for all actions, in their order
/// and without waiting for each other, and one that waits for messages from other nodes. While
/// Redis does not answer, actions fail and the server continues with its own memory.
#[derive(Debug)]
pub struct RedisStore {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: Arc<RedisOptions>,
    pub(crate) keys: Keys,
    /// For all actions.
    pub(crate) link: Link,
    mailbox: Mailbox,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    executed: AtomicU64,
    failed: AtomicU64,
    refused: AtomicU64,
    received: AtomicU64,
}

/// Reads the counters of a [`RedisStore`], for metrics and health checks.
#[derive(Clone, Debug)]
pub struct StoreMonitor(Arc<Inner>);

impl StoreMonitor {
    /// Returns the counters since the start.
    #[must_use]
    pub fn counters(&self) -> StoreCounters {
        let Inner { counts, link, .. } = &*self.0;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        StoreCounters {
            executed: read(&counts.executed),
            failed: read(&counts.failed),
            refused: read(&counts.refused),
            received: read(&counts.received),
            connections: read(&link.connections),
        }
    }
}

impl RedisStore {
    /// Connects to the Redis at `url`: `redis://USER:PASSWORD@HOST:PORT/DATABASE`, or `rediss://`
    /// for TLS, or `redis+unix:///PATH`.
    ///
    /// If Redis cannot be reached yet, the node starts without it: its server reports that it is
    /// not ready and refuses sessions with 503, until Redis answers.
    ///
    /// # Errors
    ///
    /// Redis refuses the credentials, the keys have an incompatible version, or an option is
    /// invalid.
    pub async fn connect(url: &str, options: RedisOptions) -> Result<Self, RedisStoreError> {
        let client = redis::Client::open(url);
        let client = client.map_err(|error| RedisStoreError::Options(error.to_string()))?;
        Self::with_client(client, options).await
    }

    /// Connects with a client of your own, for example one with certificates
    /// ([`redis::Client::build_with_tls`]).
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn with_client(
        client: redis::Client,
        options: RedisOptions,
    ) -> Result<Self, RedisStoreError> {
        Self::over(Deployment::Single(client), options).await
    }

    /// Connects to the master that Redis Sentinel names, and to its successor after a failover.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn with_sentinel(
        client: redis::sentinel::SentinelClient,
        options: RedisOptions,
    ) -> Result<Self, RedisStoreError> {
        Self::over(Deployment::Sentinel(async_lock::Mutex::new(client)), options).await
    }

    /// Connects to a Redis Cluster. The keys of a session are in one hash slot, and so are those of
    /// all nodes.
    ///
    /// A failover can reorder the actions of a session; the server then reports a loss.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn with_cluster(
        client: redis::cluster::ClusterClient,
        options: RedisOptions,
    ) -> Result<Self, RedisStoreError> {
        Self::over(Deployment::Cluster(client), options).await
    }

    async fn over(deployment: Deployment, options: RedisOptions) -> Result<Self, RedisStoreError> {
        options.check()?;
        let (deployment, options) = (Arc::new(deployment), Arc::new(options));
        let new_link =
            |blocking| Link::new(Arc::clone(&deployment), Arc::clone(&options), blocking);
        let inner = Inner {
            keys: Keys::new(&options.prefix),
            link: new_link(Duration::ZERO),
            mailbox: Mailbox::new(new_link(BLOCKING)),
            counts: Counts::default(),
            options: Arc::clone(&options),
        };
        inner.check_schema().await?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns access to the counters, for use after the store was given to a server.
    #[must_use]
    pub fn monitor(&self) -> StoreMonitor {
        StoreMonitor(Arc::clone(&self.inner))
    }
}

impl SharedStore for RedisStore {
    async fn execute(&self, action: StoreAction) -> StoreOutcome {
        let inner = &*self.inner;
        let outcome = inner.execute(action).await;
        let counts = &inner.counts;
        let count = match &outcome {
            Ok(StoreOutcome::Refused) => &counts.refused,
            Ok(_) => &counts.executed,
            Err(_) => &counts.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
        outcome.unwrap_or(StoreOutcome::Failed)
    }

    async fn receive(&self) -> Vec<u8> {
        let inner = &*self.inner;
        let message = inner.mailbox.receive(&inner.keys).await;
        inner.counts.received.fetch_add(1, Ordering::Relaxed);
        message
    }
}

impl Inner {
    /// Makes a node the receiver of messages.
    #[cfg(test)]
    pub(crate) async fn join(&self, node: mcp_sansio::http::NodeId) {
        self.mailbox.set_node(node);
        let lease = self.extend_lease(node, Duration::from_secs(10), true, 1).await.unwrap();
        assert!(lease.held);
    }

    async fn execute(&self, action: StoreAction) -> Result<StoreOutcome, Failure> {
        Ok(match action {
            StoreAction::Append { event } if self.append(&event).await? => StoreOutcome::Taken,
            StoreAction::Append { .. } => StoreOutcome::Refused,
            StoreAction::Read { from, events_max, bytes_max, .. } => {
                StoreOutcome::Events(self.read(from, events_max, bytes_max).await?)
            }
            StoreAction::Forget { session, stream: Some(stream), principal } => {
                self.forget(&session, stream, principal.as_ref()).await?;
                StoreOutcome::Taken
            }
            StoreAction::Heartbeat { node, lease, joins, contents, .. } => {
                self.mailbox.set_node(node);
                let lease = self.extend_lease(node, lease, joins, contents).await?;
                StoreOutcome::Reply(Ok(StoreReply::Lease(lease)))
            }
            StoreAction::Leave { node } => {
                self.leave(node).await?;
                StoreOutcome::Taken
            }
            StoreAction::Depose { node, contents, .. } => {
                StoreOutcome::Reply(Ok(StoreReply::Deposed(self.depose(node, contents).await?)))
            }
            StoreAction::PutSession {
                session,
                replica,
                taken,
                skipped,
                node,
                fields,
                idle,
                ..
            } => {
                let numbers = Numbers { replica, taken, skipped };
                let put = self.put_session(&session, numbers, node, &fields, idle).await?;
                StoreOutcome::Reply(put.map(|()| StoreReply::Done))
            }
            StoreAction::OpenSession { session, node, idle, .. } => {
                let opened = self.open_session(&session, node, idle).await?;
                StoreOutcome::Reply(opened.map(StoreReply::Opened))
            }
            StoreAction::ReadSession { session, .. } => {
                let found = self.read_session(&session).await?;
                StoreOutcome::Reply(found.map(StoreReply::Opened))
            }
            StoreAction::SetFields { session, fields, idle, .. } => {
                let found = self.set_fields(&session, &fields, idle).await?;
                StoreOutcome::Reply(found.map(|()| StoreReply::Done))
            }
            StoreAction::RemoveSession { session, requestor, refused_for, .. } => {
                self.remove_session(&session, requestor.as_deref(), refused_for).await?;
                StoreOutcome::Reply(Ok(StoreReply::Done))
            }
            StoreAction::RecordProof { proof, ttl, .. } => {
                let recorded = self.record_proof(&proof, ttl).await?;
                StoreOutcome::Reply(recorded.map(|()| StoreReply::Done))
            }
            StoreAction::PutTask { key, record, ttl, listed, .. } => {
                let put = self.put_task(&key, &record, ttl, listed).await?;
                StoreOutcome::Reply(put.map(|()| StoreReply::Done))
            }
            StoreAction::ReadTask { key, .. } => {
                StoreOutcome::Reply(self.read_task(&key).await?.map(StoreReply::Task))
            }
            StoreAction::ListTasks { requestor, cursor, tasks_max, .. } => {
                let page = self.list_tasks(&requestor, cursor.as_deref(), tasks_max).await?;
                StoreOutcome::Reply(page.map(StoreReply::Tasks))
            }
            StoreAction::Send { action, from, to, message, share } => {
                let taken = self.send(from, to, &message, &share).await?;
                let result = taken.then_some(StoreReply::Done).ok_or(StoreError::Unavailable);
                match action {
                    Some(_) => StoreOutcome::Reply(result),
                    None => StoreOutcome::Taken,
                }
            }
            // `Forget` of all streams, which a shared server does not emit, and later additions.
            _ => StoreOutcome::Taken,
        })
    }
}

// ------------------------------------------------------------------ options

/// The options of a [`RedisStore`]. All nodes of a deployment should have the
/// same.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedisOptions {
    /// The beginning of all keys, without braces. `mcp`: deployments that share a Redis need
    /// different ones.
    pub prefix: String,
    /// The name of this node, which `CLIENT LIST` shows. None by default.
    pub node: Option<String>,
    /// How long a stream is kept after its last event. 65 minutes: longer than a session is kept
    /// without a request, twice [`ServerTimeouts::session_idle`](mcp_sansio::http::ServerTimeouts).
    pub retention: Duration,
    /// Events kept of a stream, approximately. 10,000: more than twice as many as one process keeps
    /// in memory. A client that asks for an earlier event is told that it is lost.
    pub stream_events_max: usize,
    /// Messages that wait for a node. 4,096: a node that does not read them has ended or is
    /// overloaded. Beyond it, and beyond
    /// [`SharedOptions::mailbox_bytes_max`](mcp_sansio::http::SharedOptions), the answers of
    /// clients are refused and other messages are not sent; readers of streams notice within
    /// [`SharedOptions::poll`](mcp_sansio::http::SharedOptions).
    pub mailbox_max: usize,
    /// How long a message waits for a node. 1 minute: longer than any lease.
    pub mailbox_retention: Duration,
    /// The time to establish a connection. 2 s: a handshake with TLS on a slow network.
    pub connect_timeout: Duration,
    /// The time for the response to a command, after which the connection is replaced. 3 s: less
    /// than [`SharedOptions::patience`](mcp_sansio::http::SharedOptions), so that the failure is
    /// reported before a client's request times out.
    pub response_timeout: Duration,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: "mcp".into(),
            node: None,
            retention: Duration::from_secs(65 * 60),
            stream_events_max: 10_000,
            mailbox_max: 4096,
            mailbox_retention: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(2),
            response_timeout: Duration::from_secs(3),
        }
    }
}

impl RedisOptions {
    /// Returns the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the [prefix](Self::prefix) of all keys.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the [name](Self::node) of this node.
    #[must_use]
    pub fn node(mut self, name: impl Into<String>) -> Self {
        self.node = Some(name.into());
        self
    }

    pub(crate) fn check(&self) -> Result<(), RedisStoreError> {
        // A brace would change which part of a key decides about its place in a cluster.
        if self.prefix.is_empty() || self.prefix.contains(['{', '}']) {
            return Err(RedisStoreError::Options("the prefix is empty or has braces".into()));
        }
        let is_printable = |byte: u8| byte.is_ascii_graphic();
        if self.node.as_ref().is_some_and(|name| !name.bytes().all(is_printable)) {
            return Err(RedisStoreError::Options("the name of the node has spaces".into()));
        }
        Ok(())
    }
}

// ------------------------------------------------------------------ error

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedisStoreError {
    /// The URL or the [prefix](crate::RedisOptions::prefix) is invalid: the caller's fault.
    #[error("invalid options for Redis: {0}")]
    Options(String),
    /// Redis cannot be reached, or refuses the user: the deployment's fault. It may be temporary.
    #[error("Redis is not available: {0}")]
    Unavailable(#[source] redis::RedisError),
    /// The keys under the prefix belong to an incompatible version of this crate. Use another
    /// prefix, or end the other nodes and remove the keys.
    #[error("the keys under this prefix have schema {found}, and this version uses {used}")]
    Schema {
        /// The version of the keys.
        found: String,
        /// The version of this crate.
        used: &'static str,
    },
}

// ------------------------------------------------------------------ counters

/// The counters of a [`RedisStore`] since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreCounters {
    /// Actions that Redis has executed.
    pub executed: u64,
    /// Actions that failed, because Redis did not answer or refused them.
    pub failed: u64,
    /// Events that were not stored because another node had ended their stream.
    pub refused: u64,
    /// Messages received from other nodes.
    pub received: u64,
    /// Connections made for actions: one, and one more for each failure.
    pub connections: u64,
}

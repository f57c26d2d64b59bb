use std::time::Duration;

use crate::RedisStoreError;

/// The options of a [`RedisStore`](crate::RedisStore). All nodes of a deployment should have the
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
    /// [`SharedOptions::mailbox_bytes_max`](mcp_sansio::http::SharedOptions), the answers of clients
    /// are refused and other messages are not sent; readers of streams notice within
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
